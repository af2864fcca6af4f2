"""Why a connection or a call failed, as one line that a person understands."""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import httpx2
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    UNSUPPORTED_PROTOCOL_VERSION,
    URL_ELICITATION_REQUIRED,
)
from pydantic import ValidationError

from web.harness.mcp.sizes import TOO_LARGE
from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.status import plain
from web.harness.tools.words import shorten
from web.harness.values.errors import ToolError

NEEDS_LEGACY = "mcp_needs_legacy"
"""The code of a ToolError that the forced older protocol would cure."""

REJECTED = -1
"""The code of what a person turned down."""

ANSWER_REFUSED = -2
"""The code of a call that a server does not go on with, though its question was answered."""

_TOO_FEW_RIGHTS = re.compile(r'\berror="?insufficient_scope\b')

MAX_WORDS = 400
"""Characters of a server's own words that a failure repeats."""

MAX_LAST_WORDS = 200
"""Characters of the last line of a process that the cause of its end repeats."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a connection is not there. A `lasting` one would be met again, so it is not retried."""

    cause: str
    state: Literal["failed", "sign_in"] = "failed"
    lasting: bool = False


class Unreachable(Exception):
    """A connection could not be made or has ended, for a reason that is already in words."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.cause)
        self.failure = failure


@dataclass(slots=True)
class Seen:
    """What a transport saw that the SDK's errors do not tell.

    `status` is the last refusal of a request, `challenge` the WWW-Authenticate beside it;
    `ending` how the process ended, in words; `session_lost` that a request was refused since
    the server does not know the session, so it was not run; `failure` why a sign-in did not work;
    `last` why the connection ends once the request that was refused has been told.
    """

    status: int | None = None
    challenge: str = ""
    failure: Failure | None = None
    last: Failure | None = None
    ending: str = ""
    session_lost: bool = False


SESSION_LOST = Failure("The server has forgotten the session; it was restarted.")


def silence(spec: ServerSpec, has_stray: bool) -> Failure:
    """The words for a connect that took longer than its limit."""
    waited = f"within {spec.connect_seconds:g} seconds"
    if has_stray:
        return Failure(f"The server prints text that is not MCP, and gave no answer {waited}.")
    if spec.kind == "stdio":
        return Failure(f"The command started, but gave no answer {waited}.")
    return Failure(f"{spec.host} gave no answer {waited}.")


def explain(error: BaseException, spec: ServerSpec, seen: Seen) -> Failure:
    """The words for whatever ended a connect or a connection."""
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, Unreachable):
            return leaf.failure
    if spec.kind != "stdio" and seen.status is not None:
        refused = _refused(spec, seen)
        if refused is not None:
            return refused
    for leaf in leaves:
        if isinstance(leaf, httpx2.HTTPError | OSError | httpx2.InvalidURL):
            return _network(leaf, spec)
    told = min(leaves, key=_vagueness)
    if isinstance(told, MCPError):
        return _protocol_error(told, spec, seen)
    if isinstance(told, ValidationError):
        return Failure(f"The server's answer is not what MCP says it must be: {_first(told)}")
    words = _words(spec, str(told)) or type(told).__name__
    if "protocol version" in words:
        return Failure(f"{words}. This program does not know that version.", lasting=True)
    return Failure(f"The connection failed: {words}")


def call_error(error: BaseException, name: str, spec: ServerSpec, seen: Seen) -> ToolError:
    """The words for a call that failed, for the model to act on.

    `name` is what was called, in quotes: 'echo', or the prompt 'greet'.
    """
    leaf = min(_leaves(error), key=_vagueness)
    if isinstance(leaf, ToolError):
        return leaf
    if isinstance(leaf, ValidationError):
        return ToolError(f"The result of {name} is not what MCP says it must be: {_first(leaf)}")
    if not isinstance(leaf, MCPError):
        words = _words(spec, str(leaf)) or type(leaf).__name__
        return ToolError(f"{_at_start(name)} failed: {words}")
    if TOO_LARGE in leaf.message:
        return ToolError(f"The answer to {name} could not be read. {_too_large(spec, leaf)}")
    if leaf.code == CONNECTION_CLOSED:
        return ended_call(name, spec, seen)
    words = _words(spec, leaf.message) or f"error {leaf.code}"
    if leaf.code == INTERNAL_ERROR and spec.kind != "stdio" and seen.status is not None:
        refused = _refused(spec, seen)
        words = refused.cause if refused is not None else words
    if "back-channel" in words:
        return ToolError(
            f"{_at_start(name)} asks a question in a way that only the older protocol has.",
            hint=f"Connect '{spec.name}' with the protocol 'legacy'.",
            code=NEEDS_LEGACY,
        )
    if leaf.code == METHOD_NOT_FOUND:
        return ToolError(f"The server does not offer {name} so: {words}")
    if leaf.code == INVALID_PARAMS:
        return ToolError(f"The server does not take these arguments of {name}: {words}")
    if leaf.code == PARSE_ERROR:
        return ToolError(f"The answer to {name} could not be read: it is not MCP, or too large.")
    if leaf.code == ANSWER_REFUSED:
        return ToolError(
            f"The server did not take the answer to what {name} had asked: {words}. It may have "
            "been restarted since, or too much time has passed. Call it again, and it asks anew."
        )
    if leaf.code == REJECTED:
        return ToolError(f"{_at_start(name)} did not get what it asked for: {words}.")
    if leaf.code == URL_ELICITATION_REQUIRED:
        return ToolError(f"A person has to visit a page for {name} first: {words}.")
    if leaf.code == REQUEST_TIMEOUT:
        return ToolError(f"The server gave up on {name}: {words}")
    return ToolError(f"The server refused {name}: {words}")


def refusal(error: BaseException, spec: ServerSpec, seen: Seen) -> str:
    """The words for a request that failed, and that neither connects nor calls a tool."""
    leaf = min(_leaves(error), key=_vagueness)
    if isinstance(leaf, TimeoutError):
        return "the server gave no answer in time."
    if isinstance(leaf, MCPError) and leaf.code != CONNECTION_CLOSED:
        return f"{_words(spec, leaf.message) or f'error {leaf.code}'}."
    return explain(error, spec, seen).cause


def ended_call(name: str, spec: ServerSpec, seen: Seen) -> ToolError:
    """The words for a call whose connection ended before its answer came."""
    refused = _refused(spec, seen)
    asks = refused is not None and refused.state == "sign_in"
    ending = refused.cause.rstrip(".") if refused is not None and asks else seen.ending
    why = f" ({ending})" if ending else ""
    return ToolError(
        f"The connection to '{spec.name}' ended while {name} ran{why}. "
        "It may have done its work in part or in full."
    )


def ended_process(ending: str, printed: str, said: str) -> str:
    """How a process ended, with the text that it printed in place of MCP, or its last words."""
    if printed:
        ending = f"{ending.rstrip('.')} and printed text that is not MCP"
    words = shorten(printed or said, MAX_LAST_WORDS)
    return f"{ending.rstrip('.')}: {words}" if words else ending


def silent_call(name: str, spec: ServerSpec) -> ToolError:
    """The words for a call that showed no sign of life for too long, and was cancelled."""
    return ToolError(
        f"{_at_start(name)} was cut off: '{spec.name}' showed no progress for "
        f"{spec.call_seconds:g} seconds. It may have done its work in part."
    )


def lost_session_call(name: str, spec: ServerSpec) -> ToolError:
    """The words for a call that a restarted server refused, since it does not know the session."""
    return ToolError(
        f"'{spec.name}' has forgotten this session, so {name} was not run. "
        "It is being connected anew: try again."
    )


def spawn_failure(error: OSError | ValueError, spec: ServerSpec, folder_missing: bool) -> Failure:
    """The words for a command that could not be started."""
    if isinstance(error, ValueError):
        return Failure("The command holds a character that no command can hold.", lasting=True)
    command = _words(spec, spec.command)
    if folder_missing:
        return Failure(f"The folder '{spec.cwd}' does not exist.", lasting=True)
    if isinstance(error, FileNotFoundError):
        return Failure(f"The command '{command}' was not found.", lasting=True)
    if isinstance(error, PermissionError):
        return Failure(f"The command '{command}' may not be run: no permission.", lasting=True)
    if error.errno == errno.ENOEXEC:
        return Failure(f"'{command}' is no program that can be run.", lasting=True)
    return Failure(f"The command '{command}' could not be started: {error.strerror}.")


def _at_start(name: str) -> str:
    return name[:1].upper() + name[1:]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _vagueness(error: BaseException) -> int:
    """Orders errors that came together: a closed connection explains least."""
    if isinstance(error, MCPError):
        return 2 if error.code == CONNECTION_CLOSED else 0
    return 1


def _protocol_error(error: MCPError, spec: ServerSpec, seen: Seen) -> Failure:
    words = _words(spec, error.message)
    if TOO_LARGE in error.message:
        return Failure(f"The server cannot be read. {_too_large(spec, error)}", lasting=True)
    if error.code == UNSUPPORTED_PROTOCOL_VERSION:
        return Failure(f"The server speaks no version of MCP known here: {words}", lasting=True)
    if error.code == CONNECTION_CLOSED:
        if spec.kind == "stdio":
            return Failure(seen.ending or "The server closed its output.")
        return Failure(f"{spec.host} ended the connection.")
    if error.code == PARSE_ERROR:
        return Failure(f"{spec.host or 'The server'} gives answers that are not MCP.", lasting=True)
    if "content type" in words.lower():
        kind = words.rpartition(":")[2].split(";")[0].strip() or "something"
        return Failure(f"{spec.address} answers with {kind}, not with MCP.", lasting=True)
    if "edirect" in words:
        return Failure(words, lasting=True)
    return Failure(f"The server refused to connect: {words}")


def _too_large(spec: ServerSpec, error: MCPError) -> str:
    _, begin, rest = error.message.partition(TOO_LARGE)
    return _words(spec, begin + rest) + "."


def more_rights(seen: Seen) -> bool:
    """Whether the last request was refused since the person has given too few rights."""
    return seen.status == 403 and _TOO_FEW_RIGHTS.search(seen.challenge) is not None


def _refused(spec: ServerSpec, seen: Seen) -> Failure | None:
    status = seen.status or 0
    if status == 401:
        if seen.failure is not None:
            return seen.failure
        if any(name.lower() == "authorization" for name in spec.headers):
            words = f"{spec.host} does not take the Authorization header that it was given (401)."
            return Failure(words, lasting=True)
        return Failure(f"{spec.host} asks you to sign in.", state="sign_in", lasting=True)
    if more_rights(seen):
        words = f"{spec.host} wants more rights than it has been given. Sign in once more."
        return Failure(words, state="sign_in", lasting=True)
    if status == 403:
        return Failure(f"{spec.host} refuses access (403).", lasting=True)
    if status in (404, 405, 410):
        return Failure(f"There is no MCP server at {spec.address} ({status}).", lasting=True)
    if status == 429:
        return Failure(f"{spec.host} gets too many requests (429).")
    if status >= 500:
        return Failure(f"{spec.host} has an error of its own ({status}).")
    return None


def _network(error: Exception, spec: ServerSpec) -> Failure:
    """The words for a connection that could not be made or broke on the way."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        chain += [each for each in _leaves(cause) if each is not cause]
        cause = cause.__cause__ or cause.__context__
    for each in chain:
        if isinstance(each, ssl.SSLCertVerificationError):
            return Failure(f"The certificate of {spec.host} is not valid: {each.verify_message}.")
        if isinstance(each, socket.gaierror):
            return Failure(f"The host {spec.host} was not found.")
        if isinstance(each, ConnectionRefusedError):
            return Failure(f"Nothing listens at {spec.host}.")
    if isinstance(error, httpx2.TimeoutException):
        return Failure(f"{spec.host} did not answer in time.")
    if isinstance(error, httpx2.ConnectError):
        return Failure(f"{spec.host} cannot be reached.")
    if isinstance(error, httpx2.InvalidURL):
        return Failure("The address cannot be used as it is.", lasting=True)
    words = _words(spec, str(error)) or type(error).__name__
    return Failure(f"The connection to {spec.host or spec.name} broke: {words}")


def _first(error: ValidationError) -> str:
    """Where the first mistake is and what it is, without the value."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"][-4:])
    return plain(f"{where}: {first['msg']}" if where else first["msg"])[:MAX_WORDS]


def _words(spec: ServerSpec, text: str) -> str:
    words = " ".join(plain(spec.conceal(text)).split())
    words = words if len(words) <= MAX_WORDS else words[: MAX_WORDS - 1] + "…"
    return words.rstrip(".")
