"""A server that two people use, one of whom has something of every kind.

async with two_people(tmp_path) as house:
    answer = await house.ask("eve", Row("GET", "/chats/{chat}"), house.ids)
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

import httpx

from tests.support.app_server import WAIT_SECONDS, AppServer, app_server, plain_client
from tests.support.authorization_server import realm, sent_back
from tests.support.mcp_wire import NOTES
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider, calls, says
from web.chats.servers.offers import ref_of
from web.chats.steps.run_files import RunFile, write_run_file
from web.chats.steps.step_kinds import ShownStep

OWNER, EVE = "ann", "eve"
SECRET = "zanzibar"
"""Stands in all that the owner has."""
USER = "x-user"
BY_PROXY: Mapping[str, Any] = {
    "identity": f"header:{USER}",
    "trusted_proxy": ("127.0.0.1",),
}

_TOKEN = re.compile(r'name="token" value="([^"]+)"')
_CALLBACK = re.compile(r'<a [^>]*href="([^"]+)" target="_blank"')
_CHANGING = re.compile(
    r'[0-9a-f]{16,}|(?<=ersion":)\d+|(?<=ersion=")\d+|(?<=:)\d+(?=\n)|(?<=updated_at":")[^"]+'
)
"""What is another one in every answer: fresh ids, how often something changed, and when."""

Kind = Literal["theirs", "same", "own", "open"]


class Row(NamedTuple):
    """A request, with the names of ids in braces, and what it is to a stranger.

    `theirs` is as if it was not there (404), `same` is answered alike whether it is there or not,
    `own` is about whoever asks, and `open` is for everybody. `real` is false where the owner has
    nothing like it either.
    """

    method: str
    path: str
    kind: Kind = "theirs"
    form: Mapping[str, str] | None = None
    sent: Mapping[str, Any] | None = None
    files: tuple[str, str, bytes] | None = None
    real: bool = True


class Answer(NamedTuple):
    status: int
    headers: str
    text: str

    def alike(self, *named: Mapping[str, str]) -> tuple[int, str]:
        """The same for ids that differ, by their names, and without what always changes."""
        text = self.text
        for ids in named:
            for name, id in ids.items():
                text = text.replace(id, f"<{name}>")
        return self.status, _CHANGING.sub("#", text)


@dataclass
class House:
    server: AppServer
    client: httpx.AsyncClient
    """Says nothing of who asks; that of `server` is the owner's."""
    data: Path
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def unknown(self) -> dict[str, str]:
        """Ids of the same shape that nothing has; the token of the server's pages is for all."""
        made = {name: re.sub(r"[^\W_]", "0", id) for name, id in self.ids.items()}
        return {**made, "token": self.ids["token"]}

    async def ask(self, person: str | None, row: Row, ids: Mapping[str, str]) -> Answer:
        """What a person is answered, or nobody."""
        headers = {} if person is None else {USER: person}
        if not row.path.startswith("/api"):
            headers["accept"] = "text/html"
        form = dict(row.form or {})
        sent: dict[str, Any] = {"headers": headers}
        if row.sent is not None:
            sent["content"] = json.dumps(row.sent)
            headers["content-type"] = "application/json"
        elif row.form is not None or row.files is not None:
            filled = {name: text.format_map(ids) for name, text in form.items()}
            sent["data"] = {"token": self.ids.get("token", ""), **filled}
        if row.files is not None:
            part, name, content = row.files
            sent["files"] = [(part, (name, content))]
        path = row.path.format_map(ids)
        async with self.client.stream(row.method, path, **sent) as answer:
            endless = row.path.startswith("/stream") and answer.status_code == 200
            text = await (_begun(answer) if endless else _whole(answer))
        told = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
        return Answer(answer.status_code, told, text)

    def on_disk(self) -> dict[str, bytes]:
        """Every file of the data folder, by its path."""
        return {
            str(path.relative_to(self.data)): path.read_bytes()
            for path in self.data.rglob("*")
            if path.is_file()
        }


@asynccontextmanager
async def two_people(folder: Path, store: str = "memory") -> AsyncIterator[House]:
    """`store` is where chats are kept, as `--store` has it."""
    config = folder / "servers.json"
    notes = {"command": sys.executable, "args": ["-S", "-E", str(NOTES), "0"]}
    config.write_text(json.dumps({"mcpServers": {"notes": {**notes, "protocol": "legacy"}}}))
    written = {"path": f"{SECRET}.md", "content": SECRET}
    model = ScriptedProvider(says(f"The word is {SECRET}."), calls(("write_file", written)))
    settings = {**BY_PROXY, "mcp_config": config, "store": store}
    data = folder / "data"
    async with (
        app_server(data, model, settings=settings, undo_seconds=600) as server,
        plain_client(server.address) as client,
        realm() as shop,
    ):
        server.client.headers[USER] = OWNER
        house = House(server, client, data)
        await _furnish(house, shop.url)
        yield house


