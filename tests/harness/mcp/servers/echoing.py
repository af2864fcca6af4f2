"""An MCP server of plain lines that repeats its own API_TOKEN wherever it has words."""

from __future__ import annotations

import json
import os
import sys

WORDS = f"it is {os.environ['API_TOKEN']}!"
FORM = {
    "message": WORDS,
    "requestedSchema": {
        "type": "object",
        "properties": {"one": {"type": "string", "title": WORDS, "default": WORDS}},
    },
}
RESULTS: dict[str, dict[str, object]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
        "serverInfo": {"name": "e", "title": WORDS, "version": WORDS},
        "instructions": WORDS,
    },
    "tools/list": {
        "tools": [
            {
                "name": "go",
                "title": WORDS,
                "description": WORDS,
                "inputSchema": {
                    "type": "object",
                    "properties": {"a": {"type": "string", "description": WORDS, "enum": [WORDS]}},
                },
                "outputSchema": {"type": "object", "description": WORDS},
                "annotations": {"title": WORDS},
            }
        ]
    },
    "resources/list": {"resources": [{"uri": "x://1", "name": "n", "description": WORDS}]},
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "x://{a}", "name": "n", "description": WORDS}]
    },
    "prompts/list": {
        "prompts": [{"name": "p", "arguments": [{"name": "a", "description": WORDS}]}]
    },
    "resources/read": {"contents": [{"uri": "x://1", "text": WORDS}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": WORDS}}]},
    "completion/complete": {"completion": {"values": [WORDS]}},
}


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    message = json.loads(line)
    number, method = message.get("id"), message.get("method")
    if method == "tools/call":
        called = number
        token = message["params"]["_meta"]["progressToken"]
        told = {"progressToken": token, "progress": 1, "message": f"a\u202e{WORDS}"}
        send(method="notifications/progress", params=told)
        send(id="form", method="elicitation/create", params=FORM)
    elif number == "form":
        content = [{"type": "text", "text": WORDS}]
        send(id=called, result={"content": content, "structuredContent": {"deep": [WORDS]}})
    elif method in RESULTS:
        send(id=number, result=RESULTS[method])
    elif number is not None and method:
        send(id=number, error={"code": -32601, "message": WORDS})
