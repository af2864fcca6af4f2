"""A program lists, reads, switches, puts in, edits, deletes and brings back skills, as a page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.skills.writers import put, skill_md, zipped
from tests.support.app_server import AppServer, app_server, refusal
from tests.support.scripted_provider import ScriptedProvider, says
from tests.support.tool_app import USER, tool_server

pytestmark = pytest.mark.anyio


class Room:
    """A chat, its skills by their names, and what is asked of them."""

    def __init__(self, server: AppServer, chat: str, own: Path) -> None:
        self.client = server.client
        self.server = server
        self.chat = chat
        self.path = f"/api/chats/{chat}/skills"
        self.own = own

    async def skills(self) -> dict[str, dict[str, Any]]:
        return {each["name"]: each for each in (await self.client.get(self.path)).json()}

    async def at(self, name: str) -> str:
        return f"{self.path}/{(await self.skills())[name]['key']}"

    async def upload(
        self, *files: tuple[str, str, bytes], headers: Any = None, **fields: str
    ) -> httpx.Response:
        given = [(part, (name, content)) for part, name, content in files]
        return await self.client.post(self.path, files=given, data=fields, headers=headers)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    own = tmp_path / "skills"
    put(own, "greeting", references__words_md="# Words\n")
    async with app_server(tmp_path, ScriptedProvider(says("ok"))) as server:
        yield Room(server, await server.new_chat(), own)


async def test_all_are_listed_the_broken_ones_with_their_faults(room: Room) -> None:
    put(room.own, "broken", "no front matter")
    listed = await room.skills()
    assert [*listed] == ["broken", "csv-summary", "greeting", "meeting-notes", "plain-language"]
    assert (listed["broken"]["on"], "front matter" in listed["broken"]["fault"]) == (False, True)
    whole = listed["greeting"]
    assert (whole["on"], whole["fault"], whole["origin"], whole["writable"]) == (
        *(True, "", "server", True),
    )
    assert listed["csv-summary"]["writable"] is False
    read = (await room.client.get(await room.at("broken"))).json()
    assert (read["text"], read["fault"] != "") == ("no front matter", True)


async def test_one_is_read_with_its_files(room: Room) -> None:
    path = await room.at("greeting")
    read = (await room.client.get(path)).json()
    assert (read["text"], read["files"]) == (
        (room.own / "greeting" / "SKILL.md").read_text(),
        [{"path": "references/words.md", "size": 8}],
    )
    file = await room.client.get(f"{path}/files/references/words.md")
    assert (file.content, file.headers["content-disposition"]) == (b"# Words\n", "attachment")
    assert refusal(await room.client.get(f"{path}/files/no.md")) == (404, "not_found")
    assert refusal(await room.client.get(f"{path}/files/%2e%2e/x"))[0] in (404, 422)
    assert refusal(await room.client.get(f"{room.path}/nope")) == (404, "not_found")


async def test_one_is_switched_for_a_chat_alone(room: Room) -> None:
    path = await room.at("greeting")
    assert (await room.client.patch(path, json={"on": False})).json()["on"] is False
    other = f"/api/chats/{await room.server.new_chat()}/skills"
    assert [each["on"] for each in (await room.client.get(other)).json()] == [True] * 4
    assert (await room.skills())["greeting"]["on"] is False
    assert (await room.client.patch(path, json={"on": True})).json()["on"] is True


async def test_a_file_a_zip_and_a_folder_are_put_in(room: Room) -> None:
    one = await room.upload(("file", "any.md", skill_md("one").encode()))
    assert one.status_code == 201, one.text
    assert (one.json()["skill"]["name"], one.json()["skill"]["origin"]) == ("one", "upload")
    two = await room.upload(("file", "a.zip", zipped(("two/SKILL.md", skill_md("two")))))
    assert (two.status_code, two.json()["replaced"]) == (201, False)
    three = await room.upload(
        ("folder", "three/SKILL.md", skill_md("three").encode()),
        ("folder", "three/.hidden", b"x"),
        ("folder", "three/words.txt", b"hello"),
    )
    assert (three.status_code, three.json()["left_out"]) == (201, 1)
    assert {"one", "two", "three"} < set(await room.skills())
    again = await room.upload(("file", "any.md", skill_md("one", body="New.").encode()))
    assert refusal(again) == (409, "skill_exists")
    again = await room.upload(
        ("file", "any.md", skill_md("one", body="New.").encode()), replace="yes"
    )
    assert (again.status_code, again.json()["replaced"]) == (201, True)
    page = (await room.client.get(f"/chats/{room.chat}")).text
    assert "Use three in this chat" in page


async def test_what_is_no_skill_is_refused_and_leaves_nothing(room: Room) -> None:
    before = await room.skills()
    assert refusal(await room.upload(("file", "a.zip", zipped(("x", "y"))))) == (
        *(422, "skill_refused"),
    )
    assert refusal(await room.client.post(room.path, json={})) == (415, "unsupported_media_type")
    assert refusal(await room.upload(replace="yes")) == (415, "unsupported_media_type")
    other = {"origin": "http://elsewhere.example"}
    given = ("file", "any.md", skill_md("one").encode())
    assert refusal(await room.upload(given, headers=other)) == (403, "cross_site")
    assert await room.skills() == before


async def test_an_edit_is_saved_unless_somebody_has_saved_meanwhile(room: Room) -> None:
    path = await room.at("greeting")
    seen = (await room.client.get(path)).json()["sha256"]
    text = skill_md("greeting", body="New.")
    told = (await room.client.patch(path, json={"text": text, "seen": seen})).json()
    assert (told["text"], (room.own / "greeting" / "SKILL.md").read_text()) == (text, text)
    late = await room.client.patch(path, json={"text": skill_md("greeting"), "seen": seen})
    assert refusal(late) == (409, "skill_changed")
    wrong = await room.client.patch(path, json={"text": "nothing", "seen": told["sha256"]})
    assert refusal(wrong) == (422, "skill_refused")
    sample = await room.at("plain-language")
    seen = (await room.client.get(sample)).json()["sha256"]
    change = {"text": skill_md("plain-language"), "seen": seen}
    copy = (await room.client.patch(sample, json=change)).json()
    assert (copy["origin"], copy["key"] == sample.rpartition("/")[2]) == ("upload", False)


@pytest.mark.parametrize("seen", [{}, {"seen": ""}])
async def test_a_text_that_does_not_say_what_it_replaces_is_refused(
    room: Room, seen: dict[str, str]
) -> None:
    path = await room.at("greeting")
    before = (room.own / "greeting" / "SKILL.md").read_text()
    change = {"text": skill_md("greeting", body="Other."), "on": False, **seen}
    answer = await room.client.patch(path, json=change)
    assert refusal(answer) == (422, "invalid_request")
    assert f"GET {path}" in answer.json()["hint"]
    assert (room.own / "greeting" / "SKILL.md").read_text() == before
    assert (await room.client.get(path)).json()["on"]
    assert (await room.client.patch(path, json={"on": False})).json()["on"] is False


async def test_the_description_says_that_a_text_needs_what_it_replaces(room: Room) -> None:
    shapes = (await room.client.get("/api/openapi.json")).json()["components"]["schemas"]
    assert shapes["SkillChange"]["dependentRequired"] == {"text": ["seen"]}


async def test_one_is_deleted_and_brought_back(room: Room) -> None:
    path = await room.at("greeting")
    key = path.rpartition("/")[2]
    gone = f"/api/chats/{room.chat}/deleted-skills"
    assert (await room.client.delete(path)).status_code == 204
    assert "greeting" not in await room.skills()
    assert "Bring back greeting" in (await room.client.get(f"/chats/{room.chat}")).text
    assert (await room.client.get(gone)).json() == [
        {"key": key, "name": "greeting", "origin": "server"}
    ]
    assert (await room.client.post(f"{gone}/{key}/restore")).json()["key"] == key
    assert "greeting" in await room.skills()
    assert refusal(await room.client.post(f"{gone}/{key}/restore")) == (404, "not_found")
    assert refusal(await room.client.delete(await room.at("csv-summary"))) == (
        *(403, "skill_read_only"),
    )


async def test_in_a_chat_of_somebody_else_there_is_nothing_to_see() -> None:
    async with tool_server(ScriptedProvider(says("ok")), lambda keep: []) as server:
        chat = await server.new_chat()
        for path in (f"/api/chats/{chat}/skills", f"/api/chats/{chat}/deleted-skills"):
            assert (await server.client.get(path)).status_code == 200
            stranger = await server.client.get(path, headers={USER: "bob"})
            assert refusal(stranger) == (404, "not_found")
