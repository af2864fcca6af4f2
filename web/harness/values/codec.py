"""Messages as JSON and back, for everything that writes them down: snapshots, rows, journals.

| field of a message | |
|---|---|
| v | version of this form, 1; a message of a later one is refused |
| id, role, parent_id | as in `Message` |
| content | blocks: objects with a `type` and the fields of that block |

Fields that hold their default are left out. The bytes of a picture are base64 in `data`; with
`keep` they go there instead, by their sha256, and `load` has to give them again. What was written
comes back equal, bytes included.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from web.harness.values.json_form import Fields, JsonRefused, json_copy, kind_of
from web.harness.values.messages import (
    ContentBlock,
    ImageBlock,
    JsonObject,
    Message,
    ResourceBlock,
    ResultContent,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.text import MAX_DEPTH

MESSAGE_VERSION = 1

Keep = Callable[[str, bytes], None]
"""Takes the bytes of a picture under their sha256; the same one may come often."""

Load = Callable[[str], bytes]
"""The bytes of a sha256. Raises LookupError where they are not there."""

_ROLES: tuple[str, ...] = get_args(Role)


def message_to_json(message: Message, keep: Keep | None = None) -> JsonObject:
    """Raises NotSerialisable for arguments of a call that JSON cannot hold."""
    form: JsonObject = {"v": MESSAGE_VERSION, "id": message.id, "role": message.role}
    if message.parent_id is not None:
        form["parent_id"] = message.parent_id
    form["content"] = [_block_to_json(block, message.id, keep) for block in message.content]
    return form


def message_from_json(form: Any, load: Load | None = None, where: str = "message") -> Message:
    """Raises JsonRefused, whose message names the field by `where`."""
    fields = Fields(form, where)
    version = fields.whole("v")
    if version > MESSAGE_VERSION:
        raise JsonRefused(
            f"{where} is in form {version}; this version reads up to {MESSAGE_VERSION}.",
            hint="It was written by a later version. Update this one.",
            code="from_the_future",
        )
    if version < 1:
        raise JsonRefused(f"{fields.name('v')} is {version}; there is no such form.")
    role = fields.text("role")
    if role not in _ROLES:
        raise JsonRefused(f"{fields.name('role')} is {kind_of(role)}, which is no role.")
    content = [
        _block_from_json(each, f"{where}.content[{at}]", load)
        for at, each in enumerate(fields.items("content"))
    ]
    message_id = fields.text("id")
    if not message_id:
        raise JsonRefused(f"{fields.name('id')} is empty.")
    parent_id = fields.text_or_none("parent_id")
    fields.done()
    made: Role = "user" if role == "user" else "assistant" if role == "assistant" else "tool"
    return Message(message_id, made, tuple(content), parent_id)


def messages_to_json(messages: Iterable[Message], keep: Keep | None = None) -> list[JsonObject]:
    return [message_to_json(message, keep) for message in messages]


def messages_from_json(
    forms: Any, load: Load | None = None, where: str = "messages"
) -> tuple[Message, ...]:
    """A whole conversation, checked by `check_conversation`. Raises JsonRefused."""
    if not isinstance(forms, list):
        raise JsonRefused(f"{where} is {kind_of(forms)} and has to be a list.")
    messages = tuple(
        message_from_json(form, load, f"{where}[{at}]") for at, form in enumerate(forms)
    )
    check_conversation(messages, where)
    return messages


def check_conversation(messages: Sequence[Message], where: str = "messages") -> None:
    """Raises JsonRefused unless a model can be sent it: ids occur once, and the calls of each
    answer have their results, in order, in the message after it."""
    ids: set[str] = set()
    open_calls: tuple[str, ...] = ()
    calls: set[str] = set()
    for at, message in enumerate(messages):
        name = f"{where}[{at}]"
        if message.id in ids:
            raise JsonRefused(f"{name}.id occurs twice.")
        ids.add(message.id)
        for block in message.content:
            _check_place(message.role, block, name)
        results = tuple(
            block.call_id for block in message.content if isinstance(block, ToolResultBlock)
        )
        if results != open_calls:
            raise JsonRefused(
                f"{name} holds {len(results)} results where the answer before it made "
                f"{len(open_calls)} calls, or results of other calls, or in another order."
            )
        open_calls = tuple(use.id for use in message.tool_uses)
        if len(set(open_calls)) < len(open_calls) or calls & set(open_calls):
            raise JsonRefused(f"{name} uses the id of a call twice.")
        calls |= set(open_calls)
    if open_calls:
        raise JsonRefused(f"{where} ends with {len(open_calls)} calls that have no result.")


def _check_place(role: Role, block: ContentBlock, name: str) -> None:
    """Each role has its kinds of blocks."""
    match block:
        case ToolResultBlock():
            fits = role == "tool"
        case ToolUseBlock() | ThinkingBlock():
            fits = role == "assistant"
        case ResourceBlock() | ImageBlock():
            fits = role == "user"
        case TextBlock():
            fits = role != "tool"
    if not fits:
        raise JsonRefused(f"{name} is a message of the {role} and holds a {block.type}.")


def _block_to_json(block: ContentBlock, message_id: str, keep: Keep | None) -> JsonObject:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ThinkingBlock():
            return _without_defaults(
                {
                    "type": "thinking",
                    "text": block.text,
                    "signature": block.signature,
                    "redacted": block.redacted,
                }
            )
        case ToolUseBlock():
            where = f"the arguments of call {block.id} in message {message_id}"
            return _without_defaults(
                {
                    "type": "tool_use",
                    "id": block.id,
                    "name": block.name,
                    "arguments": json_copy(block.arguments, where, MAX_DEPTH + 1),
                    "malformed": block.malformed,
                }
            )
        case ToolResultBlock():
            return _without_defaults(
                {
                    "type": "tool_result",
                    "call_id": block.call_id,
                    "content": [_block_to_json(each, message_id, keep) for each in block.content],
                    "is_error": block.is_error,
                }
            )
        case ResourceBlock():
            return _without_defaults(
                {
                    "type": "resource",
                    "uri": block.uri,
                    "name": block.name,
                    "media_type": block.media_type,
                    "text": block.text,
                    "source": block.source or None,
                    "file_bytes": block.file_bytes,
                }
            )
        case ImageBlock():
            return _image_to_json(block, keep)


def _without_defaults(form: JsonObject) -> JsonObject:
    return {key: value for key, value in form.items() if value is not None and value is not False}


def _image_to_json(block: ImageBlock, keep: Keep | None) -> JsonObject:
    form: JsonObject = {
        "type": "image",
        "media_type": block.media_type,
        "sha256": block.sha256,
        "name": block.name or None,
        "width": block.width or None,
        "height": block.height or None,
        "left_out": block.left_out or None,
        "length": block.length or None,
    }
    if block.data:
        if keep is not None:
            keep(block.sha256, block.data)
            form["kept"] = len(block.data)
        else:
            form["data"] = base64.b64encode(block.data).decode("ascii")
    return _without_defaults(form)


def _block_from_json(form: Any, where: str, load: Load | None) -> ContentBlock:
    fields = Fields(form, where)
    kind = fields.text("type")
    block: ContentBlock
    match kind:
        case "text":
            block = TextBlock(fields.text("text"))
        case "thinking":
            signature = fields.text_or_none("signature")
            block = ThinkingBlock(fields.text("text"), signature, fields.flag("redacted", False))
        case "tool_use":
            block = _tool_use(fields)
        case "tool_result":
            content = tuple(
                _result_content(each, f"{where}.content[{at}]", load)
                for at, each in enumerate(fields.items("content"))
            )
            block = ToolResultBlock(fields.text("call_id"), content, fields.flag("is_error", False))
        case "resource":
            block = ResourceBlock(
                fields.text("uri"),
                fields.text("name"),
                fields.text("media_type"),
                fields.text("text"),
                fields.text("source", ""),
                fields.whole("file_bytes") if fields.has("file_bytes") else None,
            )
        case "image":
            block = _image(fields, load)
        case _:
            raise JsonRefused(f"{fields.name('type')} is {kind_of(kind)}, which is no block.")
    fields.done()
    return block


def _tool_use(fields: Fields) -> ToolUseBlock:
    call_id = fields.text("id")
    if not call_id:
        raise JsonRefused(f"{fields.name('id')} is empty.")
    arguments = fields.mapping("arguments", {})
    if _depth(arguments, MAX_DEPTH + 1):
        raise JsonRefused(f"{fields.name('arguments')} is nested more than {MAX_DEPTH} deep.")
    return ToolUseBlock(call_id, fields.text("name"), arguments, fields.text_or_none("malformed"))


def _depth(value: Any, most: int) -> bool:
    """Whether a JSON value is nested deeper than that."""
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return most <= 0 or any(_depth(each, most - 1) for each in inner)


def _result_content(form: Any, where: str, load: Load | None) -> ResultContent:
    block = _block_from_json(form, where, load)
    if not isinstance(block, TextBlock | ImageBlock):
        raise JsonRefused(f"{where} is a {block.type}, which no result holds.")
    return block


def _image(fields: Fields, load: Load | None) -> ImageBlock:
    sha256 = fields.text("sha256")
    data = b""
    if fields.has("data"):
        try:
            data = base64.b64decode(fields.text("data"), validate=True)
        except (binascii.Error, ValueError):
            raise JsonRefused(f"{fields.name('data')} is no base64.") from None
    elif fields.has("kept"):
        data = _loaded(fields, sha256, load)
    left_out = fields.text("left_out", "")
    if not data and not left_out:
        raise JsonRefused(f"{fields.where} is a picture without its bytes.")
    if data and hashlib.sha256(data).hexdigest() != sha256:
        raise JsonRefused(f"{fields.where} holds other bytes than its sha256 says.")
    return ImageBlock(
        fields.text("media_type"),
        sha256,
        data,
        fields.text("name", ""),
        fields.whole("width", 0),
        fields.whole("height", 0),
        left_out,
        fields.whole("length", 0),
    )


def _loaded(fields: Fields, sha256: str, load: Load | None) -> bytes:
    length = fields.whole("kept")
    try:
        data = load(sha256) if load is not None else b""
    except LookupError:
        data = b""
    if len(data) != length:
        raise JsonRefused(f"{fields.where} is a picture whose {length:,} bytes are not there.")
    return data
