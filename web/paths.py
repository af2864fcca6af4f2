"""Where things lie: what the program brings along, and what it writes while it runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_IN_WHEEL = _PACKAGE / "_data"
_CHECKOUT = _PACKAGE.parent


def is_checkout() -> bool:
    """Whether the program runs from its source tree and not from an installed wheel."""
    return not _IN_WHEEL.is_dir()


def _brought() -> Path:
    return _CHECKOUT if is_checkout() else _IN_WHEEL


def templates_dir() -> Path:
    """The Jinja templates."""
    return _brought() / "templates"


def static_dir() -> Path:
    """Our own style sheets and scripts."""
    return _brought() / "static"


def sample_skills_dir() -> Path:
    """The skills that come with the program; read only."""
    return _brought() / "skills"


def default_data_dir() -> Path:
    """The folder for all that is written at run time, when nobody names one.

    In a checkout the checkout itself, so that its `skills/` and `generated/` are the ones in use;
    otherwise the person's data directory as the operating system has it. Never the package.
    """
    if is_checkout():
        return _CHECKOUT
    import platformdirs

    return platformdirs.user_data_path("harness-web", appauthor=False)


def skills_dir(data_dir: Path) -> Path:
    """The server's own folder of skills; what people upload lies below it."""
    return data_dir / "skills"


def memory_dir(data_dir: Path) -> Path:
    """Where notes and facts are kept that outlive a chat, by whose they are."""
    return data_dir / "memory"


def generated_dir(data_dir: Path) -> Path:
    """The folder in which chats make their files."""
    return data_dir / "generated"


def prepare_data_dir(data_dir: Path) -> None:
    """Makes the data folder and its `generated/`; raises OSError if one cannot be written to."""
    folder = generated_dir(data_dir)
    folder.mkdir(parents=True, exist_ok=True)
    for written in (data_dir, folder):
        check_writable(written)


def check_writable(folder: Path) -> None:
    """Raises OSError where no file can be made in a folder."""
    # Trying is the only sure test: permissions do not bind root, a read-only mount does.
    with tempfile.TemporaryFile(dir=folder):
        pass
