"""Every state that the page can be in, brought about on a stage: for pictures, and for axe."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from playwright.async_api import expect

from tests.browser.page.agent_states import plan, sub_agent, sub_agent_done
from tests.browser.page.memory_states import memory, memory_edited
from tests.browser.page.snapshot_states import instructions, loaded
from tests.browser.page.stage import BOX, STATUS, Stage, shows
from tests.support.scripted_provider import Step, breaks, calls, says, thinks
from web.harness.providers.demo.texts import SHOWCASE
from web.harness.values.errors import ContextTooLong
from web.harness.values.model import ModelDone, TextChunk, ThinkingChunk
from web.harness.values.usage import Usage

if TYPE_CHECKING:
    from playwright.async_api import Page

Show = Callable[[Stage], Awaitable["Page"]]
"""Brings a page into a state and returns it."""

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
"""Of a window."""

BEFORE = "# Plan\n\n- buy bread\n- call Ana\n- water the plants\n"
AFTER = "# Plan for Sunday\n\n- buy bread and butter\n- call Ana\n"
QUESTION = "Could you compare a list and a tuple in Python, with an example for each?"
ANSWER = """\
Both hold **items in order**. A list may change, a tuple may not.

| | List | Tuple |
|:--|:--|:--|
| Written as | `[1, 2]` | `(1, 2)` |
| May change | yes | no |

```python
point = (3, 4)
path = [point, (5, 6)]
path.append((7, 8))  # a list grows
```

1. Use a list for things that come and go.
2. Use a tuple for things that belong together.
"""


NOTES = """\
The person plans a journey and likes towns with trams.

