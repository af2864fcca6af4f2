"""A chat and what renders its parts; servers on one store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kept import Restarts
from tests.support.stores import SqlPlace
from tests.ui.elements import render_plainly
from web.chats.parts.channel import Channel, Clock
from web.paths import templates_dir
from web.ui.rendering.fragments import Fragments
from web.ui.rendering.templating import make_environment


@pytest.fixture
def fragments() -> Fragments:
    return Fragments(make_environment(templates_dir()), render_plainly)


@pytest.fixture
def chat() -> Channel:
    return Channel("c1", Clock("ab12"))


@pytest.fixture
def database_kind() -> str:
    """The contracts of tests/contracts hold PostgreSQL to the same in each run."""
    return "sqlite"


@pytest.fixture
def stage(place: SqlPlace, tmp_path: Path) -> Restarts:
    return Restarts(place, tmp_path)
