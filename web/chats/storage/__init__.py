"""Chats in a durable store: loaded, listed, written, and shared with other servers."""
