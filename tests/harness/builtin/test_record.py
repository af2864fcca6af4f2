"""The readable record of a chat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.pictures import picture
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.record import (
    EVENTS,
    TRANSCRIPT,
    RecordedRun,
    Said,
    transcript,
    write_record,
)
from web.harness.builtin.versions import Origin
from web.harness.values.errors import NotFound
from web.harness.values.events import (
    ApprovalRequired,
    AttemptReset,
    ContextCondensed,
    Event,
    EventBody,
    NestedEvent,
    Note,
    ResultPart,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallStart,
    ToolResult,
    Waiting,
)
from web.harness.values.messages import ResourceBlock
from web.harness.values.usage import Usage

pytestmark = pytest.mark.anyio

ASKED = {"path": "a"}


def run(id: str, *bodies: EventBody, said: Said | None = None) -> RecordedRun:
    events = [Event(number, float(number), body) for number, body in enumerate(bodies, 1)]
    return RecordedRun(id, said or Said("Hi", 0.0), "demo:demo", events)


def text_of(*runs: RecordedRun) -> str:
    return "".join(transcript("My\nchat", runs, {}))


def asks(call_id: str) -> ApprovalRequired:
    return ApprovalRequired(f"{call_id}-key", call_id, "write_file", ASKED, "m")


def test_a_transcript_reads_as_the_chat_went() -> None:
    text = text_of(
        run(
            "r",
            ThinkingDelta("one\n", "m"),
            ThinkingDelta("two", "m"),
            TextDelta("**Hel", "m"),
            TextDelta("lo**", "m"),
            ToolCallStart("c1", "calculate", {"expression": "6*7"}, "m"),
            ToolCallDelta("c2", "calculate", "{broken", "m"),
            ToolResult("c1", "calculate", "42", seconds=0.04),
            ToolResult("c2", "calculate", "````\nnot the end\n## Person", is_error=True),
            Note("The model", "did not see it"),
            RunResult("completed", "x", Usage(10, 5), cost=0.5),
            said=Said("Hi", 0.0, (ResourceBlock("file:a", "a", "text/plain", "attached"),)),
        )
    )
    assert text == (
        "# My chat\n"
        "\n## Person, 1970-01-01 00:00:00 UTC\n"
        "\nAttached:\n\n```text\na file:a\n```\n\n```text\nattached\n```\n"
        "\nHi\n"
        "\n## Assistant (demo:demo), 1970-01-01 00:00:01 UTC\n"
        "\n> Thinking:\n>\n> one\n> two\n"
        "\n**Hello**\n"
        '\nCalls `calculate` (c1):\n\n```json\n{\n  "expression": "6*7"\n}\n```\n'
        "\nResult of c1 (1970-01-01 00:00:07 UTC, 0.0 s):\n\n```text\n42\n```\n"
        "\nCalls `calculate` (c2):\n\n```json\n{broken\n```\n"
        "\nError of c2 (1970-01-01 00:00:08 UTC):\n\n"
        "`````text\n````\nnot the end\n## Person\n`````\n"
        "\n> Note:\n>\n> The model: did not see it\n"
        "\n*Ended 1970-01-01 00:00:10 UTC: completed. 10 tokens read, 5 written, $0.5000.*\n"
    )


def test_a_transcript_says_what_the_model_was_not_sent_any_more() -> None:
    text = text_of(
        run(
            "r",
            Waiting("Earlier messages are summarised", 0.0, "summary"),
            ContextCondensed(7000, 3000, "- they like tea", cleared=2, summarised=9),
            TextDelta("So.", "m"),
        )
    )
    assert (
        "> The model is sent less of the conversation from here on, about 3,000 tokens instead of "
        "7,000: 2 old results of tools taken out, 9 messages summarised: - they like tea\n"
    ) in text
    assert "Waited" not in text


@pytest.mark.parametrize(
    ("bodies", "words"),
    [
        ((), "It waits for the answer."),
        (
            (ToolCallStart("c", "write_file", ASKED, "m", "allow"),),
            "The person allowed it once, at 1970-01-01 00:00:02 UTC.",
        ),
        (
            (ToolCallStart("c", "write_file", ASKED, "m", "allow_chat"),),
            "The person allowed this tool for the chat, at 1970-01-01 00:00:02 UTC.",
        ),
        (
            (ToolCallStart("c", "write_file", {"path": "b"}, "m", "allow", edited=True),),
            "allowed it once, with other arguments, at 1970-01-01 00:00:02 UTC.\n\nIt ran with:\n\n"
            '```json\n{\n  "path": "b"\n}\n```\n',
        ),
        (
            (ToolResult("c", "write_file", "no", is_error=True, decision="deny"),),
            "The person denied it, at 1970-01-01 00:00:02 UTC.",
        ),
        (
            (ToolResult("c", "write_file", "no", is_error=True, stopped=True),),
            "It was stopped before it was answered.",
        ),
    ],
)
def test_it_says_what_became_of_each_question(bodies: tuple[EventBody, ...], words: str) -> None:
    text = text_of(run("r", asks("c"), *bodies))
    assert f"The person was asked at 1970-01-01 00:00:01 UTC. {words}"[-60:] in text
    assert words in text


def test_what_a_sub_agent_did_is_quoted_in_the_call_it_worked_in() -> None:
    def inside(*bodies: EventBody) -> tuple[EventBody, ...]:
        return tuple(NestedEvent("c", body) for body in bodies)

    text = text_of(
        run(
            "r",
            ToolCallStart("c", "delegate", {"task": "save"}, "m"),
            *inside(TextDelta("I save it.", "s-1"), asks("d")),
            *inside(ToolCallStart("d", "write_file", ASKED, "s-1", "allow")),
            *inside(ToolResult("d", "write_file", "saved", False, 0.1, "allow")),
            *inside(RunResult("completed", "ok", Usage(3, 4))),
            ToolResult("c", "delegate", "ok", False, 0.2),
            TextDelta("Done.", "m-2"),
        )
    )
    quoted = text[text.index("> A sub-agent, in c:") : text.index("Result of c")]
    assert all(line.startswith(">") for line in quoted.strip().splitlines())
    for words in (
        "> I save it.",
        "> The person was asked",
        "allowed it once",
        "> saved",
        "3 tokens",
    ):
        assert words in quoted
    assert "\nDone.\n" in text


def test_what_was_taken_back_is_not_in_it() -> None:
    text = text_of(
        run(
            "r",
            TextDelta("Half", "m"),
            ToolCallDelta("c", "calculate", "{", "m"),
            AttemptReset("m", 1, "It broke."),
            TextDelta("Whole", "m"),
        )
    )
    assert "Half" not in text
    assert "calculate" not in text
    assert "> Attempt 1 was dropped: It broke.\n\nWhole" in text


def test_a_picture_is_named_with_its_hash_and_not_written() -> None:
    plan = picture("plan.png")
    part = ResultPart("image", title="plan", media_type="image/png", size=49, sha256=plan.sha256)
    said = Said("", 0.0, (plan,))
    text = text_of(run("r", ToolResult("c1", "t", "Done.", parts=(part,)), said=said))
    words = (
        f"[picture plan.png, PNG, {len(plan.data)} bytes, 640 x 480 pixels] sha256 {plan.sha256}"
    )
    assert text.count(words) == 1
    assert f"```text\nimage plan image/png 49 bytes sha256 {plan.sha256}\n```" in text


async def test_it_names_the_files_with_their_versions_and_who_made_them(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path / "chat", now=lambda: 3.0)
    await files.write("a.txt", b"one", Origin("call", "r", "c", "k", "allow"), replace=False)
    await files.write("a.txt", b"three", Origin("person"), replace=True)
    await files.delete("a.txt", Origin("call", "r", "d"))
    await write_record(files, "Chat", [run("r", ToolResult("c", "write_file", "ok"))])
    async with files.open_record(TRANSCRIPT) as opened:
        text = (await opened.read(0, opened.size)).decode()
    first = "version 1, 1970-01-01 00:00:03 UTC: 3 bytes, SHA-256 7692c3ad3540bb80"
    assert f'\nMade "a.txt", {first}' in text
    listed = text.partition("\n## Files\n\n")[2].splitlines()
    assert listed[0] == '- "a.txt"'
    assert listed[1].startswith(f"    - {first}")
    assert listed[1].endswith("by the call c, allowed once")
    assert listed[2].endswith("by the person")
    assert listed[3].endswith("deleted, by the call d")


async def test_a_record_is_written_read_and_replaced(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path / "chat")
    one = run(
        "r1",
        TextDelta("Hello\n\ud800", "2"),
        ToolResult("c1", "t", "42", parts=(ResultPart("text", "x"),)),
        RunResult("completed", "Hello"),
        said=Said("Hi", 0.5, (picture("plan.png"), ResourceBlock("u", "n", "t", "words"))),
    )
    with pytest.raises(NotFound):
        await files.open_record(EVENTS).__aenter__()
    await write_record(files, "Old", [])
    await write_record(files, "New", [one, run("r2", TextDelta("b", "3"))])
    folder = tmp_path / "chat" / ".harness" / "record"
    assert sorted(path.name for path in folder.iterdir()) == [EVENTS, TRANSCRIPT]
    async with files.open_record(TRANSCRIPT) as opened:
        assert (await opened.read(0, 6)).decode() == "# New\n"
    async with files.open_record(EVENTS) as opened:
        lines = [json.loads(line) for line in (await opened.read(0, opened.size)).splitlines()]
    assert [(line["run"], line["number"], line["type"]) for line in lines] == [
        ("r1", 0, "message"),
        ("r1", 1, "text_delta"),
        ("r1", 2, "tool_result"),
        ("r1", 3, "run_result"),
        ("r2", 0, "message"),
        ("r2", 1, "text_delta"),
    ]
    assert lines[0]["at"] == "1970-01-01T00:00:00.500000+00:00"
    assert lines[0]["data"]["text"] == "Hi"
    assert [each["name"] for each in lines[0]["data"]["attachments"]] == ["plan.png", "n"]
    assert "data" not in lines[0]["data"]["attachments"][0]
    assert lines[2]["data"]["parts"][0]["text"] == "x"
    # It is no file of the chat's own.
    assert await files.list() == ()
    assert (await files.survey()).left_out == 0


async def test_a_record_that_cannot_be_made_leaves_the_one_before(tmp_path: Path) -> None:
    files = ChatFiles(tmp_path / "chat")
    await write_record(files, "Good", [])
    broken = RecordedRun("r", None, "", [Event(1, 0.0, ToolResult("c", "t", None))])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        await write_record(files, "Bad", [broken])
    async with files.open_record(TRANSCRIPT) as opened:
        assert await opened.read(0, 7) == b"# Good\n"
    assert len(list((tmp_path / "chat" / ".harness" / "record").iterdir())) == 2
