"""An MCP server of plain lines that offers resources and prompts, with one fault each.

`python offering.py ERA [FAULT [FILE]]`, where ERA is `modern` or `legacy`. It needs no package, so
it starts at once. Its tool has something happen on its side. What it is asked to watch is kept in
FILE, a line each.
"""

from __future__ import annotations

import json
import os
import sys
import time

MODERN = sys.argv[1] == "modern"
FAULT = sys.argv[2] if len(sys.argv) > 2 else "none"
FILE = sys.argv[3] if len(sys.argv) > 3 else ""
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
EMPTY: dict[str, object] = {"type": "object"}
LISTS: dict[str, tuple[str, list[dict[str, object]]]] = {
    "tools/list": ("tools", [{"name": "step", "inputSchema": EMPTY}]),
    "resources/list": ("resources", [{"uri": "note://1", "name": "one"}]),
    "resources/templates/list": ("resourceTemplates", [{"uriTemplate": "n://{x}", "name": "t"}]),
    "prompts/list": ("prompts", [{"name": "plan", "arguments": [{"name": "where"}]}]),
}
BAD: dict[str, list[object]] = {
    "tools/list": [{"name": "null", "inputSchema": None}],
    "resources/list": [
        {"uri": "note://nameless"},
        {"uri": "note://2", "name": "two", "size": "big", "mimeType": 7, "title": "Two"},
        {"name": "nowhere"},
        "text",
    ],
    "resources/templates/list": [{"uriTemplate": "m://{x}", "name": 3}, {"uriTemplate": None}],
    "prompts/list": [
        {"name": "odd", "description": 5, "arguments": [{"name": "good"}, {"nameless": 1}, 2]},
        {"arguments": []},
    ],
}
ODD_MESSAGES = [
    {"role": "user", "content": "plain words"},
    {"role": "system", "content": {"type": "hologram", "of": "a cat"}},
    {"role": "assistant", "content": {"type": "text", "text": "fine"}},
]
ODD_CONTENTS = [{"uri": "note://1", "text": "good"}, {"text": "nowhere"}, {"uri": "note://1"}]
streams: list[object] = []
held: list[object] = []


def send(**message: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tell(method: str, stream: object = None, **params: object) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": stream}} if stream else {}
    send(method=f"notifications/{method}", params={**params, **meta})


def tell_all(method: str, **params: object) -> None:
    """What the newer protocol says on each stream, and the older one just so."""
    for stream in streams if MODERN else [None]:
        tell(method, stream, **params)


def listed(method: str, cursor: str | None) -> dict[str, object]:
    key, entries = LISTS[method]
    if FAULT == "bad":
        return {key: [*BAD[method], *entries]}
    if FAULT == "pages" and method != "tools/list":
        page = int(cursor or 0)
        entry = {
            name: f"{value}{page}" for name, value in entries[0].items() if name != "arguments"
        }
        return {key: [entry], "nextCursor": str(page + 1)} if page < 3 else {key: [entry]}
    if FAULT == "samepage" and method != "tools/list":
        return {key: entries, "nextCursor": "again"}
    return {key: entries}


def kept(words: str) -> None:
    if FILE:
        with open(FILE, "a") as file:
            file.write(words + "\n")


def step(number: object, arguments: dict[str, str]) -> None:
    """One thing that happens on the side of the server."""
    match arguments["do"]:
        case "grow":
            for key, entries in LISTS.values():
                late = {name: f"{value}late" for name, value in entries[0].items()}
                entries.append({**late, "inputSchema": EMPTY, "arguments": []})
                tell_all(f"{'resources' if key == 'resourceTemplates' else key}/list_changed")
        case "update":
            tell_all("resources/updated", uri=arguments["uri"])
        case "lose":
            for stream in list(streams):
                streams.remove(stream)
                send(method="notifications/cancelled", params={"requestId": stream})
        case "ask":
            words = [{"role": "user", "content": {"type": "text", "text": "hi"}}]
            params = {"messages": words, "maxTokens": 5}
            send(id="s1", method="sampling/createMessage", params=params)
            held.append(number)
            return
        case "go":
            # Without waiting for the answer to its own request.
            done(held.pop())
        case "end":
            os._exit(3)
    done(number)


def done(number: object) -> None:
    send(id=number, result={"content": [{"type": "text", "text": "done"}]})


def listen(number: object, params: dict[str, dict[str, object]]) -> None:
    wanted = params["notifications"]
    uris = wanted.get("resourceSubscriptions") or []
    kept(f"listen {' '.join(uris)}")  # type: ignore[arg-type]
    agreed = [uri for uri in uris if not uri.startswith("secret:")]  # type: ignore[attr-defined]
    streams.append(number)
    tell(
        "subscriptions/acknowledged",
        number,
        notifications={**wanted, "resourceSubscriptions": agreed},
    )


def answer(message: dict[str, object]) -> None:
    number, method = message.get("id"), message.get("method")
    params: dict[str, object] = message.get("params") or {}  # type: ignore[assignment]
    if method == "notifications/cancelled" and params.get("requestId") in streams:
        kept("unlisten")
        streams.remove(params["requestId"])
    if number is None or method is None or f"silent {method}" == FAULT:
        return
    if f"refuses {method}" == FAULT:
        send(id=number, error={"code": -32603, "message": "out of order"})
    elif method == "server/discover" and MODERN:
        send(id=number, result={"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES})
    elif method == "initialize":
        info = {"name": "offering", "version": "1"}
        version = {"protocolVersion": "2025-11-25", "serverInfo": info}
        send(id=number, result={**version, "capabilities": CAPABILITIES})
    elif method in LISTS:
        if FAULT == "slow" and method != "tools/list":
            time.sleep(0.1)
        send(id=number, result=listed(method, params.get("cursor")))  # type: ignore[arg-type]
    elif method == "tools/call":
        step(number, params["arguments"])  # type: ignore[arg-type]
    elif method == "subscriptions/listen" and MODERN:
        listen(number, params)  # type: ignore[arg-type]
    elif method in ("resources/subscribe", "resources/unsubscribe") and not MODERN:
        kept(f"{method} {params['uri']}")
        if str(params["uri"]).startswith("secret:"):
            send(id=number, error={"code": -32602, "message": "not this one"})
        else:
            send(id=number, result={})
    elif method == "resources/read" and params["uri"] == "note://gone":
        code = -32602 if MODERN else -32002
        send(id=number, error={"code": code, "message": "no such thing"})
    elif method == "resources/read":
        send(id=number, result={"contents": ODD_CONTENTS})
    elif method == "prompts/get":
        send(id=number, result={"messages": ODD_MESSAGES, "description": 5})
    elif method == "completion/complete":
        values: list[object] = [None, *(f"{each}\n" for each in range(200))]
        send(id=number, result={"completion": {"values": values}})
    else:
        send(id=number, error={"code": -32601, "message": "Method not found"})


while line := sys.stdin.readline():
    answer(json.loads(line))
