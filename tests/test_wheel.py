"""A built wheel, installed where no checkout is in reach, serves the same page."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

from tests.support.environment import CHECKOUT, environment
from tests.support.serving import serving


def run(*arguments: str | Path, folder: Path) -> str:
    done = subprocess.run(
        arguments,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from that sdist."""
    folder = tmp_path_factory.mktemp("built")
    run(
        *(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, CHECKOUT),
        folder=folder,
    )
    return folder


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def files_below(*names: str) -> set[str]:
    """Paths of the checkout's files in these folders, as git would have them."""
    listed = run(
        *("git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *names),
        folder=CHECKOUT,
    )
    return {line for line in listed.splitlines() if (CHECKOUT / line).is_file()}


def install(wheel: Path, folder: Path) -> Path:
    """The `bin` of an environment that has this wheel, and its dependencies from this process."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
        *("--no-deps", "--no-index", wheel),
        folder=folder,
    )
    paths = sysconfig.get_paths()
    own = only(folder, "lib/python*/site-packages")
    # Folders named in a .pth file are searched, but .pth files in them are not read: so an editable
    # install in this process does not bring the checkout along.
    (own / "dependencies.pth").write_text(f"{paths['purelib']}\n{paths['platlib']}\n")
    return python.parent


def local_addresses(page: str) -> Sequence[str]:
    """What the page loads from its own server."""
    return sorted(set(re.findall(r'<(?:script|link)\b[^>]*?\b(?:src|href)="(/[^"]*)"', page)))


def test_the_source_archive_is_complete(built: Path) -> None:
    with tarfile.open(only(built, "*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = files_below(".", ":!.gitattributes")
    assert wanted - names == set()


def test_the_wheel_holds_the_package_and_its_data_and_no_more(built: Path) -> None:
    with ZipFile(only(built, "*.whl")) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    data = files_below("templates", "static", "skills")
    assert names == files_below("web") | {f"web/_data/{name}" for name in data}


@pytest.mark.full
def test_an_installed_wheel_serves_the_same_page(built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    binaries = install(only(built, "*.whl"), folder)
    place = run(binaries / "python", "-c", "import web; print(web.__file__)", folder=tmp_path)
    assert folder in Path(place.strip()).parents

    program = (str(binaries / "harness-web"),)
    variables = {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path / "home")}
    with (
        serving(program=program, folder=tmp_path, variables=variables) as installed,
        serving("--data-dir", str(tmp_path / "other")) as checkout,
    ):
        page, original = (
            httpx.get(f"{server.address}/", follow_redirects=True, timeout=30)
            for server in (installed, checkout)
        )
        assert page.status_code == 200
        loaded = local_addresses(page.text)
        assert loaded == local_addresses(original.text)
        assert any("htmx" in address for address in loaded)
        assert any(address.partition("?")[0].endswith(".css") for address in loaded)
        for address in loaded:
            answer = httpx.get(f"{installed.address}{address}", timeout=30)
            assert (address, answer.status_code) == (address, 200)
            assert answer.content == httpx.get(f"{checkout.address}{address}", timeout=30).content

    # An MCP client that goes at once: what the command needs has travelled as well.
    assert run(binaries / "harness-web", "demo-server", folder=tmp_path) == ""

    data = [path for path in tmp_path.rglob("generated") if folder not in path.parents]
    assert sorted(path.parent.name for path in data) == ["harness-web", "other"]
    assert not list(folder.rglob("generated"))
