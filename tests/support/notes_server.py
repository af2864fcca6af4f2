"""An MCP server of the older kind with resources, templates, prompts and completions, some hostile.

Run with a number: so many plain resources come after the others. With a second one, so many prompts
with long descriptions come after the others. The tool `touch` has the server tell that a resource
changed, to those who subscribed to it.
"""

from __future__ import annotations

import json
import sys

HOSTILE = "<img src=x onerror=alert(1)>\"'></b>\u202e\u200b"
LONG_NAME = "\u00fc" * 200
PICTURE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg"
    "gg=="
)
TODAY = "notes://today"

subscribed: set[str] = set()
touched = 0


def main(many: int) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        method, params = request["method"], request.get("params") or {}
        try:
            told = {"result": answer(method, params, many)}
        except LookupError as error:
            told = {"error": {"code": -32602, "message": str(error.args[0])}}
        send({"id": request["id"], **told})
        if method == "tools/call":
            touch(params["arguments"]["uri"])


def send(message: dict[str, object]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def touch(uri: str) -> None:
    global touched
    touched += 1
    if uri in subscribed:
        send({"method": "notifications/resources/updated", "params": {"uri": uri}})


def answer(method: str, params: dict[str, object], many: int) -> dict[str, object]:
    match method:
        case "initialize":
            offered = {"listChanged": False, "subscribe": True}
            capabilities = {"tools": {}, "resources": offered, "prompts": {}, "completions": {}}
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": {"name": "notes", "version": "1"},
            }
        case "tools/list":
            schema = {"type": "object", "properties": {"uri": {"type": "string"}}}
            return {"tools": [{"name": "touch", "inputSchema": schema}]}
        case "tools/call":
            return {"content": [{"type": "text", "text": "touched"}]}
        case "resources/list":
            return {"resources": resources(many)}
        case "resources/templates/list":
            return {"resourceTemplates": TEMPLATES}
        case "resources/read":
            return {"contents": read(str(params["uri"]))}
        case "resources/subscribe":
            subscribed.add(str(params["uri"]))
            return {}
        case "resources/unsubscribe":
            subscribed.discard(str(params["uri"]))
            return {}
        case "prompts/list":
            return {"prompts": PROMPTS + wordy(int(sys.argv[2]) if len(sys.argv) > 2 else 0)}
        case "prompts/get":
            return prompt(str(params["name"]), params.get("arguments") or {})
        case "completion/complete":
            return {"completion": {"values": completions(params), "hasMore": False}}
        case "ping":
            return {}
    raise LookupError(f"no {method} here")


def resources(many: int) -> list[dict[str, object]]:
    named: list[dict[str, object]] = [
        {"uri": TODAY, "name": "today", "title": "Today", "mimeType": "text/markdown", "size": 40},
        {"uri": "notes://hostile", "name": HOSTILE, "description": HOSTILE},
        {"uri": "notes://picture", "name": "picture", "mimeType": "image/png"},
        {"uri": "notes://data", "name": "data", "mimeType": "application/zip"},
        {"uri": "notes://long", "name": "long", "mimeType": "text/plain"},
        {"uri": "notes://gone", "name": "gone"},
    ]
    for number in range(many):
        named.append({"uri": f"notes://n/{number}", "name": f"note {number}"})
    return named


TEMPLATES = [
    {"uriTemplate": "notes://{folder}/{name}{?q}", "name": "note", "title": "A note"},
    {"uriTemplate": "notes://{", "name": "broken"},
]


def read(uri: str) -> list[dict[str, object]]:
    if uri == TODAY:
        text = f"# Today\n\nTouched {touched} times. <b onclick=alert(1)>bold</b>\n"
        return [{"uri": uri, "mimeType": "text/markdown", "text": text}]
    if uri == "notes://picture":
        return [{"uri": uri, "mimeType": "image/png", "blob": PICTURE}]
    if uri == "notes://data":
        return [{"uri": uri, "mimeType": "application/zip", "blob": "AAECAw=="}]
    if uri == "notes://long":
        return [{"uri": uri, "mimeType": "text/plain", "text": "long " * 50_000}]
    if uri == "notes://gone":
        raise LookupError("this note is gone")
    return [{"uri": uri, "mimeType": "text/plain", "text": f"This is {uri}. {HOSTILE}"}]


PROMPTS = [
    {"name": "plain", "title": "A plain one", "description": "Brings one text."},
    {
        "name": "letter",
        "description": "Writes a letter.",
        "arguments": [
            {"name": "to", "description": "Who gets it", "required": True},
            {"name": "tone", "description": HOSTILE},
        ],
    },
    {"name": "mixed", "description": "Brings several messages."},
    {"name": "broken"},
    {"name": HOSTILE, "title": HOSTILE, "description": HOSTILE},
    {"name": LONG_NAME},
]


def wordy(many: int) -> list[dict[str, object]]:
    fields = [{"name": f"f{number}", "description": "d" * 900} for number in range(10)]
    return [
        {"name": f"wordy{number}", "description": "d" * 900, "arguments": fields}
        for number in range(many)
    ]


def prompt(name: str, arguments: object) -> dict[str, object]:
    if name == "letter" and isinstance(arguments, dict):
        text = f"A {arguments.get('tone', 'calm')} letter to {arguments['to']}."
        return {"messages": [said("user", text)]}
    if name == "mixed":
        note = {"uri": TODAY, "mimeType": "text/markdown", "text": "# Today\n"}
        return {
            "messages": [
                said("user", "What is on today?"),
                said("assistant", "Rain."),
                {"role": "user", "content": {"type": "resource", "resource": note}},
                {
                    "role": "user",
                    "content": {"type": "image", "data": PICTURE, "mimeType": "image/png"},
                },
                said("user", "And tomorrow?"),
            ]
        }
    if name == "broken":
        raise LookupError("the prompt is out of order")
    return {"messages": [said("user", f"Text of {name[:40]}")]}


def said(role: str, text: str) -> dict[str, object]:
    return {"role": role, "content": {"type": "text", "text": text}}


def completions(params: dict[str, object]) -> list[str]:
    """Names that start with what is typed; for a tone it depends on who gets the letter."""
    argument, context = params["argument"], params.get("context")
    assert isinstance(argument, dict)
    if argument["name"] == "tone":
        told = context.get("arguments", {}) if isinstance(context, dict) else {}
        return [f"kind to {told.get('to', 'nobody')}"]
    return [each for each in ("Ada", "Alan", "Grace") if each.startswith(argument["value"])]


if __name__ == "__main__":
    main(int(sys.argv[1]))
