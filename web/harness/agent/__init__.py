"""An agent: one conversation, one active run; it performs what the loop decides."""
