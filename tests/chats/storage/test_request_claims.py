"""Which chat a request made."""

from __future__ import annotations

import pytest

from web.chats.storage.request_claims import Claims
from web.harness.sessions.event_log import InMemoryEventLog
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity

pytestmark = pytest.mark.anyio


class Made:
    """Claims, and which chats are gone."""

    def __init__(self) -> None:
        self.claims = Claims(InMemoryEventLog(lambda: 1.0))
        self.gone: set[str] = set()

    async def claim(self, chat: str, request: str = "q", user: str = "local") -> str:
        identity = HarnessIdentity(LOCAL_IDENTITY.tenant_id, user)

        async def is_gone(chat_id: str) -> bool:
            return chat_id in self.gone

        return await self.claims.claim(identity, request, chat, is_gone)


async def test_the_first_claim_of_a_request_stands() -> None:
    made = Made()
    assert await made.claim("a") == "a"
    assert await made.claim("b") == "a"
    assert await made.claim("c", request="other") == "c"
    assert await made.claim("d", user="eve") == "d"


async def test_a_claim_whose_server_died_before_it_made_the_chat_stands() -> None:
    made = Made()
    made.gone = {"a"}
    assert await made.claim("a") == "a"
    assert await made.claim("b") == "a"


async def test_a_request_whose_chat_was_deleted_makes_another_one() -> None:
    made = Made()
    await made.claim("a")
    made.claims.made(LOCAL_IDENTITY, "q", "a")
    made.gone = {"a"}
    assert await made.claim("b") == "b"
    assert await made.claim("c") == "b"
    await made.claims.forget(LOCAL_IDENTITY, "q")
    assert await made.claim("d") == "d"
