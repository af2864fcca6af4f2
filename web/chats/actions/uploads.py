"""Files that a person puts in: kept in the chat's folder, and attached to the next message.

What a file is, its bytes say; its name may say anything. Texts and pictures go to the model as
they are. Of all else, and of what is too much for a message, it is told the name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace

from web.chats.chat import Chat
from web.chats.files.file_names import free_names, legal_name
from web.chats.records.attachments import OWN_FILE, AttachmentLimits
from web.chats.registry.chats import Chats
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.versions import Origin
from web.harness.tools.encodings import HOW_TO_MEND, decoded, may_be_text
from web.harness.tools.picture_faults import picture_fault
from web.harness.tools.pictures import MODEL_TYPES, image_block, is_too_large
from web.harness.tools.sniff import HEAD_BYTES, TEXT, UNKNOWN, media_type_of
from web.harness.values.errors import LimitExceeded, ToolError
from web.harness.values.messages import AttachedBlock, ImageBlock, ResourceBlock
from web.harness.values.text import amount

_TEXTS = frozenset({TEXT, "text/html", "image/svg+xml"})
_PICTURE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_MOST_BYTES = 4
"""Of one character, in any encoding."""
_NOTHING = "it is neither text nor a picture that models take"
_UNCLEAR = f"in which encoding its text is cannot be told for sure; {HOW_TO_MEND}"


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A file as it came in: its name as the sender wrote it, its size in bytes.

    `chunks` reads it from its start, piece by piece, as often as it is called.
    """

    name: str
    size: int
    chunks: Callable[[], AsyncIterator[bytes]]

    async def head(self, size: int) -> bytes:
        """At least `size` bytes from the start, fewer only of a shorter file."""
        head = b""
        async for chunk in self.chunks():
            head += chunk
            if len(head) >= size:
                break
        return head

    async def whole(self) -> bytes:
        return b"".join([chunk async for chunk in self.chunks()])


@dataclass(frozen=True, slots=True)
class Judged:
    """What a file is to a message. `why` says why the model gets no more than its name."""

    given: GivenFile
    name: str
    media_type: str
    content: AttachedBlock | None = None
    why: str = ""
    encoding: str = ""
    """What a text is in that is not in UTF-8."""
    in_pieces: bool = False
    """Whether tools can read what the message does not take."""

    def called(self, name: str) -> AttachedBlock:
        """What is attached, of the file that lies in the chat's folder by this name."""
        if self.content is not None:
            return replace(self.content, name=name)
        text = (
            f"The file {name} ({self.media_type}, {amount(self.given.size)}) is not in this "
            f"message: {self.why}. It lies in the chat's folder under this name"
            f"{', where read_file reads it piece by piece' if self.in_pieces else ''}."
        )
        return ResourceBlock("", name, self.media_type, text, OWN_FILE, self.given.size)

    def words(self, name: str) -> str:
        """What the person should know of it, '' where all is as they would expect."""
        if self.content is None:
            where = ", where tools can read it piece by piece" if self.in_pieces else ""
            return (
                f"{name} goes along by its name only: {self.why}. It lies among the chat's files"
                f"{where}."
            )
        if isinstance(self.content, ResourceBlock) and name.lower().endswith(_PICTURE_ENDINGS):
            return f"{name} is no picture by its content, but {self.media_type}: attached as text."
        return f"{name} was read as {self.encoding}." if self.encoding else ""


async def judged(given: GivenFile, limits: AttachmentLimits, max_bytes: int) -> Judged:
    """What a file is. Raises LimitExceeded for one that is larger than a file may be."""
    name = legal_name(given.name)
    if given.size > max_bytes:
        raise LimitExceeded(
            f"{name} has {amount(given.size)}; a file takes at most {amount(max_bytes)}.",
            hint="It was not attached. All else is kept.",
            code="too_large",
        )
    media_type = media_type_of(await given.head(HEAD_BYTES))
    if media_type in MODEL_TYPES:
        picture, why = await _picture(given, name, limits)
        return Judged(given, name, media_type, picture, why)
    if media_type in _TEXTS or media_type == UNKNOWN:
        return await _text(given, name, media_type, limits)
    return Judged(given, name, media_type, None, _NOTHING)


async def take_in(chats: Chats, chat: Chat, files: ChatFiles, file: Judged) -> str:
    """Puts a file into the chat's folder and attaches it; returns what the person should know.

    Raises LimitExceeded or ToolError; then it is not attached.
    """
    chats.check_attachments(chat, [file.called(file.name)])
    name = await kept(files, file)
    await chats.attach(chat, [file.called(name)])
    return file.words(name)


async def kept(files: ChatFiles, file: Judged) -> str:
    """Puts a file into the chat's folder; returns its name there.

    Where the name is taken it gets another, unless that very content has it. Raises LimitExceeded
    or ToolError.
    """
    there = {info.path: info.size for info in await files.list()}
    if there.get(file.name) == file.given.size and await _written(files, file, file.name):
        return file.name
    for name in free_names(file.name, there):
        if await _written(files, file, name):
            return name
    raise ToolError(f"No name like {file.name} is free among the chat's files.")


async def _written(files: ChatFiles, file: Judged, name: str) -> bool:
    """Whether a file could get this name; it has it then."""
    try:
        await files.write_stream(name, file.given.chunks(), Origin("person"), replace=False)
    except ToolError as error:
        if error.code == "file_exists":
            return False
        raise
    return True


async def _picture(
    given: GivenFile, name: str, limits: AttachmentLimits
) -> tuple[ImageBlock | None, str]:
    """A picture for the model, or why there is none."""
    if given.size > limits.max_picture_bytes:
        most = amount(limits.max_picture_bytes)
        return None, f"it has {amount(given.size)}, and a picture takes at most {most}"
    data = await given.whole()
    fault = await asyncio.to_thread(picture_fault, data)
    if fault:
        return None, fault
    picture = await asyncio.to_thread(image_block, data, name)
    if picture is None:
        return None, "it is no picture that can be read"
    if is_too_large((picture.width, picture.height)):
        return None, f"it has {picture.width:,} x {picture.height:,} pixels, too many for a model"
    return picture, ""


async def _text(given: GivenFile, name: str, media_type: str, limits: AttachmentLimits) -> Judged:
    """A text for the model, or why there is none; what begins as none may be in some encoding."""
    too_long = (
        f"it has more than {limits.max_chars:,} characters, the most that an attachment takes"
    )
    if given.size > _MOST_BYTES * limits.max_chars:
        if media_type == UNKNOWN and not may_be_text(await given.head(HEAD_BYTES)):
            return Judged(given, name, media_type, None, _NOTHING)
        return Judged(given, name, media_type, None, too_long, in_pieces=media_type != UNKNOWN)
    data = await given.whole()
    found = await asyncio.to_thread(decoded, data)
    if found is None:
        why = _UNCLEAR if may_be_text(data) else _NOTHING
        return Judged(given, name, media_type, None, why)
    media_type = TEXT if media_type == UNKNOWN else media_type
    if len(found.text) > limits.max_chars:
        return Judged(given, name, media_type, None, too_long, in_pieces=True)
    block = ResourceBlock("", name, media_type, found.text, OWN_FILE)
    return Judged(given, name, media_type, block, encoding=found.encoding)
