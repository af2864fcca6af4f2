"""Skills from the page: listed, read, switched, uploaded, edited, deleted, and called by name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.skills.writers import put, skill_md, zipped
from tests.support.app_server import AppServer, app_server
from tests.support.scripted_provider import ScriptedProvider, says
from web.harness.values.messages import ResourceBlock
from web.ui.skill_uploads import MAX_FILES, MAX_UPLOAD_BYTES

pytestmark = pytest.mark.anyio

TOKEN = re.compile(r'name="token" value="([^"]+)"')
ROW = re.compile(r'<li id="sk-(\w+)" class="skill".*?<bdi>(.*?)</bdi>', re.DOTALL)
SCRIPT = {"hx-request": "true"}
HTML = {"accept": "text/html"}


@dataclass(frozen=True, slots=True)
class Room:
    """A chat on a server whose folder of skills is `own`."""

    server: AppServer
    model: ScriptedProvider
    chat: str
    token: str
    own: Path

    async def page(self) -> str:
        return (await self.server.client.get(f"/chats/{self.chat}")).text

    async def rows(self) -> dict[str, str]:
        """The refs of the skills that are shown, by name."""
        return {name: ref for ref, name in ROW.findall(await self.page())}

    async def get(self, path: str) -> httpx.Response:
        return await self.server.client.get(f"/chats/{self.chat}/skills/{path}", headers=HTML)

    async def post(
        self, path: str, headers: dict[str, str] = SCRIPT, /, *, files: Any = None, **fields: str
    ) -> httpx.Response:
        return await self.server.client.post(
            f"/chats/{self.chat}/skills{path}",
            data={"token": self.token, **fields},
            files=files,
            headers=headers,
        )

    async def upload(self, *files: tuple[str, bytes], **fields: str) -> httpx.Response:
        given = [("file", (name, content)) for name, content in files]
        return await self.post("", files=given, **fields)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    model = ScriptedProvider(says("ok"))
    own = tmp_path / "skills"
    put(own, "greeting", references__words_md="# Words\n\n- *hello*\n")
    async with app_server(tmp_path, model) as server:
        chat = await server.new_chat()
        page = (await server.client.get(f"/chats/{chat}")).text
        (token, *_) = TOKEN.findall(page)
        yield Room(server, model, chat, token, own)


async def test_skills_are_listed_with_where_they_come_from_and_what_is_wrong(room: Room) -> None:
    put(room.own, "broken", "<b>no front matter</b>")
    page = await room.page()
    assert list(await room.rows()) == [
        *("broken", "csv-summary", "greeting", "meeting-notes", "plain-language")
    ]
    assert re.search(r"greeting</bdi></b> <small>of this server</small>", page)
    assert re.search(r"csv-summary</bdi></b> <small>sample</small>", page)
    assert "Cannot be used: " in page
    (room.own / "broken" / "SKILL.md").write_text(skill_md("broken"))
    assert "Cannot be used: " not in await room.page()


async def test_a_skill_is_read_rendered_with_the_files_beside_it(room: Room) -> None:
    (room.own / "greeting" / "SKILL.md").write_text(
        skill_md("greeting", body="# Hello\n\n<script>alert(1)</script> ![x](http://a.b/c.png)")
    )
    ref = (await room.rows())["greeting"]
    text = (await room.get(f"{ref}/files/SKILL.md")).text
    assert "<h1>Hello</h1>" in text
    assert "<script>alert" not in text
    assert "<img" not in text
    assert f'href="/chats/{room.chat}/skills/{ref}/files/references/words.md"' in text
    beside = await room.get(f"{ref}/files/references/words.md")
    assert "<em>hello</em>" in beside.text
    for path in ("references/../../../secret", "no.md", "%2e%2e/x", "/etc/passwd"):
        assert (await room.get(f"{ref}/files/{path}")).status_code in (404, 422), path


async def test_a_broken_skill_is_shown_as_it_is_written_and_a_program_as_not_text(
    room: Room,
) -> None:
    put(room.own, "broken", "<b>no front matter</b>")
    (room.own / "greeting" / "data.bin").write_bytes(b"\x00\xff")
    rows = await room.rows()
    text = (await room.get(f"{rows['broken']}/files/SKILL.md")).text
    assert "It cannot be used: " in text
    assert "&lt;b&gt;no front matter&lt;/b&gt;" in text
    assert "This is not text" in (await room.get(f"{rows['greeting']}/files/data.bin")).text
    # What would turn around what is beside it stands alone.
    (room.own / "greeting" / "turns.py").write_text("a = 1 # \u202e < b")
    turns = (await room.get(f"{rows['greeting']}/files/turns.py")).text
    assert '# <span class="spelled" data-code="⟨U+202E⟩">\u202e</span> &lt; b' in turns
    (room.own / "broken" / "SKILL.md").write_bytes(b"\xff\xfe")
    assert "not text in UTF-8" in (await room.get(f"{rows['broken']}/files/SKILL.md")).text
    assert (await room.get(f"{rows['broken']}/edit")).status_code == 422


async def test_all_that_writes_needs_the_token_of_the_page(room: Room) -> None:
    ref = (await room.rows())["greeting"]
    before = (room.own / "greeting" / "SKILL.md").read_text()
    for path in ("", f"/{ref}/edit", f"/{ref}/delete", "/restore"):
        answer = await room.post(
            path, token="x", text=skill_md("greeting", body="Changed."), name="greeting"
        )
        assert (answer.status_code, "older than the server" in answer.text) == (403, True), path
    assert (room.own / "greeting" / "SKILL.md").read_text() == before
    assert sorted(path.name for path in room.own.iterdir()) == ["greeting"]


async def test_a_file_or_a_zip_or_a_folder_becomes_a_skill(room: Room) -> None:
    answer = await room.upload(("any.md", skill_md("one").encode()))
    assert (answer.status_code, "Added one. Call it with /one." in answer.text) == (200, True)
    answer = await room.upload(("two.zip", zipped(("two/SKILL.md", skill_md("two")))))
    assert "Added two" in answer.text
    answer = await room.upload(
        ("three/SKILL.md", skill_md("three").encode()),
        ("three/.git/config", b"x"),
        ("three/words.txt", b"hello"),
    )
    assert "One hidden file was left out." in answer.text
    assert {"one", "two", "three"} < set(await room.rows())
    assert re.search(r"three</bdi></b> <small>added by you", await room.page())


async def test_one_that_cannot_be_edited_is_not_offered_to_be(room: Room) -> None:
    for name, content in (("no-text", b"\xff"), ("no-front", b"no front matter")):
        (room.own / name).mkdir()
        (room.own / name / "SKILL.md").write_bytes(content)
    (room.own / "nothing").mkdir()
    rows, page = await room.rows(), await room.page()
    offered = {name for name, ref in rows.items() if f"/skills/{ref}/edit" in page}
    assert offered >= {"greeting", "no-front"}
    assert not offered & {"no-text", "nothing"}
    for name in rows.keys() - offered:
        read = (await room.get(f"{rows[name]}/files/SKILL.md")).text
        assert "It cannot be edited here; mend it on disk." in read
        assert "/edit" not in read
        assert (await room.get(f"{rows[name]}/edit")).status_code == 422
    assert page.count("It cannot be edited here; mend it on disk.") == 2


async def test_an_upload_that_is_refused_says_why_and_leaves_nothing(room: Room) -> None:
    async def refused(*files: tuple[str, bytes], **fields: str) -> tuple[int, str]:
        answer = await room.upload(*files, **fields)
        return answer.status_code, unescape(answer.text)

    assert "No file was chosen" in (await refused(("", b"")))[1]
    assert "no SKILL.md" in (await refused(("a.zip", zipped(("a/b", "x")))))[1]
    status, words = await refused(("../SKILL.md", skill_md("up").encode()))
    assert (status, "'..'" in words or "no SKILL.md" in words) == (422, True)
    await room.upload(("one.md", skill_md("one").encode()))
    assert (await refused(("one.md", skill_md("one", body="New.").encode())))[0] == 409
    answer = await room.upload(("one.md", skill_md("one", body="New.").encode()), replace="yes")
    assert "Replaced one" in answer.text
    many = [(f"m/{number}.md", b"x") for number in range(MAX_FILES + 1)]
    status, words = await refused(*many)
    assert (status, f"More than {MAX_FILES:,} files" in words) == (413, True)
    whole = await refused(("big.md", b"x" * (MAX_UPLOAD_BYTES + 1)))
    assert whole[0] == 413
    # Larger than other requests may be, so that the skill's own limit tells.
    status, words = await refused(("big.md", b"x" * 3_000_000))
    assert (status, "is larger than" in words or "at most" in words) == (413, True)
    assert set(await room.rows()) == {
        *("one", "csv-summary", "greeting", "meeting-notes", "plain-language")
    }


async def test_an_edit_is_saved_unless_somebody_else_has_saved_meanwhile(room: Room) -> None:
    ref = (await room.rows())["greeting"]
    form = (await room.get(f"{ref}/edit")).text
    (seen,) = re.findall(r'name="seen" value="(\w+)"', form)
    mine = skill_md("greeting", body="Mine & yours.")
    answer = await room.post(f"/{ref}/edit", HTML, text=mine.replace("\n", "\r\n"), seen=seen)
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"/chats/{room.chat}/skills/{ref}/files/SKILL.md",
    )
    assert (room.own / "greeting" / "SKILL.md").read_text() == mine
    theirs = await room.post(
        f"/{ref}/edit", HTML, text=skill_md("greeting", body="Theirs."), seen=seen
    )
    assert theirs.status_code == 409
    assert "was changed meanwhile" in theirs.text
    assert "Theirs." in theirs.text
    assert "Mine &amp; yours." in theirs.text
    (seen,) = re.findall(r'name="seen" value="(\w+)"', theirs.text)
    again = await room.post(f"/{ref}/edit", HTML, text=mine.replace("Mine", "All"), seen=seen)
    assert again.status_code == 303
    broken = await room.post(f"/{ref}/edit", HTML, text="<b>nothing</b>", seen=seen)
    assert (broken.status_code, "&lt;b&gt;nothing" in broken.text) == (422, True)
    assert "All & yours." in (room.own / "greeting" / "SKILL.md").read_text()


async def test_editing_a_sample_makes_a_copy_that_goes_before_it(room: Room) -> None:
    ref = (await room.rows())["plain-language"]
    assert "makes a copy of your own" in (await room.get(f"{ref}/edit")).text
    text = skill_md("plain-language", "Mine.", "My rules.")
    answer = await room.post(f"/{ref}/edit", HTML, text=text)
    copy = (await room.rows())["plain-language"]
    assert copy != ref
    assert answer.headers["location"].endswith(f"/{copy}/files/SKILL.md")
    shown = (await room.get(f"{copy}/files/SKILL.md")).text
    assert "My rules." in shown
    assert "references/" in shown
    await room.post(f"/{copy}/delete")
    assert (await room.rows())["plain-language"] == ref


async def test_a_deletion_is_undone(room: Room) -> None:
    ref = (await room.rows())["greeting"]
    await room.post(f"/{ref}/delete")
    assert "greeting" not in await room.rows()
    page = await room.page()
    (toast,) = re.findall(r'<div id="z-skill".*?</form>', page, re.S)
    assert "Deleted “<bdi>greeting</bdi>”" in toast
    assert 'name="name" value="greeting"' in toast
    assert 'name="origin" value="server"' in toast
    assert page.index('data-slot="undo"') < page.index(toast) < page.index("data-composer")
    assert (await room.post(f"/{ref}/delete")).status_code == 404
    assert (await room.post("/restore", name="greeting", origin="sample")).status_code == 404
    await room.post("/restore", name="greeting", origin="server")
    assert "greeting" in await room.rows()
    assert "z-skill" not in await room.page()
    assert "put-away" not in await room.page()


async def test_of_a_broken_and_a_whole_skill_of_one_name_the_right_one_is_deleted(
    room: Room,
) -> None:
    await room.upload(("mine.md", skill_md("greeting", body="Mine.").encode()))
    (mine,) = room.own.glob(".of/*/greeting")
    (mine / "SKILL.md").write_text("broken")
    found = ROW.findall(await room.page())
    refs = [ref for ref, name in found if name == "greeting"]
    assert len(refs) == 2
    texts = {ref: (await room.get(f"{ref}/files/SKILL.md")).text for ref in refs}
    broken, whole = sorted(refs, key=lambda ref: "It cannot be used" not in texts[ref])
    await room.post(f"/{whole}/delete")
    assert mine.exists()
    assert not (room.own / "greeting").exists()
    await room.post("/restore", name="greeting", origin="server")
    await room.post(f"/{broken}/delete")
    assert not mine.exists()
    assert (room.own / "greeting").exists()


def attached(model: ScriptedProvider) -> list[ResourceBlock]:
    """What came with the last message that the model was sent."""
    return list(model.requests[-1].messages[-1].attachments)


async def test_a_message_that_begins_with_its_name_takes_the_skill_along(room: Room) -> None:
    room.model.answers = [says("ok")] * 5
    run = await room.server.send(room.chat, "/greeting Ada")
    await room.server.wait_for(run, "run_result")
    (block,) = attached(room.model)
    assert (block.name, block.source) == ("greeting", "skill")
    assert "Do it." in block.text
    assert "references/words.md" in block.text
    assert room.model.requests[-1].messages[-1].text == "/greeting Ada"
    assert "Attached: </span><bdi>greeting</bdi> <small><bdi>skill</bdi>" in await room.page()
    for text in ("/nothing Ada", "say /greeting", "/greetings", "//greeting"):
        run = await room.server.send(room.chat, text)
        await room.server.wait_for(run, "run_result")
        assert attached(room.model) == [], text


async def test_a_skill_that_is_switched_off_is_told_to_no_model(room: Room) -> None:
    room.model.answers = [says("ok")] * 5
    rows = await room.rows()
    run = await room.server.send(room.chat, "Hi")
    await room.server.wait_for(run, "run_result")
    request = room.model.requests[-1]
    assert "- greeting: Does a thing." in request.system_prompt
    assert {"use_skill", "read_skill_file", "run_skill_script"} <= {
        tool.name for tool in request.tools
    }
    await room.post(f"/{rows['greeting']}/switch", on="no")
    run = await room.server.send(room.chat, "/greeting Ada")
    await room.server.wait_for(run, "run_result")
    assert "- greeting" not in room.model.requests[-1].system_prompt
    assert attached(room.model) == []
    other = await room.server.new_chat()
    run = await room.server.send(other, "/greeting Ada")
    await room.server.wait_for(run, "run_result")
    assert [block.name for block in attached(room.model)] == ["greeting"]
    for ref in rows.values():
        await room.post(f"/{ref}/switch", on="no")
    run = await room.server.send(room.chat, "Hi")
    await room.server.wait_for(run, "run_result")
    assert "use_skill" not in {tool.name for tool in room.model.requests[-1].tools}


async def test_the_person_who_calls_one_that_cannot_be_used_is_told(room: Room) -> None:
    room.model.answers = [says("ok")] * 5
    rows = await room.rows()
    await room.post(f"/{rows['greeting']}/switch", on="no")
    address = f"/chats/{room.chat}/messages"
    refused = await room.server.client.post(address, data={"text": "/greeting Ada"}, headers=SCRIPT)
    assert refused.status_code == 422
    assert "The skill greeting is switched off in this chat." in refused.text
    assert "Switch it on under Setup." in refused.text
    (room.own / "greeting" / "SKILL.md").write_text("broken")
    for where in (address, "/chats"):
        refused = await room.server.client.post(where, data={"text": "/greeting"}, headers=SCRIPT)
        assert (refused.status_code, "greeting cannot be used: " in refused.text) == (422, True)
    for text in (" /greeting Ada", "/greetings", "/nothing"):
        sent = await room.server.client.post(address, data={"text": text}, headers=SCRIPT)
        assert sent.status_code == 200, text


async def test_a_command_puts_the_name_of_the_skill_into_the_message_box(room: Room) -> None:
    page = await room.page()
    (command,) = re.findall(r'data-command="(skill \w+)"[^>]*><b><bdi data-name>/greeting<', page)
    address = f"/chats/{room.chat}/commands"
    fields = {"token": room.token, "command": command}
    answer = await room.server.client.post(address, data=fields, headers=SCRIPT)
    assert "/greeting </textarea>" in answer.text
    assert answer.headers["hx-retarget"] == "[data-command-place]"
    await room.server.client.post(address, data=fields, headers=HTML)
    assert "/greeting" in await room.page()
    gone = await room.server.client.post(
        address, data={**fields, "command": "skill 0"}, headers=SCRIPT
    )
    assert gone.status_code == 404
