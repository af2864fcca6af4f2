"""Skills as a model uses them."""

# Nobody else waits in these event loops.
# ruff: noqa: ASYNC240

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.harness.skills.writers import put, skill_md, uploaded
from tests.support.loop_share import loop_share
from web.harness.builtin.skill_tools import (
    MAX_ARGUMENTS,
    MAX_REMEMBERED,
    SkillUse,
    skill_tools,
)
from web.harness.skills.library import SkillLibrary, Skills
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import PermissionLevel, ToolContext, ToolOutput
from web.harness.values.errors import ToolError
from web.harness.values.messages import JsonObject

pytestmark = pytest.mark.anyio

ECHO = "import sys, pathlib\nprint(sys.argv[1:], pathlib.Path(__file__).parent.name)\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(
        tmp_path / "skills",
        "a",
        skill_md("a", body="# How to"),
        ref_md="one\ntwo\nthree\n",
        scripts__echo_py=ECHO,
        scripts__other_py="import helper\n",
        scripts__helper_py="print('helped')\n",
        scripts__data_bin="\0",
    )
    put(tmp_path / "skills", "broken", "broken")
    return tmp_path / "skills"


@pytest.fixture
def skills(root: Path) -> Skills:
    return SkillLibrary(root).of("t", "ann")


class Chat:
    """The tools of one chat."""

    def __init__(self, skills: Skills, folder: Path, **options: Any) -> None:
        self.off: set[str] = set()
        environ = {"PATH": os.environ["PATH"]}
        use = SkillUse(folder, environ, off=lambda: self.off, **options)
        self.tools = ToolRegistry(skill_tools(skills, use))

    async def run(self, tool: str, call_id: str = "c1", /, **arguments: object) -> ToolOutput:
        return await self.tools.run(tool, arguments, ToolContext(call_id), 10)

    async def preview(self, call_id: str = "c1", **arguments: object) -> JsonObject:
        tool = self.tools.get("run_skill_script")
        assert tool is not None
        assert tool.preview is not None
        valid = self.tools.validate("run_skill_script", arguments)
        shown = await tool.preview(valid, ToolContext(call_id))
        assert shown is not None
        return shown


@pytest.fixture
def chat(skills: Skills, tmp_path: Path) -> Chat:
    return Chat(skills, tmp_path / "chat")


def test_reading_runs_by_itself_and_a_script_asks(chat: Chat) -> None:
    found = {tool.name: (tool.permission, tool.replay) for tool in chat.tools}
    assert found == {
        "use_skill": (PermissionLevel.ALLOW, "safe"),
        "read_skill_file": (PermissionLevel.ALLOW, "safe"),
        "run_skill_script": (PermissionLevel.ASK, "manual"),
    }


async def test_a_skill_is_loaded_with_the_list_of_its_files(chat: Chat, root: Path) -> None:
    text = (await chat.run("use_skill", name="a")).text
    assert text.startswith("Instructions of the skill a:\n\n# How to\n\n")
    assert "- ref.md (14 bytes)\n- scripts/data.bin (1 byte)" in text
    assert "one" not in text
    (root / "a" / "SKILL.md").write_text(skill_md("a", body="# Other"))
    assert "# Other" in (await chat.run("use_skill", name="a")).text


async def test_files_are_read_on_demand_and_in_pieces(chat: Chat) -> None:
    assert (await chat.run("read_skill_file", skill="a", path="ref.md")).text == "one\ntwo\nthree\n"
    rest = await chat.run("read_skill_file", skill="a", path="ref.md", from_line=2)
    assert rest.text == "two\nthree\n"
    for path, line, words in (
        ("ref.md", 4, "from 1 to 3"),
        ("ref.md", 0, "from 1 to 3"),
        ("none.md", 1, "There is no file"),
        ("scripts/data.bin", 1, "is not text"),
        ("../broken/SKILL.md", 1, "is refused"),
        ("scripts", 1, "is a folder"),
    ):
        output = await chat.run("read_skill_file", skill="a", path=path, from_line=line)
        assert output.is_error
        assert words in output.text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("b", "There is no skill"),
        ("../a", "There is no skill"),
        ("broken", "is broken: There is no front matter"),
        ("off", "is switched off"),
    ],
)
async def test_what_cannot_be_used_is_refused_by_each_tool(
    chat: Chat, root: Path, name: str, words: str
) -> None:
    put(root, "off", scripts__echo_py=ECHO)
    chat.off.add("off")
    script = {"skill": name, "path": "scripts/echo.py"}
    for output in (
        await chat.run("use_skill", name=name),
        await chat.run("read_skill_file", **script),
        await chat.run("run_skill_script", **script),
    ):
        assert output.is_error
        assert words in output.text
    with pytest.raises(ToolError, match=words):
        await chat.preview(**script)


