"""The page keeps its shape: at every width, with whatever is in it, and while text streams in."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.async_api import expect

from tests.browser.page.stage import BOX, Stage, picture, shows
from tests.browser.page.states import shown
from tests.support.scripted_provider import Step, calls, says
from web.harness.providers.demo.texts import SHOWCASE, long_text
from web.harness.values.model import TextChunk, ThinkingChunk

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.anyio

WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 6
WIDE_TABLE = (
    "|" + "|".join(f" column_{n} " for n in range(40)) + "|\n" + "|--" * 40 + "|\n"
    "|" + "|".join(f" `value {n}` " for n in range(40)) + "|"
)
WIDE = f"""{WORD}

{WIDE_TABLE}

```python
{"x = " + " + ".join(f"value_{n}" for n in range(200))}
```

`{WORD}` https://example.com/{WORD}

- {WORD}
  > {WORD}

$$\\sum_{{i=0}}^n {" + ".join(f"x_{{{n}}}" for n in range(80))}$$
"""

HEADS = "|".join(f" what_column_{n}_has " for n in range(12))
LONG = " + ".join(f"value_{n}" for n in range(200))

CUT = f"""```python
x = {LONG}
```

|{HEADS}|
{"|---" * 12}|
|{HEADS}|

```python
y = 1
```

| a | b |
|---|---|
| 1 | 2 |
"""

FAINT = 12
"""Between two sums of three colours: gradients are not drawn the same each time."""

OVERFLOW = """() => {
  const found = [];
  const root = document.scrollingElement;
  const columns = "main, .side, .panel, .log";
  if (root.scrollWidth > innerWidth) found.push(`page: ${root.scrollWidth} > ${innerWidth}`);
  for (const each of document.querySelectorAll(columns + ", .dock, .ask-card, .call,"
      + ".mine, .failure, .head, .welcome, .parts > *, .answer > *, .queued")) {
    if (!each.checkVisibility() || each.matches(".table, .code, .math")) continue;
    const {left, right} = each.getBoundingClientRect();
    if (right > innerWidth + 1 || left < -1) found.push(`${each.className}: ${left}..${right}`);
    const clipped = getComputedStyle(each).overflowX !== "visible";
    if (clipped && each.scrollWidth > each.clientWidth + 1 && each.matches(columns)) {
      found.push(`${each.className} scrolls: ${each.scrollWidth} > ${each.clientWidth}`);
    }
  }
  return found;
}"""


async def full_of_wide_things(stage: Stage) -> Page:
    stage.allow_refusals()
    stage.play(
        calls(
            ("calculate", {"expression": WORD}),
            ("write_file", {"path": f"{WORD[:150]}.txt", "content": f"{WORD}\n{WIDE}"}),
            text=WIDE,
        )
    )
    title = (WORD + WORD)[:200]
    chat = await stage.server.new_chat(title=title)
    await stage.server.send(chat, WORD)
    await stage.server.send(chat, WORD, queue=True)
    page = await stage.open(f"/chats/{chat}")
    await shows(page, "asking")
    await page.fill(BOX, WORD)
    for summary in await page.locator(".call > details > summary").all():
        await summary.click()
    return page


@pytest.mark.full
async def test_nothing_makes_the_page_scroll_sideways(stage: Stage) -> None:
    page = await full_of_wide_things(stage)
    for width in (360, 768, 1312, 2560):
        await page.set_viewport_size({"width": width, "height": 800})
        assert await page.evaluate(OVERFLOW) == [], width
        await picture(page, f"wide-things-{width}")
        # Code scrolls inside itself.
        inner = "(found) => found.every((each) => each.scrollWidth > each.clientWidth)"
        assert await page.locator(".answer .code pre").evaluate_all(inner)
        for way in ("Edit…", "Deny…"):
            await page.locator(".ask-card summary", has_text=way).click()
            assert await page.evaluate(OVERFLOW) == [], (width, way)
        # The question can be answered, and a message written, without a horizontal search.
        for name in ("Allow once", "Send", "Stop"):
            await page.get_by_role("button", name=name).scroll_into_view_if_needed()
            await expect(page.get_by_role("button", name=name)).to_be_in_viewport(ratio=1)


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_an_edge_is_shaded_while_something_lies_beyond_it(
    stage: Stage, scheme: Literal["light", "dark"]
) -> None:
    """Many systems draw no scroll bar until somebody scrolls."""
    page = await stage.open(f"/chats/{await stage.answered('Show', *says(CUT))}")
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    for scroller in (".code pre", ".scroll"):
        wide, fitting = page.locator(scroller).first, page.locator(scroller).last
        at_start = await edges(page, wide)
        await wide.evaluate("(each) => { each.scrollLeft = each.scrollWidth; }")
        at_end = await edges(page, wide)
        plain = (await edges(page, fitting))["right"]
        assert abs(at_start["left"] - plain) + abs(at_end["right"] - plain) < FAINT
        assert abs(at_start["right"] - plain) > 3 * FAINT
        assert abs(at_end["left"] - plain) > 3 * FAINT


async def edges(page: Page, scroller: Locator) -> dict[str, int]:
    """How bright a pixel of each edge is, where there is no text: the sum of its three colours."""
    await scroller.scroll_into_view_if_needed()
    box = await scroller.bounding_box()
    assert box is not None
    x, y, width = box["x"], box["y"] + 1, box["width"]
    found = {}
    for side, at in {"left": x + 1, "right": x + width - 2}.items():
        png = await page.screenshot(clip={"x": at, "y": y, "width": 1, "height": 1})
        found[side] = sum(pixels(png)[1:4])
    return found


def pixels(png: bytes) -> bytes:
    """The rows of a PNG, each behind a byte that says how it is filtered."""
    data, at = b"", 8
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += size + 12
    return zlib.decompress(data)


@pytest.mark.full
@pytest.mark.parametrize("name", ["empty", "failed", "undo", "not_found"])
async def test_other_states_fit_too(stage: Stage, name: str) -> None:
    page = await shown(stage, name)
    for width in (360, 2560):
        await page.set_viewport_size({"width": width, "height": 640})
        assert await page.evaluate(OVERFLOW) == [], width


@pytest.mark.full
async def test_lines_are_short_enough_to_read_and_columns_are_one(stage: Stage) -> None:
    page = await shown(stage, "done")
    await page.set_viewport_size({"width": 2560, "height": 1300})
    measured = await page.evaluate(
        """() => {
          const style = getComputedStyle(document.querySelector(".answer > .md p"));
          const probe = document.createElement("span");
          probe.textContent = "the quick brown fox jumps over a lazy dog ".repeat(5);
          document.querySelector(".answer > .md p").append(probe);
          probe.style.whiteSpace = "nowrap";
          const letter = probe.getBoundingClientRect().width / probe.textContent.length;
          probe.remove();
          const box = (name) => document.querySelector(name).getBoundingClientRect();
          return {size: style.fontSize, line: parseFloat(style.lineHeight),
            letters: box(".parts").width / letter,
            left: [".parts", ".composer", ".status-region"].map(box).map(({left}) => left)};
        }"""
    )
    assert measured["size"] == "16px"
    assert 25 <= measured["line"] <= 28
    assert 60 <= measured["letters"] <= 100
    assert max(measured["left"]) - min(measured["left"]) < 1


SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue;
      const nodes = entry.sources.map(({node}) => node?.outerHTML?.slice(0, 90) ?? String(node));
      window.shifts.push([entry.value, nodes]);
    }
  }).observe({type: "layout-shift", buffered: true});
}"""


