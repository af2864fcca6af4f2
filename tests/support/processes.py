"""Processes that tests start, or look at."""

from __future__ import annotations

import subprocess
import sys

import psutil  # type: ignore[import-untyped]

from tests.support.environment import CHECKOUT, environment


def run_code(code: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code in a fresh process, in the checkout and without settings."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
