"""Live connections to MCP servers, offered as tools."""
