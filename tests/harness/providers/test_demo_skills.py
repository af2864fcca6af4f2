"""The demo model asks for skills as it is asked to, with the tools that there are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.asking import asked, gather
from tests.support.pictures import picture
from web.harness.agent.agent import Agent
from web.harness.agent.questions import Answer
from web.harness.builtin.skill_tools import SkillUse, skill_tools
from web.harness.providers.demo.provider import DemoProvider
from web.harness.skills.library import SkillLibrary
from web.harness.tools.registry import ToolRegistry
from web.harness.values.events import ApprovalRequired
from web.harness.values.messages import ResourceBlock
from web.paths import sample_skills_dir

pytestmark = pytest.mark.anyio


@pytest.fixture
def tools(tmp_path: Path) -> ToolRegistry:
    skills = SkillLibrary(tmp_path / "own", sample_skills_dir()).of("t", "ann")
    use = SkillUse(tmp_path / "chat", {"PATH": os.environ["PATH"]})
    return ToolRegistry(skill_tools(skills, use))


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("use the skill csv-summary", "use_skill", {"name": "csv-summary"}),
        ("Please use the skill `plain-language`.", "use_skill", {"name": "plain-language"}),
        ("use the plain-language skill", "use_skill", {"name": "plain-language"}),
        ("load skill meeting-notes", "use_skill", {"name": "meeting-notes"}),
        ("/use_skill meeting-notes", "use_skill", {"name": "meeting-notes"}),
        (
            "show references/words.md of the skill plain-language",
            "read_skill_file",
            {"skill": "plain-language", "path": "references/words.md"},
        ),
        (
            "run scripts/summary.py of csv-summary on data.csv",
            "run_skill_script",
            {"skill": "csv-summary", "path": "scripts/summary.py", "arguments": ["data.csv"]},
        ),
        (
            "Run the script scripts/summary.py from the csv-summary skill.",
            "run_skill_script",
            {"skill": "csv-summary", "path": "scripts/summary.py"},
        ),
    ],
)
async def test_a_phrase_calls_the_tool(
    tools: ToolRegistry, text: str, name: str, arguments: dict[str, Any]
) -> None:
    found = await gather(DemoProvider(pace=0), asked(text, tools=tools.specs()))
    assert [(call.name, call.arguments) for call in found.done.tool_uses] == [(name, arguments)]


async def test_without_skills_the_phrase_calls_nothing() -> None:
    for text in ("use the skill csv-summary", "help"):
        found = await gather(DemoProvider(pace=0), asked(text, tools=()))
        assert found.done.tool_uses == ()
        assert "loads the instructions of a skill" not in found.text


async def test_help_tells_of_skills(tools: ToolRegistry) -> None:
    found = await gather(DemoProvider(pace=0), asked("help", tools=tools.specs()))
    assert "| `use the skill csv-summary` |" in found.text


async def test_a_demo_without_a_key_goes_all_the_way(tools: ToolRegistry, tmp_path: Path) -> None:
    """A skill is loaded by itself; its script runs on a file of the chat once a person agrees."""
    (tmp_path / "chat").mkdir()
    (tmp_path / "chat" / "sales.csv").write_text("item,price\npear,1\nfig,3\n")
    asked_about: list[ApprovalRequired] = []

    async def agree(question: ApprovalRequired) -> Answer:
        asked_about.append(question)
        return Answer("allow")

    async with Agent(provider=DemoProvider(pace=0), tools=tools, approver=agree) as agent:
        result = await agent.run(
            "use the skill csv-summary then run scripts/summary.py of csv-summary on sales.csv"
        )
    assert result.status == "completed"
    assert [question.name for question in asked_about] == ["run_skill_script"]
    preview = asked_about[0].preview
    assert preview is not None
    assert "scripts/summary.py sales.csv" in preview["text"]
    assert "Summarise a CSV file" in result.text
    assert "sales.csv: 2 rows, 2 columns" in result.text


async def test_a_skill_that_came_along_is_named_and_not_taken_for_a_tool(
    tools: ToolRegistry,
) -> None:
    skill = ResourceBlock("", "csv-summary", "text/markdown", "Summarise it.", "skill")
    alone = await gather(
        DemoProvider(pace=0),
        asked(skill, "/csv-summary the figures", tools=tools.specs()),
    )
    assert "csv-summary" in alone.text
    assert "Summarise it." in alone.text
    called = await gather(
        DemoProvider(pace=0),
        asked(skill, "/csv-summary use the skill plain-language", tools=tools.specs()),
    )
    assert [call.name for call in called.done.tool_uses] == ["use_skill"]


@pytest.mark.parametrize(
    "words", ["What is in these files?", "Look at this please", "Describe the picture."]
)
async def test_a_question_about_what_came_along_is_answered_by_it(
    tools: ToolRegistry, words: str
) -> None:
    note = ResourceBlock("", "notes.md", "text/plain", "Rain.", "file of this chat")
    answer = await gather(
        DemoProvider(pace=0),
        asked(note, picture("plan.png"), words, tools=tools.specs()),
    )
    assert answer.done.tool_uses == ()
    assert "notes.md" in answer.text
    assert "plan.png" in answer.text


async def test_a_tool_is_called_beside_what_came_along_where_it_is_asked_for(
    tools: ToolRegistry,
) -> None:
    note = ResourceBlock("", "notes.md", "text/plain", "Rain.", "file of this chat")
    for block, words in ((note, "Use the skill csv-summary"), (None, "What is in these skills?")):
        blocks = [block] if block is not None else []
        answer = await gather(DemoProvider(pace=0), asked(*blocks, words, tools=tools.specs()))
        assert block is None or [call.name for call in answer.done.tool_uses] == ["use_skill"]
        assert "attachment" not in answer.text
