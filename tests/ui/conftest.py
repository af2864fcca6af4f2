"""A chat and what renders its parts."""

from __future__ import annotations

import pytest

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
