"""What is kept of a chat beside its conversation: its record, what is attached, binary data."""
