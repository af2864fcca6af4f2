"""An MCP server that asks, and whose state of a request ends with its process: what the SDK does by
itself."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer

from web.demos.mcp_server import order_pizza

server: MCPServer[Any] = MCPServer("forgetting", log_level="WARNING")
server.add_tool(order_pizza)
server.run("stdio")
