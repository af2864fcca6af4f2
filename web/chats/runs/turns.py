"""Turns: a message is sent, a run answers it, and the next one in the queue follows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from web.chats.chat import Chat, Turn
from web.chats.journal.accepting import HEARD_SECONDS, busy, same_request
from web.chats.journal.journal import (
    DirectJournal,
    Journal,
    SpentBefore,
    StopAsked,
    TurnBegun,
    TurnSent,
)
from web.chats.journal.picture_bytes import turn_with_bytes
from web.chats.runs.abandoning import Abandoning
from web.chats.runs.driver import Driver
from web.chats.runs.durability import LEASE_WAIT_SECONDS, Durability
from web.chats.runs.durable_turns import DurableTurns
from web.chats.runs.equipment import Equipment, TurnLimits
from web.chats.runs.run_messages import has_run, without_run
from web.chats.runs.run_output import RunOutput
from web.chats.tasks import TaskOwner
from web.chats.transcript.retold import RetoldRun, pictures_of
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.sessions.event_log import EventLog
from web.harness.sessions.identity import HarnessIdentity
from web.harness.values.errors import (
    HarnessError,
    LimitExceeded,
    NotFound,
    SessionConflict,
    StoreError,
)

log = logging.getLogger(__name__)

COMMIT_AGAIN_SECONDS = 1.0
"""Between two attempts at what a store refused."""

RETOLD_AT_ONCE = 20
"""Events of a run that are shown again before others have the event loop."""


class Turns(DurableTurns):
    """Starts, stops and queues the turns of all chats. `tasks` owns the runs, `journal` keeps what
    becomes of messages; without one they live as long as the process. With `durable` the runs are
    written down, and go on in another one."""

    def __init__(
        self,
        *,
        tasks: TaskOwner,
        runtime: HarnessRuntime,
        events: EventLog,
        equipment: Equipment,
        limits: TurnLimits,
        now: Callable[[], float],
        changed: Callable[[Chat], None],
        journal: Journal | None = None,
        durable: Durability | None = None,
    ) -> None:
        super().__init__()
        self._durable = durable
        if durable is not None:
            self.abandoning = Abandoning(durable, runtime, events)
        self._tasks = tasks
        self._journal: Journal = journal or DirectJournal(self.take)
        self._runtime = runtime
        self._events = events
        self._equipment = equipment
        self._driver = Driver(equipment)
        self._limits = limits
        self._now = now
        self._changed = changed
        self._running: dict[str, asyncio.Task[None]] = {}
        self._stopping: set[str] = set()
        self._ending: dict[str, asyncio.Event] = {}
        self._chats: dict[str, Chat] = {}
        self._own: set[str] = set()

    @property
    def journal(self) -> Journal:
        return self._journal

    @property
    def running(self) -> int:
        """How many turns are under way, without those whose result is out."""
        return len(self._running) - len(self._ending)

    def running_of(self, identity: HarnessIdentity) -> int:
        """How many of them are one person's."""
        under_way = self._running.keys() - self._ending.keys()
        return sum(self._chats[run_id].identity == identity for run_id in under_way)

    @property
    def max_message_chars(self) -> int:
        return self._limits.max_message_chars

    @property
    def equipment(self) -> Equipment:
        return self._equipment

    def chat_of(self, run_id: str) -> Chat:
        """The chat that a run belongs to. Raises NotFound."""
        chat = self._chats.get(run_id)
        if chat is None:
            raise no_such_run()
        return chat

    def find(self, run_id: str) -> Chat | None:
        return self._chats.get(run_id)

    def is_own(self, run_id: str) -> bool:
        """Whether it was run by this process, since it started."""
        return run_id in self._own

    def check(self, text: str, *, attached: bool = False) -> None:
        """Raises LimitExceeded, or HarnessError for a message without a word or an attachment."""
        most = self._limits.max_message_chars
        if not text.strip() and not attached:
            raise HarnessError(
                "The message is empty.", hint="Write something, or attach a file.", code="empty"
            )
        if len(text) > most:
            raise LimitExceeded(
                f"The message has {len(text):,} characters; at most {most:,} are taken.",
                hint="Shorten it, or put it into a file and attach that. Nothing was sent.",
                code="too_long",
            )

    def send(self, chat: Chat, turn: Turn, *, queue: bool) -> Turn:
        """Starts a turn, or queues it behind the one under way; returns the turn that stands.

        The same request id again is the same turn. Raises SessionConflict while the chat is busy
        and `queue` is not asked for, LimitExceeded, or HarnessError (`request_id_reused`) for a
        known request id with another text. With a durable journal it runs once `keep` was called.
        """
        known = chat.requests.get(turn.request_id)
        if known is not None:
            return same_request(known, turn)
        self.check(turn.text, attached=bool(turn.attachments))
        failed = chat.failed
        if chat.queue and not chat.is_busy:
            self.resume_loaded(chat)  # What waits in a chat that was just loaded comes first.
        if not chat.is_busy and not chat.queue:
            self._start(chat, turn)
        elif not queue:
            raise busy(chat)
        elif len(chat.queue) >= self._limits.max_queued:
            raise LimitExceeded(
                f"The queue of this chat is full; its limit is {self._limits.max_queued}.",
                hint="Wait for an answer, or take one back.",
            )
        else:
            chat.enqueue(turn)
            self._chats[turn.run_id] = chat
        chat.remember(turn)
        self._hold(turn, failed)
        self._journal.write(chat, TurnSent(turn))
        self._changed(chat)
        return turn

    async def settle(self, chat: Chat) -> None:
        """Waits for what is left of a run whose result is out: whoever read it may go on."""
        if chat.turn is not None and (ending := self._ending.get(chat.turn.run_id)) is not None:
            await ending.wait()

    def stop(self, chat: Chat, run_id: str) -> None:
        """Stops a run; a waiting one is taken back. One that has ended is fine."""
        if chat.turn is not None and chat.turn.run_id == run_id:
            self._stopping.add(run_id)
            chat.transcript.stopping(run_id)
            if self._durable is not None:
                self._tasks.create_task(self._stop_durably(chat, run_id, self._durable))
            elif chat.agent is not None:
                chat.agent.cancel()
        elif chat.elsewhere is not None and chat.elsewhere.run_id == run_id:
            chat.transcript.stopping(run_id)
            if self._durable is not None:
                self._tasks.create_task(self._stop_durably(chat, run_id, self._durable))
            else:
                self._journal.write(chat, StopAsked(run_id))
        else:
            self._dequeue(chat, run_id)

    def retry(self, chat: Chat, run_id: str, turn: Turn) -> Turn:
        """Runs the last turn, which failed or was stopped, once more in its place; see `send`."""
        known = chat.requests.get(turn.request_id)
        if known is not None:
            return known
        if chat.is_busy or chat.queue:
            raise SessionConflict("This chat is answering another message.")
        failed = chat.failed
        if failed is None or failed.run_id != run_id:
            raise NotFound("Only the last message of a chat can be tried again.")
        self._start(chat, turn, instead_of=failed.run_id)
        self._replaces[turn.run_id] = failed.run_id
        chat.remember(turn)
        self._hold(turn, failed)
        self._journal.write(chat, TurnSent(turn, failed.run_id))
        self._changed(chat)
        return turn

    async def close(self, chat: Chat) -> None:
        """Takes back what waits, stops whatever a chat does and waits until it has ended."""
        while chat.queue:
            self.stop(chat, chat.queue[0].run_id)
        if self._taking_back:
            await asyncio.wait(self._taking_back, timeout=LEASE_WAIT_SECONDS)
        await self.halt(chat)

    async def halt(self, chat: Chat) -> None:
        """Stops the run under way and waits until it has ended; one of another server is only told
        to. What waits goes on waiting while the chat is deleted, until `resume`."""
        if chat.turn is not None:
            task = self._running.get(chat.turn.run_id)
            self.stop(chat, chat.turn.run_id)
            if task is not None:
                await asyncio.wait({task})
        elif chat.elsewhere is not None and not chat.transcript.halted:
            self.stop(chat, chat.elsewhere.run_id)

    def resume(self, chat: Chat) -> None:
        """Sends the oldest message that waits in a chat that was brought back."""
        if not chat.is_busy and chat.queue:
            following = chat.queue[0]
            self._start(chat, following)
            chat.dequeue(following.run_id)

    def resume_loaded(self, chat: Chat) -> None:
        """The same where another server may send them, too: one of both does."""
        with suppress(LimitExceeded):
            self.resume(chat)

    async def forget(self, chat: Chat) -> None:
        """Drops the events of a chat's runs."""
        self.leave(chat)
        for run_id in chat.runs:
            await self._events.forget(run_id)
        await self._journal.forget(chat)

    async def retell(self, chat: Chat, runs: Sequence[RetoldRun], at: float) -> None:
        """Shows the turns of a conversation that began elsewhere, `at` seconds since the epoch.

        What is sent meanwhile waits until they are all there.
        """
        # Of thousands of turns each would bring side bar and panel up to what they are already.
        changed = chat.transcript.state_changed
        chat.transcript.state_changed = lambda: None
        try:
            self._changed(chat)
            self._journal.write(chat, SpentBefore(chat.spending.as_json()))
            for run in runs:
                chat.turn = Turn(run.run_id, run.text, chat.record.model, "", run.attachments)
                self._chats[run.run_id] = chat
                self._own.add(run.run_id)
                chat.keep_pictures(pictures_of(run))
                self._begin(chat, chat.turn, None, at, retold=True)
                for start in range(0, len(run.bodies), RETOLD_AT_ONCE):
                    self._events.append(run.run_id, run.bodies[start : start + RETOLD_AT_ONCE])
                    await asyncio.sleep(0)
                # Nobody knows how long it took and what it cost.
                chat.channel.remove(f"e-{run.run_id}")
                await self._events.fold(run.run_id)
        finally:
            chat.turn, chat.transcript.state_changed = None, changed
        # Where too much runs already, what waits goes on waiting.
        with suppress(LimitExceeded):
            self.resume(chat)
        self._changed(chat)

    def _check_room(self) -> None:
        if self.running >= self._limits.max_running:
            raise LimitExceeded(
                f"{self.running} answers are being written on this server, its limit.",
                hint="Try again in a moment. What you typed is kept.",
            )

    def _start(
        self, chat: Chat, turn: Turn, instead_of: str | None = None, *, follows: bool = False
    ) -> None:
        # The place of a run that has its result may be another's: what follows it needs none.
        if not follows:
            self._check_room()
        instead_of = instead_of or self._replaces.get(turn.run_id)
        chat.turn, chat.failed = turn, None
        self._chats[turn.run_id] = chat
        if not self._journal.durable:
            self._begin(chat, turn, instead_of, self._now())
        running = self._when_kept(chat, turn, instead_of)
        self._running[turn.run_id] = self._tasks.create_task(running)

    async def _run(self, chat: Chat, turn: Turn, instead_of: str | None) -> None:
        if self._durable is not None:
            await self._run_durably(chat, turn, instead_of)
            return
        run_id, durable = turn.run_id, self._journal.durable
        begun = not durable
        is_taken = False
        left: ExecutionServices | None = None

        def ended() -> None:
            self._ending[run_id] = asyncio.Event()

        output = RunOutput(chat, run_id, self._events, hold=durable, ended=ended)

        async def drive(services: ExecutionServices) -> None:
            nonlocal begun, left
            left = services
            # Of a message that another server took, only the names of its pictures are known here.
            message = await turn_with_bytes(chat, turn)
            services.commits = begun
            if not begun:
                # Under the lease: whoever finds a run begun, and the lease free, knows it is over.
                if await self._was_run(chat, run_id, services):
                    return
                begun = True
                self._own.add(run_id)
                entry = TurnBegun(turn, self._now(), instead_of or "")
                if not await self._is_first(chat, entry, HEARD_SECONDS):
                    begun = False
                    self._own.discard(run_id)
                    return  # It was taken back.
                services.commits = True
            if instead_of is not None:
                services.history = without_run(services.history, instead_of)
            stopped = run_id in self._stopping or run_id in self.to_stop
            await self._driver.drive(chat, message, services, output.emit, stopped=stopped)

        try:
            await self._once_stored(chat, run_id, drive, lambda: not begun)
        except asyncio.CancelledError:
            if begun:
                output.interrupt()
            raise
        except Exception as error:
            waits = isinstance(error, StoreError) and output.is_held and left is not None
            if waits and await self._committed_later(chat, run_id, left):
                pass  # The store works again, and nothing was lost.
            elif not begun and isinstance(error, SessionConflict):
                is_taken = True
            else:
                if not begun:
                    self._begin(chat, turn, instead_of, self._now())
                output.fail(error)
        finally:
            output.finish()
            del self._running[run_id]
            chat.turn = None
            if is_taken:
                self._wait_again(chat, turn)
            else:
                chat.failed = turn if output.is_unfinished and begun else None
            self._stopping.discard(run_id)
            if (ending := self._ending.pop(run_id, None)) is not None:
                ending.set()
        if not is_taken:
            await self._go_on(chat, turn)

    async def _committed_later(
        self, chat: Chat, run_id: str, left: ExecutionServices | None
    ) -> bool:
        """Commits what a run left once the store works again; False where that cannot be, or where
        a person stops it."""

        async def again(services: ExecutionServices) -> None:
            services.commits = False
            if has_run(services.history, run_id):
                return  # It had been committed after all.
            if left is None or services.revision != left.revision:
                raise SessionConflict("Another server has gone on with this chat.")
            services.commits = True
            services.history, services.state = left.history, left.state
            services.conversations, services.replayable = left.conversations, left.replayable

        while run_id not in self._stopping:
            await asyncio.sleep(COMMIT_AGAIN_SECONDS)
            try:
                await self._runtime.run(chat.identity, chat.id, again, wait=LEASE_WAIT_SECONDS)
            except StoreError as error:
                log.warning("An answer waits to be stored: %s", error.message)
            except HarnessError as error:
                log.warning("An answer could not be stored: %s", error.message)
                return False
            else:
                return True
        return False

    async def _was_run(self, chat: Chat, run_id: str, services: ExecutionServices) -> bool:
        """Whether another server has run a message that waited here too."""
        if run_id in self._instead or run_id in chat.runs or has_run(services.history, run_id):
            return True
        return bool((await self._events.read(run_id, 0, 1)).events)

    async def _go_on(self, chat: Chat, turn: Turn) -> None:
        """After a run: the next message in the queue is sent, and events take less room."""
        old = chat.runs[: -self._limits.kept_runs][-1:]
        rests = chat.is_deleted or chat.elsewhere is not None
        following = None if rests else chat.dequeue()
        if following is not None:
            self._start(chat, following, follows=True)
        self._changed(chat)
        try:
            await self._events.close(turn.run_id)
            for run_id in old:
                await self._events.fold(run_id)
        except StoreError as error:
            log.warning("The events of a run take more room than they need: %s", error.message)


def no_such_run() -> NotFound:
    """For a run that is gone, was never there, or is somebody else's."""
    return NotFound("There is no such run.", hint="It may have been deleted with its chat.")
