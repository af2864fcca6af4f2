"""What programs attach to a message, by the same limits as the page."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_server import AppServer, app_server, refusal
from tests.support.kept import at_rest
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, says

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def model() -> ScriptedProvider:
    return ScriptedProvider(says("ok"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
async def server(
    folder: Path, anyio_backend: str, model: ScriptedProvider
) -> AsyncIterator[AppServer]:
    async with app_server(folder, model) as made:
        yield made


def written(folder: Path, chat: str) -> list[str]:
    """The names of the files of a chat."""
    files = (folder / "generated").glob(f"{chat}-*/*")
    return sorted(path.name for path in files if path.is_file())


def data(name: str, content: bytes) -> dict[str, str]:
    return {"name": name, "media_type": "text/css", "data": base64.b64encode(content).decode()}


async def test_texts_pictures_and_files_go_with_a_message(
    server: AppServer, model: ScriptedProvider, folder: Path
) -> None:
    chat = await server.new_chat()
    attachments = [
        {"name": "notes.md", "text": "Rain."},
        data("a.png", png(3, 2)),
        data("a.zip", b"PK\x03\x04"),
    ]
    run = await server.send(chat, "Look", attachments=attachments, request_id="r")
    await server.wait_for(run, "run_result")
    other = [{"name": "other.md", "text": "Sun."}]
    assert await server.send(chat, "Look", attachments=other, request_id="r") == run
    assert written(folder, chat) == ["a.png", "a.zip", "notes.md"]
    message = model.requests[-1].messages[-1]
    assert [(each.name, each.text[:5]) for each in message.attachments] == [
        ("notes.md", "Rain."),
        ("a.zip", "The f"),
    ]
    (picture,) = message.pictures
    assert (picture.name, picture.media_type, picture.data) == ("a.png", "image/png", png(3, 2))
    blob = await server.client.get(f"/chats/{chat}/blobs/{picture.sha256}")
    assert blob.content == png(3, 2)


async def test_a_message_may_have_megabytes_beside_it(server: AppServer) -> None:
    chat = await server.new_chat()
    await server.send(chat, "Look", attachments=[data("a.png", png(3, 2, size=4_000_000))])
    picture, _ = (await at_rest(server, chat))["messages"][0]["content"]
    assert (picture["type"], picture["width"], picture["height"]) == ("image", 3, 2)
    assert "data" not in picture


@pytest.mark.parametrize(
    ("attachments", "status", "code"),
    [
        ([{"name": "a"}], 422, "invalid_request"),
        ([{"name": "a", "text": "a", "data": "YQ=="}], 422, "invalid_request"),
        ([{"name": "a", "data": "no base64!"}], 422, "invalid_request"),
        ([{"name": "", "text": "a"}], 422, "invalid_request"),
        ([{"name": "a", "text": "a", "more": 1}], 422, "invalid_request"),
        (11 * [{"name": "a", "text": "a"}], 429, "limit_exceeded"),
        (3 * [data("a", png(3, 2, size=7_000_000))], 429, "limit_exceeded"),
    ],
)
async def test_what_does_not_fit_is_refused_whole(
    server: AppServer, folder: Path, attachments: list[dict[str, Any]], status: int, code: str
) -> None:
    chat = await server.new_chat()
    body = {"text": "Look", "attachments": attachments}
    answer = await server.client.post(f"/api/chats/{chat}/messages", json=body)
    assert refusal(answer) == (status, code)
    assert (await server.chat(chat))["messages"] == []
    assert written(folder, chat) == []


async def test_attachments_need_no_words_and_give_the_chat_its_title(
    server: AppServer, model: ScriptedProvider
) -> None:
    chat = await server.new_chat()
    path = f"/api/chats/{chat}/messages"
    files = [{"name": "notes.md", "text": "Rain."}, {"name": "b.md", "text": "Sun."}]
    answer = await server.client.post(path, json={"attachments": files})
    assert answer.status_code == 202, answer.text
    await server.wait_for(answer.json()["run_id"], "run_result")
    sent = model.requests[-1].messages[-1]
    # Some APIs refuse a text without a word.
    assert [block.type for block in sent.content] == ["resource", "resource"]
    told = await server.chat(chat)
    assert told["title"] == "notes.md and 1 more"
    assert [block["type"] for block in told["messages"][0]["content"]] == ["resource", "resource"]
    for nothing in ({}, {"text": " \n"}, {"text": "", "attachments": []}):
        assert refusal(await server.client.post(path, json=nothing)) == (422, "empty")
