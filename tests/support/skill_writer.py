"""A process that changes skills and is killed in the middle, before each of its renames in turn.

`python -m tests.support.skill_writer FOLDER DEED` does it in the folders FOLDER/1, FOLDER/2 and so
on, which each hold a skill `s` that says NEW and a deleted one that says OLD. It ends with the
first folder in which the deed came to its end; DEED is one of `DEEDS`.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.harness.skills.writers import skill_md, uploaded
from web.harness.skills import writing
from web.harness.skills.folder import SkillFolder


def skills_at(root: Path) -> SkillFolder:
    return SkillFolder(root, origin="upload", writable=True)


def put_in(folder: SkillFolder, body: str) -> None:
    writing.install(folder, [uploaded("s.md", skill_md("s", body=body))], replace=True)


DEEDS: Mapping[str, Callable[[SkillFolder], None]] = {
    "restore": lambda folder: writing.restore(folder, "s"),
    "install": lambda folder: put_in(folder, "THIRD"),
    "delete": lambda folder: writing.delete(folder, "s"),
}


def end_before(number: int) -> None:
    left = itertools.count(number, -1)

    def look(event: str, _: object) -> None:
        if event == "os.rename" and next(left) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


def main(root: Path, deed: str) -> None:
    for number in itertools.count(1):
        folder = skills_at(root / str(number))
        put_in(folder, "OLD")
        put_in(folder, "NEW")
        child = os.fork()
        if not child:
            end_before(number)
            DEEDS[deed](folder)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
