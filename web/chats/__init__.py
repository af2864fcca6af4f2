"""Chats in memory: the registry, turns, transcripts, records and identity. No HTML and no HTTP."""
