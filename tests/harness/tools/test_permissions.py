"""Who decides whether a tool may run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from web.harness.tools.permissions import Permissions
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext, ToolOutput
from web.harness.values.errors import ConfigurationError
from web.harness.values.messages import JsonObject

ALLOW, ASK, DENY = PermissionLevel.ALLOW, PermissionLevel.ASK, PermissionLevel.DENY


async def nothing(arguments: JsonObject, context: ToolContext) -> ToolOutput:
    return ToolOutput.of("")


def tool(permission: PermissionLevel) -> Tool:
    return Tool("write", "", {"type": "object"}, nothing, permission)


@pytest.mark.parametrize(
    ("default", "override", "granted", "expected"),
    [
        (ALLOW, None, False, ALLOW),
        (ALLOW, None, True, ALLOW),
        (ALLOW, "allow", False, ALLOW),
        (ALLOW, "ask", False, ASK),
        (ALLOW, "ask", True, ALLOW),
        (ALLOW, "deny", False, DENY),
        (ALLOW, "deny", True, DENY),
        (ASK, None, False, ASK),
        (ASK, None, True, ALLOW),
        (ASK, "allow", False, ALLOW),
        (ASK, "ask", False, ASK),
        (ASK, "ask", True, ALLOW),
        (ASK, "deny", False, DENY),
        (ASK, "deny", True, DENY),
        (DENY, None, False, DENY),
        (DENY, None, True, DENY),
        (DENY, "allow", False, ALLOW),
        (DENY, "ask", False, ASK),
        (DENY, "ask", True, ALLOW),
        (DENY, "deny", True, DENY),
    ],
)
def test_the_level_follows_default_override_and_grant(
    default: PermissionLevel, override: str | None, granted: bool, expected: PermissionLevel
) -> None:
    permissions = Permissions({"write": override} if override else None)
    if granted:
        permissions.grant("write")
    assert permissions.level(tool(default)) is expected


def test_a_grant_holds_for_its_own_tool_until_it_is_taken_back() -> None:
    permissions = Permissions()
    permissions.grant("other")
    assert permissions.level(tool(ASK)) is ASK
    permissions.grant("write")
    assert permissions.level(tool(ASK)) is ALLOW
    permissions.revoke("write")
    permissions.revoke("never granted")
    assert permissions.level(tool(ASK)) is ASK


def test_grants_survive_json() -> None:
    permissions = Permissions()
    permissions.grant("write")
    permissions.grant("a")
    kept = json.loads(json.dumps(permissions.grants))
    assert kept == ["a", "write"]
    assert Permissions(grants=kept).level(tool(ASK)) is ALLOW


def test_a_word_that_is_no_level_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Permissions({"write": "maybe"})
    assert "'maybe'" in caught.value.message
    assert "'write'" in caught.value.message
    assert "allow, ask or deny" in caught.value.hint


@pytest.mark.parametrize(
    ("default", "override", "expected"),
    [(ASK, None, ASK), (ALLOW, None, ASK), (ASK, "allow", ASK), (ASK, "deny", DENY)],
)
def test_what_always_asks_is_allowed_by_nothing_but_an_answer_to_the_call(
    default: PermissionLevel, override: str | None, expected: PermissionLevel
) -> None:
    permissions = Permissions({"write": override} if override else None, grants=["write"])
    asking = replace(tool(default), always_asks=True)
    assert permissions.level(asking) is expected
    assert permissions.granted_by(asking) is None
