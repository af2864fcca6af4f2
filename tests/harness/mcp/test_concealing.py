"""What a server repeats of the secrets that it was given is shown nowhere."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from mcp_types import PromptReference

from tests.support.mcp_wire import until
from web.harness.mcp.asking import Elicitation, ElicitationAnswer
from web.harness.mcp.concealing import concealed
from web.harness.mcp.connections import Connections
from web.harness.mcp.offered import offered_tools
from web.harness.mcp.spec import ServerSpec

pytestmark = pytest.mark.anyio

TOKEN = 'tok"en\\é-12345'
SERVER = Path(__file__).parent / "servers" / "echoing.py"


def echoing() -> ServerSpec:
    args = ("-S", "-E", str(SERVER))
    return ServerSpec("e", "stdio", sys.executable, args, env={"API_TOKEN": TOKEN})


async def test_a_server_that_repeats_its_token_everywhere_shows_it_nowhere(
    connections: Connections,
) -> None:
    connection = connections.connect(echoing())
    status = await until(connection, lambda now: now.prompts and now.templates and now.resources)
    asked: list[Elicitation] = []
    words: list[str] = []

    async def ask(question: Elicitation) -> ElicitationAnswer:
        asked.append(question)
        return ElicitationAnswer("decline")

    said: list[object] = [
        status,
        await connection.read_resource("x://1"),
        await connection.get_prompt("p", {}),
        await connection.complete(PromptReference(name="p"), "a", ""),
        await connection.call(
            "go", {}, on_progress=lambda done, total, text: words.append(text), ask=ask
        ),
        asked,
        [(each.title, each.tool) for each in offered_tools("e", status.tools, connection.call)],
    ]
    for each in (*said, words):
        assert "12345" not in repr(each)
        assert "[secret]" in repr(each)
    assert words == ["ait is [secret]!"]


@pytest.mark.parametrize(
    "written",
    [
        TOKEN,
        repr(TOKEN)[1:-1],
        repr(TOKEN.encode())[2:-1],
        json.dumps(TOKEN)[1:-1],
        json.dumps(TOKEN, ensure_ascii=False)[1:-1],
        quote(TOKEN, safe=""),
    ],
    ids=["plain", "repr", "bytes", "json", "letters", "address"],
)
def test_a_secret_is_known_however_it_is_escaped(written: str) -> None:
    assert echoing().conceal(f"<{written}>") == "<[secret]>"


def test_each_line_of_a_secret_of_several_is_one() -> None:
    spec = ServerSpec("e", "http", url="https://a.example/mcp")
    spec.learned.append("TOKENSECRET999\r\nX-Evil: 1")
    told = repr(b"Bearer TOKENSECRET999\r\nX-Evil: 1")
    assert spec.conceal(told) == "b'Bearer [secret]'"
    assert spec.conceal("x TOKENSECRET999 y") == "x [secret] y"


def test_words_of_a_header_or_query_that_are_no_secrets_can_be_said() -> None:
    headers = {"X-Project": "lighthouse", "Authorization": "Bearer abcdefgh"}
    spec = ServerSpec("e", "http", url="https://a/m?team=builders&key=zyxwvuts", headers=headers)
    said = {"lighthouse": ["builders", "abcdefgh", "zyxwvuts"]}
    assert concealed(said, spec) == {"lighthouse": ["builders", "[secret]", "[secret]"]}
    assert concealed(same := ["builders"], spec) is same
