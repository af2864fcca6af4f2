"""An MCP server of plain lines, with one fault each. It needs no package, so it starts at once.

`python raw.py FAULT [VALUE]`. Without a fault it speaks the protocol of 2025-11-25; the tools are
in `call`. Whatever it is sent is kept in the file that RAW_SEEN names, one message a line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

FAULT = sys.argv[1] if len(sys.argv) > 1 else "none"
VALUE = sys.argv[2] if len(sys.argv) > 2 else ""
MODERN = FAULT.startswith("modern")
TOOLS = ["echo", "silent", "busy", "die", "half", "unreadable", "odd", "flood", "log", "grow"]


def write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def send(**message: object) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}))


def tool(name: str, **more: object) -> dict[str, object]:
    return {"name": name, "description": name, "inputSchema": {"type": "object"}, **more}


def listed(cursor: str | None) -> dict[str, object]:
    if FAULT == "manyvalues":
        return {"tools": [tool("vast", inputSchema={"type": "object", "x": [[]] * 250_000})]}
    if FAULT == "largetools":
        return {"tools": [tool("large", inputSchema={"x": "x" * 300_000}), tool("echo")]}
    if FAULT == "badtools":
        bad = [
            {"name": "null", "inputSchema": None},
            {"name": "none"},
            tool("wrong", annotations="destructive", outputSchema={"type": "array"}),
            {"inputSchema": {}},
            "text",
            tool("later", execution={"taskSupport": "required"}),
        ]
        able = tool("echo", execution={"taskSupport": "optional"})
        return {"tools": [*bad, able], "nextCursor": None}
    if FAULT == "pages":
        page = int(cursor or 0)
        more = {"nextCursor": str(page + 1)} if page < 4 else {}
        return {"tools": [tool(f"t{page}")], **more}
    if FAULT == "samepage":
        return {"tools": [tool("again")], "nextCursor": ""}
    if FAULT == "endless":
        page = int(cursor or 0)
        return {"tools": [tool(f"t{page}")], "nextCursor": str(page + 1)}
    names = TOOLS + (["late"] if os.path.exists(VALUE) and FAULT == "growing" else [])
    return {"tools": [tool(name) for name in names]}


def call(number: object, name: str, arguments: dict[str, object], meta: dict[str, object]) -> None:
    token = meta.get("progressToken")
    text = json.dumps(arguments)
    if name == "silent":
        return
    if name == "busy":
        for step in range(int(arguments["steps"])):  # type: ignore[call-overload]
            time.sleep(float(arguments["seconds"]))  # type: ignore[arg-type]
            progress(token, step + 1, f"step {step + 1}")
    if name == "flood":
        for step in range(20_000):
            progress(token, step + 1, "")
    if name == "die":
        os._exit(7)
    if name == "half":
        sys.stdout.write('{"jsonrpc": "2.0", "id"')
        sys.stdout.flush()
        os._exit(0)
    if name == "unreadable":
        deep = "[" * 100_000 + "]" * 100_000
        write(f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":{deep}}}}}')
        return
    if name == "long":
        text = "x" * (65 * 2**20)
        write(f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":["{text}"]}}}}')
        return
    if name == "odd":
        items = [{"type": "hologram", "of": "a cat"}, {"type": "text", "text": "plain"}]
        write(f'{{"jsonrpc":"2.0","id":{number},"result":{json.dumps({"content": items})}}}')
        return
    if name == "log":
        send(
            method="notifications/message",
            params={"level": "warning", "logger": "raw", "data": arguments.get("data")},
        )
        write("\x1b[31mnot a message\x1b[0m")
    if name == "grow":
        with open(VALUE, "w"):
            pass
        for _ in range(3):
            send(method="notifications/tools/list_changed")
    send(id=number, result={"content": [{"type": "text", "text": text}]})


def progress(token: object, step: int, words: str) -> None:
    params = {"progressToken": token, "progress": step, "total": 20_000, "message": words}
    send(method="notifications/progress", params=params)


def answer(message: dict[str, object]) -> None:
    number, method = message.get("id"), message.get("method")
    params: dict[str, object] = message.get("params") or {}  # type: ignore[assignment]
    if number is None or method is None:
        return
    if FAULT == "hang" or (FAULT == "nolist" and method == "tools/list"):
        return
    if method == "server/discover" and FAULT == "crashprobe":
        os._exit(3)
    if method == "server/discover" and FAULT == "mute":
        return
    if method == "server/discover" and MODERN:
        capabilities = {"tools": {"listChanged": True}}
        send(id=number, result={"supportedVersions": ["2026-07-28"], "capabilities": capabilities})
    elif method == "initialize":
        version = VALUE if FAULT == "version" else "2025-11-25"
        info = {"name": "raw", "title": "Raw server", "version": "1.2"}
        capabilities = {"tools": {"listChanged": True}, "logging": {}}
        send(
            id=number,
            result={
                "protocolVersion": version,
                "capabilities": capabilities,
                "serverInfo": info,
                "instructions": "Be brief.",
            },
        )
        if FAULT == "dies" and not os.path.exists(VALUE):
            with open(VALUE, "w"):
                pass
    elif method == "tools/list":
        send(id=number, result=listed(params.get("cursor")))  # type: ignore[arg-type]
    elif method == "tools/call":
        meta: dict[str, object] = params.get("_meta") or {}  # type: ignore[assignment]
        call(number, params["name"], params.get("arguments") or {}, meta)  # type: ignore[arg-type]
    elif method == "logging/setLevel":
        send(id=number, result={})
    else:
        send(id=number, error={"code": -32601, "message": "Method not found"})


def main() -> None:
    if FAULT == "exit":
        sys.stderr.write("\x1b[31mno licence\x1b[0m: key sk-very-secret\nbye\n")
        sys.exit(3)
    if FAULT == "grandchild":
        kept = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(VALUE, "w") as file:
            file.write(f"{os.getpid()} {kept.pid}")
    if FAULT == "daemon":
        command = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
        kept = subprocess.Popen(command, start_new_session=True)
        with open(VALUE, "w") as file:
            file.write(f"{os.getpid()} {kept.pid}")
    if FAULT == "stubborn":
        # Its child inherits that it ignores the signal.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kept = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(VALUE, "w") as file:
            file.write(f"{os.getpid()} {kept.pid}")
    if FAULT in ("garbage", "onlygarbage"):
        write("\ufeffWelcome!\n\x1b[1mbanner\x1b[0m\n{not json\n[]\n42")
        sys.stdout.buffer.write(b"\xff\xfe\xfd\n")
        sys.stdout.flush()
    if FAULT == "longline":
        write("x" * int(VALUE))
    if FAULT == "stderr":
        sys.stderr.write(("x" * 99 + "\n") * 50_000)
        sys.stderr.flush()
    seen = os.environ.get("RAW_SEEN")
    while line := sys.stdin.readline():
        if seen:
            with open(seen, "a") as file:
                file.write(line)
        if FAULT != "onlygarbage":
            answer(json.loads(line))
    if FAULT == "stubborn":
        while True:
            time.sleep(60)


main()
