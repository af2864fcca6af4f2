"""`AgentRuntime`: an agent whose runs are written down at each step, and what they are kept in."""
