"""`use_skill`, `read_skill_file` and `run_skill_script`: skills as a model uses them.

The model is told names and descriptions (`skills_prompt`) and asks for the rest.
"""

from __future__ import annotations

import hashlib
import shlex
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.foreign_changes import NOTHING_CHANGED, Changed, Noted
from web.harness.builtin.script_copies import copy_folder
from web.harness.builtin.scripts import Finished, interpreter_of, run_script
from web.harness.builtin.versions import Origin, call_origin
from web.harness.skills.library import Skills
from web.harness.skills.names import parse_file_path
from web.harness.skills.skill import Skill, SkillOrigin, SkillText
from web.harness.tools.functions import function_tool
from web.harness.tools.previews import bounded
from web.harness.tools.threads import run_in_thread
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.tools.words import clean, describe, did_you_mean, shown
from web.harness.values.errors import HarnessError, NotFound, ToolError
from web.harness.values.messages import JsonObject, TextBlock

T = TypeVar("T")

SCRIPT_SECONDS = 60.0
MAX_ARGUMENTS = 50
MAX_ARGUMENT_CHARS = 4_000
MAX_LISTED_FILES = 100
MAX_READ_BYTES = 1024 * 1024
"""Of a file that is read in pieces."""
MAX_REMEMBERED = 200
"""Questions whose script is remembered; the call of an older one is refused, to be asked again."""


@dataclass(frozen=True, slots=True)
class SkillUse:
    """How the skills of one chat are used.

    `off` tells the names that are switched off at this moment. Scripts run in `folder`, which is
    made where it is missing, with PATH, HOME and LANG of `environ`. `files` are those in that
    folder: what a script changes there becomes versions that its call made. Scripts of skills whose
    origin is not in `runs` are refused: what somebody uploads is a program, and only the person at
    this machine may start programs of their own here.
    """

    folder: Path
    environ: Mapping[str, str]
    files: Callable[[], ChatFiles] | None = None
    off: Callable[[], Collection[str]] = frozenset
    runs: frozenset[SkillOrigin] = frozenset({"server", "sample"})
    seconds: float = SCRIPT_SECONDS


def skill_tools(skills: Skills, use: SkillUse) -> list[Tool]:
    """The tools over these skills. Reading runs by itself; running a script always asks."""
    return [_use_tool(skills, use), _read_tool(skills, use), _run_tool(skills, use)]


def _use_tool(skills: Skills, use: SkillUse) -> Tool:
    async def use_skill(name: Annotated[str, "The name of a skill, such as csv-summary."]) -> str:
        """Loads the instructions of a skill, to be followed from then on."""

        def read() -> SkillText:
            _usable(skills, use, name)
            return skills.read(name)

        return skill_instructions(await _on_disk(read))

    tool = function_tool(
        use_skill, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True
    )
    return replace(tool, hints=("reads a skill",))


def _read_tool(skills: Skills, use: SkillUse) -> Tool:
    async def read_skill_file(
        skill: Annotated[str, "The name of the skill."],
        path: Annotated[str, "As use_skill lists it, such as references/formats.md."],
        from_line: Annotated[int, "The line to begin with, where a result was cut."] = 1,
    ) -> str:
        """Reads a text file that belongs to a skill."""

        def read() -> bytes:
            _usable(skills, use, skill)
            return skills.read_file(skill, path, limit=MAX_READ_BYTES)

        content = await _on_disk(read)
        text = _text(content)
        if text is None:
            raise ToolError(f"{shown(path)} is not text in UTF-8 ({len(content):,} bytes).")
        lines = text.splitlines(keepends=True)
        if not 1 <= from_line <= max(1, len(lines)):
            raise ToolError(f"from_line must be from 1 to {max(1, len(lines)):,}.")
        return "".join(lines[from_line - 1 :])

    tool = function_tool(
        read_skill_file, permission=PermissionLevel.ALLOW, replay="safe", share_signature=True
    )
    return replace(tool, hints=("reads a skill",))


