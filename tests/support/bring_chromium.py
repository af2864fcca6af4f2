"""Makes sure that there is a Chromium for the tests: `python -m tests.support.bring_chromium`.

One that is there is used; otherwise Debian's package where it can be installed without asking, and
otherwise Playwright's own build.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.support.chromium import VARIABLE, installed_chromium


def main() -> int:
    found = installed_chromium() or _from_playwright() or _from_debian()
    if found is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
        found = _from_playwright()
    if found is None:
        print(
            f"There is no Chromium for the tests. Install one, or name one in {VARIABLE}.",
            file=sys.stderr,
        )
        return 1
    print(f"The tests use {found}")
    return 0


def _from_playwright() -> str | None:
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _from_debian() -> str | None:
    if shutil.which("apt-get") is None:
        return None
    prefix = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    if prefix and (
        shutil.which("sudo") is None or subprocess.run([*prefix, "true"], check=False).returncode
    ):
        return None
    print("Installing Chromium (Debian's package)", flush=True)
    environment = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive"]
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
        done = subprocess.run([*environment, "apt-get", "-q", *arguments], check=False)
        if done.returncode:
            return None
    found = installed_chromium()
    # Elsewhere than in Debian the package may be a mere pointer to a shop that is not there.
    works = found and not subprocess.run([found, "--version"], check=False).returncode
    return found if works else None


if __name__ == "__main__":
    sys.exit(main())
