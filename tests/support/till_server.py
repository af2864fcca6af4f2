"""An MCP server with one tool, `pay`, which tells that it has begun and ends when it is let go on.

Run with a folder: each call adds a line to `paid` in it; it then waits to read from the pipe `go`
there, and answers with what it read. A call tells that it has begun by the pipe `began`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

PAY = {
    "name": "pay",
    "description": "Pays.",
    "inputSchema": {"type": "object", "properties": {"amount": {"type": "integer"}}},
}


def main(folder: Path) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        told = {"jsonrpc": "2.0", "id": request["id"], "result": answer(request, folder)}
        print(json.dumps(told), flush=True)


def answer(request: dict[str, object], folder: Path) -> dict[str, object]:
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "till", "version": "1"},
            }
        case "tools/list":
            return {"tools": [PAY]}
        case "tools/call":
            with (folder / "paid").open("a") as paid:
                paid.write("paid\n")
            (folder / "began").write_text("x")
            return {"content": [{"type": "text", "text": (folder / "go").read_text()}]}
        case _:
            return {}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
