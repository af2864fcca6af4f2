"""Whole chats as files, chats made of them, and chats that go on from an earlier step."""
