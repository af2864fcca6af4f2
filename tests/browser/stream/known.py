"""Answers of which every word is known: each is numbered, in the order in which it is written."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from tests.support.model_server import Exchange, Valve
from tests.support.model_wire import chat_ending, http_chunk, token_event


class Words:
    """Hands out `w0 w1 w2 ...`; each word is used once."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, count: int = 1) -> str:
        first, self.count = self.count, self.count + count
        return " ".join(f"w{number}" for number in range(first, self.count))


def mix(size: int) -> str:
    """All that markdown has, again and again, up to `size` characters."""
    words = Words()
    sections = ["Each section has a [link][shared] that is defined at the very end.\n\n"]
    while sum(map(len, sections)) < size:
        sections.append(_section(words, len(sections)))
    return "".join(sections)[:size].rpartition("\n")[0] + "\n\n[shared]: https://example.org/s\n"


def _section(words: Words, number: int) -> str:
    return f"""## {words(3)}

{words(9)} **{words(2)}** and *{words()}*, [{words(2)}](https://example.org/{number}), `{words()}`
[{words()}][late-{number}], [{words()}][shared], $a^2 + b_{{{number}}}$ and ~~{words()}~~.

- {words(4)}
- {words(2)}
  - {words(3)}
  - [x] {words()}
- {words(5)}

| {words()} | {words()} |
|:--|--:|
| {words(2)} | **{words()}** |
| {words()} | [{words()}](https://example.org/cell) |

```python
def {words()}(x):
    return "{words()}" + x  # {words(3)}
```

$$
\\frac{{a}}{{b + {number}}}
$$

> {words(6)}
> {words(3)}

[late-{number}]: https://example.org/late/{number}

"""


def one_list(size: int) -> str:
    words = Words()
    return _lines(size, lambda: f"- {words(6)} **{words()}** {words(3)}\n")


def one_table(size: int) -> str:
    words = Words()
    head = f"| {words()} | {words()} | {words()} |\n|---|:-:|--:|\n"
    return head + _lines(size, lambda: f"| {words(2)} | `{words()}` | {words(3)} |\n")


def one_fence(size: int) -> str:
    words = Words()
    return "```python\n" + _lines(size, lambda: f"x = '{words(8)}'  # {words(2)}\n") + "```\n"


def one_paragraph(size: int) -> str:
    words = Words()
    return _lines(size, lambda: f"{words(8)} *{words(2)}* and **{words()}**, {words(4)}\n")


SHAPES: dict[str, Callable[[int], str]] = {
    "mix": mix,
    "list": one_list,
    "table": one_table,
    "fence": one_fence,
    "paragraph": one_paragraph,
}


def _lines(size: int, line: Callable[[], str]) -> str:
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(line())
        length += len(lines[-1])
    return "".join(lines)


def pieces(text: str, seed: int, most: int = 12) -> list[str]:
    """The text in random pieces of 1 to `most` characters."""
    chance = random.Random(seed)
    cut: list[str] = []
    place = 0
    while place < len(text):
        step = chance.randint(1, most)
        cut.append(text[place : place + step])
        place += step
    return cut


class KnownAnswer:
    """A reply that streams these tokens, `batch` of them in one write, as far as a valve lets it.

    `reset_after` drops the connection after so many tokens, as a crash of the model's server does.
    """

    def __init__(
        self,
        tokens: Sequence[str],
        *,
        valve: Valve | None = None,
        batch: int = 1,
        reset_after: int | None = None,
    ) -> None:
        self.tokens = tokens
        self.text = "".join(tokens)
        self._valve = valve
        self._batch = batch
        self._reset_after = reset_after

    async def __call__(self, exchange: Exchange) -> None:
        await exchange.head()
        for first in range(0, len(self.tokens), self._batch):
            if self._reset_after is not None and first >= self._reset_after:
                exchange.abort()
                return
            last = min(first + self._batch, len(self.tokens)) - 1
            if self._valve is not None and not await self._valve.enter(last):
                exchange.abort()
                return
            events = map(token_event, self.tokens[first : last + 1])
            await exchange.send(b"".join(map(http_chunk, events)))
            if self._valve is not None:
                await self._valve.note(last + 1)
        await exchange.send(b"".join(map(http_chunk, chat_ending(tokens=len(self.tokens)))))
        await exchange.end()
