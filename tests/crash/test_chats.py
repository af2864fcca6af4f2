"""A server that is killed: the next one on the same store has every chat as it was."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.serving import Serving, serving
from tests.support.stores import SqlPlace, new_place

pytestmark = pytest.mark.anyio

_PASSING = re.compile(
    r'data-version="\d+"|data-epoch="[^"]*"|name="token" value="[^"]*"|'
    r'name="request_id" value="[^"]*"|content="[0-9a-f]+:\d+"'
)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlPlace]:
    place = await new_place(request.param, tmp_path)
    assert isinstance(place, SqlPlace)
    yield place
    await place.aclose()


@contextlib.contextmanager
def server(place: SqlPlace, folder: Path) -> Iterator[tuple[Serving, httpx.Client]]:
    with (
        serving(
            "--model", "demo:demo", "--store", place.address, "--data-dir", str(folder), "--no-open"
        ) as process,
        httpx.Client(base_url=process.address, timeout=10) as client,
    ):
        yield process, client


def kill(process: Serving) -> None:
    process.process.kill()
    process.process.wait(timeout=10)


def page(client: httpx.Client, chat: str) -> str:
    answer = client.get(f"/chats/{chat}")
    assert answer.status_code == 200, answer.text
    return _PASSING.sub("", answer.text)


def shown(html: str) -> list[str]:
    """The lines of a page, but for the words on what was deleted: they end with time."""
    before, _, rest = html.partition('data-slot="undo"')
    return (before + rest.partition("</form>")[2]).split("\n")


def send(client: httpx.Client, chat: str, text: str) -> str:
    answer = client.post(f"/api/chats/{chat}/messages", json={"text": text, "queue": True})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def result(client: httpx.Client, run: str) -> dict[str, object]:
    """The result of a run, read to its end."""
    text = client.get(f"/api/runs/{run}/events").text
    return dict(json.loads(text.rpartition("event: run_result\ndata: ")[2].split("\n")[0]))


def rest(client: httpx.Client, chat: str, seconds: float = 30) -> dict[str, object]:
    """The chat once it does nothing any more. Each look is a request, which takes its time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        told = client.get(f"/api/chats/{chat}").json()
        if told["state"] not in ("working", "asking") and told["active_run"] is None:
            return dict(told)
    raise AssertionError(f"the chat is {told['state']}")


async def test_chats_are_as_they_were_after_a_kill(place: SqlPlace, tmp_path: Path) -> None:
    with server(place, tmp_path) as (process, client):
        chat = str(client.post("/api/chats", json={}).json()["id"])
        result(client, send(client, chat, "Calculate 48 * 12, then tell me the time."))
        result(client, send(client, chat, "Write 60 words with a table, code and math."))
        client.patch(f"/api/chats/{chat}", json={"title": "As it was"})
        gone = str(client.post("/api/chats", json={"title": "Deleted"}).json()["id"])
        client.delete(f"/api/chats/{gone}")
        rest(client, chat)
        before, told = page(client, chat), client.get(f"/api/chats/{chat}").json()
        kill(process)
    with server(place, tmp_path) as (_, client):
        assert "As it was" in client.get("/").text
        assert shown(page(client, chat)) == shown(before)
        assert client.get(f"/api/chats/{chat}").json() == told
        assert client.get(f"/chats/{gone}").status_code == 404


@pytest.mark.full
async def test_what_was_acknowledged_before_a_kill_is_answered_after_it(
    place: SqlPlace, tmp_path: Path
) -> None:
    """The run under way ends as incomplete, and what waited is sent; each of it once."""
    with server(place, tmp_path) as (process, client):
        chat = str(client.post("/api/chats", json={}).json()["id"])
        first = send(client, chat, "Write 3000 words.")
        waits = send(client, chat, "Calculate 6 * 7")
        with client.stream("GET", f"/api/runs/{first}/events") as events:
            lines = events.iter_lines()
            seen = 0
            while seen < 20:
                seen += next(lines).startswith("event: text_delta")
        kill(process)
    with server(place, tmp_path) as (_, client):
        client.get(f"/chats/{chat}")
        if place.address.startswith("postgresql"):
            # Nobody can tell there that the holder is dead, so its time has to pass.
            await place.let_leases_run_out()
        assert result(client, first)["reason"] == "interrupted"
        assert result(client, waits)["status"] == "completed"
        rest(client, chat)
        shown = page(client, chat)
        assert shown.count("so it is incomplete") == 1
        assert "42" in shown


@pytest.mark.full
async def test_no_acknowledged_message_is_lost_however_often_the_server_is_killed(
    place: SqlPlace, tmp_path: Path
) -> None:
    sent: list[str] = []
    chat = ""
    for number in range(8):
        with server(place, tmp_path) as (process, client):
            chat = chat or str(client.post("/api/chats", json={}).json()["id"])
            sent += [send(client, chat, f"Calculate {number} + {each}") for each in range(2)]
            kill(process)
    with server(place, tmp_path) as (_, client):
        client.get(f"/chats/{chat}")
        await place.let_leases_run_out()
        for run in sent:
            told = result(client, run)
            assert told["status"] == "completed" or told["reason"] == "interrupted"
        assert rest(client, chat)["queue"] == []
