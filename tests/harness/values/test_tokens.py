"""Estimates are near what models count, in any script, and tools are counted once."""

from __future__ import annotations

import pytest

from web.harness.values.messages import (
    ImageBlock,
    Message,
    ResourceBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from web.harness.values.model import ToolSpec
from web.harness.values.tokens import (
    ToolsCounter,
    block_tokens,
    density_of,
    message_tokens,
    text_tokens,
    tool_tokens,
)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("a", 1, 1),
        ("The quick brown fox jumps over the lazy dog, then sleeps.", 11, 16),
        ("Съешь же ещё этих мягких французских булок, да выпей чаю.", 18, 45),
        ("我们明天早上八点在公园门口见面,请不要迟到。", 16, 32),
        ("Die Straße ist für Fußgänger gesperrt, bitte außen herum.", 14, 24),
        ("🎉🎉🎉", 3, 9),
    ],
)
def test_a_text_is_estimated_near_what_models_count(text: str, least: int, most: int) -> None:
    assert least <= text_tokens(text) <= most


def test_half_characters_are_counted_and_not_refused() -> None:
    assert text_tokens("a\ud800b") > 0


def test_each_block_counts_with_all_that_is_sent_of_it() -> None:
    words = "word " * 80
    assert block_tokens(TextBlock(words)) == 100
    assert block_tokens(ThinkingBlock(words, "seal")) == 100
    assert block_tokens(ThinkingBlock(words)) == 0
    assert block_tokens(ThinkingBlock("", "x" * 400, redacted=True)) == 100
    assert block_tokens(ToolUseBlock("i", "t", {"a": words})) > 100
    assert block_tokens(ToolUseBlock("i", "t", malformed=words)) > 100
    assert block_tokens(ToolUseBlock("i", "t", {"a": {1, 2}})) > 0
    picture = ImageBlock("image/png", "0", b"", width=750, height=400)
    assert block_tokens(picture) == 400
    result = ToolResultBlock("i", (TextBlock(words), picture))
    assert block_tokens(result) > 500
    assert block_tokens(ResourceBlock("", "n", "text/plain", words)) > 100
    message = Message("m", "user", (TextBlock(words), picture))
    assert message_tokens(message) > 500


def test_tools_are_counted_again_only_when_they_change() -> None:
    asked: list[str] = []

    def count(tool: ToolSpec) -> int:
        asked.append(tool.name)
        return tool_tokens(tool)

    counter = ToolsCounter(count)
    tools = (ToolSpec("a", "does a", {"type": "object"}), ToolSpec("b", "does b", {}))
    assert counter(tools) == counter(tuple(tools)) == sum(map(tool_tokens, tools))
    assert asked == ["a", "b"]
    assert counter(tools[:1]) == tool_tokens(tools[0])
    assert asked == ["a", "b", "a"]
    assert counter(()) == 0


def test_a_provider_that_is_not_known_has_the_usual_density() -> None:
    assert density_of("anthropic") > density_of("somebody") > density_of("demo")
