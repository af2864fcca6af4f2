"""Chats in a durable store: another server on the same store shows them as they were."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.app_server import AppServer, text_of
from tests.support.kept import Restarts, page_of, until
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.commands.files import left_behind
from web.harness.values.model import TextChunk

pytestmark = pytest.mark.anyio

WRITE = ("write_file", {"path": "note.txt", "content": "hello"})


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.full)])
def database_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def question(server: AppServer, run: str) -> str:
    return str((await server.wait_for(run, "approval_required")).data["key"])


async def settled(server: AppServer, chat: str) -> None:
    """Returns when the page shows the end of what was done."""

    async def idle() -> bool:
        told = await server.chat(chat)
        return told["state"] not in ("working", "asking") and told["active_run"] is None

    await until(idle)


@pytest.mark.parametrize("database_kind", ["sqlite", "postgresql"])
async def test_a_chat_is_as_it_was_after_a_restart(stage: Restarts) -> None:
    provider = ScriptedProvider(
        calls(WRITE, text="I write it."),
        says("**Written**, as a list:\n\n- one\n- two"),
        calls(("calculate", {"expression": "6 * 7"})),
        says("It is 42."),
    )
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Write a note")
        key = await question(server, run)
        await server.client.post(
            f"/api/runs/{run}/approvals/{key}", json={"decision": "allow_chat"}
        )
        await server.events(run)
        await server.events(await server.send(chat, "Six times seven?"))
        await server.client.patch(
            f"/api/chats/{chat}",
            json={"title": "Sums", "system_prompt": "Be short.", "limits": {"max_iterations": 7}},
        )
        draft = await server.client.post(f"/chats/{chat}/draft", data={"text": "half a thought"})
        assert draft.status_code == 204
        (stored,) = await stage.place.run("SELECT body FROM harness_records")
        assert "half a thought" in stored[0]
        await settled(server, chat)
        before, told = await page_of(server, chat), await server.chat(chat)
    async with stage.server(ScriptedProvider(says("Here again."))) as server:
        assert [each["title"] for each in (await server.client.get("/api/chats")).json()] == [
            "Sums"
        ]
        assert await page_of(server, chat) == before
        assert await server.chat(chat) == told
        assert "half a thought" in before
        assert "note.txt" in before
        assert text_of(await server.events(run)).startswith("I write it.")
        again = await server.send(chat, "And now?")
        assert text_of(await server.events(again)) == "Here again."
        assert len((await server.chat(chat))["messages"]) == len(told["messages"]) + 2


async def test_what_was_allowed_for_a_chat_stays_allowed_and_what_was_taken_back_does_not(
    stage: Restarts,
) -> None:
    provider = ScriptedProvider(calls(WRITE), says("Done."))
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Write")
        key = await question(server, run)
        await server.client.post(
            f"/api/runs/{run}/approvals/{key}", json={"decision": "allow_chat"}
        )
        await server.events(run)
    rewrite = ("write_file", {"path": "other.txt", "content": "more"})
    async with stage.server(ScriptedProvider(calls(rewrite), says("Done."))) as server:
        events = await server.events(await server.send(chat, "Once more"))
        assert "approval_required" not in [event.type for event in events]
        await server.client.post(f"/chats/{chat}/grants/write_file/revoke")
    last = ("write_file", {"path": "third.txt", "content": "more"})
    async with stage.server(ScriptedProvider(calls(last), says("Done."))) as server:
        assert await question(server, await server.send(chat, "A third"))


async def test_an_answer_that_was_under_way_ends_as_incomplete_once_and_can_be_asked_for_again(
    stage: Restarts,
) -> None:
    stage.settings["backend"] = "none"
    never = asyncio.Event()
    provider = ScriptedProvider([TextChunk("The first half. "), never])
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Tell me all")
        await server.wait_for(run, "text_delta")
    for _ in range(2):
        async with stage.server() as server:
            page = await page_of(server, chat)
            await settled(server, chat)
            page = await page_of(server, chat)
            assert "The first half." in page
            assert page.count("it is incomplete") == 1
            types = [event.type for event in await server.events(run)]
            assert types.count("run_result") == types.count("error") == 1
    async with stage.server(ScriptedProvider(says("All of it."))) as server:
        await server.client.get(f"/chats/{chat}")
        answer = await server.client.post(f"/api/runs/{run}/retry")
        assert answer.status_code == 202, answer.text
        await server.events(answer.json()["run_id"])
        await settled(server, chat)
        page = await page_of(server, chat)
        assert "All of it." in page
        assert "The first half." not in page
        assert page.count("Tell me all") >= 1


async def test_messages_that_waited_are_sent_after_a_restart(stage: Restarts) -> None:
    never = asyncio.Event()
    async with stage.server(ScriptedProvider([TextChunk("A"), never])) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "first")
        await server.wait_for(run, "text_delta")
        second = await server.send(chat, "second", queue=True)
        third = await server.send(chat, "third", queue=True)
        await server.client.post(f"/chats/{chat}/queue/{third}/take-back")
    async with stage.server(ScriptedProvider(says("To the second."))) as server:
        await server.chat(chat)
        assert text_of(await server.events(second)) == "To the second."
        await settled(server, chat)
        told = await server.chat(chat)
        assert told["queue"] == []
        texts = [m["content"][0]["text"] for m in told["messages"] if m["role"] == "user"]
        assert "second" in texts
        assert "third" not in texts


async def test_a_message_sent_after_a_restart_comes_after_those_that_waited(
    stage: Restarts,
) -> None:
    stage.settings["backend"] = "none"
    async with stage.server(ScriptedProvider([TextChunk("A"), asyncio.Event()])) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "first")
        await server.wait_for(run, "text_delta")
        await server.send(chat, "second", queue=True)
        await server.send(chat, "third", queue=True)
    provider = ScriptedProvider(says("To 2."), says("To 3."), says("To 4."))
    async with stage.server(provider) as server:
        fourth = await server.send(chat, "fourth", queue=True)
        assert text_of(await server.events(fourth)) == "To 4."
        asked = [request.messages[-1].text for request in provider.requests]
        assert asked == ["second", "third", "fourth"]


async def test_a_message_that_was_taken_is_a_run_under_way_at_once(stage: Restarts) -> None:
    going = asyncio.Event()
    async with stage.server(ScriptedProvider([TextChunk("Hm"), going, *says(".")])) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "Hi")
        told = await server.chat(chat)
        assert (told["state"], told["active_run"]) == ("working", run_id)
        going.set()
        await settled(server, chat)


async def test_attachments_of_the_draft_and_pictures_outlive_a_restart(stage: Restarts) -> None:
    provider = ScriptedProvider(says("Nice."))
    data = png(40, 30)
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        files = {"files": ("plan.png", data, "image/png")}
        answer = await server.client.post(f"/chats/{chat}/uploads", files=files)
        assert answer.status_code < 400, answer.text
        before = await page_of(server, chat)
        assert "plan.png" in before
    provider = ScriptedProvider(says("Nice."))
    async with stage.server(provider) as server:
        assert "plan.png" in await page_of(server, chat)
        await server.client.post(
            f"/chats/{chat}/messages", data={"text": "Look", "request_id": "q"}
        )
        await settled(server, chat)
        sent = provider.requests[-1].messages[-1]
        assert [block.data for block in sent.content if block.type == "image"] == [data]
    async with stage.server() as server:
        page = await page_of(server, chat)
        address = page.split(f"/chats/{chat}/blobs/")[1].split('"')[0]
        shown = await server.client.get(f"/chats/{chat}/blobs/{address}")
        assert shown.content == data


async def test_what_is_attached_goes_with_one_of_two_messages_that_are_sent_at_once(
    stage: Restarts,
) -> None:
    provider = ScriptedProvider(says("One."), says("Two."))
    async with stage.server(provider) as server:
        chat = await server.new_chat()
        files = {"files": ("notes.md", b"Rain.", "text/markdown")}
        answer = await server.client.post(f"/chats/{chat}/uploads", files=files)
        assert answer.status_code < 400, answer.text
        answers = await asyncio.gather(
            *(
                server.client.post(f"/chats/{chat}/messages", data={"text": text})
                for text in ("one", "two")
            )
        )
        assert [each.status_code for each in answers] == [303, 303]

        async def both_asked() -> bool:
            return len(provider.requests) == 2

        await until(both_asked)
        await settled(server, chat)
        latest = [request.messages[-1].attachments for request in provider.requests]
        assert sorted(len(attachments) for attachments in latest) == [0, 1]


async def test_a_chat_that_was_brought_along_is_as_it_was_after_a_restart(stage: Restarts) -> None:
    provider = ScriptedProvider(calls(("calculate", {"expression": "6 * 7"})), says("It is 42."))
    async with stage.server(provider) as server:
        chat = await server.new_chat(title="Sums")
        await server.events(await server.send(chat, "Six times seven?"))
        await settled(server, chat)
        saved = (await server.client.get(f"/api/chats/{chat}/snapshot")).content
        files = {"file": ("chat.json", saved, "application/json")}
        answer = await server.client.post("/api/chats/from-snapshot", files=files)
        brought = answer.json()["id"]
        await settled(server, brought)
        before, told = await page_of(server, brought), await server.chat(brought)
        assert "Loaded from a snapshot." in before
    async with stage.server(ScriptedProvider(says("On."))) as server:
        assert await page_of(server, brought) == before
        assert await server.chat(brought) == told
        assert text_of(await server.events(await server.send(brought, "On?"))) == "On."
        after = await server.chat(brought)
        assert after["turns"] == told["turns"] + 1
        assert after["usage"]["input_tokens"] == told["usage"]["input_tokens"] + 10


async def test_a_request_id_is_the_same_run_after_a_restart(stage: Restarts) -> None:
    async with stage.server(ScriptedProvider(says("Once."))) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "hello", request_id="mine")
        await server.events(run)
    async with stage.server(ScriptedProvider(says("Twice."))) as server:
        assert await server.send(chat, "hello", request_id="mine") == run
        assert text_of(await server.events(run)) == "Once."


async def test_a_deleted_chat_can_be_brought_back_after_a_restart_and_goes_in_time(
    stage: Restarts,
) -> None:
    async with stage.server(undo_seconds=60) as server:
        kept, gone = await server.new_chat(title="Kept"), await server.new_chat(title="Gone")
        await server.events(await server.send(kept, "hello"))
        for each in (kept, gone):
            await server.client.delete(f"/api/chats/{each}")
    async with stage.server(undo_seconds=60) as server:
        assert (await server.client.get("/api/chats")).json() == []

        async def back() -> bool:
            answer = await server.client.post(f"/api/chats/{kept}/restore")
            return answer.status_code == 200

        await until(back)
        assert "hello" in await page_of(server, kept)
    async with stage.server(undo_seconds=1) as server:

        async def purged() -> bool:
            return list(await stage.place.run("SELECT session_id FROM harness_records")) == [
                (kept,)
            ]

        await until(purged)
        assert (await server.client.get(f"/chats/{gone}")).status_code == 404
        assert (await server.client.get(f"/chats/{kept}")).status_code == 200


async def test_chats_of_two_servers_one_after_another_stay_in_order(stage: Restarts) -> None:
    async with stage.server() as server:
        first = await server.new_chat(title="first")
        await server.new_chat(title="second")
        await server.events(await server.send(first, "up"))
    async with stage.server() as server:
        listed = (await server.client.get("/api/chats")).json()
        assert [each["title"] for each in listed] == ["first", "second"]
        page = (await server.client.get("/")).text
        assert page.index(">first<") < page.index(">second<")


async def test_the_files_of_a_chat_are_not_left_behind_until_it_is_deleted(
    stage: Restarts,
) -> None:
    root = stage.folder / "generated"
    async with stage.server(ScriptedProvider(calls(WRITE), says("Done."))) as server:
        chat = await server.new_chat()
        run = await server.send(chat, "Write")
        key = await question(server, run)
        await server.client.post(f"/api/runs/{run}/approvals/{key}", json={"decision": "allow"})
        await server.events(run)
        await page_of(server, chat)
    assert left_behind(root) == []
    async with stage.server(undo_seconds=1) as server:
        assert "note.txt" in await page_of(server, chat)
        await server.client.delete(f"/api/chats/{chat}")

        async def purged() -> bool:
            return not await stage.place.run("SELECT session_id FROM harness_records")

        await until(purged)
    assert [each.folder.name.partition("-")[0] for each in left_behind(root)] == [chat]


async def test_a_chat_that_was_killed_before_its_title_was_written_gets_it(
    stage: Restarts,
) -> None:
    async with stage.server() as server:
        chat = await server.new_chat()
        await server.events(await server.send(chat, "Plan a trip"))
        await settled(server, chat)
    await stage.place.run("UPDATE harness_records SET body = replace(body, 'Plan a trip', '')")
    async with stage.server() as server:
        assert (await server.chat(chat))["title"] == "Plan a trip"


async def test_a_chat_of_one_person_is_loaded_for_no_other(stage: Restarts) -> None:
    stage.settings.update(identity="header:X-User", trusted_proxy=("127.0.0.1",))
    ada, bob = {"X-User": "ada"}, {"X-User": "bob"}
    async with stage.server() as server:
        made = await server.client.post("/api/chats", json={"title": "Hers"}, headers=ada)
        chat = made.json()["id"]
        answer = await server.client.post(
            f"/api/chats/{chat}/messages", json={"text": "secret words"}, headers=ada
        )
        run = answer.json()["run_id"]
        await server.client.get(f"/api/runs/{run}/events", headers=ada)
    async with stage.server() as server:
        for path in (f"/chats/{chat}", f"/api/chats/{chat}", f"/api/runs/{run}"):
            assert (await server.client.get(path, headers=bob)).status_code == 404
            assert (await server.client.get(path)).status_code == 401
        stream = f"/changes?channels=chats,{chat}&after=0:0"
        assert "secret words" not in (await server.client.get(stream, headers=bob)).text
        assert "Hers" not in (await server.client.get("/", headers=bob)).text
        page = (await server.client.get(f"/chats/{chat}", headers=ada)).text
        assert "secret words" in page
        assert (await server.client.get(f"/api/runs/{run}", headers=bob)).status_code == 404


async def test_setup_says_where_chats_are_kept(stage: Restarts) -> None:
    async with stage.server() as server:
        page = (await server.client.get("/")).text
        assert "they outlive a restart" in page
        assert (await server.client.get("/api/health")).json()["store"] in stage.place.address


async def test_a_chat_whose_record_is_damaged_costs_no_other(stage: Restarts) -> None:
    async with stage.server() as server:
        damaged, other = await server.new_chat(), await server.new_chat()
    await stage.place.run(f"UPDATE harness_records SET body = '{{' WHERE session_id = '{damaged}'")
    async with stage.server() as server:
        chats = (await server.client.get("/api/chats")).json()
        assert [each["id"] for each in chats] == [other]
        assert f"/chats/{other}" in await page_of(server, other)
        answer = await server.client.get(f"/api/chats/{damaged}")
        assert (answer.status_code, answer.json()["code"]) == (500, "store_corrupt")
