"""`.harness/chat.json`: says whose folder this is, for whoever finds it when the chat is gone."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from web.harness.builtin.paths import RESERVED_FOLDER
from web.harness.builtin.reserved import reserved_folder
from web.harness.builtin.rooted import RootedFolder, make_temporary, write_all
from web.harness.tools.beneath import FILE_MODE, open_plain
from web.harness.values.errors import HarnessError
from web.harness.values.messages import JsonObject

MARKER = "chat.json"
_MOST_BYTES = 64 * 1024


def write_marker(rooted: RootedFolder, data: JsonObject) -> bool:
    """Makes or replaces the marker; False where the folder is not there, and then is not made."""
    with contextlib.ExitStack() as stack:
        reserved = stack.enter_context(reserved_folder(rooted))
        if reserved is None:
            if not rooted.root.is_dir():
                return False
            folder = rooted.folder([RESERVED_FOLDER], RESERVED_FOLDER, create=True)
            reserved = stack.enter_context(folder)
        name, descriptor = make_temporary(reserved)
        try:
            write_all(descriptor, json.dumps(data).encode())
            os.fchmod(descriptor, FILE_MODE)
            os.replace(name, MARKER, src_dir_fd=reserved, dst_dir_fd=reserved)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=reserved)
            raise
        finally:
            os.close(descriptor)
    return True


def read_marker(folder: Path) -> dict[str, Any]:
    """What the marker of a folder says; nothing where there is none that can be read."""
    try:
        with reserved_folder(RootedFolder(folder)) as reserved:
            if reserved is None:
                return {}
            descriptor = open_plain(reserved, MARKER, MARKER)
            with open(descriptor, "rb") as file:
                data = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, HarnessError):
        return {}
    return data if isinstance(data, dict) else {}
