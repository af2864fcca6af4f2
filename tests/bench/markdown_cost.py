"""What streaming markdown costs. By hand: `python -m tests.bench.markdown_cost`."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from web.chats.markdown import Block, MarkdownStream
from web.ui.markdown import blocks, code, formulas, inline, render_block, warm

SENTENCES = [
    "The quick brown fox jumps over the lazy dog. ",
    "Some **bold** text and `code` here, with [a link](http://example.com/z). ",
    "It costs $5, see _this_ and that. ",
    "A longer sentence without any markup that goes on for a while, and ends here. ",
]


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds in all, bytes of HTML rendered, and CPU milliseconds of the steps."""

    cpu: float
    sent: int
    steps: list[float]

    def percentile(self, share: float) -> float:
        return sorted(self.steps)[min(int(len(self.steps) * share), len(self.steps) - 1)]


def sentences(size: int) -> str:
    random, length = Random(2), 0
    parts: list[str] = []
    while length < size:
        parts.append(random.choice(SENTENCES))
        length += len(parts[-1])
    return "".join(parts)


def lines(size: int, line: Callable[[int], str]) -> str:
    length = 0
    parts: list[str] = []
    while length < size:
        parts.append(line(len(parts)))
        length += len(parts[-1])
    return "".join(parts)


def a_list(size: int) -> str:
    return lines(size, lambda i: f"- {SENTENCES[i % 4]}{SENTENCES[i % 3]}\n")


def table(size: int) -> str:
    return "| a | b | c |\n|---|---|---|\n" + lines(
        size, lambda i: f"| row {i} | **b{i}** `c` | some text here {i} |\n"
    )


def fence(size: int) -> str:
    body = lines(size, lambda i: f"    value_{i} = compute({i}, 'text')  # comment\n")
    return f"```python\n{body}```\n"


def mix(size: int) -> str:
    return lines(
        size,
        lambda i: (
            f"## Part {i}\n\n{sentences(600)}\n\n{a_list(500)}\n{table(400)}\n{fence(500)}\n"
            f"> {SENTENCES[1]}\n\n1. one\n2. two\n\n$$\n\\frac{{a}}{{b}}\n$$\n\n"
        ),
    )


def short_lines(size: int) -> str:
    """One paragraph of lines that each hold some markup."""
    return lines(size, lambda n: f"Line {n} has *some words* and **a few more** to fill it up.\n")


KINDS: dict[str, Callable[[int], str]] = {
    "mix": mix,
    "list": a_list,
    "table": table,
    "fence": fence,
    "paragraph": sentences,
    "short lines": short_lines,
}


def forget() -> None:
    """Start with nothing remembered, as another text does."""
    inline.segment_html.cache_clear()
    code.highlighted.cache_clear()
    formulas.formula.cache_clear()
    blocks.row_html.cache_clear()


def measure(text: str, pieces: int = 20) -> Cost:
    """Stream a text in pieces of 4 to 20 characters, with a frame after every so many."""
    forget()
    # A collection walks all that the process holds, which is not what is measured.
    gc.collect()
    gc.freeze()
    try:
        return _measured(text, pieces)
    finally:
        gc.unfreeze()


def _measured(text: str, pieces: int) -> Cost:
    random, stream = Random(1), MarkdownStream()
    sent, place, fed = 0, 0, 0
    steps: list[float] = []
    begin = time.process_time()
    while place < len(text) or stream.pending:
        if place < len(text):
            size = random.randint(4, 20)
            stream.feed(text[place : place + size])
            place += size
            fed += 1
            if place >= len(text):
                stream.finish()
            elif fed % pieces:
                continue
        start = time.process_time()
        changes = stream.settle()
        steps.append((time.process_time() - start) * 1000)
        for change in changes:
            if isinstance(change, Block):
                start = time.process_time()
                rendered = render_block(change)
                steps.append((time.process_time() - start) * 1000)
                sent += len(rendered.before) + len(rendered.after)
    return Cost(time.process_time() - begin, sent, steps)


def typical(text: str, begin: int, frames: int = 12) -> float:
    """The best CPU microseconds of a frame that grows by six tokens of four characters."""
    best = float("inf")
    for attempt in range(30):
        whole = f"Attempt {attempt} {text}" if text[0].isalpha() else text
        forget()
        stream = MarkdownStream()
        stream.feed(whole[:begin])
        for change in stream.settle():
            if isinstance(change, Block):
                render_block(change)
        start = time.process_time()
        for frame in range(frames):
            for token in range(6):
                place = begin + frame * 24 + token * 4
                stream.feed(whole[place : place + 4])
            for change in stream.settle():
                if isinstance(change, Block):
                    render_block(change)
        best = min(best, (time.process_time() - start) / frames * 1e6)
    return best


def main() -> None:
    warm()
    print("200 KB beside 100 KB, pieces of 4 to 20 characters, a frame every 20 pieces")
    for name, make in KINDS.items():
        half = min((measure(make(100_000)) for _ in range(2)), key=lambda cost: cost.cpu)
        full = min((measure(make(200_000)) for _ in range(2)), key=lambda cost: cost.cpu)
        print(
            f"{name:10} {full.cpu:6.2f} s CPU, {full.sent / 1e6:5.2f} MB,"
            f" times {full.cpu / half.cpu:4.2f} and {full.sent / half.sent:4.2f};"
            f" a step p99 {full.percentile(0.99):5.1f} ms, most {max(full.steps):5.1f} ms"
        )
    print("a frame of six tokens, after 300 characters")
    plain = " ".join(f"word{i} and more" for i in range(200))
    rich = " ".join(f"**word{i}** and `more`" for i in range(200))
    samples = {
        "plain paragraph": plain,
        "rich paragraph": rich,
        "list": "".join(f"- item number {i} with some words\n" for i in range(60)),
        "table": table(2000),
        "fence": fence(2000),
        "quote": "".join(f"> quoted line {i} and more words\n" for i in range(60)),
    }
    for name, text in samples.items():
        print(f"{name:16} {typical(text, 300):6.0f} µs")


if __name__ == "__main__":
    main()