def _run_tool(skills: Skills, use: SkillUse) -> Tool:
    shown_programs: OrderedDict[str, _Shown] = OrderedDict()
    """What a person was shown, by call."""

    async def run_skill_script(
        skill: Annotated[str, "The name of the skill."],
        path: Annotated[str, "The script as use_skill lists it, such as scripts/summary.py."],
        context: ToolContext,
        arguments: Annotated[
            list[str] | None,
            "What the script is given, one text each. It runs in the chat's folder, so files of "
            "the chat are named as they are there.",
        ] = None,
    ) -> ToolOutput:
        """Runs a script that belongs to a skill, in the folder of this chat's files."""
        program = await _on_disk(lambda: _program(skills, use, skill, path))
        now = await _on_disk(lambda: program.shown)
        seen = shown_programs.pop(context.call_id, None)
        if seen is not None or context.approval:
            _refuse_unless_shown(now, seen)
        if use.files is None:
            return _said(await _run(program, arguments or [], use), use.seconds)
        files = use.files()
        noted = await files.note()
        try:
            finished = await _run(program, arguments or [], use)
        finally:
            # Also of a script that was stopped: what it did until then is there.
            changed = await _kept(files, noted, call_origin(context))
        return _said(finished, use.seconds, changed)

    async def preview(given: JsonObject, context: ToolContext) -> JsonObject:
        def look() -> tuple[_Shown, JsonObject]:
            program = _program(skills, use, given["skill"], given["path"])
            now = program.shown
            return now, bounded(_shown_program(program, now, given.get("arguments") or [], use))

        try:
            now, shows = await _on_disk(look)
        except HarnessError as error:
            # Nobody is asked about what cannot run.
            raise ToolError(describe(error)) from error
        shown_programs[context.call_id] = now
        if len(shown_programs) > MAX_REMEMBERED:
            shown_programs.popitem(last=False)
        return shows

    tool = function_tool(
        run_skill_script,
        permission=PermissionLevel.ASK,
        replay="manual",
        # Longer than the script's own limit, which has the better words.
        timeout_seconds=use.seconds + 30,
        preview=preview,
        share_signature=True,
    )
    return replace(tool, validate=_checked(tool), hints=("runs a program",), always_asks=True)


def _checked(tool: Tool) -> Callable[[JsonObject], JsonObject]:
    """Refuses what can never run before a person is asked, and shows the path as it is."""
    by_signature = tool.validate

    def validate(arguments: JsonObject) -> JsonObject:
        valid = by_signature(arguments) if by_signature else arguments
        path = "/".join(parse_file_path(valid["path"]))
        interpreter_of(path)
        given = valid.get("arguments") or []
        if len(given) > MAX_ARGUMENTS:
            raise ToolError(f"There are {len(given):,} arguments; the limit is {MAX_ARGUMENTS}.")
        for argument in given:
            if len(argument) > MAX_ARGUMENT_CHARS:
                raise ToolError(f"An argument is longer than {MAX_ARGUMENT_CHARS:,} characters.")
            if "\0" in argument or clean(argument) != argument:
                raise ToolError(f"The argument {shown(argument)} holds what no program takes.")
        return {**valid, "path": path}

    return validate


class _Shown(NamedTuple):
    """What a person is shown of a program, but for the arguments; `digest` is of all its skill."""

    skill: str
    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class _Program:
    """A script with the whole skill around it, read at one moment."""

    skill: Skill
    path: str
    files: Sequence[tuple[str, bytes]]

    @property
    def shown(self) -> _Shown:
        whole = hashlib.sha256()
        for path, content in self.files:
            whole.update(f"{len(path.encode())} {path} {len(content)} ".encode() + content)
        return _Shown(self.skill.name, self.path, whole.hexdigest())

    @property
    def source(self) -> bytes:
        return dict(self.files)[self.path]


def _refuse_unless_shown(wanted: _Shown, seen: _Shown | None) -> None:
    """Whether the person who allowed a call was shown what would run; `seen` is what they were.

    The arguments of the script may be others: whoever puts them there has seen them.
    """
    if seen is None:
        raise ToolError(
            "What the person was shown of this call is not known any more, so nothing ran. Call "
            "the tool again: the person is asked again."
        )
    if seen[:2] != wanted[:2]:
        raise ToolError(
            f"The person was shown {shown(seen.path)} of the skill {shown(seen.skill)} and not "
            f"{shown(wanted.path)} of {shown(wanted.skill)}, so nothing ran. Call the tool again "
            "for that one: the person is shown it and asked again."
        )
    if seen != wanted:
        raise ToolError(
            f"The skill {shown(wanted.skill)} was changed after this call was shown, so nothing "
            "ran. Call the tool again."
        )


def _usable(skills: Skills, use: SkillUse, name: str) -> Skill:
    """The skill, if it can be used in this chat. Raises ToolError that says what to do."""
    off = use.off()
    skill = skills.get(name)
    if skill.fault:
        raise ToolError(f"The skill {shown(name)} is broken: {skill.fault}")
    if name in off:
        raise ToolError(f"The skill {shown(name)} is switched off in this chat.")
    return skill


def _program(skills: Skills, use: SkillUse, name: str, path: str) -> _Program:
    interpreter_of(path)
    skill = _usable(skills, use, name)
    if skill.origin not in use.runs:
        raise ToolError(
            f"Scripts of {shown(name)} are not run here: it was uploaded, and only skills of the "
            "server itself may run programs."
        )
    program = _Program(skill, "/".join(parse_file_path(path)), skills.read_all(name))
    names = [file for file, _ in program.files]
    if program.path not in names:
        near = did_you_mean(program.path, names)
        raise NotFound(f"There is no file {shown(path)} in the skill {shown(name)}.{near}")
    return program


