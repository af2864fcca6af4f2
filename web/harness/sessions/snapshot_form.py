"""Snapshots as one JSON object and back, for stores that keep them whole."""

from __future__ import annotations

from typing import Any

from web.harness.sessions.snapshot import SessionSnapshot, check_names
from web.harness.values.codec import message_from_json, message_to_json
from web.harness.values.json_form import Fields, JsonRefused, json_copy
from web.harness.values.messages import JsonObject, Message

FORM_VERSION = 1


def snapshot_to_json(snapshot: SessionSnapshot) -> JsonObject:
    """Messages in the form of `values.codec`, pictures included. Raises NotSerialisable, and
    HarnessError (`invalid_id`) for a conversation whose name cannot be kept."""
    check_names(snapshot)
    return {
        "v": FORM_VERSION,
        "revision": snapshot.revision,
        "replayable": snapshot.replayable,
        "state": json_copy(snapshot.state, "state"),
        "history": [message_to_json(each) for each in snapshot.history],
        "conversations": {
            name: [message_to_json(each) for each in messages]
            for name, messages in snapshot.conversations.items()
        },
    }


def snapshot_from_json(form: Any) -> SessionSnapshot:
    """Raises JsonRefused with what is wrong with it."""
    fields = Fields(form, "")
    if fields.whole("v") > FORM_VERSION:
        raise JsonRefused("A later version wrote this snapshot.", code="from_the_future")
    snapshot = SessionSnapshot(
        revision=fields.whole("revision"),
        replayable=fields.flag("replayable"),
        state=fields.mapping("state"),
        history=_messages(fields.items("history"), "history"),
        conversations={
            name: _messages(messages, name)
            for name, messages in fields.mapping("conversations").items()
        },
    )
    fields.done()
    return snapshot


def _messages(forms: Any, where: str) -> tuple[Message, ...]:
    if not isinstance(forms, list):
        raise JsonRefused(f"{where} has to be a list.")
    return tuple(message_from_json(form, None, f"{where}[{at}]") for at, form in enumerate(forms))
