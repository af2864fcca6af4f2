"""Conversations in files: what a snapshot holds, its form as JSON, and folders of them."""