async def test_a_script_runs_in_the_chats_folder_and_sees_its_own(
    chat: Chat, tmp_path: Path
) -> None:
    arguments = ["a b", "--x=$HOME", "; echo y"]
    output = await chat.run(
        "run_skill_script", skill="a", path="./scripts/echo.py", arguments=arguments
    )
    assert output.text == f"{arguments} scripts"
    assert not output.is_error
    assert (tmp_path / "chat").is_dir()
    output = await chat.run("run_skill_script", skill="a", path="scripts/other.py")
    assert output.text == "helped"


async def test_the_question_shows_exactly_what_would_run(chat: Chat) -> None:
    shown = await chat.preview(skill="a", path="./scripts/echo.py", arguments=["a b", "; rm -rf /"])
    assert shown["kind"] == "text"
    first = shown["text"].splitlines()[0]
    assert first.endswith("scripts/echo.py 'a b' '; rm -rf /'")
    assert ECHO in shown["text"]
    assert "the skill a" in shown["text"]


@pytest.mark.parametrize("changed", ["scripts/echo.py", "scripts/helper.py", "SKILL.md"])
async def test_what_was_changed_after_it_was_shown_does_not_run(
    chat: Chat, root: Path, tmp_path: Path, changed: str
) -> None:
    await chat.preview(skill="a", path="scripts/echo.py")
    place = root / "a" / changed
    place.write_text(place.read_text() + "\n")
    output = await chat.run("run_skill_script", skill="a", path="scripts/echo.py")
    assert output.is_error
    assert "was changed after this call was shown" in output.text
    assert not (tmp_path / "chat").exists()
    again = await chat.run("run_skill_script", "c2", skill="a", path="scripts/echo.py")
    assert not again.is_error


@pytest.mark.parametrize(
    "chosen",
    [
        {"skill": "b", "path": "scripts/echo.py"},
        {"skill": "a", "path": "scripts/helper.py"},
    ],
)
async def test_a_script_that_was_chosen_instead_is_shown_before_it_runs(
    chat: Chat, root: Path, tmp_path: Path, chosen: dict[str, str]
) -> None:
    """A person may change the arguments of a call before it runs."""
    put(root, "b", scripts__echo_py=ECHO)
    await chat.preview(skill="a", path="scripts/echo.py")
    output = await chat.run("run_skill_script", **chosen)
    assert output.is_error
    assert 'was shown "scripts/echo.py" of the skill "a" and not' in output.text
    assert not (tmp_path / "chat").exists()
    await chat.preview("c2", **chosen)
    assert not (await chat.run("run_skill_script", "c2", **chosen)).is_error


async def test_the_arguments_of_a_script_may_be_changed_by_the_person(chat: Chat) -> None:
    script = {"skill": "a", "path": "scripts/echo.py"}
    await chat.preview(**script, arguments=["1"])
    output = await chat.run("run_skill_script", **script, arguments=["2"])
    assert output.text == "['2'] scripts"


async def test_what_was_shown_so_long_ago_that_it_is_forgotten_does_not_run(
    chat: Chat, tmp_path: Path
) -> None:
    script = {"skill": "a", "path": "scripts/echo.py"}
    for number in range(MAX_REMEMBERED + 1):
        await chat.preview(f"c{number}", **script)
    allowed = ToolContext("c0", approval="q0", decision="allow")
    output = await chat.tools.run("run_skill_script", script, allowed, 10)
    assert output.is_error
    assert "Call the tool again: the person is asked again." in output.text
    assert not (tmp_path / "chat").exists()
    newer = replace(allowed, call_id="c1")
    assert not (await chat.tools.run("run_skill_script", script, newer, 10)).is_error
    # Each yes is for one run.
    assert (await chat.tools.run("run_skill_script", script, newer, 10)).is_error


async def test_a_script_leaves_its_skill_as_it_is(chat: Chat, root: Path) -> None:
    code = "import helper, pathlib\npathlib.Path(__file__).with_name('new').write_text('x')\n"
    (root / "a" / "scripts" / "echo.py").write_text(code)
    before = sorted(root.rglob("*"))
    assert not (await chat.run("run_skill_script", skill="a", path="scripts/echo.py")).is_error
    assert sorted(root.rglob("*")) == before