- **Lisbon** was recommended, for its tram 28 and its tiles
- they need *three days*
- open: how to get there
"""


async def _some_chats(stage: Stage) -> None:
    """A side bar as people have it."""
    for title in ("Summer holidays in Portugal", "Why is the sky blue?", "Fix the invoice total"):
        await stage.answered(title, *says("ok"))


async def empty(stage: Stage) -> Page:
    await _some_chats(stage)
    return await stage.open()


async def streaming(stage: Stage) -> Page:
    await _some_chats(stage)
    thought, text = "The person wants a *comparison*.", ANSWER[:330]
    stage.play([ThinkingChunk(thought), TextChunk(text), asyncio.Event()])
    page = await stage.open(f"/chats/{await stage.asked(QUESTION)}")
    await expect(page.locator(".answer table")).to_be_visible()
    return page


async def done(stage: Stage) -> Page:
    await _some_chats(stage)
    stage.play(
        calls(
            ("current_time", {"timezone": "Europe/Lisbon"}), ("calculate", {"expression": "1/0"})
        ),
        [
            *thinks("They want a **short** answer.", ANSWER)[:2],
            ModelDone("end_turn", Usage(1234, 567)),
        ],
    )
    chat = await stage.server.new_chat()
    await stage.server.wait_for(await stage.server.send(chat, QUESTION), "run_result")
    return await stage.open(f"/chats/{chat}")


async def markdown(stage: Stage) -> Page:
    chat = await stage.answered("Show me markdown", *says(SHOWCASE))
    page = await stage.open(f"/chats/{chat}")
    await page.locator("[data-log]").evaluate("(log) => (log.scrollTop = 0)")
    return page


async def calls_opened(stage: Stage) -> Page:
    stage.play(
        calls(("calculate", {"expression": "2 + 3 * 4"}), ("read_file", {"path": "no.txt"})),
        says("Fourteen."),
    )
    chat = await stage.server.new_chat()
    await stage.server.wait_for(await stage.server.send(chat, "Use tools"), "run_result")
    page = await stage.open(f"/chats/{chat}")
    for summary in await page.locator(".call summary").all():
        await summary.click()
    return page


async def condensed(stage: Stage) -> Page:
    """A model that refused what was too long, has written notes and then gone on."""
    chat = await stage.server.new_chat()
    for title in ("Which town has the best tram?", "And the best tiles?", "How long do I need?"):
        stage.play(says(f"**Lisbon**, and here is why. {'It is a fine town. ' * 60}"))
        await stage.server.wait_for(await stage.server.send(chat, title), "run_result")
    stage.play(
        [ContextTooLong("maximum context length is 5000 tokens", limit=5_000)],
        says(NOTES),
        says("Then take the *night train*."),
    )
    run_id = await stage.server.send(chat, "How do I get there?")
    await stage.server.wait_for(run_id, "run_result")
    page = await stage.open(f"/chats/{chat}")
    await page.locator(".condensed > summary").click()
    await expect(page.locator(".condensed .notes li").first).to_be_visible()
    return page


async def _asking(stage: Stage, *further: Step) -> Page:
    write = ("write_file", {"path": "plan.md", "content": BEFORE})
    change = ("write_file", {"path": "plan.md", "content": AFTER, "replace": True})
    stage.play(calls(write), calls(change, text="I bring the plan up to date."), list(further))
    page = await stage.open(f"/chats/{await stage.asked('Write the plan, then change it')}")
    await page.get_by_role("button", name="Allow once").click()
    await expect(page.locator(".diff .cut").first).to_be_visible()
    return page


async def approval(stage: Stage) -> Page:
    await _some_chats(stage)
    return await _asking(stage)


async def approval_edited(stage: Stage) -> Page:
    stage.allow_refusals()
    page = await _asking(stage)
    await page.locator(".ask-card summary", has_text="Edit…").click()
    await page.locator("[name=arguments]").fill('{"path": "plan.md"')
    await page.get_by_role("button", name="Allow with these arguments").click()
    await expect(page.locator(".ask-card [role=alert]")).to_be_visible()
    return page


async def approval_denied(stage: Stage) -> Page:
    page = await _asking(stage)
    await page.locator(".ask-card summary", has_text="Deny…").click()
    return page


async def failed(stage: Stage) -> Page:
    await _some_chats(stage)
    chat = await stage.answered(QUESTION, *breaks("Both hold items", transient=False))
    page = await stage.open(f"/chats/{chat}")
    await expect(page.locator(".failure")).to_be_visible()
    return page


async def refused(stage: Stage) -> Page:
    stage.allow_refusals()
    chat = await stage.answered("Hello", *says("Hello to you."))
    page = await stage.open(f"/chats/{chat}")
    await page.fill(BOX, "too long " * 12_000)
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator("#composer [role=alert]")).to_be_visible()
    return page


async def queue(stage: Stage) -> Page:
    stage.play([TextChunk("I am still "), asyncio.Event()])
    chat = await stage.asked("A first question")
    await stage.server.send(chat, "And a second one, while you are at it", queue=True)
    page = await stage.open(f"/chats/{chat}")
    await expect(page.locator(".queued")).to_be_visible()
    await expect(page.locator(STATUS)).to_contain_text("Writing")
    return page


async def setup(stage: Stage) -> Page:
    page = await stage.open(f"/chats/{await stage.answered('Hello', *says('Hello to you.'))}")
    await page.set_viewport_size({"width": 1000, "height": 900})
    await page.get_by_role("button", name="Setup").click()
    await expect(page.locator("#setup")).to_be_visible()
    return page


async def side_bar(stage: Stage) -> Page:
    await _some_chats(stage)
    page = await stage.open()
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.get_by_role("button", name="Chats").click()
    await expect(page.locator("#side")).to_be_visible()
    return page


async def dialog(stage: Stage) -> Page:
    page = await stage.open(f"/chats/{await stage.answered('Why is the sky blue?')}")
    await page.locator(".head [data-confirm]").click()
    await expect(page.locator("dialog")).to_be_visible()
    return page


async def undo(stage: Stage) -> Page:
    page = await dialog(stage)
    await page.locator("dialog").get_by_role("button", name="Delete").click()
    await expect(page.locator(".undo")).to_be_visible()
    return page


async def gone(stage: Stage) -> Page:
    chat = await stage.answered("Why is the sky blue?", *says("Because of *Rayleigh* scattering."))
    page = await stage.open(f"/chats/{chat}")
    await stage.server.client.delete(f"/api/chats/{chat}")
    await expect(page.locator("[data-banner]")).to_be_visible()
    return page


async def not_found(stage: Stage) -> Page:
    stage.allow_refusals()
    return await stage.open("/chats/nowhere", live=False)


STATES: dict[str, Show] = {
    show.__name__: show
    for show in (
        empty,
        streaming,
        done,
        markdown,
        calls_opened,
        condensed,
        approval,
        approval_edited,
        approval_denied,
        failed,
        refused,
        queue,
        setup,
        side_bar,
        dialog,
        undo,
        plan,
        sub_agent,
        sub_agent_done,
        loaded,
        instructions,
        memory,
        memory_edited,
        gone,
        not_found,
    )
}

STATUSES = {"streaming": "working", "done": "idle", "approval": "asking", "failed": "failed"}


async def shown(stage: Stage, name: str) -> Page:
    """A page in the state of that name."""
    page = await STATES[name](stage)
    if name in STATUSES:
        await shows(page, STATUSES[name])
    return page
