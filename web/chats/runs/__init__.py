"""Runs of chats: performed in turn, written down, gone on with after a crash, ended."""
