"""The Jinja environment of pages and parts, and the filters that put values into words."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from web.harness.values.text import amount
from web.ui.rendering.cards import cut_short
from web.ui.rendering.compiled import COMPILED
from web.ui.rendering.unseen import exact_json, hides, spelled, visible

ARGUMENT_LIMIT = 4_000
"""Characters of a call's arguments that its opened line shows."""

BRIEF_LIMIT = 120
"""Characters of a call's arguments that its closed line shows."""

_DEMO_LABELS = {
    "demo:demo": "Demo (scripted, no key)",
    "demo:small": "Demo with a small context (8,192 tokens)",
}

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n\s*\n")


def make_environment(templates: Path, *, zone: tzinfo | None = None) -> Environment:
    """The environment for the templates of a folder.

    Everything is escaped unless it is `Markup`, and a name that nobody gave is an error. Times
    are shown in `zone`, by default the one of this machine. `page_token` in a form proves that it
    comes from a page of this server, made since it started.
    """
    environment = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=COMPILED,
    )
    environment.globals["page_token"] = secrets.token_urlsafe(24)
    # A demo has a way to end its server from the page; nothing else has.
    environment.globals["kill_path"] = ""
    environment.filters.update(
        time=time_in(zone),
        clock=clock_in(zone),
        seconds=seconds,
        size=size,
        bytes=amount,
        json=pretty_json,
        brief=brief,
        first_line=first_line,
        first_sentence=first_sentence,
        thousands=thousands,
        cost=cost,
        path=in_address,
        model=model_label,
        visible=visible,
        spelled=spelled,
        hides=hides,
        exact_json=exact_json,
        cut_short=cut_short,
        markdown=markdown,
    )
    return environment


def time_in(zone: tzinfo | None) -> Callable[[float], Markup]:
    """A filter from seconds since the epoch to a `<time>` element with an absolute time."""

    def time(at: float) -> Markup:
        moment = datetime.fromtimestamp(at, UTC)
        shown = moment.astimezone(zone)
        words = f"{shown.day} {shown:%b %Y, %H:%M}"
        stamp = moment.isoformat(timespec="seconds")
        return Markup('<time datetime="{}">{}</time>').format(stamp, words)

    return time


def clock_in(zone: tzinfo | None) -> Callable[[float], Markup]:
    """As `time_in`, but it shows only the hour and the minute."""

    def clock(at: float) -> Markup:
        moment = datetime.fromtimestamp(at, UTC)
        stamp = moment.isoformat(timespec="seconds")
        return Markup('<time datetime="{}">{:%H:%M}</time>').format(stamp, moment.astimezone(zone))

    return clock


def seconds(value: float) -> str:
    """A duration as a person says it: `4 ms`, `2.1 s`, `3 min 5 s`, `2 h 4 min`."""
    milliseconds = round(value * 1000)
    if milliseconds < 1:
        return "under 1 ms"
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if value < 59.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 3600:
        return _two(whole // 60, "min", whole % 60, "s")
    minutes = round(value / 60)
    return _two(minutes // 60, "h", minutes % 60, "min")


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large} {large_unit}" + (f" {small} {small_unit}" if small else "")


def size(characters: int) -> str:
    """A length of text: `1 character`, `940 characters`, `12 KB`, `3.4 MB` (of thousands)."""
    if characters == 1:
        return "1 character"
    if characters < 1000:
        return f"{characters} characters"
    if characters < 999_500:
        kilo = characters / 1000
        return f"{kilo:.1f} KB" if kilo < 9.95 else f"{kilo:.0f} KB"
    return f"{characters / 1_000_000:.1f} MB"


def pretty_json(value: Any, limit: int | None = None) -> str:
    """Indented JSON, or a text as it is; beyond `limit` characters it says how much is left out."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}\n… {thousands(len(text) - limit)} more characters"


def brief(arguments: dict[str, Any]) -> str:
    """Arguments on one line: the value alone if there is one, `name: value` otherwise."""
    if len(arguments) == 1:
        text = _inline(next(iter(arguments.values())))
    else:
        text = ", ".join(f"{name}: {_inline(value)}" for name, value in arguments.items())
    return text if len(text) <= BRIEF_LIMIT else text[: BRIEF_LIMIT - 1] + "…"


def _inline(value: Any) -> str:
    # Cut before the words are split: an argument can be as long as a file.
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text[: 4 * BRIEF_LIMIT].split())


def first_line(text: str, limit: int = BRIEF_LIMIT) -> str:
    """The first line with something on it, cut to `limit` characters."""
    lines = text[: 8 * limit].strip().splitlines()
    line = lines[0].strip() if lines else ""
    return line if len(line) <= limit else line[: limit - 1] + "…"


def first_sentence(text: str) -> str:
    """What a description says first; the whole text if it is one sentence."""
    return _SENTENCE_END.split(text.strip(), maxsplit=1)[0]


def thousands(number: int) -> Markup:
    """A number in groups of three with a thin space that does not break: `12 345`."""
    return escape(f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"))


def model_label(name: str) -> str:
    """A model as a person chooses it: by its name, unless it is no real one."""
    return _DEMO_LABELS.get(name, name)


def markdown(text: str) -> Markup:
    """What a model wrote, as it is shown in a chat, but without links to the files of one."""
    # Most pages have no use for the parser, which takes a while to load.
    from web.ui.markdown import render, with_files

    return Markup(with_files(render(text), ""))  # noqa: S704 (sanitised)


def in_address(path: str) -> str:
    """A path as it stands in an address: whatever is in its names, they stay names."""
    return quote(path, safe="/")


def cost(dollars: float) -> str:
    """US dollars with as many digits as say something: `$0.0042`, `$1.30`, `under $0.0001`."""
    if dollars == 0:
        return "$0"
    if dollars < 0.0001:
        return "under $0.0001"
    return f"${dollars:.4f}" if dollars < 0.1 else f"${dollars:.2f}"
