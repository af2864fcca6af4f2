"""All of what a person decides on can be seen: before the answer, and after it."""

from __future__ import annotations

import html
import re
import time
from pathlib import Path

import pytest

from tests.harness.skills.writers import put
from tests.support.app_server import AppServer, app_server, refusal
from tests.support.scripted_provider import ScriptedProvider, calls, says
from tests.support.tool_app import USER, tool_server
from web.harness.tools.tool import Tool, ToolContext, ToolOutput
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

PAGE = {"accept": "text/html"}
HIDDEN = "print('HIDDEN PART RAN')"


async def asked(server: AppServer, chat: str) -> str:
    """The key of the one question that is open."""
    await server.wait_for(await server.send(chat, "Go"), "approval_required")
    [question] = (await server.chat(chat))["questions"]
    return str(question["key"])


async def card(server: AppServer, chat: str) -> str:
    return html.unescape((await server.client.get(f"/chats/{chat}", headers=PAGE)).text)


async def page(server: AppServer, chat: str, key: str, number: int = 1) -> str:
    address = f"/chats/{chat}/approvals/{key}?page={number}"
    answer = await server.client.get(address, headers=PAGE)
    assert answer.status_code == 200, answer.text
    return html.unescape(re.sub(r"<(/?)span[^>]*>", "", answer.text))


async def test_a_long_script_is_seen_to_its_end_before_it_is_allowed(tmp_path: Path) -> None:
    script = "".join(f"x{number} = {number}\n" for number in range(700)) + HIDDEN + "\n"
    put(tmp_path / "skills", "long", scripts__run_py=script, scripts__helper_py="helps = 1\n")
    use = ("run_skill_script", {"skill": "long", "path": "scripts/run.py"})
    provider = ScriptedProvider(calls(use), says("done"))
    async with app_server(tmp_path, provider) as server:
        chat = await server.new_chat()
        key = await asked(server, chat)
        shown = await card(server, chat)
        assert HIDDEN not in shown
        assert f'href="/chats/{chat}/approvals/{key}" target="_blank"' in shown
        whole = await page(server, chat, key)
        assert whole.index("x0 = 0") < whole.index("x699 = 699") < whole.index(HIDDEN)
        # What the script could load is a part of what is allowed.
        assert "helps = 1" in whole
        assert "Allow once" in whole
        assert "Allow in this chat" not in whole
        form = {"decision": "allow"}
        answer = await server.client.post(f"/chats/{chat}/approvals/{key}", data=form)
        assert answer.status_code == 303
        run = (await server.chat(chat))["messages"][-1]["id"].rpartition("-")[0]
        await server.wait_for(run, "run_result")
        whole = await page(server, chat, key)
        assert HIDDEN in whole
        assert "You allowed this call." in whole
        assert "Allow once" not in whole


async def test_each_line_of_a_long_file_is_on_some_page(tmp_path: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(5_000)) + "the \u202ebad one\n"
    use = ("write_file", {"path": "long.txt", "content": content})
    async with app_server(tmp_path, ScriptedProvider(calls(use), says("no"))) as server:
        chat = await server.new_chat()
        key = await asked(server, chat)
        assert "See all of it" in await card(server, chat)
        pages = [await page(server, chat, key, number) for number in range(1, 7)]
        lines = re.findall(r'<div class="add">added: (.*?)</div>', "".join(pages))
        assert lines == [*(f"line {number}" for number in range(5_000)), "the ⟨U+202E⟩bad one"]
        # The arguments are there as they are, after what changes.
        assert re.findall(r'<div class="text">(.*?)</div>', "".join(pages)) == ["long.txt", *lines]
        for number, text in enumerate(pages, 1):
            assert f"This was page {number} of 6. Your answer is for all of it." in text
            assert "characters that are not drawn" in text
        assert pages[-1] == await page(server, chat, key, 99)
        form = {"decision": "deny", "reason": "No."}
        await server.client.post(f"/chats/{chat}/approvals/{key}", data=form)
        await server.wait_for(key.partition("-")[0], "run_result")
        denied = await page(server, chat, key)
        assert "You denied this call. It did not run." in denied
        assert "line 0" in denied
        event = await server.wait_for(key.partition("-")[0], "approval_required")
        assert len(event.data["preview"]["lines"]) == 401


