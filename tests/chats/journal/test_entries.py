"""What waits stands in the order of the journal, on whichever server it was sent."""

from __future__ import annotations

import asyncio

import pytest

from web.chats.chat import Chat, Turn
from web.chats.journal.entries import Entries
from web.chats.journal.journal import DirectJournal, TurnSent
from web.chats.parts.channel import Channel, Clock
from web.chats.records.records import ChatRecord
from web.chats.transcript.transcript import Transcript
from web.harness.sessions.identity import LOCAL_IDENTITY

pytestmark = pytest.mark.anyio


class Server(Entries):
    """A server with one chat; `send` has a message wait here before the journal tells of it."""

    def __init__(self) -> None:
        super().__init__()
        self._journal = DirectJournal(self.take)
        self._chats, self._own = {}, set()
        channel = Channel("c", Clock("e"))
        record = ChatRecord("c", "demo:demo", 1.0, 1.0)
        self.chat = Chat(LOCAL_IDENTITY, record, channel, Transcript(channel))

    def send(self, *turns: Turn) -> None:
        for turn in turns:
            self.chat.enqueue(turn)
            self.chat.remember(turn)
            self._unheard[turn.run_id] = asyncio.get_running_loop().create_future()

    def hear(self, *turns: Turn) -> None:
        for turn in turns:
            self.take(self.chat, TurnSent(turn))

    @property
    def order(self) -> tuple[list[str], list[str]]:
        """Of the queue, and of what the page shows of it."""
        shown = [part.id.removeprefix("q-") for part in self.chat.channel.slot("queue")]
        return [turn.run_id for turn in self.chat.queue], shown


async def test_messages_of_two_servers_wait_in_the_same_order_on_both() -> None:
    q0, q1, q2, q3 = (Turn(f"q{at}", "Hi", "demo:demo", f"request {at}") for at in range(4))
    servers = one, two, third = Server(), Server(), Server()
    one.send(q1, q2)
    two.send(q0, q3)
    for server in servers:
        server.hear(q0, q1, q2, q3)
        names = ["q0", "q1", "q2", "q3"]
        assert server.order == (names, names)
    assert not third._unheard
    # Of what was begun meanwhile nothing is waited for.
    two.chat.dequeue("q0")
    two.send(Turn("q5", "Hi", "demo:demo", "request 5"))
    two.hear(Turn("q4", "Hi", "demo:demo", "request 4"))
    names = ["q1", "q2", "q3", "q4", "q5"]
    assert two.order == (names, names)
