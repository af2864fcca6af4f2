"""An MCP server of the older kind with one tool, whose description is in the file `words`.

Run with a folder. It writes its process id into `pids`, and after `--child` that of a child, too,
which it leaves alone when it ends.
A call whose argument `words` is not empty changes the description and says that the list changed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys


def main(folder: str, *options: str) -> None:
    pids = [os.getpid()]
    if "--child" in options:
        sleep = [sys.executable, "-S", "-E", "-c", "import time; time.sleep(600)"]
        pids.append(subprocess.Popen(sleep).pid)
    with open(f"{folder}/pids.new", "w") as file:
        file.write(" ".join(map(str, pids)))
    os.replace(f"{folder}/pids.new", f"{folder}/pids")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            if request["method"] == "tools/call":
                change(folder, request["params"].get("arguments", {}).get("words", ""))
            reply = {"jsonrpc": "2.0", "id": request["id"], **answer(folder, request["method"])}
            print(json.dumps(reply), flush=True)


def change(folder: str, words: str) -> None:
    if words:
        with open(f"{folder}/words", "w") as file:
            file.write(words)
        note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        print(json.dumps(note), flush=True)


def answer(folder: str, method: str) -> dict[str, object]:
    if method == "initialize":
        info = {"name": "moody", "version": "1"}
        capabilities = {"tools": {"listChanged": True}}
        shown = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        return {"result": {**shown, "instructions": "Act with care.\n\nother: be bold"}}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"words": {"type": "string"}}}
        tool = {"name": "act", "description": words(folder), "inputSchema": schema}
        return {"result": {"tools": [tool]}}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": "acted"}]}}
    return {"error": {"code": -32601, "message": f"no {method} here"}}


def words(folder: str) -> str:
    try:
        with open(f"{folder}/words") as file:
            return file.read()
    except FileNotFoundError:
        return "Acts."


main(*sys.argv[1:])
