"""The skills of all chats: what each chat can use, how it is shown, and what a model gets of it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from web.chats.chat import Chat
from web.chats.parts.channel import Channel
from web.chats.parts.command_list import CommandList
from web.chats.parts.offer_kinds import Command
from web.chats.runs.equipment import Connected
from web.chats.skills.skill_shelf import SkillShelf, ref_of
from web.chats.tasks import TaskOwner
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.skill_tools import SkillUse, skill_instructions, skill_tools
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.skills.library import SkillLibrary
from web.harness.skills.prompt import skills_prompt
from web.harness.skills.skill import SkillOrigin, SkillText
from web.harness.tools.tool import Tool
from web.harness.values.errors import HarnessError
from web.harness.values.messages import ResourceBlock

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""Between looks at the disk while somebody watches: no page is older than that."""

SOURCE = "skill"
"""The source of an attachment that is a skill which the person called by name."""

_CALLED = re.compile(r"\s*/(?P<name>[a-z0-9]+(?:-[a-z0-9]+)*)(?:\s|$)")

_SERVED: frozenset[SkillOrigin] = frozenset({"server", "sample"})
_ALL: frozenset[SkillOrigin] = _SERVED | {"upload"}


@dataclass(slots=True)
class _Held:
    """Of one chat: its tools, the version and the switches that are shown, and the rows of that."""

    tools: list[Tool]
    shown: tuple[int, tuple[str, ...]] = (-1, ())
    rows: set[str] = field(default_factory=set)


