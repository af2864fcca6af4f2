"""The skills of chats."""
