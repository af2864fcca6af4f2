"""Signing in belongs to a person: one's callback, tokens and servers are nobody else's."""

from __future__ import annotations

from urllib.parse import urlsplit

import anyio
import pytest

from tests.support.authorization_server import realm, sent_back
from tests.support.chat_room import chat_room
from tests.support.mcp_wire import SECONDS, until
from tests.support.scripted_provider import ScriptedProvider
from tests.support.signing_in import asked, at
from web.chats.servers.sign_ins import shown_sign_in
from web.harness.mcp.sign_in import returned
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity

pytestmark = pytest.mark.anyio

OTHER = HarnessIdentity("other", "bob")


async def test_a_sign_in_is_the_persons_own_in_all_of_their_chats() -> None:
    async with realm() as made, chat_room(ScriptedProvider()) as room:
        servers = room.chats.servers
        chats = [await room.chats.create(who) for who in (LOCAL_IDENTITY, LOCAL_IDENTITY, OTHER)]
        for chat in chats:
            servers.of(chat).connect(at(made))
        own, second, others = (servers.of(chat).connections()[0] for chat in chats)
        address = await asked(own)
        shown = shown_sign_in(own)
        assert shown.address is not None
        assert (shown.address.whole, shown.offered, shown.done) == (address, False, False)
        await until(others, lambda status: status.state == "sign_in")
        assert shown_sign_in(others).offered
        answer = returned(urlsplit(await sent_back(address)).query)
        assert answer is not None
        assert servers.awaiting(OTHER, answer.state) is None
        assert servers.awaiting(LOCAL_IDENTITY, answer.state) is own
        outcome = own.access.finish(answer)
        assert outcome is not None
        with anyio.fail_after(SECONDS):
            assert await outcome == ""
        for connection in (own, second):
            await until(connection, lambda status: status.state == "ready")
            assert shown_sign_in(connection).done
        assert others.status.state == "sign_in"
        assert len(made.asked) == 1
        await servers.aclose()
