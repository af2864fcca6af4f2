"""The tables, as numbered migrations. One that was released never changes: add another below it.

`{key}`, `{real}` and `{blob}` differ between databases. Times are seconds since the epoch; `body`
is JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """Names of types, and a query that gives a row where the database has our schema."""

    types: Mapping[str, str]
    has_schema: str


SQLITE = Dialect(
    {"key": "INTEGER PRIMARY KEY AUTOINCREMENT", "real": "REAL", "blob": "BLOB"},
    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'harness_schema'",
)

POSTGRES = Dialect(
    {
        "key": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "real": "DOUBLE PRECISION",
        "blob": "BYTEA",
    },
    # Not by to_regclass: it may still know of no table that another server has just made.
    "SELECT 1 FROM pg_catalog.pg_tables "
    "WHERE schemaname = current_schema() AND tablename = 'harness_schema'",
)

_SCOPE = "tenant_id TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL"

_SESSIONS = (
    # The snapshot of a session, but for its messages and its state. `token` names the last commit.
    f"""CREATE TABLE harness_sessions (
        id {{key}}, {_SCOPE},
        revision BIGINT NOT NULL, replayable INTEGER NOT NULL, token TEXT NOT NULL,
        updated_at {{real}} NOT NULL,
        UNIQUE (tenant_id, user_id, session_id))""",
    # Apart from it, so that a commit that leaves the state as it is does not write it.
    """CREATE TABLE harness_states (
        session BIGINT PRIMARY KEY REFERENCES harness_sessions (id) ON DELETE CASCADE,
        body TEXT NOT NULL)""",
    # `conversation` is '' for the history. Each message in the form of web.harness.values.codec.
    """CREATE TABLE harness_messages (
        session BIGINT NOT NULL REFERENCES harness_sessions (id) ON DELETE CASCADE,
        conversation TEXT NOT NULL, position BIGINT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (session, conversation, position))""",
    # Named conversations, those without a message included.
    """CREATE TABLE harness_conversations (
        session BIGINT NOT NULL REFERENCES harness_sessions (id) ON DELETE CASCADE,
        name TEXT NOT NULL, PRIMARY KEY (session, name))""",
    """CREATE TABLE harness_pictures (
        session BIGINT NOT NULL REFERENCES harness_sessions (id) ON DELETE CASCADE,
        sha256 TEXT NOT NULL, data {blob} NOT NULL, PRIMARY KEY (session, sha256))""",
    # Who may write a session. `fence` grows with each holder.
    f"""CREATE TABLE harness_leases (
        {_SCOPE}, holder TEXT NOT NULL, fence BIGINT NOT NULL, expires_at {{real}} NOT NULL,
        PRIMARY KEY (tenant_id, user_id, session_id))""",
)

_EVENTS = (
    # `token` names the last batch that was written to the run.
    """CREATE TABLE harness_runs (
        run_id TEXT PRIMARY KEY, last BIGINT NOT NULL, ended INTEGER NOT NULL,
        joined INTEGER NOT NULL, gap_before BIGINT NOT NULL, token TEXT NOT NULL)""",
    # `ends` are the seams of a joined delta, unsigned numbers of 4 bytes, the lowest byte first.
    """CREATE TABLE harness_events (
        run_id TEXT NOT NULL, number BIGINT NOT NULL, happened_at {real} NOT NULL,
        body TEXT NOT NULL, ends {blob}, PRIMARY KEY (run_id, number))""",
)

_RECORDS = (
    f"""CREATE TABLE harness_records (
        {_SCOPE}, place {{real}} NOT NULL, deleted_at {{real}}, body TEXT NOT NULL,
        PRIMARY KEY (tenant_id, user_id, session_id))""",
    "CREATE INDEX harness_records_by_place ON harness_records "
    "(tenant_id, user_id, place, session_id)",
    f"""CREATE TABLE harness_blobs (
        {_SCOPE}, sha256 TEXT NOT NULL, media_type TEXT NOT NULL, kept_at {{real}} NOT NULL,
        size BIGINT NOT NULL, data {{blob}} NOT NULL,
        PRIMARY KEY (tenant_id, user_id, session_id, sha256))""",
)

_EXECUTIONS = (
    # `digest` stands for what a request asked for, `body` is a `Submission`, `state` the newest
    # `RunState`. `replaced` and `answered` are the numbers of the last step that made the
    # conversation shorter, and of the newest answer's: what is before them is not read to go on.
    f"""CREATE TABLE harness_executions (
        run_id TEXT PRIMARY KEY, {_SCOPE}, request_id TEXT NOT NULL, digest TEXT NOT NULL,
        body TEXT NOT NULL, status TEXT NOT NULL, fence BIGINT NOT NULL, state TEXT,
        steps BIGINT NOT NULL, replaced BIGINT NOT NULL, answered BIGINT NOT NULL,
        result_status TEXT NOT NULL, created_at {{real}} NOT NULL, changed_at {{real}} NOT NULL,
        UNIQUE (tenant_id, user_id, session_id, request_id))""",
    "CREATE INDEX harness_executions_unfinished ON harness_executions "
    "(created_at, run_id) WHERE status <> 'ended'",
    # `added` is what the step did to the conversation, NULL for nothing; see journal_form.py.
    """CREATE TABLE harness_steps (
        run_id TEXT NOT NULL, number BIGINT NOT NULL, happened_at {real} NOT NULL,
        cursor BIGINT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, added TEXT,
        PRIMARY KEY (run_id, number))""",
    # Of the pictures in steps and submissions.
    """CREATE TABLE harness_run_pictures (
        run_id TEXT NOT NULL, sha256 TEXT NOT NULL, data {blob} NOT NULL,
        PRIMARY KEY (run_id, sha256))""",
    # `token` names whoever gave the answer.
    """CREATE TABLE harness_answers (
        run_id TEXT NOT NULL, number BIGINT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
        body TEXT NOT NULL, token TEXT NOT NULL,
        PRIMARY KEY (run_id, number), UNIQUE (run_id, key))""",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_SESSIONS, _EVENTS, _RECORDS, _EXECUTIONS)
