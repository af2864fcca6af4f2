"""The folders of all chats: where each keeps its files, how they are shown, and what becomes of
them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from web.chats.chat import Chat
from web.chats.files.presence import STORED, Presence
from web.chats.files.shown_files import gone_file, shown_file
from web.chats.parts.file_kinds import FilesFoot, GoneFile, ShownFile
from web.chats.tasks import TaskOwner
from web.harness.builtin.chat_files import ChatFiles, Survey, on_disk
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.folder_lock import BUSY
from web.harness.builtin.versions import FileInfo, Version
from web.harness.values.errors import HarnessError
from web.harness.values.messages import JsonObject

log = logging.getLogger(__name__)

SHOWN_FILES = 200
SHOWN_GONE = 20
SHOWN_LEFT_OUT = 5

LOOK_SECONDS = 3.0
"""Between looks at the folder of a chat that somebody watches: files may be changed by hand."""

OPEN_SECONDS = 0.5
"""So long a page waits for its list of files before it opens without."""

_BUSY = "Another program holds them. The list is brought up to date when it is done."
_FRESH_SECONDS = 1.0
_MARK_SECONDS = 3600.0


@dataclass(slots=True)
class _Held:
    """What is known of one chat's folder. `rows` are the parts that show it, by their ids."""

    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    looked: float = float("-inf")
    changed: bool = True
    rows: set[str] = field(default_factory=set)
    versions: dict[str, tuple[FileInfo, tuple[Version, ...]]] = field(default_factory=dict)
    marked: tuple[str, float] = ("", float("-inf"))


