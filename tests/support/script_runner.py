"""A server that runs a script, to be killed: `python -m tests.support.script_runner FOLDER MADE`.

The script writes into FOLDER the numbers of its own process, `own`, and of one that has left its
process group, `child`. The folder MADE was made for it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from web.harness.builtin.scripts import run_script

_SCRIPT = "setsid sh -c 'echo $$ > child; exec sleep 600' & echo $$ > own; sleep 600"


async def main(folder: Path, made: Path) -> None:
    command = ("sh", "-c", _SCRIPT)
    await run_script(command, folder=folder, environ=os.environ, seconds=600, made_for_it=[made])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
