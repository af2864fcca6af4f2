"""A new chat that goes on from an earlier step of a run; the one it comes from stays as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from web.chats.chat import Chat
from web.chats.registry.chats import Chats
from web.chats.runs.open_calls import with_results
from web.chats.runs.run_control import RunControl
from web.chats.runs.run_messages import is_of
from web.chats.snapshots.snapshots import ChatSnapshots
from web.chats.steps.shown_steps import can_fork
from web.chats.transcript.run_words import NOT_RUN
from web.harness.sessions.folding import Folding
from web.harness.sessions.journal import NumberedStep, Step
from web.harness.values.errors import HarnessError, NotFound
from web.harness.values.messages import Message

STEPS_AT_ONCE = 500

_OF_STEP = re.compile(r"^Step \d+ of ")
"""Before the title of a chat that was begun so."""


class Forking:
    """Begins chats from the steps that `control` knows."""

    def __init__(self, chats: Chats, snapshots: ChatSnapshots, control: RunControl) -> None:
        self._chats = chats
        self._snapshots = snapshots
        self._control = control

    async def fork(self, chat: Chat, run_id: str, step: int, *, request_id: str = "") -> Chat:
        """A chat whose conversation is that of `chat` up to a step of one of its runs.

        The same request id again gives the chat it made. Raises NotFound for a step that is not
        there, HarnessError (`invalid_arguments`) for one after which the conversation is not whole,
        LimitExceeded.
        """
        with self._snapshots.place():
            run = await self._until(chat, run_id, step)
            before, missing = await self._before(chat, run_id, run)
            # First what is its own: a side bar cuts the end.
            title = f"Step {step} of {_OF_STEP.sub('', chat.title)}"
            words = f"Begun from step {step} of “{chat.title}”."
            if self._chats.servers.holds(chat):
                words += " Its MCP servers stay with that chat."
            if missing:
                words += " Its earliest messages are not kept any more and are left out."
            messages = with_results([*before, *run.messages], run.calls, lambda _: NOT_RUN)
            return await self._snapshots.branch(chat, messages, run.at, title, words, request_id)

    async def _until(self, chat: Chat, run_id: str, step: int) -> _Added:
        """What a run had added after a step."""
        run = _Added()
        while run.number < step:
            limit = min(STEPS_AT_ONCE, step - run.number)
            page = await self._control.steps(chat, run_id, run.number, limit)
            if not page:
                break
            run.take_page(page)
        if run.newest is None or run.number != step:
            raise NotFound("There is no such step.", hint="Load the page again and choose one.")
        if not can_fork(run.newest):
            raise HarnessError(
                "A chat can be begun from an answer of the model, or where all its calls are done.",
                hint="Choose such a step. No chat was made.",
                code="invalid_arguments",
            )
        return run

    async def _before(self, chat: Chat, run_id: str, run: _Added) -> tuple[list[Message], bool]:
        """The conversation that a run began with, and whether some of it is not kept any more."""
        if run.replaced is not None:
            return list(run.replaced), False
        history = await self._chats.messages(chat)
        first = next((at for at, each in enumerate(history) if is_of(each, run_id)), None)
        if first is not None:
            return history[:first], False
        if run_id not in chat.runs or run_id == chat.runs[-1]:
            return history, False
        # It was made shorter since. What each run before it added is still in its own steps.
        return await self._added_by(chat, self._shown_before(chat, run_id), history)

    async def _added_by(
        self, chat: Chat, runs: Sequence[str], history: Sequence[Message]
    ) -> tuple[list[Message], bool]:
        messages: list[Message] = []
        for run_id in reversed(runs):
            added = _Added()
            while page := await self._control.steps(chat, run_id, added.number, STEPS_AT_ONCE):
                added.take_page(page)
            own = added.messages or [each for each in history if is_of(each, run_id)]
            if not own and added.replaced is None:
                return messages, True
            messages = [*(added.replaced or ()), *own, *messages]
            if added.replaced is not None:
                break
        return messages, False

    def _shown_before(self, chat: Chat, run_id: str) -> Sequence[str]:
        """The runs before one, without those that were tried again."""
        before = chat.runs[: chat.runs.index(run_id)]
        return [each for each in before if chat.channel.get(f"u-{each}") is not None]


class _Added(Folding):
    """`number` is that of the newest step, `at` when it was written, in seconds since the epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0
        self.at = 0.0
        self.newest: Step | None = None

    def take_page(self, steps: Sequence[NumberedStep]) -> None:
        for each in steps:
            self.newest, self.number, self.at = each.step, each.number, each.at
            self.take(each.step)
