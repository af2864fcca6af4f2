"""What a running tool asks a person for, as the page shows it."""

from __future__ import annotations

from collections.abc import Iterator

from web.chats.parts.channel import Channel
from web.chats.parts.kinds import Call, Input
from web.chats.parts.links import shown_address
from web.chats.parts.listed_calls import all_calls
from web.harness.tools.forms import read_form
from web.harness.values.messages import JsonObject


def read_input(key: str, request: JsonObject) -> Input:
    """The request of an `InputRequired`, read; whatever is missing in it is empty."""
    server, message = str(request.get("server") or ""), str(request.get("message") or "")
    if request.get("mode") == "url":
        address = shown_address(str(request.get("url") or ""))
        return Input(key, request, server, message, address=address)
    return Input(key, request, server, message, read_form(request.get("schema")))


def open_inputs(channel: Channel) -> Iterator[tuple[Call, Input]]:
    """All that the calls of a chat ask for at the moment."""
    for call in all_calls(channel):
        yield from ((call, asked) for asked in call.inputs)


def find_input(channel: Channel, key: str) -> Input | None:
    """What is asked for under a key; None where that is not open."""
    return next((asked for _, asked in open_inputs(channel) if asked.key == key), None)
