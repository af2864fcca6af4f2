"""Which program a command runs, and what it is called."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

_RUNNERS = re.compile(r"(?:python|node|npx|uvx|bunx|pipx|deno|uv|docker|podman)[0-9.]*", re.I)
"""Programs that run another one, whose name says more."""
_NAME = re.compile(r"[\w.@-]+")
_BARE = frozenset({"-y", "--yes", "-m", "-u", "-q", "-i", "--rm", "run", "exec", "tool"})
"""Words before the other program that take no value."""


def located(command: str, path: str | None = None) -> str:
    """The command, with its whole path where only this program's own folder has it.

    In a virtual environment the folder of what is installed is often not on PATH. `path` is the
    PATH to look on, None for this process' own.
    """
    if "/" in command or not command.strip() or shutil.which(command, path=path):
        return command
    return shutil.which(command, path=str(Path(sys.executable).parent)) or command


def subject(words: Sequence[str]) -> str:
    """What the command line is about: the first word that is no option and only runs another."""
    names = [_last(word) for word in words if not word.startswith("-")]
    for name in names:
        if _NAME.fullmatch(name) and not _RUNNERS.fullmatch(name):
            return name
    return names[0] if names else ""


def ran(command: str, args: Sequence[str]) -> str:
    """What a command that only runs another program runs, '' where that is not certain.

    A word after an option that may take a value is not told: it may be a secret.
    """
    if not _RUNNERS.fullmatch(_last(command)):
        return ""
    for word in args:
        if word in _BARE:
            continue
        name = _last(word)
        if not _NAME.fullmatch(name) or word.startswith("-"):
            return ""
        if not _RUNNERS.fullmatch(name):
            return name
    return ""


def _last(word: str) -> str:
    return re.split(r"[/\\]", word)[-1]
