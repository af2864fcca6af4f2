"""A server that is killed: the next one on the same store has every chat as it was.

Runs are written down only where a test says so; `test_durable_chats.py` has those that are.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.serving import Serving, serving
from tests.support.stores import SqlPlace, on

pytestmark = pytest.mark.anyio

_PASSING = re.compile(
    r'data-version="\d+"|data-epoch="[^"]*"|name="token" value="[^"]*"|'
    r'name="request_id" value="[^"]*"|content="[0-9a-f]+:\d+"'
)


@contextlib.contextmanager
def server(
    place: SqlPlace, folder: Path, *more: str, backend: str = "none"
) -> Iterator[tuple[Serving, httpx.Client]]:
    """A server that writes runs down where `backend` is the store, or another address."""
    given = ("--store", place.address, "--data-dir", str(folder), "--backend", backend)
    with (
        serving("--model", "demo:demo", *given, "--no-open", *more) as process,
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
    """The lines of a page, but for the words on what was deleted: they end with time, and on a
    slow machine before the next server has started."""
    before, _, rest = html.partition('data-slot="undo"')
    _, button, after = rest.partition('<button class="btn jump"')
    assert button
    return (before + after).split("\n")


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


def text_of(client: httpx.Client, run: str) -> str:
    """The text that the events of a run add up to."""
    events = client.get(f"/api/runs/{run}/events").text.split("\n\n")
    told = (each.partition("event: text_delta\ndata: ")[2] for each in events)
    return "".join(json.loads(each)["text"] for each in told if each)


def state_in_list(client: httpx.Client, chat: str) -> str:
    """What a list of all chats says of one, which is not opened by that."""
    return str(
        next(each for each in client.get("/api/chats").json() if each["id"] == chat)["state"]
    )


@pytest.mark.full
@on("sqlite", full="postgresql")
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
@on("sqlite", full="postgresql")
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
        assert result(client, first)["reason"] == "interrupted"
        assert result(client, waits)["status"] == "completed"
        told = rest(client, chat)
        # What a model is told next time has what was shown of the answer that was cut off.
        messages = told["messages"]
        assert isinstance(messages, list)
        assert [each["id"] for each in messages] == [
            f"{run}-{number}" for run, number in [(first, 0), (first, 1)]
        ] + [each["id"] for each in messages if each["id"].startswith(waits)]
        text = text_of(client, first)
        assert text
        assert [each["text"] for each in messages[1]["content"]] == [text]
        shown = page(client, chat)
        assert shown.count("so it is incomplete") == 1
        assert "42" in shown


@pytest.mark.full
@on("sqlite", full="postgresql")
async def test_a_server_that_was_killed_while_it_asked_says_so_once_it_is_back(
    place: SqlPlace, tmp_path: Path
) -> None:
    with server(place, tmp_path) as (process, client):
        chat = str(client.post("/api/chats", json={}).json()["id"])
        run = send(client, chat, "Write hello to note.txt")
        with client.stream("GET", f"/api/runs/{run}/events") as events:
            assert any(line == "event: approval_required" for line in events.iter_lines())
        assert client.get(f"/api/chats/{chat}").json()["state"] == "asking"
        kill(process)
    with server(place, tmp_path) as (_, client):
        began = time.monotonic()
        told = rest(client, chat)
        assert time.monotonic() - began < 10  # The lease of the killed server lasts 20 seconds.
        assert told["state"] == "failed"
        assert told["questions"] == []
        shown = page(client, chat)
        assert "while it waited for your answer; nothing was run" in shown
        assert "so it is incomplete" not in shown
        assert client.get(f"/api/chats/{chat}/files").json() == []
        again = client.post(f"/api/runs/{run}/retry")
        assert again.status_code == 202, again.text


@pytest.mark.full
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@on("postgresql")
async def test_what_a_server_took_and_did_not_answer_before_it_died_another_one_answers(
    place: SqlPlace, tmp_path: Path, known: bool
) -> None:
    """By itself: nobody looks at the chat, or sends another message."""
    with server(place, tmp_path) as (_, living), server(place, tmp_path) as (process, client):
        living.get("/")
        chat = str(client.post("/api/chats", json={}).json()["id"])
        first = send(client, chat, "Write 3000 words.")
        if known:
            assert living.get(f"/api/chats/{chat}").json()["state"] == "working"
        with client.stream("GET", f"/api/runs/{first}/events") as events:
            assert any(line == "event: text_delta" for line in events.iter_lines())
        waits = send(client, chat, "Calculate 6 * 7")
        kill(process)
        began = time.monotonic()
        while state_in_list(living, chat) == "working" and time.monotonic() - began < 60:
            pass
        assert time.monotonic() - began < 20
        assert result(living, first)["reason"] == "interrupted"
        assert result(living, waits)["status"] == "completed"
        assert "42" in page(living, chat)


@pytest.mark.full
@on("sqlite", full="postgresql")
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
        for run in sent:
            told = result(client, run)
            assert told["status"] == "completed" or told["reason"] == "interrupted"
        assert rest(client, chat)["queue"] == []