class ChatFolders:
    """Gives each chat its one `ChatFiles`, and keeps the page's list of them true.

    `stored` says that chats outlive the server. `now` gives seconds since 1970. A page that is open
    is brought up to the disk at once by changes through `ChatFiles`, and every `look_seconds` by
    all others.
    """

    def __init__(
        self,
        root: Path,
        tasks: TaskOwner,
        *,
        now: Callable[[], float] = time.time,
        limits: FileLimits | None = None,
        look_seconds: float = LOOK_SECONDS,
        stored: bool = False,
    ) -> None:
        self.root = root
        self._tasks = tasks
        self._now = now
        self.limits = limits or FileLimits()
        self._look_seconds = look_seconds
        self._presence = Presence(root)
        self._lives_by = STORED if stored else self._presence.token
        self._held: dict[Chat, _Held] = {}

    def start(self) -> None:
        """Says that this server is there, and begins to look; within the life of `tasks`."""
        try:
            self._presence.begin()
        except OSError:
            # Whoever writes into it will be told; chats without files are none the worse.
            log.exception("The folder %s cannot be written to", self.root)
        self._tasks.create_task(self._keep_looking())

    def stop(self) -> None:
        """What its chats made is left behind from now on."""
        self._presence.end()

    def folder(self, chat: Chat) -> Path:
        """The folder of a chat; it is made when something is written into it."""
        return self.root / folder_name(chat)

    def of(self, chat: Chat) -> ChatFiles:
        """The files of a chat, always the same object: it remembers what it has read."""
        if chat.files is None:
            chat.files = ChatFiles(self.folder(chat), self.limits, self._now)
            chat.files.watch(lambda: self._noticed(chat))
            self._held[chat] = _Held()
        return chat.files

    async def look(self, chat: Chat) -> None:
        """Brings the parts of a chat up to its folder, unless that was done a moment ago."""
        files = self.of(chat)
        held = self._held.get(chat)
        if held is None:
            return
        async with held.looking:
            fresh = time.monotonic() - held.looked < _FRESH_SECONDS
            if fresh and not held.changed:
                return
            held.changed = False
            try:
                await self._look(chat, files, held)
            except HarnessError as error:
                fault = _BUSY if error.code == BUSY else error.message
                foot = replace(_foot(chat), fault=fault, waiting=False)
                chat.channel.put("files-rest", "files-foot", foot)
            held.looked = time.monotonic()
            await self._mark(chat, files, held)

    async def show(self, chat: Chat) -> None:
        """The same for a page that opens, which does not wait for files that are busy, or for very
        many: their list comes by itself, and until then it says so."""
        looking = self._tasks.create_task(self.look(chat))
        await asyncio.wait({looking}, timeout=OPEN_SECONDS)
        if not looking.done() and chat.channel.get("files-rest") is None:
            chat.channel.put("files-rest", "files-foot", FilesFoot(0, 0, 0, waiting=True))

    async def counted(self, chat: Chat) -> FilesFoot:
        """How many files a chat has, and how large they are together."""
        await self.look(chat)
        return _foot(chat)

    def leave(self, chat: Chat) -> None:
        """Forgets a chat that leaves the memory; its folder stays its own."""
        self._held.pop(chat, None)

    async def close(self, chat: Chat, *, remove: bool) -> None:
        """Ends with a chat that is gone for good: its folder is removed, or stays, left behind."""
        files = self.of(chat)
        del self._held[chat]
        try:
            if remove:
                await on_disk(lambda: remove_folder(files.folder))
            else:
                await files.mark(self._marker(chat, ""))
        except HarnessError:
            log.exception("The folder %s of a deleted chat is not as it should be", files.folder)

    async def _look(self, chat: Chat, files: ChatFiles, held: _Held) -> None:
        survey = await files.survey()
        newest = sorted(survey.files, key=lambda info: (-info.changed_at, info.path))[:SHOWN_FILES]
        known, held.versions = held.versions, {}
        rows: dict[str, ShownFile] = {}
        for info in newest:
            before = known.get(info.path)
            if before is not None and before[0] == info:
                versions = before[1]
            else:
                versions = await _versions(files, info)
            held.versions[info.path] = (info, versions)
            rows[row_id(info.path)] = shown_file(chat.channel, info, versions)
        foot = await self._foot(chat, files, survey, len(rows))
        for id in held.rows - rows.keys():
            chat.channel.remove(id)
        held.rows = set(rows)
        for id, row in rows.items():
            chat.channel.put(id, "files", row, rank=-row.changed_at)
        chat.channel.put("files-rest", "files-foot", foot)

    async def _foot(self, chat: Chat, files: ChatFiles, survey: Survey, shown: int) -> FilesFoot:
        there = {info.path for info in survey.files}
        found = [
            gone_file(chat.channel, path, versions)
            for path, versions in (await files.gone()).items()
            if path not in there
        ]
        gone: list[GoneFile] = sorted(
            (each for each in found if each is not None), key=lambda each: -each.at
        )
        return FilesFoot(
            count=len(survey.files),
            bytes=sum(info.size for info in survey.files),
            shown=shown,
            left_out=survey.left_out,
            named=survey.named[:SHOWN_LEFT_OUT],
            more=survey.more,
            gone=tuple(gone[:SHOWN_GONE]),
            gone_count=len(gone),
        )

    async def _mark(self, chat: Chat, files: ChatFiles, held: _Held) -> None:
        """Writes whose the folder is, now and then: its last use is told by it."""
        title, at = held.marked
        if title == chat.title and self._now() - at < _MARK_SECONDS:
            return
        with suppress(HarnessError):
            if await files.mark(self._marker(chat, self._lives_by)):
                held.marked = (chat.title, self._now())

    def _marker(self, chat: Chat, server: str) -> JsonObject:
        return {
            "chat": chat.id,
            "title": chat.title,
            "identity": identity_digest(chat),
            "used_at": self._now(),
            "server": server,
        }

    def _noticed(self, chat: Chat) -> None:
        held = self._held.get(chat)
        if held is None:
            return
        held.changed = True
        if chat.channel.is_watched or not held.marked[0]:
            # A change that is finished while the server ends is shown to nobody.
            with suppress(RuntimeError):
                self._tasks.create_task(self.look(chat))

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._look_seconds)
            # Side by side: one whose files are busy holds up no other.
            for chat, held in self._held.items():
                if chat.channel.is_watched and not held.looking.locked():
                    self._tasks.create_task(self.look(chat))


def _foot(chat: Chat) -> FilesFoot:
    """What is said of a chat's files now."""
    part = chat.channel.get("files-rest")
    return part.data if part and isinstance(part.data, FilesFoot) else FilesFoot(0, 0, 0)


async def _versions(files: ChatFiles, info: FileInfo) -> tuple[Version, ...]:
    """The versions of a file for the list. One that was changed by hand is left as it is: to ask
    for its versions would make one of it."""
    if info.last is None:
        return ()
    return await files.versions(info.path) if info.versions > 1 else (info.last,)


def remove_folder(folder: Path) -> None:
    """Removes a chat's folder with all that is in it; links in it go, what they lead to stays.

    One that is not there is fine. Raises OSError, also where the folder itself is a link.
    """
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def row_id(path: str) -> str:
    """The id of the part that shows a file."""
    return f"fl-{hashlib.sha256(path.encode()).hexdigest()[:16]}"


def identity_digest(chat: Chat) -> str:
    """Made from the whole identity and the id: equal chat ids of two users differ in it."""
    whole = json.dumps([chat.identity.tenant_id, chat.identity.user_id, chat.id])
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


def folder_name(chat: Chat) -> str:
    return f"{chat.id}-{identity_digest(chat)}"
