"""What the server refuses to exceed."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, PositiveInt

from web.chats.records.attachments import AttachmentLimits
from web.chats.runs.equipment import TurnLimits
from web.harness.builtin.file_limits import FileLimits
from web.ui.files.upload_forms import FORM_BYTES


class ServerLimits(BaseModel):
    """What the server refuses to exceed; each also as `HARNESS_WEB_LIMITS__NAME`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_message_chars: PositiveInt = 100_000
    max_request_bytes: PositiveInt = 2 * 1024 * 1024
    max_upload_bytes: PositiveInt = 128 * 1024 * 1024
    """Of one request with files."""
    max_chats: PositiveInt = 10_000
    max_open_streams: PositiveInt = 2_000
    max_running_turns: PositiveInt = 600
    max_queued: PositiveInt = 20
    """Messages of one chat that wait for the answer before them."""
    undo_seconds: PositiveInt = 10
    """How long a deleted chat can be brought back."""
    max_servers: PositiveInt = 20
    """MCP servers that one chat connects, beside those of the configuration."""
    max_attachments: PositiveInt = 10
    """Of one message."""
    max_attachment_chars: PositiveInt = 200_000
    """Of one text that is attached; of a longer one the model is told the name alone."""
    max_picture_bytes: PositiveInt = 8_000_000
    """Of one picture that is attached; the same."""
    max_pictures_bytes: PositiveInt = 20_000_000
    """Of all pictures of one message."""
    max_file_bytes: PositiveInt = 100_000_000
    """Of one file of a chat. What comes by the page also has to fit `max_upload_bytes`."""
    max_files: PositiveInt = 1_000
    """Of one chat."""
    max_files_bytes: PositiveInt = 1_000_000_000
    """Of all files of one chat."""
    kept_versions: PositiveInt = 50
    """Of one file; the oldest go first."""
    max_snapshot_bytes: PositiveInt = 32 * 1024 * 1024
    """Of one snapshot of a chat, saved or loaded."""
    kept_runs: PositiveInt = 20
    """Runs of one chat whose events are all kept in memory; of older ones what the record needs."""


def turn_limits(limits: ServerLimits) -> TurnLimits:
    return TurnLimits(
        max_running=limits.max_running_turns,
        max_queued=limits.max_queued,
        max_message_chars=limits.max_message_chars,
        kept_runs=limits.kept_runs,
    )


def file_limits(limits: ServerLimits) -> FileLimits:
    return FileLimits(
        max_file_bytes=limits.max_file_bytes,
        max_chat_bytes=limits.max_files_bytes,
        max_files=limits.max_files,
        kept_versions=limits.kept_versions,
        # Earlier versions may take as much room as the files themselves.
        kept_bytes=limits.max_files_bytes,
    )


def attachment_limits(limits: ServerLimits) -> AttachmentLimits:
    return AttachmentLimits(
        max_count=limits.max_attachments,
        max_chars=limits.max_attachment_chars,
        max_picture_bytes=limits.max_picture_bytes,
        max_pictures_bytes=limits.max_pictures_bytes,
    )


def most_uploaded(limits: ServerLimits) -> int:
    """How large a file may be that comes by the page: it has to fit a request as well."""
    room = limits.max_upload_bytes - min(FORM_BYTES, limits.max_upload_bytes // 2)
    return min(limits.max_file_bytes, limits.max_files_bytes, room)
