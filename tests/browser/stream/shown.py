"""What a page shows of an answer, and whether it is what it has to be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from playwright.async_api import TimeoutError

from web.ui.markdown import render

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

# A part's own element, or a second body of a table, is there so that a frame can be small: what a
# person sees is the same without.
_NORMALISED = """(root) => {
  for (const each of [...root.querySelectorAll("div[data-part], span[data-part]")]) {
    each.replaceWith(...each.childNodes);
  }
  for (const table of root.querySelectorAll("table")) {
    const [first, ...more] = table.tBodies;
    for (const body of more) {
      first.append(...body.childNodes);
      body.remove();
    }
  }
  for (const each of root.querySelectorAll("*")) {
    for (const name of ["id", "data-part", "data-version", "data-slot"]) each.removeAttribute(name);
    if (each.classList.length === 0) each.removeAttribute("class");
  }
  root.normalize();
  return root.innerHTML;
}"""

_ANSWERS = f"""(articles, reference) => {{
  const normalised = {_NORMALISED};
  const whole = document.createElement("div");
  for (const article of articles) whole.append(...article.cloneNode(true).childNodes);
  const wanted = document.createElement("div");
  wanted.innerHTML = reference;
  return {{ shown: normalised(whole), wanted: normalised(wanted) }};
}}"""

_IS_REFERENCE = f"""(reference) => {{
  const {{ shown, wanted }} = ({_ANSWERS})([...document.querySelectorAll(".answer")], reference);
  return shown === wanted;
}}"""

WATCH = r"""
window.broken = [];
window.most = 0;
const look = () => {
  const answers = [...document.querySelectorAll(".answer")];
  const shown = answers.map((each) => each.textContent).join("\n");
  const numbers = [...shown.matchAll(/w(\d+)/g)].map((each) => Number(each[1]));
  const wrong = numbers.findIndex((number, place) => number !== place);
  // The last word may be on its way.
  if (wrong >= 0 && wrong < numbers.length - 1) {
    window.broken.push([wrong, numbers.slice(wrong, wrong + 4)]);
  }
  if (numbers.length < window.most) window.broken.push(["lost", window.most, numbers.length]);
  window.most = Math.max(window.most, numbers.length);
};
document.addEventListener("DOMContentLoaded", () => {
  look();
  new MutationObserver(look).observe(document.body, {
    childList: true, subtree: true, characterData: true,
  });
});
"""
"""Notes in the page itself every state of the answer that is no beginning of the known one."""

_WORD = re.compile(r"w(\d+)")


async def is_sound(page: Page) -> None:
    """Fails if a watched page ever showed a word twice, too early, or not any more."""
    broken = await page.evaluate("() => window.broken")
    assert not broken, broken[:5]


async def words(page: Page) -> int:
    """How many words of the known answer are shown; fails if they are not its first ones."""
    shown = "\n".join(await page.locator(".answer").all_text_contents())
    numbers = _WORD.findall(shown)
    whole = numbers[:-1]
    assert whole == [str(number) for number in range(len(whole))]
    if numbers:
        assert str(len(whole)).startswith(numbers[-1])
    return len(numbers)


async def until_words(page: Page, count: int, seconds: float = 10) -> None:
    """Waits until the page shows so many words."""
    await page.wait_for_function(
        r"""(count) => {
          const all = [...document.querySelectorAll(".answer")].map((each) => each.textContent);
          return [...all.join("\n").matchAll(/w\d+/g)].length >= count;
        }""",
        arg=count,
        timeout=seconds * 1000,
    )


def words_in(text: str) -> int:
    return len(_WORD.findall(text))


def settled(tokens: Sequence[str]) -> int:
    """How many words of these tokens are shown during a pause, at least.

    Of the block that still grows a line may be held back, as a table's header is.
    """
    return words_in("".join(tokens).rpartition("\n\n")[0])


async def until_done(page: Page, *, seconds: float = 10) -> None:
    """Waits until the page shows a finished answer: the line below it."""
    await page.locator("footer.foot").last.wait_for(timeout=seconds * 1000)


async def is_reference(page: Page, text: str) -> None:
    """Fails if the answer does not become what rendering its whole text at once gives.

    The end of a long text may come after the line below it.
    """
    wanted = render(text)
    with suppress(TimeoutError):
        await page.wait_for_function(_IS_REFERENCE, arg=wanted, polling=200)
        return
    result: dict[str, Any] = await page.locator(".answer").evaluate_all(_ANSWERS, wanted)
    raise AssertionError(_difference(result["shown"], result["wanted"]))


async def is_tidy(page: Page) -> None:
    """Fails if two elements have one id."""
    ids: list[str] = await page.evaluate(
        "() => [...document.querySelectorAll('[id]')].map((each) => each.id)"
    )
    assert sorted(ids) == sorted(set(ids))


async def kinds(page: Page) -> list[str]:
    """The classes of the elements in the log, in their order."""
    found: list[str] = await page.locator("[data-slot=log] > [data-part]").evaluate_all(
        "(all) => all.map((each) => each.classList[0])"
    )
    return found


async def text_of(locator: Locator) -> str:
    return " ".join((await locator.inner_text()).split())


def _difference(shown: str, wanted: str) -> str:
    same = 0
    while same < min(len(shown), len(wanted)) and shown[same] == wanted[same]:
        same += 1
    start = max(0, same - 80)
    return (
        f"differs after {same} characters ({len(shown)} shown, {len(wanted)} wanted):\n"
        f"  shown:  {shown[start : same + 160]!r}\n  wanted: {wanted[start : same + 160]!r}"
    )
