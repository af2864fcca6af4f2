"""Code blocks: a frame with the language and a copy button, and highlighted code in it."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from html import escape

from .sanitiser import clean_code

HIGHLIGHT_SECONDS = 0.25
"""CPU time for one code block; what is left then is plain text. Some lexers take 20 s for 8 KB of
odd code, where 0.05 s is usual."""

_LANGUAGE = re.compile(r"[a-z0-9][a-z0-9+#_.-]{0,23}\Z")

_TURNING = re.compile(
    "[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)


def code_block(code: str, info: str, highlight: bool) -> str:
    """A whole code block. `info`: the info string, whose first word names the language."""
    text = code if code.endswith("\n") or not code else code + "\n"
    inner = highlighted(text, _language(info)) if highlight else plain_code(text)
    before, after = frame(info)
    return before + inner + after


def frame(info: str, slot: str = "") -> tuple[str, str]:
    """What stands before and after the code. `slot`: an attribute for the code element, or ''."""
    language = _language(info)
    named = f' class="language-{escape(language)}"' if language else ""
    label = escape(language or "text", quote=False)
    before = (
        f'<div class="code"><header><span>{label}</span>'
        '<button type="button" class="btn quiet" data-copy>Copy</button></header>'
        f'<pre tabindex="0"><code{named}{slot}>'
    )
    return before, "</code></pre></div>"


@lru_cache(maxsize=128)
def highlighted(code: str, language: str) -> str:
    """The code as spans with classes; as plain text if the language is not known.

    The same code may end in plain text at another place the next time, where it takes very long.
    """
    lexer = _lexer(language) if language else None
    if lexer is None:
        return plain_code(code)
    from pygments.token import STANDARD_TYPES

    parts: list[str] = []
    done, until = 0, time.thread_time() + HIGHLIGHT_SECONDS
    for place, kind, text in lexer.get_tokens_unprocessed(code):
        if place != done or time.thread_time() > until:
            break
        done += len(text)
        while kind not in STANDARD_TYPES:
            kind = kind.parent
        name = STANDARD_TYPES[kind]
        html = escape(text, quote=False)
        parts.append(f'<span class="{name}">{html}</span>' if name and text.strip() else html)
    return _told_apart(clean_code("".join(parts))) + plain_code(code[done:])


def plain_code(code: str) -> str:
    """The code as HTML, as `highlighted` of a language that is not known."""
    return _told_apart(escape(code, quote=False))


def _told_apart(html: str) -> str:
    """Characters that would turn around or hide what is beside them are named, and do it no more:
    each is alone in an element. There it is copied as it is."""
    return _TURNING.sub(
        lambda found: (
            f'<span class="spelled" data-code="⟨U+{ord(found[0]):04X}⟩">{found[0]}</span>'
        ),
        html,
    )


def is_highlighted(language: str) -> bool:
    """Whether anything is looked for in code of this language."""
    return language in _LEXERS


def _language(info: str) -> str:
    word = info.split(maxsplit=1)[0].lower().strip("{}.") if info.strip() else ""
    return word if _LANGUAGE.match(word) else ""


_LEXERS = frozenset(
    [
        "bash",
        "sh",
        "shell",
        "zsh",
        "console",
        "batch",
        "powershell",
        "c",
        "cpp",
        "c++",
        "csharp",
        "c#",
        "css",
        "scss",
        "less",
        "dart",
        "diff",
        "patch",
        "docker",
        "dockerfile",
        "elixir",
        "erlang",
        "go",
        "golang",
        "graphql",
        "haskell",
        "html",
        "ini",
        "java",
        "javascript",
        "js",
        "json",
        "json5",
        "jsx",
        "julia",
        "kotlin",
        "latex",
        "tex",
        "lua",
        "markdown",
        "md",
        "matlab",
        "nginx",
        "nix",
        "objective-c",
        "ocaml",
        "perl",
        "php",
        "plsql",
        "postgresql",
        "postgres",
        "proto",
        "protobuf",
        "python",
        "py",
        "python3",
        "pycon",
        "pytb",
        "r",
        "rb",
        "ruby",
        "rust",
        "rs",
        "sql",
        "sqlite3",
        "swift",
        "terraform",
        "hcl",
        "toml",
        "ts",
        "typescript",
        "tsx",
        "vim",
        "vue",
        "xml",
        "yaml",
        "yml",
        "zig",
    ]
)
"""Languages that are highlighted. Not all that Pygments knows: some take very long on odd input,
some (scala, at backslashes) never end, and some (http) choose another by what the text says."""


_AS = {
    # Their own lexers look for prompts line by line, and take very long for a long one.
    "console": "bash",
    "pycon": "python",
    "sqlite3": "sql",
    # Pygments does not know these names.
    "patch": "diff",
    "plsql": "sql",
}


@lru_cache(maxsize=64)
def _lexer(language: str):  # type: ignore[no-untyped-def]
    if language not in _LEXERS:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    from .lexers import bounded

    try:
        lexer = type(get_lexer_by_name(_AS.get(language, language)))
    except ClassNotFound:
        return None
    # Code blocks inside of markdown would load any lexer there is.
    return bounded(lexer)(stripnl=False, ensurenl=False, handlecodeblocks=False)
