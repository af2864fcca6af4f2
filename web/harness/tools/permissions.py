"""May a tool run: its own default, the configuration's override, a person's grant for one chat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from web.harness.tools.tool import PermissionLevel, Tool
from web.harness.values.errors import ConfigurationError


class Permissions:
    """The permissions of one chat.

    An override replaces the tool's own default. A grant ("allow for this chat") turns *ask* into
    *allow*; it never lifts a *deny*, and it is kept while one holds. A tool that `always_asks` is
    never allowed, by neither. `grants` is a sorted list of tool names, ready for JSON, and what the
    constructor takes to bring them back: whoever gives any, or none on purpose, keeps them, and no
    run that is resumed adds its own.
    """

    def __init__(
        self,
        overrides: Mapping[str, PermissionLevel | str] | None = None,
        grants: Iterable[str] | None = None,
    ) -> None:
        """Raises ConfigurationError for an override that is no level."""
        self._overrides = {
            name: parse_level(name, level) for name, level in (overrides or {}).items()
        }
        self._grants = dict.fromkeys(grants or (), "")
        self._are_kept = grants is not None

    @property
    def grants(self) -> list[str]:
        return sorted(self._grants)

    def grant(self, name: str, approval: str = "") -> None:
        """Lets the tool run without a question from now on, unless it is denied.

        `approval` is the key of the question that was answered so.
        """
        self._grants[name] = approval

    def recall(self, grants: Iterable[tuple[str, str]]) -> None:
        """Brings back what was granted in a run that goes on, each with the key of its question.

        Not where somebody keeps the grants: one may have been taken back since.
        """
        if not self._are_kept:
            self._grants.update(grants)

    def granted_by(self, tool: Tool) -> str | None:
        """The key of the question whose answer lets the tool run; None where no grant does.

        It is '' for a grant that was brought back: which question it was is not kept.
        """
        if tool.always_asks or self._own_level(tool) is not PermissionLevel.ASK:
            return None
        return self._grants.get(tool.name)

    def revoke(self, name: str) -> None:
        """Takes a grant back; one that was never made is fine."""
        self._grants.pop(name, None)

    def level(self, tool: Tool) -> PermissionLevel:
        level = self._own_level(tool)
        if level is PermissionLevel.ASK and tool.name in self._grants and not tool.always_asks:
            return PermissionLevel.ALLOW
        return level

    def _own_level(self, tool: Tool) -> PermissionLevel:
        level = self._overrides.get(tool.name, tool.permission)
        if tool.always_asks and level is PermissionLevel.ALLOW:
            return PermissionLevel.ASK
        return level


def parse_level(name: str, level: PermissionLevel | str) -> PermissionLevel:
    """A level from its word; raises ConfigurationError that names the tool and the words."""
    try:
        return PermissionLevel(level)
    except ValueError:
        raise ConfigurationError(
            f"'{level}' is no permission for the tool '{name}'.",
            hint="Use allow, ask or deny.",
        ) from None
