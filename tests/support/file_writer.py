"""A process that changes the files of a chat, and tells of each change before and after it.

`python -m tests.support.file_writer FOLDER NAME COUNT` makes COUNT changes, in a fixed order that
touches all kinds; NAME is in everything it writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_limits import FileLimits
from web.harness.builtin.versions import Origin
from web.harness.values.errors import HarnessError

LIMITS = FileLimits(kept_versions=1000)


async def change(files: ChatFiles, name: str, number: int) -> None:
    path = f"d{number % 2}/{'ab'[number % 3 // 2]}.txt"
    origin = Origin("call", name, str(number), f"key-{number}", "allow")
    content = f"{name} {number} ".encode() * (1 + number * 7919 % 9000)
    match number % 5:
        case 3:
            await files.delete(path, origin)
        case 4:
            await files.restore(path, 1, origin)
        case _:
            await files.write(path, content, origin, replace=True)


async def main(folder: Path, name: str, count: int) -> None:
    files = ChatFiles(folder, LIMITS)
    for number in range(count):
        print("begins", number, flush=True)
        with contextlib.suppress(HarnessError):
            await change(files, name, number)
        print("done", number, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
