"""What a person does to the files of a chat: delete, bring back, remove for good, take off."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.app_server import AppServer, app_server, refusal
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, calls, says

pytestmark = pytest.mark.anyio

SCRIPT = {"hx-request": "true"}


@pytest.fixture
async def server(tmp_path: Path, anyio_backend: str) -> AsyncIterator[AppServer]:
    write = calls(("write_file", {"path": "a.txt", "content": "theirs", "replace": True}))
    async with app_server(tmp_path, ScriptedProvider(write, says("ok"))) as made:
        yield made


async def put_in(server: AppServer, chat: str, name: str, data: bytes) -> str:
    """Attaches a file to the next message; returns the address that takes it off."""
    files = [("files", (name, data))]
    answer = await server.client.post(f"/chats/{chat}/uploads", files=files, headers=SCRIPT)
    assert answer.status_code == 200, answer.text
    page = (await server.client.get(f"/chats/{chat}")).text
    return str(re.findall(rf"/chats/{chat}/attachments/[\w-]+/remove", page)[-1])


async def listed(server: AppServer, chat: str) -> list[str]:
    return [each["path"] for each in (await server.client.get(f"/api/chats/{chat}/files")).json()]


def kept(folder: Path) -> int:
    """How many contents of versions are on the disk."""
    return len(list(folder.glob("generated/*/.harness/objects/*")))


def written_down(data: Path) -> str:
    """What is written down of versions."""
    return "".join(log.read_text() for log in data.glob("generated/*/.harness/versions.jsonl"))


def folder_of(data: Path, chat: str) -> Path:
    (folder,) = data.glob(f"generated/{chat}-*")
    return folder


@pytest.mark.parametrize("name", ["notes.txt", "plan.png"])
async def test_an_upload_that_was_taken_off_was_never_there(
    server: AppServer, tmp_path: Path, name: str
) -> None:
    chat = await server.new_chat()
    remove = await put_in(server, chat, name, png(3, 2) if name.endswith("png") else b"My secret")
    assert (await listed(server, chat), kept(tmp_path)) == ([name], 1)
    answer = await server.client.post(remove, headers=SCRIPT)
    assert answer.status_code == 200
    assert (await listed(server, chat), kept(tmp_path)) == ([], 0)
    assert name not in written_down(tmp_path)
    page = (await server.client.get(f"/chats/{chat}")).text
    assert f"“<bdi>{name}</bdi>” is no longer among the chat" in page
    assert f"{name}</bdi></a>" not in page


async def test_one_that_anything_else_has_to_do_with_stays(server: AppServer) -> None:
    chat = await server.new_chat()
    await put_in(server, chat, "a.txt", b"mine")
    run = await server.send(chat, "Look", queue=True)
    asked = (await server.wait_for(run, "approval_required")).data
    answer = {"decision": "allow"}
    await server.client.post(f"/api/runs/{run}/approvals/{asked['key']}", json=answer)
    await server.wait_for(run, "run_result")
    page = (await server.client.get(f"/chats/{chat}")).text
    remove = re.findall(rf"/chats/{chat}/attachments/[\w-]+/remove", page)[0]
    await server.client.post(remove, headers=SCRIPT)
    # A tool has made another version of it.
    assert await listed(server, chat) == ["a.txt"]
    await put_in(server, chat, "b.txt", b"sent")
    sent = {"text": "Look", "request_id": "r"}
    await server.client.post(f"/chats/{chat}/messages", data=sent, headers=SCRIPT)
    remove = await put_in(server, chat, "b.txt", b"sent")
    await server.client.post(remove, headers=SCRIPT)
    # A message that was sent has it.
    assert await listed(server, chat) == ["a.txt", "b.txt"]
    one = await put_in(server, chat, "c.txt", b"twice")
    other = await put_in(server, chat, "c.txt", b"twice")
    await server.client.post(one, headers=SCRIPT)
    assert "c.txt" in await listed(server, chat)
    await server.client.post(other, headers=SCRIPT)
    assert "c.txt" not in await listed(server, chat)


async def test_a_file_is_deleted_and_brought_back(server: AppServer) -> None:
    chat = await server.new_chat()
    await put_in(server, chat, "a b.txt", b"mine")
    client = server.client
    page = (await client.get(f"/chats/{chat}")).text
    assert f'action="/chats/{chat}/delete-file"' in page
    await client.post(f"/chats/{chat}/delete-file", data={"path": "a b.txt"}, headers=SCRIPT)
    assert await listed(server, chat) == []
    page = (await client.get(f"/chats/{chat}")).text
    (toast,) = re.findall(r'<div id="z-file".*?</form>', page, re.S)
    assert "Deleted “<bdi>a b.txt</bdi>”" in toast
    (action,) = re.findall(r'action="([^"]+)"', toast)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', toast))
    await client.post(action, data=fields, headers=SCRIPT)
    assert await listed(server, chat) == ["a b.txt"]
    assert "z-file" not in (await client.get(f"/chats/{chat}")).text
    away = {"path": "a b.txt", "from": "page"}
    answer = await client.post(f"/chats/{chat}/delete-file", data=away)
    assert (answer.status_code, answer.headers["location"]) == (
        *(303, f"/chats/{chat}/files/a%20b.txt"),
    )
    shown = (await client.get(answer.headers["location"])).text
    assert "This file was deleted. Its versions are kept" in shown
    assert '<button class="btn primary">Bring back</button>' in shown
    twice = await client.post(f"/chats/{chat}/delete-file", data=away, headers=SCRIPT)
    assert twice.status_code == 404


async def test_nothing_is_left_of_one_that_was_removed_for_good(
    server: AppServer, tmp_path: Path
) -> None:
    chat = await server.new_chat()
    for name in ("a.txt", "b.txt"):
        await put_in(server, chat, name, b"the same")
    folder = folder_of(tmp_path, chat)
    (folder / "a.txt").write_text("by hand")
    page = (await server.client.get(f"/chats/{chat}/files/a.txt")).text
    assert "all 2 versions with it. Nothing brings it back." in page
    answer = await server.client.post(f"/chats/{chat}/purge-file", data={"path": "a.txt"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/chats/{chat}/files")
    # The other one has the content of its first version still.
    assert (await listed(server, chat), kept(tmp_path)) == (["b.txt"], 1)
    assert "a.txt" not in (folder / ".harness" / "versions.jsonl").read_text()
    assert (await server.client.get(f"/chats/{chat}/files/a.txt")).status_code == 404
    again = await server.client.post(f"/chats/{chat}/purge-file", data={"path": "a.txt"})
    assert again.status_code == 404
    await server.client.post(f"/chats/{chat}/delete-file", data={"path": "b.txt"})
    await server.client.post(f"/chats/{chat}/purge-file", data={"path": "b.txt"})
    assert kept(tmp_path) == 0
    assert "1 deleted" not in (await server.client.get(f"/chats/{chat}")).text


async def test_a_program_deletes_a_file_with_its_versions_or_without(
    server: AppServer, tmp_path: Path
) -> None:
    chat = await server.new_chat()
    await put_in(server, chat, "a.txt", b"mine")
    path = f"/api/chats/{chat}/files/a.txt"
    wrong = await server.client.delete(f"{path}?versions=none")
    assert refusal(wrong) == (422, "invalid_request")
    assert (await server.client.delete(path)).status_code == 204
    assert (await listed(server, chat), kept(tmp_path)) == ([], 1)
    assert refusal(await server.client.delete(path)) == (404, "not_found")
    assert (await server.client.delete(f"{path}?versions=all")).status_code == 204
    assert kept(tmp_path) == 0
    assert refusal(await server.client.delete(f"{path}?versions=all")) == (404, "not_found")


async def test_a_link_that_leads_nowhere_says_so_and_a_long_one_is_understood(
    server: AppServer, tmp_path: Path
) -> None:
    chat = await server.new_chat()
    await put_in(server, chat, "data.csv", b"a,b")
    folder = folder_of(tmp_path, chat)
    for path in ("generated/data.csv", f"generated/{folder.name}/data.csv"):
        answer = await server.client.get(f"/chats/{chat}/files/{path}")
        assert (answer.status_code, answer.headers["location"]) == (
            *(307, f"/chats/{chat}/files/data.csv"),
        )
    answer = await server.client.get(f"/chats/{chat}/files/generated/other.csv")
    assert answer.status_code == 404
    assert "There is no file of this name in this chat." in answer.text
    assert f'href="/chats/{chat}/files">The files of this chat</a>' in answer.text
    assert "purge-file" not in answer.text