async def _furnish(house: House, shop: str) -> None:
    server, ids = house.server, house.ids
    ids["request"] = f"request-of-{SECRET}"
    chat = ids["chat"] = await server.new_chat(title=f"About {SECRET}", request_id=ids["request"])
    ids["doomed"], ids["lost"] = [await server.new_chat(title=f"More {SECRET}") for _ in "ab"]
    ids["run"] = await server.send(chat, f"Say {SECRET}")
    await server.wait_for(ids["run"], "run_result")
    asking = ids["asking"] = await server.new_chat()
    ids["asking_run"] = await server.send(asking, f"Write {SECRET}")
    ids["approval"] = (await server.wait_for(ids["asking_run"], "approval_required")).data["key"]
    ids["waiting"] = await server.send(asking, f"And {SECRET}", queue=True)
    step = ShownStep(1, 0.0, "begun", roles=("user",), text=f"Say {SECRET}")
    exported = write_run_file(RunFile("r", f"About {SECRET}", 0.0, (step,)))
    files = [("file", ("run.json", exported))]
    ids["opened"] = (await _told(server, "POST", "/api/opened-runs", files=files)).json()["id"]
    ids["deleted"] = await server.new_chat(title=f"Old {SECRET}")
    await _told(server, "DELETE", f"/api/chats/{ids['deleted']}")
    await _furnish_with_files(house)
    await _furnish_with_skills_and_memories(house)
    await _furnish_with_servers(house, shop)


async def _furnish_with_files(house: House) -> None:
    server, ids = house.server, house.ids
    chat, ids["file"], ids["gone_file"] = ids["chat"], f"{SECRET}.html", f"{SECRET}.txt"
    page = await _told(server, "GET", f"/chats/{chat}")
    ids["token"] = _TOKEN.findall(page.text)[0]
    given = [(ids["file"], f"<p>{SECRET}</p>".encode()), (ids["gone_file"], SECRET.encode())]
    for name, content in [*given, ("picture.png", png(3, 2))]:
        await _told(server, "POST", f"/chats/{chat}/uploads", files=[("files", (name, content))])
    await _told(server, "DELETE", f"/api/chats/{chat}/files/{ids['gone_file']}")
    page = await _told(server, "GET", f"/chats/{chat}")
    (ids["blob"],) = set(re.findall(rf"/chats/{chat}/blobs/(\w+)", page.text))
    ids["attachment"] = re.findall(r"/attachments/([^/\"]+)/remove", page.text)[0]
    await _told(server, "POST", f"/chats/{chat}/draft", data={"text": f"Draft on {SECRET}"})


async def _furnish_with_skills_and_memories(house: House) -> None:
    server, ids = house.server, house.ids
    base = f"/api/chats/{ids['chat']}"
    for name, of in (("skill", SECRET), ("gone_skill", f"old-{SECRET}")):
        text = f"---\nname: {of}\ndescription: About {SECRET}.\n---\n\n{SECRET}\n"
        files = [("file", ("any.md", text.encode()))]
        made = await _told(server, "POST", f"{base}/skills", files=files)
        ids[name] = made.json()["skill"]["key"]
    await _told(server, "DELETE", f"{base}/skills/{ids['gone_skill']}")
    ids["gone_skill"] = (await _told(server, "GET", f"{base}/deleted-skills")).json()[0]["key"]
    for name in ("memory", "gone_memory"):
        fact = {"text": f"Likes {SECRET}, {name}"}
        ids[name] = (await _told(server, "POST", f"{base}/memories", json=fact)).json()["key"]
    await _told(server, "DELETE", f"{base}/memories/{ids['gone_memory']}")


async def _furnish_with_servers(house: House, shop: str) -> None:
    server, ids = house.server, house.ids
    base, address = f"/api/chats/{ids['chat']}/servers", f"/chats/{ids['chat']}/servers"
    made = await _told(server, "POST", base, json={"name": f"shop-{SECRET}", "url": shop})
    ids["server"], ids["tool"] = made.json()["key"], "notes__touch"
    ids["resource"] = ref_of("notes://today")
    await _until(server, base, lambda each: each["state"] == "sign_in")
    notes = await _until(server, base, lambda each: each["name"] == "notes" and each["tools"])
    ids["host"] = notes["key"]
    token = {"token": ids["token"]}
    await _told(server, "POST", f"{address}/{ids['server']}/sign-in", data=token)
    page = await _told(server, "GET", f"/chats/{ids['chat']}")
    visit = next(each for each in _CALLBACK.findall(page.text) if "authorize" in each)
    ids["callback"] = urlsplit(await sent_back(visit.replace("&amp;", "&"))).query
    answer = await _told(server, "GET", "/oauth/callback?state=none&code=none")
    ids["outcome"] = answer.headers["location"].rpartition("/")[2]


async def _told(server: AppServer, method: str, path: str, **sent: Any) -> httpx.Response:
    answer = await server.client.request(method, path, **sent)
    assert answer.status_code < 400, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
    return answer


async def _until(server: AppServer, path: str, wanted: Any) -> dict[str, Any]:
    """The first server of the list that is as wanted."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            for each in (await _told(server, "GET", path)).json():
                if wanted(each):
                    return dict(each)


async def _whole(answer: httpx.Response) -> str:
    return (await answer.aread()).decode("utf-8", "replace")


async def _begun(answer: httpx.Response) -> str:
    """What an endless stream tells until its first frame is whole."""
    lines: list[str] = []
    async with asyncio.timeout(WAIT_SECONDS):
        async for line in answer.aiter_lines():
            lines.append(line)
            if not line and any(each == "event: frame" for each in lines):
                break
    return "\n".join(lines)
