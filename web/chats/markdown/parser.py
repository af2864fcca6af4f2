"""The block grammar: CommonMark, tables, task lists, display math. Inline markup is left alone.

markdown-it parses a text from its start, and everything but the last block of the result is final
as long as the text ends with a whole line.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import (
    StateBlock,
    blockquote,
    fence,
    heading,
    hr,
    list_block,
    reference,
)
from markdown_it.rules_block.table import table
from markdown_it.token import Token

from .limits import Limits
from .white import BLANK, trimmed

Definitions = Mapping[str, tuple[str, str]]
"""Normalised label -> address and title."""

LISTS = ("bullet_list_open", "ordered_list_open")
_PIPE = re.compile(r"(?<!\\)\|")
_ENDS_BLANK = re.compile(r"(?:^|\n)[ \t]*\n\Z")
_LINE_BEGIN = re.compile(r"^[> \t]*", re.MULTILINE)
_LINE_WEIGHT = 24
_QUOTE_WEIGHT = 12
_MATH_LINES = 40
_NO_HEADER = (fence, blockquote, hr, list_block, heading)
_MATH_CLOSER = {"$$": "$$", "\\[": "\\]"}


@dataclass(frozen=True, slots=True)
class Top:
    """A top-level block: its tokens, and its place in the parsed text as offsets."""

    type: str
    tokens: Sequence[Token]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Parsed:
    """The top-level blocks of a text, the definitions found, and where each of these begins.

    `last_definition`: where the last one begins, whether its label was new or not; -1 for none.
    `lines`: where each line begins, and the end of the text.
    """

    tops: list[Top]
    definitions: dict[str, tuple[str, str]]
    places: dict[str, int]
    last_definition: int
    lines: list[int]

    def defined_before(self, place: int) -> dict[str, tuple[str, str]]:
        """The definitions that begin before an offset."""
        return {
            label: definition
            for label, definition in self.definitions.items()
            if self.places[label] < place
        }


def parse(text: str, known: Definitions, limits: Limits) -> Parsed:
    """Parse a text whose line ends are `\\n`; definitions in `known` win over those in the text."""
    local: dict[str, Any] = {}
    # The block rules only ask whether a label is known, so its value may be of any shape.
    references: ChainMap[str, Any] = ChainMap(local, known)  # type: ignore[arg-type]
    env: dict[str, Any] = {"references": references}
    tokens: list[Token] = []
    parser = grammar(limits)
    parser.block.parse(text, parser, env, tokens)
    lines = line_starts(text)
    tops: list[Top] = []
    first = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            opening = tokens[first]
            start, end = opening.map or [0, 0]
            tops.append(
                Top(opening.type, tokens[first : index + 1], lines[start], lines[end]),
            )
            first = index + 1
    found = [*local.values(), *env.get("duplicate_refs", [])]
    last = max((lines[entry["map"][0]] for entry in found), default=-1)
    definitions = {label: (entry["href"], entry["title"]) for label, entry in local.items()}
    places = {label: lines[entry["map"][0]] for label, entry in local.items()}
    return Parsed(tops, definitions, places, last, lines)


def line_starts(text: str) -> list[int]:
    """Offsets of the lines, and the end of the text as one more."""
    starts = [0]
    position = text.find("\n")
    while position != -1:
        starts.append(position + 1)
        position = text.find("\n", position + 1)
    if starts[-1] != len(text):
        starts.append(len(text))
    return starts


def items(top: Top) -> list[Sequence[Token]]:
    """The items of a list, each from its opening to its closing token."""
    found = []
    first = 0
    for index, token in enumerate(top.tokens):
        if token.level == 1 and token.nesting == 1:
            first = index
        elif token.level == 1 and token.nesting == -1:
            found.append(top.tokens[first : index + 1])
    return found


def ends_blank(text: str) -> bool:
    """Whether the last line of these whole lines is blank, or there is none."""
    return _ENDS_BLANK.search(text) is not None


def parse_before(text: str, over: tuple[int, int], known: Definitions, limits: Limits) -> Parsed:
    """What comes before a unit that is beyond the limits: a list may be loose because of it."""
    place, _ = over
    parsed = parse(text[:place], known, limits)
    if parsed.tops and parsed.tops[-1].type in LISTS:
        whole = parse(until_crossed(text, over), known, limits)
        last = whole.tops[len(parsed.tops) - 1]
        if last.end > place:
            for token, same in zip(parsed.tops[-1].tokens, last.tokens, strict=False):
                token.hidden = same.hidden
    return parsed


def until_crossed(text: str, over: tuple[int, int]) -> str:
    """The text as far as it counts: the unit that is beyond the limits up to these."""
    place, crossed = over
    line = text.find("\n", place)
    return text[: max(crossed, line if line >= 0 else len(text))]


def cells(line: str) -> list[str]:
    """The cells of a table row, as in markdown-it: a pipe after a backslash does not part them."""
    columns = _PIPE.split(trimmed(line))
    if columns[0] == "":
        columns.pop(0)
    if columns and columns[-1] == "":
        columns.pop()
    return [trimmed(column.replace("\\|", "|")) for column in columns]


def count_cells(line: str) -> int:
    """How many cells a table row has."""
    if "\\" in line:
        return len(cells(line))
    line = trimmed(line)
    return line.count("|") + (not line.startswith("|")) - (len(line) > 1 and line.endswith("|"))


def overflow(parsed: Parsed, text: str, limits: Limits) -> tuple[int, int] | None:
    """The first unit that is too large or too deep: its start, and where the limit is crossed."""
    for top in parsed.tops:
        if top.type == "fence":
            continue
        if top.type in LISTS:
            units = items(top)
        elif top.type == "table_open":
            units = [[token] for token in top.tokens if token.type == "tr_open"]
        else:
            units = [top.tokens]
        for unit in units:
            crossed = _crossed(unit, parsed.lines, text, limits)
            if crossed is not None:
                begin = (unit[0].map or [0])[0]
                return parsed.lines[begin], crossed
    return None


def _crossed(unit: Sequence[Token], lines: list[int], text: str, limits: Limits) -> int | None:
    begin, end = unit[0].map or [0, 0]
    start, stop = lines[begin], lines[end]
    deep = next((token for token in unit if token.level > limits.depth and token.map), None)
    crossed = [lines[(deep.map or [0])[0]]] if deep else []
    if not (_is_paragraph(unit[0]) and not may_define(text[start:stop])):
        heavy = _heavy_from(text[start:stop], limits.unit)
        if heavy is not None:
            crossed.append(start + heavy)
    return min(crossed, default=None)


def _heavy_from(source: str, most: int) -> int | None:
    """Where a unit becomes too large. Lines and marks of quotes weigh more than their length."""
    source = source.rstrip(BLANK)
    lines = source.count("\n") + 1
    if len(source) + _LINE_WEIGHT * lines + _QUOTE_WEIGHT * source.count(">") <= most:
        return None
    weight = place = 0
    for begin in _LINE_BEGIN.finditer(source):
        if weight + begin.start() - place > most:
            break
        weight += begin.end() - place + _LINE_WEIGHT + _QUOTE_WEIGHT * begin.group().count(">")
        place = begin.end()
        if weight > most:
            return place
    border = place + most - weight
    return border if len(source) > border else None


def _is_paragraph(token: Token) -> bool:
    """Whether this is one, or a heading by a line below it."""
    return token.type == "paragraph_open" or (
        token.type == "heading_open" and token.markup in ("=", "-")
    )


_LABEL = re.compile(r"\[(?:[^\[\]\\]|\\.)*\](?=[^:])", re.DOTALL)


def may_define(source: str) -> bool:
    """Whether more text could turn the start of this paragraph into a reference definition."""
    return source.startswith("[") and _LABEL.match(source) is None


@lru_cache(maxsize=8)
def grammar(limits: Limits) -> MarkdownIt:
    """The parser under these limits. Block rules only are set up with care; see web.ui.markdown."""
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": limits.depth + 2})
    parser.options["tasklists"] = True
    parser.disable(["html_block"])
    parser.enable("table")

    def limited_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if start + 2 > end:
            return False
        if state.eMarks[start] - state.bMarks[start] > limits.line:
            return False
        delimiter = state.src[state.bMarks[start + 1] : state.eMarks[start + 1]]
        if delimiter.count("|") > limits.columns:
            return False
        if not table(state, start, end, True):
            return False
        # As on GitHub, a line that begins another block is no header. It also keeps final what has
        # been said of an opening fence.
        parent, state.parentType = state.parentType, "table"
        other = any(rule(state, start, end, True) for rule in _NO_HEADER)
        state.parentType = parent
        if other:
            return False
        return silent or table(state, start, end, False)

    def limited_reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        line = state.line
        if not reference(state, start, end, silent):
            return False
        stop = state.eMarks[state.line - 1]
        if silent or _heavy_from(state.src[state.bMarks[start] : stop], limits.unit) is None:
            return True
        _forget(state.env, [start, state.line])
        state.line = line
        return False

    parser.block.ruler.at("reference", limited_reference)
    parser.block.ruler.at("table", limited_table, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before(
        "fence",
        "math_block",
        _math_block,
        {"alt": ["paragraph", "reference", "blockquote", "list"]},
    )
    return parser


def _forget(env: Any, lines: list[int]) -> None:
    """Take back the definition that was found on these lines."""
    references = env["references"]
    own = references.maps[0] if isinstance(references, ChainMap) else references
    for label in [label for label, entry in own.items() if entry["map"] == lines]:
        del own[label]
    doubles = env.get("duplicate_refs", [])
    doubles[:] = [entry for entry in doubles if entry["map"] != lines]


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Display math: from a line that is `$$` or `\\[` to one that ends so, or to a blank line,
    or for some forty lines."""
    if state.is_code_block(start):
        return False
    opener = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]].rstrip(
        BLANK
    )
    if opener not in _MATH_CLOSER:
        return False
    if silent:
        return True
    closer = _MATH_CLOSER[opener]
    line = start + 1
    closed = False
    most = min(end, start + _MATH_LINES)
    while line < most and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        text = state.src[state.bMarks[line] : state.eMarks[line]].rstrip(BLANK)
        line += 1
        if text.endswith(closer):
            closed = True
            break
    token = state.push("math_block", "", 0)
    token.map = [start, line]
    token.content = state.getLines(start, line, state.blkIndent, False)
    token.info = "closed" if closed else ""
    state.line = line
    return True
