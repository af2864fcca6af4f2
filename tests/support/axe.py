"""What axe finds on a page, of what keeps somebody from using it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axe_playwright_python.async_playwright import Axe

if TYPE_CHECKING:
    from playwright.async_api import Page


async def serious(page: Page) -> list[str]:
    """What axe calls serious or critical, with the elements it is about."""
    found: list[dict[str, Any]] = (await Axe().run(page)).response["violations"]
    return [
        f"{each['id']}: {[node['html'][:200] for node in each['nodes']]}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