async def test_how_a_script_failed_is_said(
    chat: Chat, root: Path, skills: Skills, tmp_path: Path
) -> None:
    put(root, "bad", exit_sh="echo out; exit 7", sleep_sh="sleep 600", quiet_sh="true")
    failed = await chat.run("run_skill_script", skill="bad", path="exit.sh")
    assert (failed.text, failed.is_error) == ("out\n\nThe script ended with exit code 7.", True)
    quiet = await chat.run("run_skill_script", skill="bad", path="quiet.sh")
    assert (quiet.text, quiet.is_error) == ("The script wrote nothing.", False)
    hasty = Chat(skills, tmp_path / "chat", seconds=0.3)
    late = await hasty.run("run_skill_script", skill="bad", path="sleep.sh")
    assert late.is_error
    assert late.text.endswith("The script was stopped: it took longer than 0.3 seconds.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "ref.md"}, "cannot be run"),
        ({"path": "../a/scripts/echo.py"}, "is refused"),
        ({"path": "/bin/x.sh"}, "is refused"),
        ({"path": "scripts/echo.py", "arguments": "text"}, "arguments"),
        ({"path": "scripts/echo.py", "arguments": ["x\0y"]}, "no program takes"),
        ({"path": "scripts/echo.py", "arguments": ["\ud800"]}, "no program takes"),
        ({"path": "scripts/echo.py", "arguments": ["x"] * (MAX_ARGUMENTS + 1)}, "the limit is 50"),
        ({"path": "scripts/echo.py", "arguments": ["x" * 4001]}, "longer than 4,000"),
    ],
)
async def test_what_can_never_run_is_refused_before_anyone_is_asked(
    chat: Chat, arguments: dict[str, object], words: str
) -> None:
    with pytest.raises(ToolError, match=words):
        chat.tools.validate("run_skill_script", {"skill": "a", **arguments})


async def test_a_script_that_is_not_there_is_refused_before_anyone_is_asked(chat: Chat) -> None:
    with pytest.raises(ToolError, match=r"Did you mean 'scripts/echo\.py'"):
        await chat.preview(skill="a", path="scripts/ecko.py")


async def test_scripts_of_uploads_run_only_where_that_is_said(
    skills: Skills, chat: Chat, tmp_path: Path
) -> None:
    files = [uploaded("x/SKILL.md", skill_md("up")), uploaded("x/run.py", ECHO)]
    skills.install(files)
    call = {"skill": "up", "path": "run.py"}
    assert "Further files" in (await chat.run("use_skill", name="up")).text
    with pytest.raises(ToolError, match="it was uploaded"):
        await chat.preview(**call)
    assert (await chat.run("run_skill_script", **call)).is_error
    assert not (tmp_path / "chat").exists()
    at_this_machine = Chat(
        skills, tmp_path / "chat", runs=frozenset({"server", "sample", "upload"})
    )
    assert not (await at_this_machine.run("run_skill_script", **call)).is_error


async def test_an_upload_may_not_borrow_the_name_of_a_sample_to_run(
    skills: Skills, chat: Chat
) -> None:
    skills.install([uploaded("x/SKILL.md", skill_md("a")), uploaded("x/scripts/echo.py", "x")])
    output = await chat.run("run_skill_script", skill="a", path="scripts/echo.py")
    assert "it was uploaded" in output.text


async def test_a_link_to_a_script_elsewhere_does_not_run(
    chat: Chat, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "evil.py").write_text("print('evil')")
    (root / "a" / "scripts" / "link.py").symlink_to(tmp_path / "evil.py")
    output = await chat.run("run_skill_script", skill="a", path="scripts/link.py")
    assert output.is_error
    assert "evil" not in output.text.replace("evil.py", "")


async def test_the_question_of_a_large_skill_keeps_nobody_waiting(chat: Chat, root: Path) -> None:
    for number in range(4):
        (root / "a" / f"{number}.txt").write_text("0123456789abcdef\n" * 280_000)
    async with loop_share() as share:
        shown = await chat.preview(skill="a", path="scripts/echo.py")
    assert shown["left_out"] > 10_000_000
    assert share.in_loop < 0.02 or share.of_all < 0.2
    async with loop_share() as share:
        assert not (await chat.run("run_skill_script", skill="a", path="scripts/echo.py")).is_error
    assert share.in_loop < 0.05 or share.of_all < 0.3
