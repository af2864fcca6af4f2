"""What a run of a chat is performed with by a worker, which has none of its pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from web.chats.chat import Chat, Turn
from web.chats.parts.channel import Channel, Clock
from web.chats.records.blobs import StoredBlobs
from web.chats.records.records import ChatRecord, ChatRecords
from web.chats.registry.chats import Chats
from web.chats.runs.driver import Driver
from web.chats.runs.run_messages import without_run
from web.chats.tasks import TaskOwner
from web.chats.transcript.transcript import Transcript
from web.harness.host import ExecutionServices
from web.harness.runtime.backend import Turn as RunTurn
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.journal import Execution
from web.harness.sessions.records import Blobs
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.values.errors import NotFound

Peek = Callable[[HarnessIdentity, str], Awaitable[SessionSnapshot]]
"""Reads the settled session of a chat while another process has its lease."""


class ChatCrew:
    """Makes the agent of a chat's run from the chat's record and its settled session.

    It has the tools that every chat has, and its own connections to the servers of the
    configuration; what a person connected in the page, only the process of that page has.
    """

    def __init__(
        self,
        chats: Chats,
        tasks: TaskOwner,
        records: ChatRecords,
        blobs: Blobs,
        peek: Peek,
    ) -> None:
        """`chats` are nobody's: only what they have for each chat is used."""
        self._driver = Driver(chats.equipment)
        self._chats = chats
        self._tasks = tasks
        self._records = records
        self._blobs = blobs
        self._peek = peek
        # Nobody looks at these chats: their parts are made and thrown away.
        self._clock = Clock("worker")

    @asynccontextmanager
    async def __call__(self, execution: Execution) -> AsyncIterator[RunTurn]:
        """Raises NotFound for a chat that is gone, and ConfigurationError for a model that this
        worker cannot ask."""
        submission = execution.submission
        record = await self._records.get(submission.identity, submission.session_id)
        if record is None:
            raise NotFound("The chat of this run is not there any more.")
        settled = await self._peek(submission.identity, submission.session_id)
        history, about = list(settled.history), submission.about
        if replaced := str(about.get("instead_of") or ""):
            history = without_run(history, replaced)
        services = ExecutionServices(
            submission.identity,
            submission.session_id,
            history,
            dict(settled.conversations),
            settled.state,
        )
        model = str(about.get("model") or record.model)
        turn = Turn(
            submission.run_id,
            submission.text,
            model,
            submission.request_id,
            submission.attachments,
        )
        async with (
            self._held(submission.identity, record) as chat,
            self._driver.equipped(chat, turn, services) as (agent, prepare),
        ):
            yield RunTurn(agent, submission, prepare)

    @asynccontextmanager
    async def _held(self, identity: HarnessIdentity, record: ChatRecord) -> AsyncIterator[Chat]:
        """The chat, with what its person has, for as long as it is performed here."""
        channel, chats = Channel(record.id, self._clock), self._chats
        chat = Chat(identity, record, channel, Transcript(channel))
        chat.blobs = StoredBlobs(self._blobs, identity, record.id, self._tasks)
        chats.servers.add(chat)
        chats.skills.add(chat)
        chats.memories.add(chat)
        try:
            yield chat
        finally:
            await chat.blobs.flush()
            await chats.servers.close(chat)
            chats.skills.close(chat)
            chats.memories.close(chat)
            chats.files.leave(chat)
