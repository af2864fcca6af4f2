"""Servers of the configuration file serve people who share them; nobody changes them for others."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.app_server import plain_client
from tests.support.two_people import EVE, SECRET, USER, House, Row, two_people
from web.chats.chat import Chat
from web.chats.parts.channel import Channel, Clock
from web.chats.parts.kinds import Server, ServerSignIn
from web.chats.records.records import ChatRecord
from web.chats.servers.shared_servers import shown_to
from web.chats.transcript.transcript import Transcript
from web.harness.mcp.status import LogLine
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity

pytestmark = pytest.mark.anyio


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with two_people(tmp_path) as made:
        yield made


async def eves_chat(house: House) -> str:
    async with plain_client(house.server.address) as client:
        answer = await client.post("/api/chats", headers={USER: EVE})
        return str(answer.json()["id"])


async def test_they_are_read_by_everybody_and_neither_watched_nor_signed_in_to(
    house: House,
) -> None:
    ids = {**house.ids, "chat": await eves_chat(house)}
    listed = await house.ask(EVE, Row("GET", "/api/chats/{chat}/servers"), ids)
    (notes,) = json.loads(listed.text)
    assert (notes["name"], notes["of_host"]) == ("notes", True)
    assert SECRET not in listed.text
    ids["host"] = notes["key"]
    address, ref = "/chats/{chat}/servers/{host}/", {"ref": "{resource}"}
    read = Row("POST", f"{address}resources", form={**ref, "do": "read"})
    assert "<h1>Today</h1>" in (await house.ask(EVE, read, ids)).text
    for path, fields in (
        ("resources", {**ref, "do": "watch"}),
        ("sign-in", {}),
        ("sign-in/cancel", {}),
        ("sign-out", {}),
    ):
        answer = await house.ask(EVE, Row("POST", address + path, form=fields), ids)
        assert (answer.status, "for everybody here" in answer.text) == (422, True), path


async def test_a_command_is_never_started_for_people_who_sign_in(
    house: House, tmp_path: Path
) -> None:
    ids, ran = {**house.ids, "chat": await eves_chat(house)}, tmp_path / "ran"
    command = f"{sys.executable} -S -c \"open('{ran}', 'w')\""
    for row in (
        Row("POST", "/chats/{chat}/servers", form={"target": command.replace("{", "")}),
        Row("POST", "/chats/{chat}/servers/demo", form={}),
        Row("POST", "/chats/with-demo-server", form={}),
        Row("POST", "/api/chats/{chat}/servers", sent={"command": sys.executable, "args": []}),
    ):
        assert (await house.ask(EVE, row, ids)).status == 422, row
    assert not ran.exists()


def test_what_they_print_is_shown_to_the_person_at_the_machine_alone() -> None:
    def chat_of(identity: HarnessIdentity) -> Chat:
        channel = Channel("c", Clock("e"))
        return Chat(identity, ChatRecord("c", "demo:demo", 0, 0), channel, Transcript(channel))

    log = (LogLine(0.0, "info", "called with Lisbon"),)
    shared = Server(
        "s-1", "notes", True, "notes", "ready", stderr=("called",), log=log, sign_in=ServerSignIn()
    )
    seen = shown_to(chat_of(HarnessIdentity("default", "eve")), shared)
    assert (seen.stderr, seen.log, seen.name) == ((), (), "notes")
    assert shown_to(chat_of(LOCAL_IDENTITY), shared) == shared
    own = Server("s-2", "own", False, "own", "ready", stderr=("called",))
    assert shown_to(chat_of(HarnessIdentity("default", "eve")), own) == own
