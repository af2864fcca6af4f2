"""What a server says of itself before anybody has asked it."""

from __future__ import annotations

from pathlib import Path

import pytest

from web.commands.server import CannotServe, local_address, use_folders
from web.settings import Settings


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8420"),
        ("localhost", "http://localhost:8420"),
        ("192.0.2.7", "http://192.0.2.7:8420"),
        ("::1", "http://[::1]:8420"),
        ("0.0.0.0", "http://127.0.0.1:8420"),
        ("::", "http://[::1]:8420"),
    ],
)
def test_the_address_that_is_told_can_be_opened_here(host: str, address: str) -> None:
    assert local_address(host, 8420) == address


def test_a_memory_folder_that_cannot_be_written_is_refused_as_a_data_folder_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("no folder")
    wrong = tmp_path / "file" / "memory"
    with pytest.raises(CannotServe, match="data folder"):
        use_folders(Settings(data_dir=wrong))
    with pytest.raises(CannotServe, match="memory folder") as refused:
        use_folders(Settings(data_dir=tmp_path / "data", memory_dir=wrong))
    assert "HARNESS_WEB_MEMORY_DIR" in refused.value.hint
    use_folders(Settings(data_dir=tmp_path / "data", memory_dir=tmp_path / "memory"))
