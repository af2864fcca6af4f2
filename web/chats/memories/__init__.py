"""What chats remember of a person."""
