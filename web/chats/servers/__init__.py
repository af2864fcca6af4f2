"""The MCP servers of chats: connections, tools, and what they offer a person."""
