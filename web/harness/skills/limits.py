"""What a skill, an upload and a folder of skills may hold."""

from __future__ import annotations

from dataclasses import dataclass

MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1024
MAX_COMPATIBILITY_CHARS = 500
"""These three are the open Agent Skills format's own."""

MAX_LICENSE_CHARS = 500
MAX_METADATA = 50
"""Entries. A key or value has at most `MAX_METADATA_CHARS`."""
MAX_METADATA_CHARS = 1000
MAX_ALLOWED_TOOLS = 100


@dataclass(frozen=True, slots=True)
class SkillLimits:
    """Sizes are in bytes."""

    max_skills: int = 200
    """Of one folder of skills; what is there beyond is not read."""
    max_skill_md_bytes: int = 64 * 1024
    max_files: int = 300
    """Of one skill, `SKILL.md` included."""
    max_file_bytes: int = 5 * 1024 * 1024
    max_skill_bytes: int = 20 * 1024 * 1024
    """Of all files of one skill together."""
    max_archive_bytes: int = 10 * 1024 * 1024
    """Of an uploaded zip as it comes."""
    max_directory_bytes: int = 256 * 1024
    """Of a zip's list of files."""
    max_ratio: int = 100
    """How many times its own size an archive may unpack to, once that is more than 1 MiB."""
    kept_deleted: int = 20
    """Deleted skills that can be brought back; the oldest go first."""
