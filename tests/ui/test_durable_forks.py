"""Chats that begin from a step of a run that is written down, with their files; events of old runs
after a restart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.app_server import AppServer, numbers, text_of
from tests.support.kept import Restarts, at_rest, page_of, until
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.stores import on

pytestmark = [pytest.mark.anyio, on("sqlite", full="postgresql")]


def writes(content: str) -> list[Any]:
    return calls(("write_file", {"path": "a/note.txt", "content": content, "replace": True}))


async def allow(server: AppServer, run: str) -> None:
    key = (await server.wait_for(run, "approval_required")).data["key"]
    path = f"/api/runs/{run}/approvals/{key}"
    answer = await server.client.post(path, json={"decision": "allow_chat"})
    assert answer.status_code == 200, answer.text


async def test_a_chat_that_begins_from_a_step_has_its_files_as_they_were_then(
    stage: Restarts,
) -> None:
    script = ScriptedProvider(writes("one"), says("Done."), writes("two"), says("Done again."))
    async with stage.server(script) as server:
        chat = await server.new_chat(title="Notes")
        run = await server.send(chat, "Write")
        await allow(server, run)
        await at_rest(server, chat)
        await server.events(await server.send(chat, "Write again"))
        await at_rest(server, chat)
    async with stage.server(ScriptedProvider(says("On."))) as server:
        steps = (await server.client.get(f"/api/runs/{run}/steps")).json()["steps"]
        forks = [step["number"] for step in steps if step["forks"]]
        # Before its call ran, after it, and at the last answer.
        asked, done, last = forks
        for step, content in ((last, "one"), (done, "one"), (asked, None)):
            answer = await server.client.post(f"/api/runs/{run}/fork", json={"step": step})
            made = answer.json()["id"]
            page = await page_of(server, made)
            assert ("Its files are here as they were then." in page) is (content is not None)
            link = f"/chats/{made}/files/a/note.txt"
            # The card of a call that did not run in this chat has no link.
            assert (f'href="{link}"' in page) is (content is not None)
            file = await server.client.get(link.replace("/files/", "/raw/"))
            assert (file.text if file.status_code == 200 else None) == content
        file = await server.client.get(f"/chats/{chat}/raw/a/note.txt")
        assert file.text == "two"


async def test_after_a_restart_a_reader_of_an_old_run_is_told_of_the_gap(stage: Restarts) -> None:
    script = ScriptedProvider(
        calls(("list_files", {}), text="I look."), says("a", "b", "c"), says("Two."), says("Three.")
    )
    async with stage.server(script, kept_runs=1) as server:
        chat = await server.new_chat()
        first = await server.send(chat, "one")
        whole = await server.events(first)
        await at_rest(server, chat)

    async def folded(server: AppServer) -> bool:
        return (await server.events(first))[0].type == "gap"

    # What is too old is folded by whatever server the chat is then at.
    async with stage.server(script, kept_runs=1) as server:
        joined = await server.events(first)
        assert joined[0].type != "gap"
        second = await server.send(chat, "two")
        await server.events(second)
        assert await until(lambda: folded(server))
    async with stage.server(script, kept_runs=1) as server:
        events = await server.events(first)
        assert [event.type for event in events] == [
            *("gap", "text_delta", "usage", "tool_call_start", "tool_result"),
            *("text_delta", "usage", "run_result"),
        ]
        assert events[0].data == {"after": 0, "next": events[1].id}
        kept = numbers(events)
        dropped = numbers([event for event in whole if event.type == "tool_call_delta"])
        for after in range(len(whole) + 1):
            got = await server.events(first, after)
            # A gap is told to whoever has not seen what was dropped, and to nobody else.
            assert any(event.type == "gap" for event in got) == (after < dropped[-1]), after
            assert numbers(got) == [number for number in kept if number > after]
            # A delta that was joined has the last of its numbers: of one that the reader has in
            # part, the rest comes.
            seen = [event for event in whole if (event.id or 0) <= after]
            assert text_of(seen) + text_of(got) == "I look.abc", after
        assert text_of(await server.events(second)) == "Two."
