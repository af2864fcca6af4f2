"""What the demo model says: texts of a given length, markdown, help."""

from __future__ import annotations

import pytest

from tests.support.asking import Gathered, asked, gather
from web.harness.providers.demo.provider import DemoProvider
from web.harness.providers.demo.texts import long_text
from web.harness.values.model import ToolSpec

pytestmark = pytest.mark.anyio


async def say(text: str, *tools: ToolSpec) -> Gathered:
    return await gather(DemoProvider(pace=0), asked(text, tools=tools))


async def test_help_cuts_a_long_description_after_a_word() -> None:
    words = " ".join(["abcdef"] * 40)
    found = await say("help", ToolSpec("long_one", words, {}), ToolSpec("short", "Is short.", {}))
    (line,) = [line for line in found.text.splitlines() if "long_one" in line]
    shown = line.partition(": ")[2]
    assert shown.endswith("abcdef …")
    assert len(shown) <= 160
    assert ": Is short.\n" in found.text


async def test_an_answer_of_no_words_is_told_in_words() -> None:
    assert "0 words" in (await say("long 0")).text
    assert "0 words" in (await say("write 0 words")).text


@pytest.mark.parametrize(
    "text", ["long 2000", "write 2000 words", "Give me a text of 2,000 words fast"]
)
async def test_a_long_answer_has_the_length_that_was_asked_for(text: str) -> None:
    found = await say(text)
    body = found.text.partition("\n\n")[2]
    assert len(body.split()) == 2000
    assert body == (await say("long 2000")).text.partition("\n\n")[2]
    for piece in ("## ", "\n- ", "\n| ", "```python", "$", "]("):
        assert piece in body


@pytest.mark.parametrize("words", [1, 7, 64, 100, 250, 333, 600, 2001])
def test_a_long_answer_ends_with_nothing_open(words: int) -> None:
    text = long_text(words)
    assert len(text.split()) == words
    assert text.endswith(".\n")
    for mark in ("**", "`", "```", "$"):
        assert text.count(mark) % 2 == 0, mark
    assert not set(text.rstrip().rpartition("\n\n")[2]) & set("*`$|#")


@pytest.mark.parametrize(
    ("text", "words"), [("long 30 at 20 tokens a second", 30), ("long at 9 tokens/s", 600)]
)
async def test_the_speed_is_not_taken_for_the_length(text: str, words: int) -> None:
    assert len((await say(text)).text.partition("\n\n")[2].split()) == words


async def test_every_construct_of_markdown_is_shown() -> None:
    text = (await say("show markdown")).text
    for piece in ("# ", "- [x]", "~~", "```", "$$", "> ", "|--", "---", "![", "[note]:", "1. "):
        assert piece in text
