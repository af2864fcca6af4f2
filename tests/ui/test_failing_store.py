"""A store that fails costs words and never the chat: what is new is kept and written later."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_server import AppServer, refusal, text_of
from tests.support.kept import Restarts, page_of, until
from tests.support.scripted_provider import ScriptedProvider, breaks, says
from tests.support.small_disk import fill, make_read_only, small_disk
from tests.support.stores import SqlPlace
from web.harness.values.model import ModelDone, TextChunk

pytestmark = pytest.mark.anyio


@pytest.mark.full
async def test_an_answer_goes_on_when_the_store_works_again_and_the_page_says_so_until_then(
    stage: Restarts,
) -> None:
    go_on = asyncio.Event()
    provider = ScriptedProvider(
        [TextChunk("Before, "), go_on, TextChunk("and after."), ModelDone("end_turn")]
    )
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me")
        await server.wait_for(run, "text_delta")
        async with stage.place.locked():
            go_on.set()
            await server.client.post(f"/chats/{chat}/draft", data={"text": "typed meanwhile"})

            async def told() -> bool:
                return "locked the database" in await page_of(server, chat)

            await until(told, 20)
            assert "What is new is kept in memory" in await page_of(server, chat)

        async def whole() -> bool:
            page = await page_of(server, chat)
            idle = (await server.chat(chat))["active_run"] is None
            return idle and "and after." in page and "locked the database" not in page

        await until(whole, 20)
        before = await server.chat(chat)
        assert before["messages"][-1]["content"][0]["text"] == "Before, and after."
    async with stage.server(ScriptedProvider(says("x"))) as server:
        page = await page_of(server, chat)
        assert "and after." in page
        assert "typed meanwhile" in page
        assert (await server.chat(chat))["messages"] == before["messages"]


def file_of(stage: Restarts) -> Path:
    return Path(stage.place.address.removeprefix("sqlite:///"))


async def refused(server: AppServer, chat: str, text: str, status: int, **more: Any) -> str:
    """Sends a message that is refused; the words of the refusal."""
    answer = await server.client.post(f"/api/chats/{chat}/messages", json={"text": text, **more})
    assert answer.status_code == status, answer.text
    error = answer.json()
    assert error["message"].startswith("The message was not sent. ")
    assert error["hint"].startswith("What you typed is kept.")
    return f"{error['code']}: {error['message']} {error['hint']}"


async def told(server: AppServer, chat: str, words: str) -> None:
    """Returns when the banner of a page says so."""

    async def shown() -> bool:
        return words in await page_of(server, chat)

    await until(shown)


async def a_chat(stage: Restarts, text: str = "The first answer.") -> str:
    """A chat with one answer, stored by a server that ended."""
    async with stage.server(ScriptedProvider(says(text))) as server:
        chat = await server.new_chat()
        await server.events(await server.send(chat, "hello"))
    return chat


async def test_a_message_that_finds_no_room_is_refused_and_once_there_is_room_it_is_sent_once(
    stage: Restarts,
) -> None:
    chat = await a_chat(stage)
    await stage.place.run("CREATE TABLE filler (x)")
    await stage.place.run("INSERT INTO filler VALUES (zeroblob(900000))")
    pages = (await stage.place.run("PRAGMA page_count"))[0][0]
    stage.settings["store"] = f"{stage.place.address}?max_pages={pages}"
    large = "x" * 90_000
    async with stage.server(ScriptedProvider(says("Here."))) as server:
        await server.client.post(f"/chats/{chat}/draft", data={"text": "typed"})
        words = await refused(server, chat, large, 507, request_id="r")
        assert words.startswith("store_full")
        form = {"text": large, "request_id": "f"}
        answer = await server.client.post(
            f"/chats/{chat}/messages", data=form, headers={"HX-Request": "true"}
        )
        assert answer.status_code == 507
        assert "is full" in answer.text
        kept = await server.chat(chat)
        assert (kept["state"], kept["queue"], len(kept["messages"])) == ("idle", [], 2)
        assert "typed" in await page_of(server, chat)
        await stage.place.run("DELETE FROM filler")
        run = await server.send(chat, large, request_id="r")
        # What was refused is nowhere: a server that was killed by now would not send it.
        stored = await stage.place.run("SELECT body FROM harness_events ORDER BY number")
        assert sum('"sent"' in str(row[0]) and large in str(row[0]) for row in stored) == 1
        assert await server.send(chat, large, request_id="r") == run
        assert text_of(await server.events(run)) == "Here."
        before = (await server.chat(chat))["messages"]
        assert len(before) == 4
    stage.settings["store"] = stage.place.address
    async with stage.server() as server:
        again = await server.chat(chat)
        assert (again["messages"], again["queue"]) == (before, [])
        assert await server.send(chat, large, request_id="r") == run
        assert await server.send(chat, large, request_id="f") != run


@pytest.mark.full
@pytest.mark.parametrize("backend", ["none", "the same"])
async def test_whoever_reads_the_result_finds_the_answer_in_the_chat_also_after_the_disk_was_full(
    stage: Restarts, backend: str
) -> None:
    if backend == "none":
        stage.settings["backend"] = "none"
    stage.settings["store"] = f"{stage.place.address}?max_pages=200"
    go_on, large = asyncio.Event(), "x" * 60_000
    provider = ScriptedProvider(
        [TextChunk("Before, "), go_on, TextChunk(large), ModelDone("end_turn")]
    )
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me")
        await server.wait_for(run, "text_delta")
        await stage.place.run("CREATE TABLE filler (x)")
        await stage.place.run("INSERT INTO filler VALUES (zeroblob(1000000))")
        go_on.set()
        await told(server, chat, "is full")
        await stage.place.run("DELETE FROM filler")
        assert (await server.wait_for(run, "run_result")).data["status"] == "completed"
        (block,) = (await server.chat(chat))["messages"][-1]["content"]
        assert block["text"] == f"Before, {large}"


@pytest.mark.full
async def test_a_message_that_finds_the_store_locked_is_refused_within_seconds(
    stage: Restarts,
) -> None:
    async with stage.server(ScriptedProvider(says("Here."))) as server:
        chat = await server.new_chat()
        async with stage.place.locked():
            began = time.monotonic()
            assert (await refused(server, chat, "hello", 503)).startswith("store_")
            assert time.monotonic() - began < 6
            assert (await server.chat(chat))["state"] == "idle"
        assert text_of(await server.events(await server.send(chat, "hello"))) == "Here."


@pytest.mark.full
async def test_a_chat_that_could_not_be_made_or_renamed_in_time_is_not_and_never_is(
    stage: Restarts,
) -> None:
    async with stage.server() as server:
        chat = await server.new_chat(title="As it was")
        async with stage.place.locked():
            answers = await asyncio.gather(
                server.client.post("/api/chats", json={"title": "New", "request_id": "q"}),
                server.client.post("/api/chats", json={"title": "New"}),
                server.client.patch(f"/api/chats/{chat}", json={"title": "Renamed"}),
            )
            assert {answer.status_code for answer in answers} == {503}
            assert (await server.chat(chat))["title"] == "As it was"
        again = await server.new_chat(title="New", request_id="q")
        await server.client.patch(f"/api/chats/{chat}", json={"title": "Renamed after all"})
    async with stage.server() as server:
        listed = (await server.client.get("/api/chats")).json()
        titles = {each["id"]: each["title"] for each in listed}
        assert titles == {chat: "Renamed after all", again: "New"}


@pytest.mark.full
async def test_a_retry_that_could_not_be_stored_in_time_is_none_and_can_be_asked_for_again(
    stage: Restarts,
) -> None:
    stage.settings["backend"] = "none"
    provider = ScriptedProvider(breaks("Half", transient=False), says("Whole."))
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "hello")
        await server.events(run)

        async def at_rest() -> bool:
            leases = await stage.place.run("SELECT * FROM harness_leases WHERE expires_at > 0")
            return (await server.chat(chat))["state"] == "failed" and not leases

        await until(at_rest)
        async with stage.place.locked():
            answer = await server.client.post(f"/api/runs/{run}/retry")
            assert answer.status_code == 503, answer.text
            assert (await server.chat(chat))["active_run"] is None
        answer = await server.client.post(f"/api/runs/{run}/retry")
        assert answer.status_code == 202, answer.text
        assert text_of(await server.events(answer.json()["run_id"])) == "Whole."
        assert len(provider.requests) == 2


@pytest.mark.full
async def test_a_locked_store_is_told_on_the_page_within_seconds(stage: Restarts) -> None:
    async with stage.server() as server:
        chat = await server.new_chat()
        async with stage.place.locked():
            began = time.monotonic()
            answer = await server.client.post(f"/chats/{chat}/draft", data={"text": "typed"})
            assert answer.status_code == 503
            await told(server, chat, "another program may have locked it")
            # The database gives up after nine.
            assert time.monotonic() - began < 7.5


@pytest.mark.full
async def test_a_chat_opens_while_the_store_is_locked(stage: Restarts) -> None:
    chat = await a_chat(stage)
    async with stage.server() as server, stage.place.locked():
        assert "The first answer." in await page_of(server, chat)
        assert len((await server.chat(chat))["messages"]) == 2


@asynccontextmanager
async def half_answered(stage: Restarts, backend: str) -> AsyncIterator[tuple[AppServer, str, str]]:
    """A server, a chat that has its answer, and another one that has half of it."""
    if backend == "none":
        stage.settings["backend"] = "none"
    never = asyncio.Event()
    provider = ScriptedProvider(says("The first answer."), [TextChunk("Half of "), never])
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        await server.events(await server.send(chat, "hello"))
        other = await server.new_chat()
        await server.wait_for(await server.send(other, "go on"), "text_delta")
        yield server, chat, other


async def shows_all_and_refuses(stage: Restarts, chat: str, words: str) -> None:
    async with stage.server() as server:
        assert "The first answer." in await page_of(server, chat)
        assert len((await server.chat(chat))["messages"]) == 2
        assert [each["id"] for each in (await server.client.get("/api/chats")).json()] == [chat]
        assert words in await refused(server, chat, "more", 503)
        answer = await server.client.post("/api/chats", json={"title": "New"})
        assert refusal(answer) == (503, "store_read_only")
        assert answer.json()["message"].startswith("The chat was not made. ")
        answer = await server.client.patch(f"/api/chats/{chat}", json={"title": "Renamed"})
        assert refusal(answer) == (503, "store_read_only")
        assert answer.json()["message"].startswith("Nothing was changed. ")
        assert (await server.chat(chat))["title"] == "hello"
        answer = await server.client.post(f"/chats/{chat}/draft", data={"text": "half a thought"})
        assert refusal(answer) == (503, "store_read_only")
        assert answer.json()["message"].startswith("What you typed is not stored yet. ")
        assert "half a thought" in await page_of(server, chat)
        assert [each["id"] for each in (await server.client.get("/api/chats")).json()] == [chat]
        await told(server, chat, "nothing new is kept")


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        pytest.param("none", "so it is incomplete", marks=pytest.mark.full),
        ("the same", "Go on"),
    ],
)
async def test_a_store_that_is_opened_to_be_read_shows_its_chats_and_takes_nothing(
    stage: Restarts, backend: str, words: str
) -> None:
    """What was cut off is shown to be, and not as if somebody worked at it."""
    async with half_answered(stage, backend) as (server, chat, other):
        gone = await server.new_chat(title="Deleted")
        await server.client.delete(f"/api/chats/{gone}")
    stage.settings["store"] = f"{stage.place.address}?mode=ro"
    async with stage.server() as server:
        assert "Half of" in await page_of(server, other)
        await told(server, other, words)
        assert (await server.chat(other))["state"] != "working"
        await server.client.delete(f"/api/chats/{other}")
    stage.settings["store"] = stage.place.address
    async with stage.server() as server:
        await server.client.delete(f"/api/chats/{other}")
    stage.settings["store"] = f"{stage.place.address}?mode=ro"
    await shows_all_and_refuses(stage, chat, "opened to be read only")


@pytest.mark.full
@pytest.mark.parametrize("how", ["full", "read only"])
async def test_a_server_that_starts_on_a_disk_without_room_shows_its_chats(
    tmp_path: Path, how: str
) -> None:
    with small_disk(tmp_path / "disk", 4_000) as disk:
        stage = Restarts(SqlPlace(f"sqlite:///{disk / 'chats.sqlite3'}"), tmp_path)
        chat = await a_chat(stage)
        if how == "full":
            fill(disk)
        else:
            make_read_only(disk)
        await shows_all_and_refuses(stage, chat, "So the database is only read.")


@pytest.mark.full
@pytest.mark.parametrize("backend", ["none", "the same"])
async def test_a_server_that_was_started_only_to_read_writes_once_it_may(
    stage: Restarts, backend: str
) -> None:
    async with half_answered(stage, backend) as (_, chat, cut):
        database = file_of(stage)
        kept = database.with_name("kept.sqlite3")
        async with stage.place.locked():
            shutil.copy(database, kept)
            shutil.copy(f"{database}-wal", f"{kept}-wal")
    # As if the server had been killed then.
    stage.place = SqlPlace(f"sqlite:///{kept}")
    stage.settings["store"] = stage.place.address
    await stage.place.let_leases_run_out()
    await stage.place.run("PRAGMA journal_mode = DELETE")
    # SQLite wants a file of this name to write.
    in_the_way = kept.with_name(f"{kept.name}-shm")
    in_the_way.mkdir()
    async with stage.server(ScriptedProvider(says("More."), says("More."))) as server:
        assert "Half of" in await page_of(server, cut)
        assert "So the database is only read." in await refused(server, chat, "more", 503)
        in_the_way.rmdir()

        async def taken() -> str:
            message = {"text": "more", "request_id": "r"}
            answer = await server.client.post(f"/api/chats/{chat}/messages", json=message)
            return str(answer.json()["run_id"]) if answer.status_code == 202 else ""

        assert text_of(await server.events(await until(taken))) == "More."

        async def rests() -> bool:
            told = await server.chat(cut)
            texts = [each["text"] for message in told["messages"] for each in message["content"]]
            return told["active_run"] is None and len(texts) == 2

        await until(rests, 20)

        async def works_again() -> bool:
            return "So the database is only read." not in await page_of(server, cut)

        await until(works_again)


@pytest.mark.full
async def test_a_file_that_is_moved_away_is_told_and_all_goes_on_when_it_is_back(
    stage: Restarts, tmp_path: Path
) -> None:
    file, away = file_of(stage), tmp_path / "away.sqlite3"
    async with stage.server(ScriptedProvider(says("Here."))) as server:
        chat = await server.new_chat()
        file.rename(away)
        await told(server, chat, "was moved or deleted")
        assert "moved or deleted" in await refused(server, chat, "hello", 503)
        assert not file.exists()
        away.rename(file)
        assert text_of(await server.events(await server.send(chat, "hello"))) == "Here."
    async with stage.server() as server:
        assert len((await server.chat(chat))["messages"]) == 2


@pytest.mark.full
async def test_a_file_that_is_damaged_under_a_server_costs_words_and_no_chat_that_is_open(
    stage: Restarts,
) -> None:
    chat, other = await a_chat(stage), await a_chat(stage)
    async with stage.server() as server:
        assert "The first answer." in await page_of(server, chat)
        size = file_of(stage).stat().st_size
        with file_of(stage).open("r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
        answer = await server.client.get(f"/api/chats/{other}")
        assert (answer.status_code, answer.json()["code"]) == (500, "store_corrupt")
        assert "The first answer." in await page_of(server, chat)
        assert (await refused(server, chat, "more", 500)).startswith("store_corrupt")
        await told(server, chat, "is damaged")
