"""`harness-web serve` for more than the person at this machine: what has to be said first."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.environment import CHECKOUT, environment
from tests.support.serving import PROGRAM, serving

TOKEN = "ann-has-this-long-token"


def tokens(folder: Path, mode: int = 0o600) -> Path:
    file = folder / "tokens"
    file.write_text(f"{TOKEN} ann\n")
    file.chmod(mode)
    return file


def test_beyond_loopback_it_serves_those_who_sign_in(tmp_path: Path) -> None:
    others = ("--host", "0.0.0.0", "--identity", f"token:{tokens(tmp_path)}")
    with serving("--data-dir", str(tmp_path / "data"), *others) as server:
        address = server.address.replace("0.0.0.0", "127.0.0.1")
        known = {"authorization": f"Bearer {TOKEN}"}
        for host, headers, status in (
            ("192.0.2.7:8420", {}, 401),
            ("192.0.2.7:8420", known, 200),
            ("chat.example.com", known, 421),
        ):
            answer = httpx.get(
                f"{address}/api/health", headers={"host": host, **headers}, timeout=30
            )
            assert answer.status_code == status, host
        assert "--allow-host" in answer.json()["hint"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--host: '0.0.0.0' is not an address that this machine"),
        pytest.param(
            ["--identity", "header:X-User"],
            "Give the address of the proxy",
            marks=pytest.mark.full,
        ),
        pytest.param(
            ["--identity", "header:X-User", "--trusted-proxy", "0.0.0.0/0"],
            "everybody",
            marks=pytest.mark.full,
        ),
        pytest.param(["--identity", "token:none/there"], "does not exist", marks=pytest.mark.full),
        pytest.param(
            ["--identity", "token:{shared}"], "can be read by others", marks=pytest.mark.full
        ),
        pytest.param(
            ["--trusted-proxy", "10.0.0.1"],
            "--trusted-proxy: A proxy is trusted",
            marks=pytest.mark.full,
        ),
    ],
)
def test_what_would_not_be_safe_is_refused_in_one_line(
    tmp_path: Path, options: list[str], words: str
) -> None:
    given = [each.format(shared=tokens(tmp_path, 0o644)) for each in options]
    done = subprocess.run(
        [*PROGRAM, "serve", "--port", "0", "--data-dir", str(tmp_path / "data"), *given],
        cwd=CHECKOUT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert words in line
    assert TOKEN not in line
    assert not (tmp_path / "data").exists()