@pytest.mark.parametrize("size", [(1440, 900), pytest.param((390, 844), marks=pytest.mark.full)])
async def test_nothing_jumps_while_an_answer_streams(stage: Stage, size: tuple[int, int]) -> None:
    text = SHOWCASE + long_text(400)
    steps: list[Step] = [ThinkingChunk("Some thoughts. " * 20)]
    gates = [asyncio.Event() for _ in range(60)]
    cut = -(-len(text) // len(gates))
    for number, gate in enumerate(gates):
        steps += [gate, TextChunk(text[number * cut : (number + 1) * cut])]
    page = await stage.open(f"/chats/{await stage.answered('Hello')}")
    await page.set_viewport_size({"width": size[0], "height": size[1]})
    await page.evaluate(SHIFTS)
    stage.play([*steps, *says("")[-1:]])
    chat = page.url.rpartition("/")[2]
    run_id = await stage.server.send(chat, "Write something long")
    for number, gate in enumerate(gates):
        gate.set()
        # Each piece is drawn before the next one comes.
        await page.evaluate("() => new Promise((r) => requestAnimationFrame(() => setTimeout(r)))")
        assert number < len(gates)
    await stage.server.wait_for(run_id, "run_result")
    await shows(page, "idle")
    shifts = await page.evaluate("() => window.shifts")
    assert sum(value for value, _ in shifts) < 0.05, shifts
