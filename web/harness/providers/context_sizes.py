"""The contexts of models as their vendors state them, for as long as no refusal has told better."""

from __future__ import annotations

from web.harness.values.config import ModelName

_STATED: dict[str, tuple[tuple[str, int], ...]] = {
    "openai": (
        ("gpt-5", 400_000),
        ("gpt-4.1", 1_047_576),
        ("o1", 200_000),
        ("o3", 200_000),
        ("o4", 200_000),
        ("gpt-4o", 128_000),
        ("gpt-4-turbo", 128_000),
        ("gpt-4", 8_192),
        ("gpt-3.5", 16_385),
        # Any server speaks this API, with any model: most have this much or more by now.
        ("", 128_000),
    ),
    "anthropic": (("", 200_000),),
    # `demo:small` is not told here: it refuses what is too long, so that this can be seen.
    "demo": (("demo", 128_000),),
}
"""By the beginning of a name. Source: the vendors' pages on their models."""


def stated_context(model: ModelName) -> int | None:
    """Tokens of one call, the answer included; None where nothing is known."""
    for beginning, tokens in _STATED.get(model.provider, ()):
        if model.name.startswith(beginning):
            return tokens
    return None
