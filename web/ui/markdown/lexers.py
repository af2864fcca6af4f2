"""Lexers of Pygments, none of whose steps takes long.

A lexer tries one regular expression after the other at each place. Nothing stops one that is under
way, and no other thread runs meanwhile, so each sees only so much of the code that even one which
tries everything is done soon.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pygments.lexer import Lexer, RegexLexer

MAX_SEEN = {2: 500, 3: 250}
"""Characters that an expression of so many loops sees, at least; one loop takes only as long as the
code is. What is beyond looks like the end of the code to it, so a longer token is shown as several.
"""

_Match = Callable[..., "re.Match[str] | None"]

_NO_LOOPS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
"""Escaped characters, and sets of them."""
_LOOP = re.compile(r"[*+][?+]?|\{\d*,\d*\}[?+]?")


def bounded(lexer: type[Lexer]) -> type[Lexer]:
    """The lexer with all of its expressions bounded; one without such tables is as it was."""
    if not issubclass(lexer, RegexLexer):
        return lexer
    make: Any = type(lexer)
    made: type[Lexer] = make(
        lexer.__name__, (lexer,), {"_process_regex": classmethod(_bounded_match)}
    )
    return made


def _bounded_match(_: type[Lexer], regex: Any, flags: int, state: str) -> _Match:
    """What the tables of a lexer hold of an expression, which is a text or makes one."""
    text: str = regex if isinstance(regex, str) else regex.get()
    match = re.compile(text, flags).match
    loops = loops_of(text)
    if loops < min(MAX_SEEN):
        return match
    seen = MAX_SEEN[min(loops, max(MAX_SEEN))]

    def bounded_match(code: str, start: int = 0, end: int | None = None) -> Any:
        most = start + seen
        return match(code, start, most if end is None else min(most, end))

    return bounded_match


def loops_of(regex: str) -> int:
    """How many parts of an expression may be taken any number of times."""
    return len(_LOOP.findall(_NO_LOOPS.sub("", regex)))
