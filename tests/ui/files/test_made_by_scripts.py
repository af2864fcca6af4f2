"""A file that an approved script made is shown as what that call made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.harness.skills.writers import put
from tests.support.app_server import app_server
from tests.support.scripted_provider import ScriptedProvider, calls, says

pytestmark = pytest.mark.anyio


async def test_it_is_linked_from_the_card_and_names_the_approval(tmp_path: Path) -> None:
    put(tmp_path / "skills", "maker", scripts__run_py="open('made #1.csv', 'w').write('a,b')\n")
    use = ("run_skill_script", {"skill": "maker", "path": "scripts/run.py"})
    async with app_server(tmp_path, ScriptedProvider(calls(use), says("done"))) as server:
        chat = await server.new_chat()
        run_id = await server.send(chat, "Go")
        question = (await server.wait_for(run_id, "approval_required")).data
        address = f"/api/runs/{run_id}/approvals/{question['key']}"
        await server.client.post(address, json={"decision": "allow"})
        result = (await server.wait_for(run_id, "tool_result")).data
        assert result["files"] == ["made #1.csv"]
        await server.wait_for(run_id, "run_result")
        page = (await server.client.get(f"/chats/{chat}")).text
        assert (
            f'<a href="/chats/{chat}/files/made%20%231.csv">Open <bdi>made #1.csv</bdi></a>' in page
        )
        by = re.search(
            r'<small class="by"><span title="([^"]*)"><a href="([^"]*)"[^>]*>([^<]*)', page
        )
        assert by is not None
        assert question["key"] in by[1]
        assert by[2] == f"#c-{question['call_id']}"
        assert by[3] == "by run_skill_script, allowed by you once"
