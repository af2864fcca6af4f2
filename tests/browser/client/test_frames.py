"""How a frame changes the page, and what it leaves alone."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.browser.client.conftest import Scene
from tests.browser.client.pages import form

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.anyio

WATCH = """() => {
  window.records = [];
  window.observer = new MutationObserver((found) => window.records.push(...found));
  const options = {subtree: true, childList: true, attributes: true, characterData: true};
  window.observer.observe(document.querySelector("[data-log]"), options);
}"""


async def shows(page: Page, id: str, text: str) -> None:
    """Waits until a part says a text."""
    await page.wait_for_function(
        "([id, text]) => document.getElementById(id)?.textContent.includes(text)", arg=[id, text]
    )


async def order(page: Page, slot: str = "log") -> list[str]:
    found: list[str] = await page.evaluate(
        "(slot) => [...document.querySelector(`[data-slot='${slot}']`)"
        ".querySelectorAll(':scope > [data-part]')].map((each) => each.id)",
        slot,
    )
    return found


async def test_parts_appear_change_move_and_go_as_the_frames_say(scene: Scene) -> None:
    page = await scene.open()
    for id in ("a", "b", "c"):
        scene.script.put("one", id, f"<p @>{id} is here</p>")
    await shows(page, "c", "c is here")
    assert await order(page) == ["a", "b", "c"]
    scene.script.put("one", "c", "<p @>c moved</p>", rank=-1)
    scene.script.put("one", "between", "<p @>between</p>", rank=0.5)
    scene.script.remove("one", "b")
    await shows(page, "between", "between")
    await shows(page, "c", "moved")
    assert await order(page) == ["c", "a", "between"]


async def test_a_frame_that_comes_twice_changes_nothing(scene: Scene) -> None:
    page = await scene.open()
    scene.script.put("one", "a", "<article @ data-slot=a>%</article>")
    scene.script.put("one", "a1", "<p @ class=x>Some <b>text</b></p>", slot="a")
    scene.script.put("one", "call", "<div @><details><summary>s</summary>x</details></div>")
    await shows(page, "call", "x")
    frame = scene.script.frame(["one"], "first:0")
    await page.evaluate(WATCH)
    scene.script.inject(frame)
    scene.script.inject(frame)
    scene.script.put("one", "last", "<p @>last</p>")
    await shows(page, "last", "last")
    records = await page.evaluate("() => records.map((each) => each.addedNodes[0]?.id)")
    assert records == ["last"]


async def test_a_late_frame_brings_nothing_old_back(scene: Scene) -> None:
    page = await scene.open()
    scene.script.put("one", "a", "<p @>old</p>")
    scene.script.put("one", "b", "<p @>to be removed</p>")
    await shows(page, "b", "removed")
    late = scene.script.frame(["one"], "first:0")
    scene.script.put("one", "a", "<p @>new</p>")
    scene.script.remove("one", "b")
    scene.script.inject(late)
    scene.script.put("one", "last", "<p @>last</p>")
    await shows(page, "last", "last")
    assert await order(page) == ["a", "last"]
    assert await page.inner_text("#a") == "new"


async def test_a_full_frame_removes_what_it_does_not_name(scene: Scene) -> None:
    page = await scene.open()
    for id in ("a", "b"):
        scene.script.put("one", id, f"<p @>{id}</p>")
    await shows(page, "b", "b")
    version = scene.script.clock.version
    part = {"id": "b", "slot": "log", "after": None, "version": version + 1}
    part["html"] = f'<p id="b" data-part data-version="{version + 1}">b again</p>'
    scene.script.clock.tick()
    channel = {"name": "one", "full": True, "parts": [part]}
    full = {"epoch": "first", "version": version + 1, "channels": [channel], "gone": []}
    scene.script.inject(full)
    await shows(page, "b", "again")
    assert await order(page) == ["b"]


async def test_a_part_is_as_old_as_its_frame_says_whatever_its_element_says(scene: Scene) -> None:
    page = await scene.open()
    for id in ("a", "b"):
        scene.script.put("one", id, f"<p @>{id}</p>")
    await shows(page, "b", "b")
    version = scene.script.clock.version
    # Made while the part moved: its element is newer than the place that the frame names.
    part = {"id": "b", "slot": "log", "after": "a", "version": version + 1}
    part["html"] = f'<p id="b" data-part data-version="{version + 2}">b early</p>'
    channel = {"name": "one", "full": False, "parts": [part]}
    scene.script.clock.tick()
    scene.script.inject(
        {"epoch": "first", "version": version + 1, "channels": [channel], "gone": []}
    )
    await shows(page, "b", "early")
    scene.script.put("one", "b", "<p @>b moved</p>", rank=-1)
    await shows(page, "b", "moved")
    assert await order(page) == ["b", "a"]


async def test_a_part_keeps_its_children_when_it_changes_even_its_tag(scene: Scene) -> None:
    page = await scene.open()
    scene.script.put("one", "a", "<div @><div data-slot=a>%</div></div>")
    for n in range(3):
        scene.script.put("one", f"a{n}", f"<p @>child {n}</p>", slot="a")
    await shows(page, "a2", "child 2")
    await page.evaluate("() => (window.first = document.getElementById('a0'))")
    scene.script.put("one", "a", "<div @ class=x><h2>Head</h2><div data-slot=a>%</div></div>")
    await shows(page, "a", "Head")
    scene.script.put("one", "a", "<section @><h2>New</h2><ul data-slot=a>%</ul></section>")
    await shows(page, "a", "New")
    assert await order(page, "a") == ["a0", "a1", "a2"]
    assert await page.evaluate("() => window.first === document.getElementById('a0')")


def question(text: str, arguments: str = "{}") -> str:
    fields = (
        f'<textarea name="arguments">{arguments}</textarea><input name="reason">'
        '<input type="checkbox" name="sure"><button name="decision" value="allow">Allow</button>'
    )
    return (
        f"<div @><p>{text}</p><details data-keep=more><summary>More</summary>"
        f'<div class="wide">{"wide " * 100}</div></details>{form("/chats/one/approvals/k", fields)}'
        "</div>"
    )


async def test_what_a_person_does_in_a_part_survives_its_new_versions(scene: Scene) -> None:
    page = await scene.open()
    scene.script.put("one", "q", question("first"))
    await shows(page, "q", "first")
    await page.click("#q summary")
    await page.evaluate("() => (document.querySelector('#q .wide').scrollLeft = 120)")
    await page.check("#q [name=sure]")
    await page.fill("#q [name=reason]", "because")
    await page.click("#q textarea")
    for n in range(12):
        await page.keyboard.type(str(n % 10))
        extra = "<p>another line</p>" * (n % 3)
        scene.script.put("one", "q", question(f"version {n}{extra}"))
        await shows(page, "q", f"version {n}")
        await page.keyboard.press("ArrowLeft")
    state = await page.evaluate(
        """() => {
          const q = document.getElementById("q");
          const box = q.querySelector("textarea");
          return {typed: box.value.length, focus: document.activeElement === box,
            caret: box.selectionStart, open: q.querySelector("details").open,
            scroll: q.querySelector(".wide").scrollLeft,
            sure: q.querySelector("[name=sure]").checked,
            reason: q.querySelector("[name=reason]").value};
        }"""
    )
    assert state.pop("typed") == len("{}") + 12
    caret = state.pop("caret")
    assert 0 <= caret <= 14
    assert state == {"focus": True, "open": True, "scroll": 120, "sure": True, "reason": "because"}


async def test_a_field_that_nobody_touched_follows_the_server(scene: Scene) -> None:
    page = await scene.open()
    scene.script.put("one", "q", question("first", "old"))
    await shows(page, "q", "first")
    scene.script.put("one", "q", question("second", "new"))
    await shows(page, "q", "second")
    assert await page.input_value("#q textarea") == "new"


async def test_details_follow_the_server_until_a_person_opens_or_closes_them(scene: Scene) -> None:
    def thinking(text: str, open: str) -> str:
        return f"<details @ {open}><summary>{text}</summary><p data-slot=t>%</p></details>"

    page = await scene.open()
    scene.script.put("one", "t", thinking("busy", "open"))
    await shows(page, "t", "busy")
    scene.script.put("one", "t", thinking("done", ""))
    await shows(page, "t", "done")
    assert not await page.evaluate("() => document.getElementById('t').open")
    await page.click("#t summary")
    scene.script.put("one", "t", thinking("done again", ""))
    await shows(page, "t", "again")
    assert await page.evaluate("() => document.getElementById('t').open")


async def test_selected_text_stays_selected_while_its_part_grows(scene: Scene) -> None:
    page = await scene.open()
    scene.script.put("one", "a", "<div @><p>Before <i>it</i> select me *and</p></div>")
    await shows(page, "a", "select me")
    await page.evaluate(
        """() => {
          const text = document.querySelector("#a i").nextSibling;
          getSelection().setBaseAndExtent(text, 10, text, 1);
        }"""
    )
    versions = (
        "<p>Before <i>it</i> select me *and more",
        "<p>Before <i>it</i> select me <em>and more</em>",
        "<h2>x</h2><p>Before it select me <em>and more</em>",
        "<p><b>Before</b> it <u>select</u> me <em>and more</em> text",
    )
    for n, html in enumerate(versions):
        scene.script.put("one", "a", f"<div @>{html} {n}</p></div>")
        await shows(page, "a", f" {n}")
        assert await page.evaluate("() => getSelection().toString()") == "select me", html


async def test_a_form_that_a_frame_brings_is_posted_by_htmx(scene: Scene) -> None:
    page = await scene.open()
    scene.script.put("one", "q", question("first"))
    await page.click("#q button")
    await scene.script.until(lambda: bool(scene.script.asked("/chats/one/approvals/k", "POST")))
    assert page.url.endswith("/chats/one")


@pytest.mark.full
async def test_frames_are_applied_at_once_in_a_tab_that_nobody_sees(scene: Scene) -> None:
    # Chromium without a window shows every tab; a page that says it is hidden, draws no frame and
    # whose timers hardly run is what a background tab looks like to the script.
    await scene.context.add_init_script(
        """Object.defineProperty(document, "hidden", {value: true});
           Object.defineProperty(document, "visibilityState", {value: "hidden"});
           window.requestAnimationFrame = () => 0;
           const timer = window.setTimeout;
           window.setTimeout = (call, wait, ...more) => timer(call, wait * 100, ...more);"""
    )
    page = await scene.open()
    scene.script.put("one", "a", "<p @>seen</p>")
    await page.wait_for_function(
        "() => document.getElementById('a')", polling=50
    )  # by time, as there are no animation frames


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full)])
async def test_any_changes_in_any_frames_end_in_what_a_fresh_page_shows(
    scene: Scene, seed: int
) -> None:
    chance = random.Random(seed)
    page = await scene.open()
    live: list[str] = []
    for step in range(120):
        kind = chance.choice("paaccmmr")
        if kind in "pa" or not live:
            parent = chance.choice(["log", *live]) if kind == "a" else "log"
            id = f"n{step}"
            scene.script.put("one", id, _shell(chance, step), slot=parent)
            live.append(id)
        elif kind == "c":
            scene.script.put("one", chance.choice(live), _shell(chance, step))
        elif kind == "m":
            id = chance.choice(live)
            scene.script.put("one", id, _shell(chance, step), rank=chance.uniform(-5, 5))
        else:
            scene.script.remove("one", chance.choice(live))
            live = [id for id in live if scene.script.chat("one").get(id)]
        if chance.random() < 0.2:
            scene.script.inject(scene.script.frame(["one"], f"first:{chance.randint(0, step)}"))
            await page.evaluate("1")
    scene.script.put("one", "end", "<p @>the end</p>")
    await shows(page, "end", "the end")
    fresh = await scene.open()
    read = "() => document.querySelector('[data-log]').innerHTML"
    assert await page.evaluate(read) == await fresh.evaluate(read)


def _shell(chance: random.Random, step: int) -> str:
    tag = chance.choice(["div", "section", "article"])
    inside = chance.choice(["", "<b>x</b>", "<p class=y>why</p>", f"text {step} "])
    return f"<{tag} @>{inside}<div data-slot=ID>%</div></{tag}>"
