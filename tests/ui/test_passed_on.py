"""A message that one server took and another, or a later one, answers: nothing of it is lost."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.app_server import MODELS, AppServer, plain_client, served, text_of
from tests.support.kept import Restarts, at_rest, page_of, shows, until
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, says
from tests.support.stores import session_of
from tests.ui.test_durable_chats import another_server, cut_off, endless
from web.app import create_app
from web.chats.journal.journal import TurnTakenBack, entry_to_event
from web.harness.sessions.identity import LOCAL_IDENTITY
from web.harness.sessions.snapshot import SessionSnapshot
from web.harness.values.config import ModelName
from web.harness.values.errors import SessionConflict
from web.harness.values.events import RunResult
from web.harness.values.messages import Message, TextBlock
from web.harness.values.model import Provider
from web.settings import Settings

pytestmark = pytest.mark.anyio

PICTURE = png(40, 30)
PLAN = {"name": "plan.png", "data": base64.b64encode(PICTURE).decode()}


async def attach(server: AppServer, chat: str) -> None:
    files = {"files": ("plan.png", PICTURE, "image/png")}
    answer = await server.client.post(f"/chats/{chat}/uploads", files=files)
    assert answer.status_code < 400, answer.text


async def send_it(server: AppServer, chat: str) -> str:
    """Sends what is attached, as the page does; returns the run."""
    fields = {"text": "Look", "request_id": "q"}
    answer = await server.client.post(f"/chats/{chat}/messages", data=fields)
    assert answer.status_code < 400, answer.text

    async def run() -> str:
        told = await server.chat(chat)
        return str(told["active_run"] or "")

    return str(await until(run))


def pictures(provider: ScriptedProvider) -> list[bytes]:
    """Those of the newest message that the model was sent."""
    sent = provider.requests[-1].messages[-1]
    return [block.data for block in sent.content if block.type == "image"]


async def test_an_answer_on_a_picture_that_was_cut_off_goes_on_with_it(stage: Restarts) -> None:
    async with stage.server(endless("Half ")) as server:
        chat = await server.new_chat()
        await attach(server, chat)
        run = await send_it(server, chat)
        await server.wait_for(run, "text_delta")
    provider = ScriptedProvider(says("A plan."))
    async with stage.server(provider) as server:
        last = (await server.events(run))[-1].data
        assert (last["status"], last["text"]) == ("completed", "A plan.")
        assert pictures(provider) == [PICTURE]


@pytest.mark.full
@pytest.mark.parametrize("backend", ["the same", "none"])
async def test_a_picture_attached_by_one_server_goes_with_the_message_sent_by_another(
    stage: Restarts, backend: str
) -> None:
    if backend == "none":
        stage.settings["backend"] = backend
    provider = ScriptedProvider(says("A plan."))
    async with stage.server() as one, stage.server(provider) as two:
        chat = await one.new_chat()
        await page_of(two, chat)
        await attach(one, chat)
        await shows(two, chat, 'id="at-')
        fields = {"text": "Look", "request_id": "q"}
        await two.client.post(f"/chats/{chat}/messages", data=fields)

        async def asked() -> bool:
            return bool(provider.requests)

        await until(asked)
        await at_rest(two, chat)
        assert pictures(provider) == [PICTURE]


def box_of(page: str) -> str:
    return page.split('id="message"')[1].split(">", 1)[1].split("</textarea>")[0].strip()


async def taken_back(server: AppServer, chat: str, run: str) -> None:
    """Takes a message that waits back into the box."""
    address = f"/chats/{chat}/queue/{run}/take-back"
    answer = await server.client.post(address, headers={"HX-Request": "true"})
    assert answer.status_code == 200, answer.text
    assert "Look" in answer.text
    assert (await server.events(run))[-1].data["reason"] == "taken_back"


@pytest.mark.full
async def test_a_picture_that_waits_is_taken_back_by_another_server_and_sent_again(
    stage: Restarts,
) -> None:
    provider = ScriptedProvider(endless("Half ").answers[0], says("A plan."))
    async with stage.server(provider) as one, stage.server(provider) as two:
        chat = await one.new_chat()
        first = await one.send(chat, "Tell me")
        await one.wait_for(first, "text_delta")
        run = await one.send(chat, "Look", queue=True, attachments=[PLAN])
        await shows(two, chat, f"/queue/{run}/take-back")
        await taken_back(two, chat, run)
        await shows(one, chat, 'id="at-')
        assert (await one.client.post(f"/api/runs/{first}/stop")).status_code == 202
        await at_rest(two, chat)
        await send_it(two, chat)
        told = await at_rest(two, chat)
        assert [each["role"] for each in told["messages"]].count("user") == 2
        assert pictures(provider) == [PICTURE]


async def test_a_picture_that_waits_is_taken_back_after_a_restart(stage: Restarts) -> None:
    async with stage.server(endless("Half ")) as server:
        chat = await server.new_chat()
        await server.wait_for(await server.send(chat, "Tell me"), "text_delta")
        run = await server.send(chat, "Look", queue=True, attachments=[PLAN])
    async with stage.server(endless("More ")) as server:
        await shows(server, chat, f"/queue/{run}/take-back")
        await taken_back(server, chat, run)
        await shows(server, chat, 'id="at-')


@pytest.mark.parametrize("known", [True, pytest.param(False, marks=pytest.mark.full)])
async def test_what_a_server_that_is_killed_took_back_is_in_the_box_once(
    stage: Restarts, known: bool
) -> None:
    """The journal knows of it already, or does not."""
    async with stage.server(endless("Half ")) as server:
        chat = await server.new_chat()
        await server.wait_for(await server.send(chat, "Tell me"), "text_delta")
        run = await server.send(chat, "Look", queue=True, attachments=[PLAN])
        await server.client.post(f"/chats/{chat}/draft", data={"text": "typed"})
    async with another_server(stage) as other:
        await other.records.update(
            LOCAL_IDENTITY,
            chat,
            lambda row: row and replace(row, body=row.body | {"taking_back": [run]}),
        )
        if known:
            other.events.append(f"journal-of-{chat}", [entry_to_event(TurnTakenBack(run))])
            await other.events.flush(f"journal-of-{chat}")
    for _ in range(2):
        async with stage.server(endless("More ")) as server:
            page = await page_of(server, chat)
            assert box_of(page) == "Look\n\ntyped"
            assert page.count('id="at-') == 1
            assert not (await server.chat(chat))["queue"]


@pytest.mark.full
async def test_what_a_server_that_is_killed_took_back_is_in_the_box_of_another(
    stage: Restarts,
) -> None:
    async with another_server(stage) as other, stage.server(endless("Half ")) as server:
        chat = await server.new_chat()
        await server.wait_for(await server.send(chat, "Tell me"), "text_delta")
        run = await server.send(chat, "Look", queue=True, attachments=[PLAN])
        await other.records.update(
            LOCAL_IDENTITY,
            chat,
            lambda row: row and replace(row, body=row.body | {"taking_back": [run]}),
        )
        other.events.append(f"journal-of-{chat}", [entry_to_event(TurnTakenBack(run))])
        await other.events.flush(f"journal-of-{chat}")
        page = await shows(server, chat, 'id="at-')
        assert box_of(page) == "Look"


async def test_what_is_taken_back_is_in_the_draft_before_the_page_hears_of_it(
    stage: Restarts,
) -> None:
    async with stage.server(endless("Half ")) as server:
        chat = await server.new_chat()
        await server.wait_for(await server.send(chat, "Tell me"), "text_delta")
        run = await server.send(chat, "Look", queue=True)
        await server.client.post(f"/chats/{chat}/draft", data={"text": "typed"})
        await taken_back(server, chat, run)
        assert box_of(await page_of(server, chat)) == "Look\n\ntyped"


@pytest.mark.full
async def test_what_is_sent_behind_a_run_that_is_not_settled_yet_waits_and_is_answered(
    stage: Restarts,
) -> None:
    chat, run = await cut_off(stage, "Half. ")
    stage.settings["resume"] = "ask"
    async with (
        another_server(stage) as other,
        stage.server(ScriptedProvider(says("Next."))) as server,
    ):
        await shows(server, chat, "Leave it")
        lease = await other.sessions.acquire(LOCAL_IDENTITY, chat, wait=5)
        # As where its server was killed between the result and what is committed with it.
        other.events.append(run, [RunResult("completed", "Half. ")])
        await other.events.flush(run)
        await server.events(run)
        following = await server.send(chat, "And then?", queue=True)

        async def is_tried() -> bool:
            return bool((await server.chat(chat))["active_run"] == following)

        await until(is_tried)
        # Who was about to settle the run before the message came has given up by then.
        with pytest.raises(SessionConflict):
            await other.sessions.acquire(LOCAL_IDENTITY, chat, wait=2.5)
        await lease.release()
        assert text_of(await server.events(following)) == "Next."


async def test_a_run_that_has_not_begun_is_not_paused_and_is_not_said_to_have_ended(
    stage: Restarts,
) -> None:
    async with another_server(stage) as other, stage.server() as server:
        chat = await server.new_chat()
        lease = await other.sessions.acquire(LOCAL_IDENTITY, chat)
        run = await server.send(chat, "Hi")
        answer = await server.client.post(f"/api/runs/{run}/pause")
        assert answer.json()["code"] == "session_conflict"
        await lease.release()
        await server.events(run)


async def test_a_message_that_another_server_answered_leaves_the_session_as_it_was(
    stage: Restarts,
) -> None:
    stage.settings["backend"] = "none"
    async with another_server(stage) as other, stage.server() as server:
        chat = await server.new_chat()
        async with await other.sessions.acquire(LOCAL_IDENTITY, chat) as lease:
            run = await server.send(chat, "Hi")
            said = Message(f"{run}-0", "user", (TextBlock("Hi"),))
            left = await lease.commit(SessionSnapshot((said,), replayable=False))
        await at_rest(server, chat)
        assert await session_of(other.sessions, chat, wait=5) == left


@pytest.mark.full
async def test_a_message_that_is_stopped_while_it_waits_for_its_session_is_not_answered(
    stage: Restarts,
) -> None:
    stage.settings["backend"] = "none"
    provider = ScriptedProvider(says("never"))
    async with another_server(stage) as other, stage.server(provider) as server:
        chat = await server.new_chat()
        lease = await other.sessions.acquire(LOCAL_IDENTITY, chat)
        run = await server.send(chat, "Hi")
        assert (await server.client.post(f"/api/runs/{run}/stop")).status_code == 202

        async def waits() -> bool:
            return bool((await server.chat(chat))["queue"])

        await until(waits)
        await lease.release()
        assert (await server.events(run))[-1].data["status"] == "cancelled"
        assert not provider.requests


@pytest.mark.full
async def test_a_run_that_breaks_while_the_store_is_away_does_not_hang(
    stage: Restarts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chat, run = await cut_off(stage, "Half. ")
    file = Path(stage.place.address.removeprefix("sqlite:///"))
    away = tmp_path / "away"
    played = ScriptedProvider(says("All of it."))
    broke: list[ModelName] = []

    def provide(model: ModelName) -> Provider:
        if not broke:
            broke.append(model)
            file.rename(away)
            raise KeyError(model)
        return played

    settings = Settings(data_dir=tmp_path, store=stage.place.address, model=MODELS)
    app = create_app(settings, providers=provide)
    async with served(app) as address, plain_client(address) as client:
        server = AppServer(address, client)

        async def is_broken() -> bool:
            return "A run that broke has no end yet" in caplog.text

        await client.get(f"/chats/{chat}")
        await until(is_broken)
        away.rename(file)
        last = (await server.events(run))[-1].data
        assert last["status"] in ("completed", "failed")
        await at_rest(server, chat)
