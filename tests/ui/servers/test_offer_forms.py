"""The forms of resources, templates and prompts, with script and without, and what they refuse."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape

import httpx
import pytest

from tests.support.app_server import AppServer, app_server
from tests.support.kept import at_rest
from tests.support.mcp_wire import NOTES, SECONDS
from tests.support.notes_server import HOSTILE, TODAY
from web.chats.servers.offers import ref_of

pytestmark = pytest.mark.anyio

TOKEN = re.compile(r'name="token" value="([^"]+)"')
PROPOSAL = re.compile(r'action="(/chats/[^"]+/proposals/[^"]+/start)"')
KEY = re.compile(r'/servers/(s-\d+)/prompts"')
SCRIPT = {"hx-request": "true"}


@dataclass(frozen=True, slots=True)
class Connected:
    """A chat that is connected to the server of notes."""

    server: AppServer
    chat: str
    token: str
    key: str

    async def post(
        self, path: str, headers: dict[str, str] = SCRIPT, /, **fields: str
    ) -> httpx.Response:
        return await self.server.client.post(
            f"/chats/{self.chat}/{path.format(key=self.key)}",
            data={"token": self.token, **fields},
            headers=headers,
        )

    async def page(self) -> str:
        answer = await self.server.client.get(f"/chats/{self.chat}")
        return answer.text

    async def attached(self) -> list[str]:
        """The names on the chips above the message box."""
        return re.findall(r'class="attachment of-.*?<bdi>(.*?)</bdi>', await self.page(), re.DOTALL)


@pytest.fixture(scope="module")
async def server(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: str
) -> AsyncIterator[AppServer]:
    async with app_server(tmp_path_factory.mktemp("data")) as made:
        yield made


async def connected(server: AppServer, many: int = 0) -> Connected:
    """A new chat with its own server of notes, which has told all that it offers."""
    chat = await server.new_chat()
    address = f"/chats/{chat}"
    (token, *_) = TOKEN.findall((await server.client.get(address)).text)
    target = shlex.join([sys.executable, "-S", "-E", str(NOTES), str(many)])
    fields = {"token": token, "target": target, "name": "notes", "protocol": "legacy"}
    await server.client.post(f"{address}/servers", data=fields)
    (start,) = PROPOSAL.findall((await server.client.get(address)).text)
    await server.client.post(start, data={"token": token})
    async with asyncio.timeout(SECONDS):
        while not (key := KEY.search((await server.client.get(address)).text)):
            pass
    return Connected(server, chat, token, key[1])


@pytest.fixture
async def made(server: AppServer) -> Connected:
    return await connected(server)


async def test_what_calls_the_server_needs_the_token_of_the_page(made: Connected) -> None:
    for path in (
        *("servers/{key}/resources", "servers/{key}/templates", "servers/{key}/prompts"),
        *("servers/{key}/completions?kind=prompt", "commands"),
    ):
        answer = await made.post(path, ref=ref_of(TODAY), do="attach", token="x")
        assert (answer.status_code, "older than the server" in answer.text) == (403, True), path
    assert await made.attached() == []


async def test_a_resource_is_read_in_place_or_on_a_page_of_its_own(made: Connected) -> None:
    path, fields = "servers/{key}/resources", {"ref": ref_of(TODAY), "do": "read"}
    answer = await made.post(path, **fields)
    assert answer.headers["hx-retarget"] == "find [data-answer]"
    assert "<h1>Today</h1>" in answer.text
    assert "<b onclick" not in answer.text
    whole = await made.post(path, {"accept": "text/html"}, **fields)
    assert "<!doctype html>" in whole.text
    assert "<h1>Today</h1>" in whole.text
    picture = await made.post(path, ref=ref_of("notes://picture"), do="read")
    (address,) = re.findall(r'<img src="([^"]+)"', picture.text)
    assert (await made.server.client.get(address)).headers["content-type"] == "image/png"
    data = await made.post(path, ref=ref_of("notes://data"), do="read")
    assert "application/zip, 4 bytes" in data.text
    plain = await made.post(path, ref=ref_of("notes://hostile"), do="read")
    assert "<img src=x" not in plain.text
    assert "This is notes://hostile. <img src=x" in unescape(plain.text)


async def test_what_cannot_be_attached_is_told_where_it_was_asked(made: Connected) -> None:
    for uri, status, words in (
        ("notes://data", 422, "is neither text nor a picture that models take"),
        ("notes://long", 413, "has 250,000 characters; an attachment takes at most 200,000"),
        ("notes://gone", 422, "no resource notes://gone"),
        ("notes://none", 404, "does not list this resource"),
    ):
        answer = await made.post("servers/{key}/resources", ref=ref_of(uri), do="attach")
        assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert await made.attached() == []


async def test_a_template_is_filled_in_and_attached_and_taken_off_again(made: Connected) -> None:
    ref = ref_of("notes://{folder}/{name}{?q}")
    answer = await made.post("servers/{key}/templates", ref=ref, a0="a b", a1="c", do="attach")
    assert (answer.status_code, answer.headers["hx-trigger"]) == (200, '{"changed": null}')
    assert "Attached." in answer.text
    assert await made.attached() == ["c"]
    assert "notes://a%20b/c" in await made.page()
    (remove,) = re.findall(r'action="/chats/[^/]+/(attachments/[^"]+)"', await made.page())
    assert (await made.post(remove)).text == ""
    assert await made.attached() == []


async def test_an_attachment_is_sent_with_the_message_and_told_by_the_api(made: Connected) -> None:
    await made.post("servers/{key}/resources", ref=ref_of("notes://hostile"), do="attach")
    await made.post("messages", text="What is this?", request_id="r")
    chat = await at_rest(made.server, made.chat)
    attached, text = chat["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is this?"}
    assert (attached["type"], attached["uri"], attached["source"]) == (
        *("resource", "notes://hostile", "notes"),
    )
    assert attached["text"] == f"This is notes://hostile. {HOSTILE}"
    page = await made.page()
    assert "<img src=x" not in page
    assert 'data-keep="attached-1"' in page
    assert await made.attached() == []


async def test_a_search_finds_what_is_not_listed(server: AppServer) -> None:
    made = await connected(server, many=300)
    page = await made.page()
    assert "306 resources" in page
    assert "106 more are not listed here" in page
    assert "notes://n/299<" not in page
    address = f"/chats/{made.chat}/servers/{made.key}/resources?q=note+299"
    found = await made.server.client.get(address, headers=SCRIPT)
    assert "1 found" in found.text
    assert "notes://n/299<" in found.text
    whole = await made.server.client.get(address)
    assert "<!doctype html>" in whole.text
    answer = await made.post("servers/{key}/resources", ref=ref_of("notes://n/299"), do="read")
    assert "This is notes://n/299." in answer.text


async def test_a_prompt_is_used_as_a_command_or_asks_for_its_fields_first(made: Connected) -> None:
    used = await made.post("commands", command=f"prompt {made.key} {ref_of('plain')}")
    assert used.headers["hx-retarget"] == "[data-command-place]"
    assert "data-put" in used.text
    assert "\nText of plain</textarea>" in used.text
    form = await made.post("commands", command=f"prompt {made.key} {ref_of('letter')}")
    assert 'name="a1"' in form.text
    assert "<img src=x" not in form.text
    missing = await made.post("servers/{key}/prompts", ref=ref_of("letter"), a0="")
    assert (missing.status_code, "Still to be filled in: to" in missing.text) == (422, True)
    letter = await made.post("servers/{key}/prompts", ref=ref_of("letter"), a0="Ada", a1="kind")
    assert "A kind letter to Ada." in letter.text
    mixed = await made.post("commands", command=f"prompt {made.key} {ref_of('mixed')}")
    assert "Left out" not in mixed.text
    assert len(await made.attached()) == 4
    broken = await made.post("commands", command=f"prompt {made.key} {ref_of('broken')}")
    assert (broken.status_code, "out of order" in broken.text) == (422, True)
    for unknown in ("prompt s-9 abc", "other", ""):
        assert (await made.post("commands", command=unknown)).status_code == 404


async def test_without_script_a_prompt_comes_before_the_draft(made: Connected) -> None:
    await made.post("draft", text="My own words")
    ref = ref_of("letter")
    answer = await made.post("servers/{key}/prompts", {"accept": "text/html"}, ref=ref, a0="Ada")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/chats/{made.chat}")
    assert "\nA calm letter to Ada.\n\nMy own words</textarea>" in await made.page()


async def test_a_field_is_completed(made: Connected) -> None:
    ref = ref_of("letter")
    fields = {"ref": ref, "a0": "A", "a1": ""}
    path = "servers/{key}/completions?kind=prompt"
    assert (await made.post(path, argument="a0", **fields)).json() == {"values": ["Ada", "Alan"]}
    assert (await made.post(path, argument="a1", **fields)).json() == {"values": ["kind to A"]}
    for argument, status in (("a2", 422), ("", 422), ("a-1", 422)):
        assert (await made.post(path, argument=argument, **fields)).status_code == status
