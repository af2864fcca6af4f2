"""The files of chats."""