async def _run(program: _Program, arguments: Sequence[str], use: SkillUse) -> Finished:
    """Runs a copy of the skill: what was read, and maybe shown, is what runs, and nothing that the
    script does beside its own file changes the skill."""
    with ExitStack() as stack:
        try:
            copy = await _on_disk(lambda: stack.enter_context(copy_folder()))
            await _on_disk(lambda: _unpack(program, copy, use.folder))
            command = (*interpreter_of(program.path), str(copy / program.path), *arguments)
            return await run_script(
                command,
                folder=use.folder,
                environ=use.environ,
                seconds=use.seconds,
                made_for_it=(copy,),
            )
        finally:
            await _on_disk(stack.close)


async def _kept(files: ChatFiles, noted: Noted, origin: Origin) -> Changed:
    """What the script changed; where that cannot be found out, its own words are not lost by it."""
    try:
        return await files.keep_changes(noted, origin)
    except HarnessError as error:
        return Changed(notes=(f"What it changed was not written down: {describe(error)}",))


def _unpack(program: _Program, copy: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in program.files:
        place = copy / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def skill_instructions(text: SkillText) -> str:
    """What a model reads of a skill: the body, and what else the skill has."""
    parts = [f"Instructions of the skill {text.skill.name}:", text.body or "(It has none.)"]
    if text.files:
        lines = [
            f"- {file.path} ({file.size:,} byte{'' if file.size == 1 else 's'})"
            for file in text.files[:MAX_LISTED_FILES]
        ]
        if len(text.files) > MAX_LISTED_FILES:
            lines.append(f"- and {len(text.files) - MAX_LISTED_FILES:,} more")
        head = (
            "Further files of this skill, to be read with read_skill_file or, if they are scripts, "
            "run with run_skill_script:"
        )
        parts.append("\n".join([head, *lines]))
    return "\n\n".join(parts)


def _shown_program(
    program: _Program, now: _Shown, arguments: Sequence[str], use: SkillUse
) -> JsonObject:
    """What exactly would run, and apart from it what it could load of its skill."""
    interpreter = " ".join(interpreter_of(program.path))
    source, note = _text(program.source), ""
    if source is None:
        # It may run all the same, so every byte of it is shown.
        source = program.source.decode("utf-8", "backslashreplace")
        note = "This is not text in UTF-8: a byte that is none is shown as \\xNN.\n\n"
    others = [(path, content) for path, content in program.files if path != program.path]
    beside = (
        "It can load the other files of the skill, which are shown after it.\n" if others else ""
    )
    text = (
        f"{interpreter} {shlex.join([program.path, *arguments])}\n\n"
        f"A script of the skill {program.skill.name}, run in this chat's folder for at most "
        f"{use.seconds:g} seconds. It has the rights of this server: it can read and change files "
        f"and use the network.\n{beside}"
        f"SHA-256 of the skill: {now.digest}\n\n"
        f"{program.path}:\n\n{note}{source}"
    )
    files = [
        [path, _text(content) or f"Not text, or empty: {len(content):,} bytes."]
        for path, content in others
    ]
    return (
        {"kind": "text", "text": text, "files": files} if files else {"kind": "text", "text": text}
    )


def _said(finished: Finished, seconds: float, changed: Changed = NOTHING_CHANGED) -> ToolOutput:
    """What a script wrote, how it ended where that was not well, and what files are another now."""
    parts = [finished.output.rstrip("\n")] if finished.output.strip() else []
    if finished.dropped:
        parts.append(f"[Cut here: {finished.dropped:,} more bytes were written.]")
    if finished.timed_out:
        parts.append(f"The script was stopped: it took longer than {seconds:g} seconds.")
    elif finished.exit_code < 0:
        parts.append(f"The script was ended by signal {-finished.exit_code}.")
    elif finished.exit_code:
        parts.append(f"The script ended with exit code {finished.exit_code}.")
    failed = finished.timed_out or finished.exit_code != 0
    if not parts:
        parts.append("The script wrote nothing.")
    if changed.words:
        parts.append(f"[{changed.words}]")
    return ToolOutput((TextBlock("\n\n".join(parts)),), failed, files=changed.files)


async def _on_disk(work: Callable[[], T]) -> T:
    """Runs blocking work to its end, also when the call is stopped; disk errors in words."""
    try:
        return await run_in_thread(work, finish=True)
    except OSError as error:
        raise ToolError(f"The disk refused: {error.strerror or type(error).__name__}.") from error


def _text(content: bytes) -> str | None:
    """The text, or None for what is not UTF-8 or holds a NUL, which no text does."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
