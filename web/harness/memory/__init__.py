"""What an agent remembers: its conversation."""
