"""Files from the page: with script and without, on a new page, refused, and in bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterable
from html import unescape
from pathlib import Path

import httpx
import pytest

from tests.support.app_server import AppServer, app_server, refusal
from tests.support.kept import at_rest
from tests.support.pictures import png
from web.ui.files.upload_forms import MAX_FILES

pytestmark = pytest.mark.anyio

SCRIPT = {"hx-request": "true"}
PAGE = {"accept": "text/html"}

File = tuple[str, bytes]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
async def server(data: Path, anyio_backend: str) -> AsyncIterator[AppServer]:
    async with app_server(data, max_upload_bytes=300_000) as made:
        yield made


async def post(
    server: AppServer, path: str, files: Iterable[File], headers: dict[str, str], **fields: str
) -> httpx.Response:
    given = [("files", (name, data, "image/png")) for name, data in files]
    return await server.client.post(path, files=given, data=fields, headers=headers)


async def chips(server: AppServer, chat: str) -> list[str]:
    page = (await server.client.get(f"/chats/{chat}")).text
    return [unescape(name) for name in re.findall(r'<li id="at-.*?<bdi>(.*?)</bdi>', page, re.S)]


def names_of(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern) if path.is_file())


async def test_files_are_attached_and_the_page_is_told_of_each(server: AppServer) -> None:
    chat = await server.new_chat()
    files = [("a.png", png(3, 2)), ("notes.md", b"Rain."), ("a.zip", b"PK\x03\x04")]
    answer = await post(server, f"/chats/{chat}/uploads", files, SCRIPT)
    assert (answer.status_code, answer.headers["hx-trigger"]) == (200, "changed")
    assert re.findall(r'role="(\w+)"', answer.text) == ["status"]
    assert "a.zip goes along by its name only" in answer.text
    assert await chips(server, chat) == ["a.png", "notes.md", "a.zip"]
    page = (await server.client.get(f"/chats/{chat}")).text
    (address,) = re.findall(rf'<img src="(/chats/{chat}/blobs/\w+)"', page)
    picture = await server.client.get(address)
    assert (picture.headers["content-type"], picture.content) == ("image/png", png(3, 2))


async def test_the_page_is_told_what_went_along_with_a_message(server: AppServer) -> None:
    chat = await server.new_chat()
    await post(server, f"/chats/{chat}/uploads", [("a.png", png(3, 2)), ("b.md", b"x")], SCRIPT)
    ids = re.findall(r'<li id="(at-[^"]+)"', (await server.client.get(f"/chats/{chat}")).text)
    told = []
    for text in ("Look", "And now?"):
        sent = await server.client.post(
            f"/chats/{chat}/messages", data={"text": text}, headers=SCRIPT
        )
        assert sent.status_code == 200, sent.text
        told.append(json.loads(sent.headers["hx-trigger"]))
    first, second = told
    assert (len(ids), sorted(ids)) == (2, first.pop("attachments-sent")["ids"])
    assert [first, second] == [{"changed": None}] * 2


async def test_they_are_sent_with_the_message_and_told_by_the_api(
    server: AppServer, data: Path
) -> None:
    chat = await server.new_chat()
    files = [("a.png", png(3, 2)), ("a.pdf", b"%PDF-1.7")]
    await post(server, f"/chats/{chat}/uploads", files, SCRIPT)
    sent = {"text": "What is this?", "request_id": "r"}
    await server.client.post(f"/chats/{chat}/messages", data=sent, headers=SCRIPT)
    picture, file, text = (await at_rest(server, chat))["messages"][0]["content"]
    assert (picture["type"], picture["name"], picture["width"]) == ("image", "a.png", 3)
    assert (file["type"], file["name"], file["file_bytes"]) == ("resource", "a.pdf", 8)
    assert text["text"] == "What is this?"
    assert await chips(server, chat) == []
    page = (await server.client.get(f"/chats/{chat}")).text
    assert f'<img class="thumb" src="/chats/{chat}/blobs/{picture["sha256"]}" alt="a.png"' in page
    assert "8 bytes, among the chat" in page
    assert f'<a href="/chats/{chat}/files/a.pdf"><bdi>a.pdf</bdi></a>' in page
    assert names_of(data / "generated", f"{chat}-*/*.*") == ["a.pdf", "a.png"]


async def test_a_refused_file_keeps_no_other_from_being_attached(server: AppServer) -> None:
    chat = await server.new_chat()
    files = [(f"{number}.txt", b"x") for number in range(12)]
    answer = await post(server, f"/chats/{chat}/uploads", files, SCRIPT)
    assert (answer.status_code, answer.text.count('role="alert"')) == (200, 2)
    assert len(await chips(server, chat)) == 10
    answer = await post(server, f"/chats/{chat}/uploads", [("x.txt", b"x")], SCRIPT)
    assert (answer.status_code, "at most 10 attachments" in answer.text) == (429, True)


async def test_without_script_what_was_typed_is_kept(server: AppServer) -> None:
    chat = await server.new_chat()
    path = f"/chats/{chat}/uploads"
    answer = await post(server, path, [("a.txt", b"x")], PAGE, text="My\r\nwords")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/chats/{chat}")
    assert "\nMy\nwords</textarea>" in (await server.client.get(f"/chats/{chat}")).text
    answer = await post(server, path, [("a.zip", b"PK\x03\x04"), *10 * [("b", b"x")]], PAGE)
    assert (answer.status_code, "Not every file was attached" in answer.text) == (200, True)
    assert "by its name only" in answer.text
    assert len(await chips(server, chat)) == 10
    answer = await post(server, path, [("", b"")], PAGE, text="More words")
    assert (answer.status_code, "No file was chosen" in answer.text) == (422, True)
    assert f'action="/chats/{chat}/messages"' in answer.text
    assert "\nMore words</textarea>" in answer.text


async def test_without_script_a_file_that_is_not_attached_yet_stops_the_message(
    server: AppServer,
) -> None:
    chat = await server.new_chat()
    fields = {"text": "Look", "files": "secret-name.png"}
    for path in (f"/chats/{chat}/messages", "/chats"):
        answer = await server.client.post(path, data=fields, headers=PAGE)
        assert (answer.status_code, "are not attached yet" in answer.text) == (422, True)
        assert "\nLook</textarea>" in answer.text
        assert "secret-name" not in answer.text
    assert (await server.chat(chat))["messages"] == []


async def test_the_first_file_makes_the_chat(server: AppServer) -> None:
    answer = await post(server, "/chats/with-files", [("a.txt", b"x")], SCRIPT)
    (chat,) = re.findall(r"^/chats/(\w+)$", answer.headers["hx-redirect"])
    assert await chips(server, chat) == ["a.txt"]
    fields = {"text": "My words", "request_id": "once", "model": "openai:two"}
    answer = await post(server, "/chats/with-files", [("a.txt", b"x")], PAGE, **fields)
    page = (await server.client.get(answer.headers["location"])).text
    assert "\nMy words</textarea>" in page
    assert '<option value="openai:two" selected>' in page
    again = await post(server, "/chats/with-files", [("b.txt", b"x")], PAGE, **fields)
    assert again.headers["location"] == answer.headers["location"]
    first = await server.client.post("/chats", data=fields, headers=SCRIPT)
    assert first.headers["hx-redirect"] != answer.headers["location"]


@pytest.mark.full
async def test_a_file_beyond_the_limit_of_files_makes_no_chat(tmp_path: Path) -> None:
    async with app_server(tmp_path) as server:
        large = [("large.bin", bytes(100_000_001))]
        for headers in (SCRIPT, PAGE):
            answer = await post(server, "/chats/with-files", large, headers, text="My words")
            assert (answer.status_code, "a file takes at most 100 MB" in answer.text) == (
                *(413, True),
            )
        assert "\nMy words</textarea>" in answer.text
        assert (await server.client.get("/api/chats")).json() == []


async def test_no_chat_is_made_where_no_file_was_chosen(server: AppServer) -> None:
    async def chats() -> set[str]:
        # By their ids: an answer of another test may still go on and change what its chat is at.
        return {each["id"] for each in (await server.client.get("/api/chats")).json()}

    before = await chats()
    answer = await post(server, "/chats/with-files", [("", b"")], PAGE, text="My words")
    assert (answer.status_code, 'action="/chats"' in answer.text) == (422, True)
    assert "\nMy words</textarea>" in answer.text
    assert await chats() == before


async def test_hostile_names_are_shown_as_text_and_written_as_files(
    server: AppServer, data: Path
) -> None:
    chat = await server.new_chat()
    names = ["<img src=x onerror=alert(1)>.png", "../../up.txt", "a\u202egnp.exe", "a%22b.txt"]
    answer = await post(
        server, f"/chats/{chat}/uploads", [(name, b"\xff") for name in names], SCRIPT
    )
    assert "<img src=x" not in answer.text
    assert await chips(server, chat) == [names[0], "up.txt", "agnp.exe", "a%22b.txt"]
    assert "<img src=x" not in (await server.client.get(f"/chats/{chat}")).text
    assert names_of(data, "*.txt") == []


async def test_what_is_too_large_for_one_request_is_refused_and_other_paths_take_less(
    server: AppServer,
) -> None:
    chat = await server.new_chat()
    path = f"/chats/{chat}/uploads"
    answer = await post(server, path, [("big", bytes(300_001))], {})
    assert refusal(answer) == (413, "too_large")
    assert (await post(server, path, [("fits", bytes(290_000))], SCRIPT)).status_code == 200


async def test_a_stranger_and_another_site_are_refused(server: AppServer) -> None:
    answer = await post(server, "/chats/unknown/uploads", [("a", b"x")], {})
    assert refusal(answer) == (404, "not_found")
    chat = await server.new_chat()
    origin = {"origin": "http://other.example"}
    answer = await post(server, f"/chats/{chat}/uploads", [("a", b"x")], origin)
    assert refusal(answer) == (403, "cross_site")


async def test_files_are_sent_without_a_word(server: AppServer) -> None:
    chat = await server.new_chat()
    await post(server, f"/chats/{chat}/uploads", [("a b.png", png(3, 2))], SCRIPT)
    answer = await server.client.post(f"/chats/{chat}/messages", data={"text": ""}, headers=SCRIPT)
    assert answer.status_code == 200
    assert (await server.chat(chat))["title"] == "a b.png"
    assert await chips(server, chat) == []
    page = (await server.client.get(f"/chats/{chat}")).text
    assert 'class="thumb"' in page
    assert '<div class="said"' not in page
    empty = await server.client.post(f"/chats/{chat}/messages", data={"text": ""}, headers=SCRIPT)
    assert (empty.status_code, "attach a file" in empty.text) == (422, True)


@pytest.mark.parametrize("new", [True, False])
async def test_a_text_that_is_too_long_beside_files_is_told_by_its_limit_and_kept(
    data: Path, new: bool
) -> None:
    async with app_server(data / str(new)) as room:
        chat = await room.new_chat()
        path = "/chats/with-files" if new else f"/chats/{chat}/uploads"
        text = 3_000_000 * "x"
        answer = await post(room, path, [("a.txt", b"x")], PAGE, text=text)
        assert answer.status_code == 413
        assert "has 3,000,000 characters; a draft is kept up to 200,000." in answer.text
        assert f"\n{text}</textarea>" in answer.text
        assert names_of(data / str(new), "generated/*/a.txt") == []
        assert len((await room.client.get("/api/chats")).json()) == 1
        # What is sent without a file is told of the limit of a message, and kept as well.
        for messages in (f"/chats/{chat}/messages", "/chats"):
            answer = await room.client.post(messages, data={"text": text}, headers=PAGE)
            assert answer.status_code == 413
            assert "has 3,000,000 characters; at most 100,000 are taken." in answer.text
            assert f"\n{text}</textarea>" in answer.text


async def test_a_draft_is_kept_whole_or_refused_and_never_cut(server: AppServer) -> None:
    chat = await server.new_chat()
    path = f"/chats/{chat}/draft"
    whole = 150_000 * "y"
    assert (await server.client.post(path, data={"text": whole})).status_code == 204
    answer = await server.client.post(path, data={"text": 200_001 * "z"}, headers=SCRIPT)
    assert (answer.status_code, "kept up to 200,000" in answer.text) == (413, True)
    assert f"\n{whole}</textarea>" in (await server.client.get(f"/chats/{chat}")).text


async def test_too_many_files_at_once_are_refused_with_the_limit(server: AppServer) -> None:
    chat = await server.new_chat()
    files = [(f"{number}.txt", b"x") for number in range(MAX_FILES + 1)]
    answer = await post(server, f"/chats/{chat}/uploads", files, PAGE)
    assert (answer.status_code, "More than 20 files" in answer.text) == (413, True)
    assert "what you typed is still there" in answer.text


async def test_the_limits_that_were_set_are_those_that_are_told(tmp_path: Path) -> None:
    async with app_server(
        tmp_path,
        max_attachments=2,
        max_attachment_chars=5,
        max_file_bytes=2_000,
        max_files=3,
    ) as room:
        chat = await room.new_chat()
        path = f"/chats/{chat}/uploads"
        page = (await room.client.get(f"/chats/{chat}")).text
        assert 'data-most-files="2" data-most-bytes="2000"' in page
        files = [("a.bin", bytes(3_000)), ("b.txt", b"longer"), ("c.txt", b"x"), ("d.txt", b"x")]
        told = unescape((await post(room, path, files, SCRIPT)).text)
        assert "a.bin has 3 KB; a file takes at most 2 KB." in told
        assert "b.txt goes along by its name only: it has more than 5 characters" in told
        assert "A message takes at most 2 attachments" in told
        # The two that were attached lie in the folder; of two more there is room for one.
        new = [{"name": f"{name}.md", "text": "x"} for name in "ef"]
        sent = {"text": "x", "attachments": new}
        answer = await room.client.post(f"/api/chats/{chat}/messages", json=sent)
        assert refusal(answer) == (429, "limit_exceeded")
        assert "holds 3 files" in answer.json()["message"]
