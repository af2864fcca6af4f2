"""Our connection against the public conformance suite: every client scenario that it requires."""

from __future__ import annotations

import pytest

from tests.support.conformance import required_scenarios, run_scenario

_SIGN_IN = (
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd"),
    *("scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined"),
    *("scope-step-up", "scope-retry-limit", "token-endpoint-auth-basic"),
    *("token-endpoint-auth-post", "token-endpoint-auth-none", "pre-registration"),
)
_NEWER_SIGN_IN = (
    *("resource-mismatch", "offline-access-scope", "offline-access-not-supported"),
    *("authorization-server-migration", "iss-supported", "iss-not-advertised"),
    *("iss-supported-missing", "iss-wrong-issuer", "iss-unexpected", "iss-normalized"),
    "metadata-issuer-mismatch",
)
SCENARIOS = {
    "2026-07-28": (
        *("tools_call", "request-metadata", "sep-2322-client-request-state"),
        *("http-standard-headers", "http-custom-headers", "http-invalid-tool-headers"),
        "json-schema-ref-no-deref",
        *(f"auth/{name}" for name in (*_SIGN_IN, *_NEWER_SIGN_IN)),
    ),
    "2025-11-25": (
        *("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"),
        *(f"auth/{name}" for name in _SIGN_IN),
    ),
}
_QUICK = {("2026-07-28", "auth/scope-step-up")}


@pytest.mark.parametrize(
    ("version", "scenario"),
    [
        pytest.param(*pair, marks=() if pair in _QUICK else pytest.mark.full)
        for pair in ((version, name) for version, names in SCENARIOS.items() for name in names)
    ],
)
def test_a_required_scenario_passes(version: str, scenario: str) -> None:
    done = run_scenario(scenario, version)
    # A scenario that the suite leaves out ends well too, so its verdict is looked for.
    assert "OVERALL: PASSED" in done.stderr, done.stderr[-6_000:]
    assert done.returncode == 0


def test_no_required_scenario_is_left_out() -> None:
    ours = {version: sorted(names) for version, names in SCENARIOS.items()}
    theirs = {version: sorted(names) for version, names in required_scenarios(SCENARIOS).items()}
    assert ours == theirs
    assert {version: len(names) for version, names in ours.items()} == {
        "2026-07-28": 32,
        "2025-11-25": 18,
    }
