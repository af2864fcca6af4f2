"""The folders of chats, for tests that need none."""

from __future__ import annotations

from pathlib import Path

NO_FOLDER = Path("/dev/null/none")
"""Where nothing can be written."""
