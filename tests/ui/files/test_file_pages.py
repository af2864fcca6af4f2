"""The pages, bytes and zips of a chat's files, asked over HTTP."""

from __future__ import annotations

import html
import io
import re
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from tests.support.app_server import AppServer, app_server, refusal
from tests.support.pdfs import pdf
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.tool_app import USER, tool_server

pytestmark = pytest.mark.anyio

PAGE = {"accept": "text/html"}


@asynccontextmanager
async def a_chat(
    tmp_path: Path, provider: ScriptedProvider | None = None
) -> AsyncIterator[tuple[AppServer, str, Path]]:
    """A server, a chat, and the folder of its files, which is there."""
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat(title="Trip")
        await server.client.get(f"/chats/{chat}/files.zip?record=1")
        [folder] = (tmp_path / "generated").glob(f"{chat}-*")
        yield server, chat, folder


async def page(server: AppServer, chat: str, path: str, query: str = "") -> str:
    answer = await server.client.get(f"/chats/{chat}/files/{quote(path)}{query}", headers=PAGE)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_a_call_that_was_allowed_makes_a_version_that_names_both(tmp_path: Path) -> None:
    plan = {"path": "notes/plan.md", "content": "# Plan\n"}
    provider = ScriptedProvider(
        calls(("write_file", plan)), says("See [the plan](notes/plan.md) and [b](../b.md).")
    )
    async with a_chat(tmp_path, provider) as (server, chat, _):
        run = await server.send(chat, "plan")
        asked = (await server.wait_for(run, "approval_required")).data
        answer = {"decision": "allow"}
        await server.client.post(f"/api/runs/{run}/approvals/{asked['key']}", json=answer)
        await server.wait_for(run, "run_result")
        text = (await server.client.get(f"/chats/{chat}", headers=PAGE)).text
        [row] = re.findall(r'<li id="fl-.*?</li>', text, re.DOTALL)
        assert "by write_file, allowed by you once" in row
        assert f"approval {asked['key']}" in row
        [card] = re.findall(r'href="#([^"]+)" data-card', row)
        assert f'id="{card}"' in text
        # The answer's link opens it, the one that leaves the folder is none.
        assert f'<a href="/chats/{chat}/files/notes/plan.md">the plan</a> and b.' in text
        assert "<h1>Plan</h1>" in await page(server, chat, "notes/plan.md")
        [told] = (await server.client.get(f"/api/chats/{chat}/files")).json()
        assert told["path"] == "notes/plan.md"
        assert told["made_by"]["approval"] == asked["key"]