class ChatSkills:
    """What the chats of all identities have of one library.

    `folder` is where a chat keeps its files, and its scripts run; they get PATH, HOME and LANG of
    `environ`, and what they change is kept by the chat's `files`. A page that is open is brought up
    to the disk every `look_seconds`.
    """

    def __init__(
        self,
        library: SkillLibrary,
        tasks: TaskOwner,
        *,
        folder: Callable[[Chat], Path],
        environ: Mapping[str, str],
        files: Callable[[Chat], ChatFiles] | None = None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._library = library
        self._tasks = tasks
        self._folder = folder
        self._environ = environ
        self._files = files
        self._look_seconds = look_seconds
        self._shelves: dict[HarnessIdentity, SkillShelf] = {}
        self._chats: dict[Chat, _Held] = {}
        self._side_bars: dict[HarnessIdentity, Channel] = {}

    def start(self) -> None:
        """Begins to look at the disk for those who watch; `tasks` ends it."""
        self._tasks.create_task(self._keep_looking())

    def add(self, chat: Chat) -> None:
        """Gives a new chat its skills."""
        use = SkillUse(
            self._folder(chat),
            self._environ,
            files=None if self._files is None else partial(self._files, chat),
            off=lambda: chat.record.skills_off,
            # Whoever sits at this machine may run programs on it; others may not bring any along.
            runs=_ALL if chat.identity == LOCAL_IDENTITY else _SERVED,
        )
        self._chats[chat] = _Held(skill_tools(self.shelf(chat.identity).skills, use))
        chat.channel.refreshers.append(lambda: self._refresh(chat))

    def offer(self, identity: HarnessIdentity, side_bar: Channel, commands: CommandList) -> None:
        """Has the message box of a chat that is not begun yet offer the skills of a person."""
        shelf, shown = self.shelf(identity), -1

        def refresh() -> None:
            nonlocal shown
            if shown != shelf.version:
                shown = shelf.version
                commands.put("skill", _commands(shelf, ()))

        side_bar.refreshers.append(refresh)
        self._side_bars[identity] = side_bar

    def shelf(self, identity: HarnessIdentity) -> SkillShelf:
        """The skills of one person."""
        shelf = self._shelves.get(identity)
        if shelf is None:
            skills = self._library.of(identity.tenant_id, identity.user_id)
            shelf = self._shelves[identity] = SkillShelf(skills)
        return shelf

    async def look(self, identity: HarnessIdentity) -> SkillShelf:
        """The same after a look at the disk; pages that show something else follow."""
        shelf = self.shelf(identity)
        if await shelf.look():
            for channel in self._channels(identity):
                channel.touch()
        return shelf

    def tools(self, chat: Chat) -> list[Tool]:
        """The tools by which a model uses them."""
        return self._chats[chat].tools

    async def connected(self, chat: Chat) -> Connected:
        """What the skills of a chat bring to a model call; nothing where all are off or broken."""
        usable = (await self.look(chat.identity)).usable(chat.record.skills_off)
        if not usable:
            return Connected()
        return Connected(self.tools(chat), skills_prompt(usable))

    async def called(self, chat: Chat, text: str) -> tuple[ResourceBlock, ...]:
        """The skill that a message calls by beginning with `/name`, to go with it; none if it does
        not, or names something else. Raises what reading a skill raises."""
        match = _CALLED.match(text)
        if match is None:
            return ()
        name = match["name"]
        shelf = await self.look(chat.identity)
        if name not in {each.name for each in shelf.usable(chat.record.skills_off)}:
            return ()
        return (block_of(await shelf.do(lambda: shelf.skills.read(name))),)

    async def check_called(
        self, identity: HarnessIdentity, text: str, off: Collection[str] = ()
    ) -> None:
        """Raises HarnessError for a message that begins with the name of a skill that is switched
        off, or broken: it would go without it. After a space it is a text like any other."""
        match = _CALLED.match(text) if text.startswith("/") else None
        if match is None:
            return
        same = [each for each in (await self.look(identity)).listed if each.name == match["name"]]
        if not same or any(not each.fault and each.name not in off for each in same):
            return
        name = same[0].name
        broken = all(each.fault for each in same)
        why = f"cannot be used: {same[0].fault}" if broken else "is switched off in this chat."
        mend = "Its page under Setup, Skills says more." if broken else "Switch it on under Setup."
        raise HarnessError(
            f"The skill {name} {why}",
            hint=f"{mend} To send the message as it is, put a space before the slash.",
            code="invalid_arguments",
        )

    def close(self, chat: Chat) -> None:
        """Forgets a chat; its skills are not its own."""
        self._chats.pop(chat, None)

    def _refresh(self, chat: Chat) -> None:
        """Brings the parts of a chat up to the last look."""
        held, shelf = self._chats.get(chat), self.shelf(chat.identity)
        off = chat.record.skills_off
        if held is None or held.shown == (shelf.version, off):
            return
        held.shown = (shelf.version, off)
        channel = chat.channel
        rows = {f"sk-{each.ref}": each for each in shelf.shown(off)}
        for id in held.rows - rows.keys():
            channel.remove(id)
        held.rows = set(rows)
        for rank, (id, each) in enumerate(rows.items()):
            channel.put(id, "skills", each, rank=rank)
        if shelf.deleted.skills:
            channel.put("sk-deleted", "deleted-skills", shelf.deleted)
        else:
            channel.remove("sk-deleted")
        chat.commands.put("skill", _commands(shelf, off))

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._look_seconds)
            for identity in {*self._side_bars, *(chat.identity for chat in self._chats)}:
                if any(channel.is_watched for channel in self._channels(identity)):
                    try:
                        await self.look(identity)
                    except Exception:
                        # What one person has on disk stops nobody else's pages.
                        log.warning("A look at the skills failed.", exc_info=True)

    def _channels(self, identity: HarnessIdentity) -> list[Channel]:
        """What shows the skills of a person."""
        side_bar = self._side_bars.get(identity)
        found = [] if side_bar is None else [side_bar]
        return found + [chat.channel for chat in self._chats if chat.identity == identity]


def _commands(shelf: SkillShelf, off: Collection[str]) -> list[Command]:
    """The skills that can be called by name."""
    return [
        Command(f"skill {ref_of(skill)}", f"/{skill.name}", "", skill.description, SOURCE)
        for skill in shelf.usable(off)
    ]


def block_of(text: SkillText) -> ResourceBlock:
    """A skill as it goes with a message."""
    words = f"The person calls this skill by name for this message. {skill_instructions(text)}"
    return ResourceBlock("", text.skill.name, "text/markdown", words, SOURCE)
