"""Each state of the page: axe finds nothing serious, and a picture of it goes to test-results/."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.browser.page.stage import Stage, picture
from tests.browser.page.states import NARROW, STATES, WIDE, shown
from tests.support.axe import serious

pytestmark = pytest.mark.anyio

# A state that only one width has keeps to it.
SIZES = {
    "setup": {"wide": {"width": 1000, "height": 900}},
    "side_bar": {"narrow": NARROW},
    "instructions": {"wide": WIDE},
    "memory": {"wide": {"width": 1000, "height": 900}, "narrow": NARROW},
}
Scheme = Literal["light", "dark"]


async def look(stage: Stage, name: str, views: tuple[tuple[str, Scheme], ...]) -> None:
    page = await shown(stage, name)
    sizes = SIZES.get(name, {"wide": WIDE, "narrow": NARROW})
    for width, scheme in views:
        if width not in sizes:
            continue
        await page.set_viewport_size(sizes[width])  # type: ignore[arg-type]
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        await picture(page, f"{name}-{width}-{scheme}")
        assert await serious(page) == [], f"{name}, {width}, {scheme}"


QUICK = ("streaming",)
"""The states that each run looks at; the others are looked at in the long form."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else (pytest.mark.full,)) for name in STATES],
)
async def test_a_state_is_open_to_everybody(stage: Stage, name: str) -> None:
    await look(stage, name, (("wide", "light"), ("narrow", "dark")))


@pytest.mark.full
@pytest.mark.parametrize("name", STATES)
async def test_a_state_is_open_to_everybody_in_the_other_colours(stage: Stage, name: str) -> None:
    await look(stage, name, (("wide", "dark"), ("narrow", "light")))
