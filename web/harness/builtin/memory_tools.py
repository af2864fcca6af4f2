"""`save_memory` and `recall_memories`: what a model remembers beyond a conversation."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from web.harness.agent.extensions import BaseExtension
from web.harness.memory.excerpts import excerpt
from web.harness.memory.fact_lines import Fact
from web.harness.memory.facts import LongTermMemory
from web.harness.memory.note import Note, NoteInfo
from web.harness.memory.notes import AgentMemory
from web.harness.memory.prompt import MAX_PROMPT_CHARS, memory_prompt
from web.harness.tools.functions import function_tool
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.threads import run_in_thread
from web.harness.tools.tool import PermissionLevel, Tool
from web.harness.tools.words import clean, describe, shorten, shown
from web.harness.values.errors import ConfigurationError, HarnessError, NotFound, ToolError

if TYPE_CHECKING:
    from web.harness.agent.agent import Agent

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_RECALLED = 20
_MAX_SHOWN_CHARS = 1_200
"""Of one note among several; one that is asked for by its id is shown whole."""

SAVE, RECALL = "save_memory", "recall_memories"

_HOW = (
    f"You have a memory that outlives this conversation: save with `{SAVE}` what will matter "
    f"later, or what the person asks you to remember; find it with `{RECALL}`."
)

_TEXT = "What to remember, so that it is understood without this conversation."
_ID = "The id of a memory to write anew; left out, a new one is made."
_TITLE = "A title of a few words."
_TITLE_OF_NOTE = "Given, it becomes a note with this title; left out, a fact."
_TAGS = "Of a note: a few words to sort it by."
_CATEGORY = "A word to sort a fact by, such as person, project or preference."

Text = Annotated[str, _TEXT]
Id = Annotated[str | None, _ID]
Tags = Annotated[list[str] | None, _TAGS]
Category = Annotated[str | None, _CATEGORY]


def register_memory_tools(
    tools: ToolRegistry,
    *,
    long_term: LongTermMemory | None = None,
    agent_memory: AgentMemory | None = None,
) -> None:
    """Gives an agent `save_memory` and `recall_memories` over these stores, one or both of them.

    They run unasked and say what was saved. The stores stay yours: tools of your own may use them
    too. Raises ConfigurationError without a store, or where a tool of that name is registered.
    """
    for tool in memory_tools(long_term=long_term, agent_memory=agent_memory):
        tools.add(tool)


class MemoryExtension(BaseExtension):
    """Brings both tools, and has the model told what is remembered: `Agent(extensions=[...])`.

    The stores are not its own, and no snapshot holds what is in them. Raises ConfigurationError
    without a store.
    """

    name = "memory"

    def __init__(
        self,
        *,
        long_term: LongTermMemory | None = None,
        agent_memory: AgentMemory | None = None,
        max_chars: int = MAX_PROMPT_CHARS,
    ) -> None:
        self._tools = memory_tools(long_term=long_term, agent_memory=agent_memory)
        self._prompt = partial(
            memory_prompt, long_term=long_term, agent_memory=agent_memory, max_chars=max_chars
        )

    def install(self, agent: Agent) -> None:
        for tool in self._tools:
            agent.tools.add(tool)

    async def instructions(self) -> str:
        return await memory_instructions(self._prompt)


async def memory_instructions(prompt: Callable[[], str]) -> str:
    """What a model with these tools is told: how to use them, and what `prompt` says of what is
    remembered. A store that cannot be read is told of, and ends no run."""
    try:
        told = clean(await run_in_thread(prompt))
    except HarnessError as error:
        told = f"What you remember cannot be read just now: {error.message}"
    except Exception:
        log.warning("What is remembered cannot be read.", exc_info=True)
        told = "What you remember cannot be read just now."
    return "\n\n".join(filter(None, [_HOW, told]))


def memory_tools(
    *, long_term: LongTermMemory | None = None, agent_memory: AgentMemory | None = None
) -> list[Tool]:
    """The two tools. Raises ConfigurationError without a store."""
    if long_term is None and agent_memory is None:
        raise ConfigurationError(
            "Memory tools need a store.", hint="Give a LongTermMemory, an AgentMemory, or both."
        )
    if long_term is None:
        assert agent_memory is not None  # noqa: S101 (for the type checker)
        save = _saves_notes(agent_memory)
    elif agent_memory is None:
        save = _saves_facts(long_term)
    else:
        save = _saves_both(long_term, agent_memory)
    return [
        replace(_tool(save), hints=("remembers",)),
        replace(_tool(_recalls(long_term, agent_memory), replay="safe"), hints=("remembers",)),
    ]


def _tool(function: Callable[..., Any], **options: Any) -> Tool:
    # A save that is under way is finished: its thread goes on when the call is stopped, and a
    # thread that writes leaves the old or the new state, never half of one.
    return function_tool(
        function, permission=PermissionLevel.ALLOW, share_signature=True, **options
    )


def _saves_both(facts: LongTermMemory, notes: AgentMemory) -> Callable[..., Any]:
    def save_memory(
        text: Text,
        title: Annotated[str | None, _TITLE_OF_NOTE] = None,
        tags: Tags = None,
        category: Category = None,
        id: Id = None,
    ) -> str:
        """Remembers something for later conversations: a short fact, or with a title a note.

        Use it when the person asks to remember something, or tells what will matter later. Save no
        passwords and no keys.
        """
        is_note = bool(title or tags)
        if id and not is_note:
            is_note = _attempt(lambda: _has_note(notes, id))
        if is_note:
            return _attempt(lambda: _saved_note(notes, text, title, tags, id))
        return _attempt(lambda: _saved_fact(facts, text, category, id))

    return save_memory


def _saves_facts(facts: LongTermMemory) -> Callable[..., Any]:
    def save_memory(text: Text, category: Category = None, id: Id = None) -> str:
        """Remembers a short fact for later conversations.

        Use it when the person asks to remember something, or tells what will matter later. Save no
        passwords and no keys.
        """
        return _attempt(lambda: _saved_fact(facts, text, category, id))

    return save_memory


def _saves_notes(notes: AgentMemory) -> Callable[..., Any]:
    def save_memory(
        text: Text,
        title: Annotated[str | None, _TITLE] = None,
        tags: Tags = None,
        id: Id = None,
    ) -> str:
        """Remembers something for later conversations, as a note.

        Use it when the person asks to remember something, or tells what will matter later. Save no
        passwords and no keys.
        """
        return _attempt(lambda: _saved_note(notes, text, title, tags, id))

    return save_memory


def _recalls(facts: LongTermMemory | None, notes: AgentMemory | None) -> Callable[..., Any]:
    def recall_memories(
        query: Annotated[str, "Words to look for; left out, the newest are shown."] = "",
        id: Annotated[str | None, "The id of one memory, to read all of it."] = None,
        limit: Annotated[int, f"From 1 to {MAX_RECALLED}."] = 8,
    ) -> str:
        """Finds what was remembered in earlier conversations, the best match first."""
        if id:
            return _attempt(lambda: _one(facts, notes, id))
        most = max(1, min(limit, MAX_RECALLED))
        return _attempt(lambda: _found(facts, notes, query.strip(), most))

    return recall_memories


def _has_note(notes: AgentMemory, id: str) -> bool:
    try:
        notes.get(id)
    except NotFound:
        return False
    return True


def _saved_fact(facts: LongTermMemory, text: str, category: str | None, id: str | None) -> str:
    if id:
        fact = facts.update(id, text, category=category)
        return f"Changed the fact {fact.id} [{fact.category}]: {fact.text}"
    new = facts.get(facts.save(text, category) if category else facts.save(text))
    return f"Saved as the fact {new.id} [{new.category}]: {new.text}"


def _saved_note(
    notes: AgentMemory, text: str, title: str | None, tags: list[str] | None, id: str | None
) -> str:
    if id:
        note = notes.update(id, title=title or None, content=text, tags=tags)
        did = f"Changed the note {note.id}"
    else:
        title = title or shorten(" ".join(text.split()), 60)
        note = notes.get(notes.save(title, text, tags or ()))
        did = f"Saved as the note {note.id}"
    return f"{did}, “{note.title}”{_tagged(note)}: {shorten(note.content, 500)}"


def _found(facts: LongTermMemory | None, notes: AgentMemory | None, query: str, limit: int) -> str:
    parts: list[str] = []
    if facts is not None:
        known = facts.search(query, limit=limit) if query else facts.list()[:limit]
        if known:
            parts.append("\n".join(["Facts:", *map(_fact_line, known)]))
    if notes is not None:
        for note in _some_notes(notes, query, limit):
            words = excerpt(note.content, query, _MAX_SHOWN_CHARS)
            left = len(note.content) - len(words)
            rest = f"\n(Ask with id={note.id} for all of it.)" if left > 0 else ""
            parts.append(f"{_note_head(note)}\n{words}{rest}")
    if parts:
        return "\n\n".join(parts)
    about = f" about “{shorten(query, 80)}”" if query else ""
    return f"Nothing is remembered{about}."


def _some_notes(notes: AgentMemory, query: str, limit: int) -> list[Note]:
    if query:
        return notes.search(query, limit=limit)
    found: list[Note] = []
    for info in [info for info in notes.list() if not info.fault][:limit]:
        # Another program may take it away just now.
        with suppress(NotFound):
            found.append(notes.get(info.id))
    return found


def _one(facts: LongTermMemory | None, notes: AgentMemory | None, id: str) -> str:
    if facts is not None:
        with suppress(NotFound):
            return _fact_line(facts.get(id))
    if notes is not None:
        with suppress(NotFound):
            note = notes.get(id)
            if note.fault:
                raise ToolError(f"The note {note.id} cannot be read: {note.fault}")
            return f"{_note_head(note)}\n{note.content}"
    raise ToolError(f"Nothing is remembered with the id {shown(id)}. Look for it with a query.")


def _fact_line(fact: Fact) -> str:
    return f"- {fact.id} [{fact.category}]: {' '.join(fact.text.split())}"


def _note_head(note: NoteInfo) -> str:
    return f"Note {note.id}, “{note.title}”{_tagged(note)}, of {_day(note.updated)}:"


def _tagged(note: NoteInfo) -> str:
    return f" ({', '.join(note.tags)})" if note.tags else ""


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _attempt(do: Callable[[], T]) -> T:
    """What a store refuses, in words for the model."""
    try:
        return do()
    except ToolError:
        raise
    except HarnessError as error:
        raise ToolError(describe(error)) from error
