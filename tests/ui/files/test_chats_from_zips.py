"""The zip of a whole chat on another server: a chat that goes on, with files and versions."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.support.app_server import AppServer, app_server, refusal, text_of
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.chats.snapshots.unpacking import SNAPSHOT

pytestmark = pytest.mark.anyio


async def zip_of_a_chat(folder: Path) -> bytes:
    answers = [
        calls(("write_file", {"path": "deep/a.txt", "content": "one"})),
        calls(("write_file", {"path": "deep/a.txt", "content": "two", "replace": True})),
        says("Both are written."),
    ]
    async with app_server(folder, ScriptedProvider(*answers)) as server:
        chat = await server.new_chat(title="Brought along")
        run = await server.send(chat, "Write twice")
        key = (await server.wait_for(run, "approval_required")).data["key"]
        await server.client.post(
            f"/api/runs/{run}/approvals/{key}", json={"decision": "allow_chat"}
        )
        await server.events(run)
        answer = await server.client.get(f"/chats/{chat}/files.zip?record=1")
        assert answer.status_code == 200, answer.text
        return answer.content


async def bring(server: AppServer, data: bytes) -> httpx.Response:
    files = {"file": ("chat.zip", data, "application/zip")}
    return await server.client.post("/api/chats/from-snapshot", files=files)


def changed(data: bytes, **members: bytes | None) -> bytes:
    """The zip with members added, or taken out."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            if name not in members:
                new.writestr(name, old.read(name))
        for name, content in members.items():
            if content is not None:
                new.writestr(name, content)
    return made.getvalue()


async def test_it_becomes_a_chat_that_goes_on_with_its_files_and_versions(tmp_path: Path) -> None:
    data = await zip_of_a_chat(tmp_path / "one")
    provider = ScriptedProvider(says("I go on."))
    async with app_server(tmp_path / "two", provider) as server:
        answer = await bring(server, data)
        assert answer.status_code == 201, answer.text
        chat = answer.json()["id"]
        page = (await server.client.get(f"/chats/{chat}")).text
        for words in ("Brought along", "Write twice", "Both are written.", "write_file"):
            assert words in page
        file = await server.client.get(f"/api/chats/{chat}/files/deep/a.txt")
        assert file.content == b"two"
        listed = (await server.client.get(f"/api/chats/{chat}/files")).json()
        assert "2" in str(listed)
        assert text_of(await server.events(await server.send(chat, "Go on"))) == "I go on."
        said = [message.text for message in provider.requests[-1].messages]
        assert "Write twice" in said
        assert "Both are written." in said


async def test_the_page_knows_such_a_zip_by_its_beginning(tmp_path: Path) -> None:
    data = await zip_of_a_chat(tmp_path / "one")
    assert data.startswith(b"PK\x03\x04")
    assert SNAPSHOT.encode() in data[:100]


@pytest.mark.parametrize(
    "members",
    [
        {SNAPSHOT: None},
        {SNAPSHOT: b"{}"},
        {"../outside.txt": b"x"},
        {"/etc/passwd": b"x"},
        {".harness/objects/" + "0" * 64: b"not this"},
        {"a\\b.txt": b"x", "CON": b"x"},
    ],
    ids=lambda members: ", ".join(members),
)
async def test_a_zip_that_is_not_right_makes_no_chat(
    tmp_path: Path, members: dict[str, bytes | None]
) -> None:
    data = changed(await zip_of_a_chat(tmp_path / "one"), **members)
    async with app_server(tmp_path / "two") as server:
        status, code = refusal(await bring(server, data))
        assert (status, code) == (422, "snapshot_refused")
        assert (await server.client.get("/api/chats")).json() == []
    made = [path for path in (tmp_path / "two").rglob("*.txt") if path.is_file()]
    assert made == []
    assert not (tmp_path / "outside.txt").exists()


async def test_a_zip_that_is_cut_off_or_too_full_makes_no_chat(tmp_path: Path) -> None:
    data = await zip_of_a_chat(tmp_path / "one")
    async with app_server(tmp_path / "two", max_files=1) as server:
        assert refusal(await bring(server, data[: len(data) // 2])) == (422, "snapshot_refused")
        full = changed(data, **{"b.txt": b"x"})
        assert refusal(await bring(server, full)) == (429, "limit_exceeded")
        assert (await server.client.get("/api/chats")).json() == []
