"""What befalls a chat beside the events of its runs, in the order it happens."""
