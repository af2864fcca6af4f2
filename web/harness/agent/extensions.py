"""Extensions: things that bring tools, hooks, saved state and clean-up to an agent, by name."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from web.harness.agent.in_time import in_time
from web.harness.tools.hooks import HookEvent, HookHandler
from web.harness.tools.tool import Tool
from web.harness.values.errors import ConfigurationError
from web.harness.values.messages import JsonObject

if TYPE_CHECKING:
    from web.harness.agent.agent import Agent

log = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
"""An extension that takes longer to close is stopped; the others are closed all the same."""

INSTRUCTIONS_SECONDS = 5.0
"""A model call waits no longer for what an extension tells the model."""

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Extension(Protocol):
    """Something installed in one agent, which from then on closes it.

    `name` (1 to 64 letters, digits, _ and -) is its own among those of the agent, and saved state
    is found by it. `install` registers tools and hooks; they go again when the extension is closed.
    It must not wait, nor open what has to be closed when `install` raises. `state` is a JSON object
    that a snapshot holds, without secrets; `restore` gets one back, before the first run, and
    raises ConfigurationError for one it cannot read. `aclose` is called once, after the last run,
    and has `CLOSE_SECONDS`. A tool that it puts in place of another gives that place back.
    One that has something to tell the model is `Instructing` besides.
    """

    @property
    def name(self) -> str: ...

    def install(self, agent: Agent) -> None: ...

    def state(self) -> JsonObject: ...

    def restore(self, state: JsonObject) -> None: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Instructing(Protocol):
    """What an `Extension` is besides, if a model has to be told something of it.

    `instructions` is awaited before each model call and stands after the system prompt; '' for
    nothing. One that raises, gives no text or takes longer than `INSTRUCTIONS_SECONDS` is left out
    of that call, which is logged.
    """

    async def instructions(self) -> str: ...


class BaseExtension:
    """An `Extension` that brings nothing; a subclass has a `name` and overrides what it needs."""

    name = ""

    def install(self, agent: Agent) -> None:
        """Registers tools and hooks."""

    def state(self) -> JsonObject:
        return {}

    def restore(self, state: JsonObject) -> None:
        """Takes back what `state` gave."""

    async def instructions(self) -> str:
        return ""

    async def aclose(self) -> None:
        """Closes what the extension opened."""


@dataclass(frozen=True, slots=True)
class _Installed:
    extension: Extension
    tools: tuple[Tool, ...]
    replaced: tuple[Tool, ...]
    hooks: tuple[tuple[HookEvent, HookHandler], ...]


class Extensions:
    """The extensions of one agent, in the order they were installed."""

    def __init__(self, agent: Agent, extensions: Iterable[Extension] = ()) -> None:
        """Raises what `install` raises; nothing that an extension brought is left then."""
        self._agent = agent
        self._installed: list[_Installed] = []
        self.close_seconds = CLOSE_SECONDS
        self.instructions_seconds = INSTRUCTIONS_SECONDS
        try:
            for extension in extensions:
                self.install(extension)
        except BaseException:
            while self._installed:
                self._withdraw(self._installed.pop())
            raise

    @property
    def names(self) -> list[str]:
        return [each.extension.name for each in self._installed]

    def get(self, name: str) -> Extension | None:
        return next(
            (each.extension for each in self._installed if each.extension.name == name), None
        )

    def install(self, extension: Extension) -> None:
        """Raises ConfigurationError for a name that is none or in use, and what it raises itself.

        Nothing that it brought is left then, and closing it is still its owner's.
        """
        name = _name_of(extension)
        if name in self.names:
            raise ConfigurationError(
                f"There is an extension '{name}' already.", hint="Install each one once."
            )
        agent = self._agent
        tools, hooks = tuple(agent.tools), agent.hooks.handlers()

        def brought() -> _Installed:
            # By identity: tools that are equal may be another's.
            before, now = set(map(id, tools)), set(map(id, agent.tools))
            new = tuple(tool for tool in agent.tools if id(tool) not in before)
            gone = tuple(tool for tool in tools if id(tool) not in now)
            more = [each for each in agent.hooks.handlers() if each not in hooks]
            return _Installed(extension, new, gone, tuple(more))

        try:
            extension.install(agent)
        except BaseException:
            self._withdraw(brought())
            raise
        self._installed.append(brought())

    def preparing(
        self, prepare: Callable[[], Awaitable[str]] | None
    ) -> Callable[[], Awaitable[str]]:
        """Does what `prepare` does; what the extensions want a model to know follows on that."""

        async def told() -> str:
            words = [await prepare()] if prepare is not None else []
            for each in self._installed:
                if isinstance(each.extension, Instructing):
                    words.append(await self._instructions(each.extension))
            return "\n\n".join(filter(None, words))

        return told

    async def _instructions(self, extension: Instructing) -> str:
        try:
            told = await in_time(extension.instructions(), self.instructions_seconds)
            if isinstance(told, str):
                return told
            log.error("The extension %s told no text but %s", _called(extension), type(told))
        except Exception:
            log.exception("The extension %s told no instructions", _called(extension))
        return ""

    def states(self) -> dict[str, JsonObject]:
        """What each extension wants saved, by name. Raises ConfigurationError for what no JSON is.

        It is a copy: what the extensions do afterwards does not change it.
        """
        states = {}
        for each in self._installed:
            name = each.extension.name
            try:
                states[name] = _copied(each.extension.state())
            except (TypeError, ValueError, RecursionError) as error:
                raise ConfigurationError(
                    f"The state of the extension '{name}' cannot be saved: {error}",
                    hint="It has to be a JSON object with text as keys.",
                ) from error
        return states

    def restore(self, states: Mapping[str, JsonObject]) -> None:
        """Gives each extension its saved state.

        Raises ConfigurationError (`extensions_differ`) where the names are not the same; then none
        was given any.
        """
        missing = sorted(set(states) - set(self.names))
        surplus = sorted(set(self.names) - set(states))
        if missing or surplus:
            told = [f"missing: {', '.join(missing)}"] if missing else []
            told += [f"not saved with it: {', '.join(surplus)}"] if surplus else []
            raise ConfigurationError(
                f"The session was saved with other extensions ({'; '.join(told)}).",
                hint="Load it with the same extensions.",
                code="extensions_differ",
            )
        for each in self._installed:
            each.extension.restore(_copied(states[each.extension.name]))

    async def aclose(self) -> list[str]:
        """Closes them in reverse order, each whatever becomes of the others.

        Returns the names of those that failed, which is logged. Closing twice is fine.
        """
        failed = []
        stopped: asyncio.CancelledError | None = None
        while self._installed:
            each = self._installed.pop()
            self._withdraw(each)
            try:
                await in_time(each.extension.aclose(), self.close_seconds)
            except asyncio.CancelledError as error:
                # Whoever closes is stopped: the others have to be closed all the same.
                stopped = error
                failed.append(each.extension.name)
            except Exception:
                log.exception("The extension %s could not be closed", each.extension.name)
                failed.append(each.extension.name)
        if stopped is not None:
            raise stopped
        return failed

    def _withdraw(self, brought: _Installed) -> None:
        tools = self._agent.tools
        for tool in brought.tools:
            if tools.get(tool.name) is tool:
                tools.remove(tool.name)
        for tool in brought.replaced:
            if tool.name not in tools:
                tools.add(tool)
        for event, handler in brought.hooks:
            self._agent.hooks.off(event, handler)


def _name_of(extension: Extension) -> str:
    """Its name. Raises ConfigurationError for what is no extension, or has none."""
    if isinstance(extension, type):
        raise ConfigurationError(
            f"{extension.__name__} is a class, not an extension.",
            hint=f"Give one that is made: {extension.__name__}().",
        )
    name = getattr(extension, "name", None)
    if not isinstance(name, str) or not _LEGAL_NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is no name for an extension ({type(extension).__name__}).",
            hint="Give it a `name` of 1 to 64 letters a-z, A-Z, digits, _ and -.",
        )
    needed = ("install", "state", "restore", "aclose")
    missing = [each for each in needed if not callable(getattr(extension, each, None))]
    if missing:
        raise ConfigurationError(
            f"The extension '{name}' has no {' and no '.join(missing)}.",
            hint="Make it a subclass of BaseExtension, which has them all.",
        )
    return name


def _called(extension: object) -> str:
    return str(getattr(extension, "name", type(extension).__name__))


def _copied(state: JsonObject) -> JsonObject:
    """The same JSON object, sharing nothing. Raises TypeError or ValueError for what is none."""
    copied = json.loads(json.dumps(state, allow_nan=False))
    if copied != state or not isinstance(copied, dict):
        raise ValueError("it would not be the same when it is loaded")
    return copied