async def test_bytes_come_whole_in_ranges_or_not_again(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        (folder / "a.txt").write_text("0123456789")
        address = f"/chats/{chat}/raw/a.txt"
        whole = await server.client.get(address)
        assert (whole.status_code, whole.text) == (200, "0123456789")
        assert whole.headers["content-length"] == "10"
        assert whole.headers["x-content-type-options"] == "nosniff"
        assert whole.headers["content-disposition"].startswith("attachment;")
        assert whole.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        tag = whole.headers["etag"]
        for asked, status, told, text in (
            ("bytes=2-4", 206, "bytes 2-4/10", "234"),
            ("bytes=7-", 206, "bytes 7-9/10", "789"),
            ("bytes=-3", 206, "bytes 7-9/10", "789"),
            ("bytes=8-99", 206, "bytes 8-9/10", "89"),
            ("bytes=10-", 416, "bytes */10", ""),
            ("bytes=-0", 416, "bytes */10", ""),
            ("bytes=1-2,4-5", 200, None, "0123456789"),
            ("bytes=5-2", 200, None, "0123456789"),
            ("lines=1-2", 200, None, "0123456789"),
        ):
            part = await server.client.get(address, headers={"range": asked})
            assert (part.status_code, part.text) == (status, text), asked
            assert part.headers.get("content-range") == told
        known = await server.client.get(address, headers={"if-none-match": f'"x", W/{tag}'})
        assert (known.status_code, known.content) == (304, b"")
        changed = {"range": "bytes=2-4", "if-range": '"another"'}
        assert (await server.client.get(address, headers=changed)).text == "0123456789"
        head = await server.client.head(address)
        assert (head.headers["content-length"], head.content) == ("10", b"")


NAMES = (
    "with space.txt", "hash#tag.txt", "100%.txt", "%41.txt", "it's.txt", "a&b;c=d+e.txt",
    "wo?.txt", "ünïcode.txt", "日本語.txt", "עברית.txt", "emoji 🎒.txt", "semi;colon.txt",
    "folder name/in#ner %2F.txt", "fi\u200cnal.txt",
)  # fmt: skip


async def test_names_that_mean_something_in_addresses_work_everywhere(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        for name in NAMES:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(name)
        text = (await server.client.get(f"/chats/{chat}", headers=PAGE)).text
        shown = {html.unescape(each) for each in re.findall(r'class="name" href="([^"]+)"', text)}
        assert shown == {f"/chats/{chat}/files/{quote(name)}" for name in NAMES}
        for name in NAMES:
            assert f"<bdi>{name}</bdi></h1>" in html.unescape(await page(server, chat, name))
            raw = await server.client.get(f"/chats/{chat}/raw/{quote(name)}")
            assert raw.text == name
            saved = raw.headers["content-disposition"].rpartition("filename*=UTF-8''")[2]
            assert saved == quote(name.rpartition("/")[2], safe="")
            told = await server.client.get(f"/api/chats/{chat}/files/{quote(name)}")
            assert told.text == name
        packed = await server.client.get(f"/chats/{chat}/files.zip")
        with zipfile.ZipFile(io.BytesIO(packed.content)) as archive:
            assert archive.testzip() is None
            assert {name: archive.read(name).decode() for name in archive.namelist()} == {
                name: name for name in NAMES
            }


@pytest.mark.parametrize(
    "path",
    ["a\nb.txt", "a\rb.txt", "a\u202eb.txt", "a\\b.txt", "../a.txt", ".harness/lock", "a//b", "/a"],
)
async def test_other_names_are_refused_with_words(path: str, tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, _):
        for place in ("files", "raw", "framed"):
            answer = await server.client.get(
                f"/chats/{chat}/{place}/{quote(path, safe='').replace('.', '%2E')}"
            )
            status, code = refusal(answer)
            if "\n" in path:
                # No address of this server holds a line break.
                assert (status, code) == (404, "not_found"), place
            else:
                assert (status, code) == (422, "tool_error"), place
                assert "refused" in answer.json()["message"]


async def test_a_file_that_is_not_there_leads_back_to_its_chat(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, _):
        answer = await server.client.get(f"/chats/{chat}/files/none.md", headers=PAGE)
        assert answer.status_code == 404
        assert "There is no file" in answer.text
        assert f'href="/chats/{chat}"' in answer.text
        assert refusal(await server.client.get("/chats/none/files/a.md"))[0] == 404


async def test_a_version_can_be_seen_and_brought_back(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        (folder / "a.txt").write_text("first")
        assert "Version 1" in await page(server, chat, "a.txt")
        (folder / "a.txt").write_text("second")
        assert "Version 2" in await page(server, chat, "a.txt")
        assert "first" in await page(server, chat, "a.txt", "?version=1")
        old = await server.client.get(f"/chats/{chat}/raw/a.txt?version=1")
        assert old.text == "first"
        assert 'filename="a.v1.txt"' in old.headers["content-disposition"]
        form = {"path": "a.txt", "version": "1"}
        back = await server.client.post(f"/chats/{chat}/restore-file", data=form)
        assert back.status_code == 303
        assert (folder / "a.txt").read_text() == "first"
        assert "restored by you from version 1" in await page(server, chat, "a.txt")
        (folder / "a.txt").unlink()
        assert refusal(await server.client.get(f"/chats/{chat}/raw/a.txt"))[0] == 404
        assert "was deleted" in await page(server, chat, "a.txt")


async def test_the_zip_of_a_chat_holds_its_files_and_its_record(tmp_path: Path) -> None:
    provider = ScriptedProvider(says("Off to Lisbon."))
    async with a_chat(tmp_path, provider) as (server, chat, folder):
        run = await server.send(chat, "Where to?")
        await server.wait_for(run, "run_result")
        data = bytes(range(256)) * 4_000
        (folder / "big.bin").write_bytes(data)
        answer = await server.client.get(f"/chats/{chat}/files.zip?record=1")
        assert answer.headers["content-type"] == "application/zip"
        assert 'filename="Trip (chat).zip"' in answer.headers["content-disposition"]
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.testzip() is None
            assert archive.read("big.bin") == data
            assert "Off to Lisbon." in archive.read(".harness/record/transcript.md").decode()
            assert b'"run_result"' in archive.read(".harness/record/events.jsonl")
            assert set(archive.namelist()) == {
                ".harness/record/snapshot.json",
                "big.bin", ".harness/record/transcript.md", ".harness/record/events.jsonl"
            }  # fmt: skip


async def test_files_are_found_by_words_of_their_paths(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        for name in ("Plan one.md", "plan-two.md", "other.md"):
            (folder / name).write_text("x")
        answer = await server.client.get(f"/chats/{chat}/files?q=PLAN one", headers=PAGE)
        assert "Plan one.md" in answer.text
        assert "plan-two.md" not in answer.text


async def preview_of(server: AppServer, chat: str, folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return (await page(server, chat, name)).partition("</h1>")[2]


async def test_a_text_is_shown_as_its_name_says_and_never_runs(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    async with a_chat(tmp_path) as (server, chat, folder):
        for name, mark in (
            ("a.md", f"# Hi {evil}"),
            ("a.csv", f"a,b\n{evil},2\n"),
            ("a.json", f'{{"{evil}": "{evil}"}}'),
            ("a.py", f"x = '{evil}'"),
        ):
            shown = await preview_of(server, chat, folder, name, mark)
            assert evil not in shown, name
            assert "alert(1)" in shown, name
        assert '<td dir="auto">2</td>' in await page(server, chat, "a.csv")
        assert '<ul class="tree">' in await page(server, chat, "a.json")
        assert '<span class="o">=</span>' in await page(server, chat, "a.py")
        written = await page(server, chat, "a.md", "?as=source")
        assert "# Hi" in written
        assert f'href="/chats/{chat}/files/a.md">As it is meant' in written
        # What a name promises and the content does not keep is shown as text.
        assert "<pre" in await preview_of(server, chat, folder, "b.json", "{not json")
        assert "<table" not in await preview_of(server, chat, folder, "c.csv", "")
        (folder / "d.png").write_text("no picture")
        assert "<img" not in (await page(server, chat, "d.png")).partition("</h1>")[2]


async def test_a_text_in_another_encoding_is_shown_and_said_so(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        for codec, called in (("utf-16", "UTF-16"), ("cp1252", "Windows-1252")):
            (folder / "a.csv").write_bytes("Größe,b\nMüller,2\n".encode(codec))
            shown = await page(server, chat, "a.csv")
            assert f"Read as {called}." in shown
            assert '<th scope="col" dir="auto">Größe</th>' in shown
            assert '<td dir="auto">Müller</td>' in shown
        (folder / "a.csv").write_bytes("Дата,Сумма".encode("cp1251"))
        assert "Save it as UTF-8 to read it here." in await page(server, chat, "a.csv")
        (folder / "a.csv").write_bytes(b"\0\1")
        assert "This kind of file is not shown here." in await page(server, chat, "a.csv")


async def test_a_picture_that_is_cut_is_called_so(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        (folder / "a.png").write_bytes(png(3, 2))
        assert "is broken" not in await page(server, chat, "a.png")
        (folder / "a.png").write_bytes(png(3, 2)[:60])
        words = "This picture is broken and shows in part, or not at all: it is cut off"
        assert words in await page(server, chat, "a.png")


async def test_a_markdown_text_shows_the_pictures_beside_it(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        (folder / "notes").mkdir()
        (folder / "notes" / "a b.png").write_bytes(png(3, 2))
        (folder / "notes" / "a.md").write_text(
            '![a "plan" <b>](<a b.png>) ![x](https://x.example/a.png) ![y](b.svg)'
        )
        shown = await page(server, chat, "notes/a.md")
        [(source, alt)] = re.findall(r'<img src="([^"]*)" alt="([^"]*)"', shown)
        assert html.unescape(alt).startswith('a "plan" <b>')
        assert source == f"/chats/{chat}/raw/notes/a%20b.png?show=1"
        answer = await server.client.get(source)
        assert (answer.headers["content-type"], answer.content) == ("image/png", png(3, 2))
        long = source.replace("/raw/", "/raw/generated/")
        assert (await server.client.get(long)).headers["location"] == source


async def test_a_page_is_framed_without_what_connects_ahead(tmp_path: Path) -> None:
    hostile = (
        "<!DOCTYPE html><LINK rel=preconnect href=//x.example><script>1</script><IFrame src=//x>"
    )
    async with a_chat(tmp_path) as (server, chat, folder):
        shown = await preview_of(server, chat, folder, "page.html", hostile)
        assert f'<iframe class="stage" sandbox src="/chats/{chat}/framed/page.html"' in shown
        framed = await server.client.get(f"/chats/{chat}/framed/page.html")
        assert framed.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert "link" not in framed.text.lower()
        assert "<iframe" not in framed.text.lower()
        raw = await server.client.get(f"/chats/{chat}/raw/page.html?show=1")
        assert raw.headers["content-disposition"].startswith("attachment")
        await preview_of(server, chat, folder, "a.txt", "plain")
        assert refusal(await server.client.get(f"/chats/{chat}/framed/a.txt"))[0] == 404


async def test_a_pdf_is_turned_page_by_page_with_its_text(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        (folder / "a.pdf").write_bytes(pdf("First <b>", "Second"))
        shown = await page(server, chat, "a.pdf")
        assert '<img class="pdf-page" src="data:image/png;base64,iVBOR' in shown
        assert 'alt="Page 1 of 2, whose text follows"' in shown
        assert "First &lt;b&gt;</pre>" in shown
        assert f'rel="next" href="/chats/{chat}/files/a.pdf?page=2"' in shown
        assert "Second</pre>" in await page(server, chat, "a.pdf", "?page=2")
        (folder / "b.pdf").write_bytes(b"%PDF-1.7 and no more")
        shown = await page(server, chat, "b.pdf")
        assert "This PDF is broken" in shown
        assert "<img" not in shown


@pytest.mark.parametrize(("fields", "go"), [({"files": "delete"}, True), ({}, False)])
async def test_the_form_says_whether_the_files_go(fields: dict[str, str], go: bool) -> None:
    async with tool_server(ScriptedProvider(), lambda keep: []) as server:
        chat = server.chat_here(await server.new_chat())
        answer = await server.client.post(f"/chats/{chat.id}/delete", data=fields)
        assert answer.status_code == 303
        assert chat.is_deleted
        assert chat.record.files_go is go


async def test_files_of_another_person_are_as_if_they_were_not_there() -> None:
    async with tool_server(ScriptedProvider(), lambda keep: []) as server:
        chat = await server.new_chat()
        for path in ("files", "files.zip", "files/a.txt", "raw/a.txt", "framed/a.html"):
            answer = await server.client.get(f"/chats/{chat}/{path}", headers={USER: "another"})
            assert answer.json()["message"] == "There is no such chat here.", path
        form = {"path": "a.txt", "version": "1"}
        for deed in ("restore-file", "delete-file", "purge-file"):
            refused = await server.client.post(
                f"/chats/{chat}/{deed}", data=form, headers={USER: "another"}
            )
            assert refused.json()["message"] == "There is no such chat here."


async def test_deleting_asks_what_becomes_of_the_files(tmp_path: Path) -> None:
    async with a_chat(tmp_path) as (server, chat, folder):
        (folder / "a.txt").write_text("some words")
        asked = (await server.client.get(f"/chats/{chat}/delete", headers=PAGE)).text
        assert "Delete its 1 file too (10 bytes)" in asked
        assert refusal(await server.client.delete(f"/api/chats/{chat}?files=maybe")) == (
            422, "invalid_request"
        )  # fmt: skip
        gone: httpx.Response = await server.client.delete(f"/api/chats/{chat}?files=delete")
        assert gone.status_code == 204
        # For as long as it can be undone, nothing is lost.
        assert (folder / "a.txt").exists()
