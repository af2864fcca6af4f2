"""What a page shows of a connection, and the lines that a server writes beside the protocol."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from web.harness.mcp.wording import tidy

if TYPE_CHECKING:
    from mcp_types import Prompt, Resource, ResourceTemplate, Tool

State = Literal["connecting", "ready", "sign_in", "failed", "closed"]

STRAY = "stray"
"""The level of a line that a server printed among its messages, and that is none."""

KEPT_LINES = 200
KEPT_STDERR = 40
MAX_LINE_CHARS = 2000

_TERMINAL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # window titles and links
    r"|\x1b[@-Z\\-_]"
)


def plain(text: str) -> str:
    """One line without colours and signs that cannot be seen, of at most `MAX_LINE_CHARS`."""
    return tidy(_TERMINAL.sub("", text[: 4 * MAX_LINE_CHARS]), MAX_LINE_CHARS, one_line=True)


@dataclass(frozen=True, slots=True)
class LogLine:
    """One message of a server. `at` is in Unix seconds, `level` one of the protocol's eight.

    `source` is the server's own name of the logger. The level may also be `STRAY`.
    """

    at: float
    level: str
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a connection; replaced as a whole when anything changes.

    `cause` is one line that says why it is not ready. `retry_at` is in seconds of the event
    loop's clock, None where nothing is tried by itself. `tools` are those of the last list that
    was read, also while the connection is being made anew. So are the other lists, which are read
    after it. `protocol` is the version in use. `completes` says that arguments can be completed,
    `subscribable` that resources can be watched. `watched` are the addresses of those that are,
    `updated` the Unix seconds of the last news of each, until it is read again. `sign_in` is where
    a person has to go to end a sign-in that was begun, `signed_in` says that there are tokens.
    """

    state: State
    cause: str = ""
    stderr: tuple[str, ...] = ()
    title: str = ""
    version: str = ""
    protocol: str = ""
    instructions: str = ""
    retry_at: float | None = None
    tools: tuple[Tool, ...] = ()
    log: tuple[LogLine, ...] = ()
    resources: tuple[Resource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    completes: bool = False
    subscribable: bool = False
    watched: frozenset[str] = frozenset()
    updated: Mapping[str, float] = field(default_factory=dict)
    sign_in: str = field(default="", repr=False)
    signed_in: bool = False


class Journal:
    """The last lines of a server: its log, and its standard error. All of them without secrets."""

    def __init__(
        self, conceal: Callable[[str], str], clock: Callable[[], float], changed: Callable[[], None]
    ) -> None:
        self._conceal = conceal
        self._clock = clock
        self._changed = changed
        self._log: deque[LogLine] = deque(maxlen=KEPT_LINES)
        self._stderr: deque[str] = deque(maxlen=KEPT_STDERR)

    @property
    def log(self) -> tuple[LogLine, ...]:
        return tuple(self._log)

    @property
    def stderr(self) -> tuple[str, ...]:
        return tuple(self._stderr)

    @property
    def has_stray(self) -> bool:
        """Whether the server has printed what is not the protocol."""
        return any(line.level == STRAY for line in self._log)

    def add(self, level: str, text: str, source: str = "") -> None:
        """Keeps one message."""
        words = self._words(text)
        self._log.append(LogLine(self._clock(), level, words, self._words(source)[:100]))
        self._changed()

    def add_stderr(self, line: str) -> None:
        """Keeps one line of the standard error; an empty one says nothing."""
        words = self._words(line)
        if words.strip():
            self._stderr.append(words)
            self._changed()

    def forget_stderr(self) -> None:
        """A new process starts with no lines of the one before it."""
        self._stderr.clear()

    def _words(self, text: str) -> str:
        # Concealed before it is cut, so that no half of a secret stays at the end.
        return plain(self._conceal(text[: 4 * MAX_LINE_CHARS]))
