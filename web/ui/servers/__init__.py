"""MCP servers on the page: connected, signed in to, and what they offer."""