async def test_a_card_that_shows_all_needs_no_link(tmp_path: Path) -> None:
    use = ("write_file", {"path": "note.txt", "content": "hello\n"})
    async with app_server(tmp_path, ScriptedProvider(calls(use), says("no"))) as server:
        chat = await server.new_chat()
        key = await asked(server, chat)
        assert "See all of it" not in await card(server, chat)
        assert "added: hello" in await page(server, chat, key)


@pytest.mark.full
@pytest.mark.parametrize("content", ["\n" * (1024 * 1024), "x" * (1024 * 1024), "\u200b" * 300_000])
async def test_the_largest_text_is_shown_in_good_time(tmp_path: Path, content: str) -> None:
    use = ("write_file", {"path": "long.txt", "content": content})
    async with app_server(tmp_path, ScriptedProvider(calls(use), says("no"))) as server:
        chat = await server.new_chat()
        key = await asked(server, chat)
        began = time.process_time()
        text = await page(server, chat, key)
        assert time.process_time() - began < 5
        assert len(text) < 3_000_000


async def test_a_program_gets_all_of_it_too(tmp_path: Path) -> None:
    content = "".join(f"line {number}\n" for number in range(1_000))
    use = ("write_file", {"path": "long.txt", "content": content})
    async with app_server(tmp_path, ScriptedProvider(calls(use), says("no"))) as server:
        chat = await server.new_chat()
        key = await asked(server, chat)
        run_id = (await server.chat(chat))["active_run"]
        address = f"/api/runs/{run_id}/approvals/{key}"
        told = (await server.client.get(address)).json()
        assert "".join(text for _, text in told["preview"]["lines"]) == content
        assert (told["state"], told["whole"], told["decision"]) == ("open", True, None)
        edited = {"path": "other.txt", "content": "x"}
        await server.client.post(address, json={"decision": "allow", "arguments": edited})
        await server.wait_for(run_id, "run_result")
        told = (await server.client.get(address)).json()
        assert (told["state"], told["edited"]) == ("allowed", True)
        assert told["arguments"]["path"] == "long.txt"
        shown = await page(server, chat, key)
        assert "as you changed them" in shown
        assert "other.txt" in shown
        for address in (f"/api/runs/{run_id}/approvals/none-1", f"/chats/{chat}/approvals/none-1"):
            assert refusal(await server.client.get(address)) == (404, "not_found")


@pytest.mark.full
async def test_what_nobody_is_shown_is_said_beside_the_button() -> None:
    async def handler(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput.of("ran")

    async def preview(arguments: JsonObject, context: ToolContext) -> JsonObject:
        return {"kind": "text", "text": "a\n" * 4_000_000}

    tool = Tool("huge", "Does much", {"type": "object"}, handler, preview=preview)
    provider = ScriptedProvider(calls(("huge", {})), says("done"))
    async with tool_server(provider, lambda keep: [tool]) as server:
        chat = await server.new_chat()
        key = await asked(server, chat)
        words = "more characters of what this call does are too many to be shown anywhere"
        assert words.removeprefix("more ") in await card(server, chat)
        assert words in await page(server, chat, key)
        other = await server.client.get(f"/chats/{chat}/approvals/{key}", headers={USER: "another"})
        assert refusal(other) == (404, "not_found")


async def test_blank_lines_push_nothing_away(tmp_path: Path) -> None:
    content = "a\n" + "\xa0\n" * 300 + "EVIL\n"
    use = ("write_file", {"path": "n.txt", "content": content})
    async with app_server(tmp_path, ScriptedProvider(calls(use), says("no"))) as server:
        chat = await server.new_chat()
        key = await asked(server, chat)
        told = '<div class="gap">300 blank lines are added</div><div class="add">'
        assert told in re.sub(r"<(/?)span[^>]*>", "", await card(server, chat))
        whole = await page(server, chat, key)
        assert told in whole
        assert '<div class="gap">300 blank lines</div><div class="text">EVIL' in whole
