"""What the demo model says, in markdown."""

from __future__ import annotations

import itertools
import re
import textwrap

from web.harness.providers.demo.matching import example_call
from web.harness.values.messages import ImageBlock, ResourceBlock, ToolResultBlock, ToolUseBlock
from web.harness.values.model import ToolSpec
from web.harness.values.text import amount

NOTICE = "*Scripted demo model, no AI.*\n\n"
REFUSAL = NOTICE + "I decline this request, so that you can see what a refusal looks like."

NO_WORDS = NOTICE + "An answer of 0 words has nothing to show. Ask for more, as in `long 200`.\n"

MAX_RESULT = 4000
"""Characters of a result that an answer repeats."""
MAX_ATTACHED = 600
"""The same of an attachment."""

SHOWCASE = """\
# Heading one

## Heading two

A paragraph with *emphasis*, **strong words**, ~~a mistake~~, `code`, a
[link](https://commonmark.org "CommonMark") and a bare address: https://example.com.

### Lists

1. First
2. Second
   - inside of it
   - and another
3. Third

- [x] a task that is done
- [ ] a task that is not

### Table

| Item | Price | In stock |
|:-----|------:|:--------:|
| Pear | 1.20 | yes |
| Melon | 3.50 | no |

### Code

```python
def greet(name: str) -> str:
    return f"Hello, {name}!"
```

### Math

Inline, $e^{i\\pi} + 1 = 0$, and on a line of its own:

$$
\\int_0^1 x^2 \\, dx = \\frac{1}{3}
$$

> A quotation, with **bold** words
> on two lines.

---

![An image is shown as a link](https://example.com/picture.png)

Here is a reference to [a note][note].

[note]: https://example.com/note "Defined at the end"
"""

_SENTENCES = (
    "A steady stream of words makes it easy to see whether a page keeps up.",
    "Each part of this text is the same every time, so that two answers can be compared.",
    "Refresh the page in the middle of it, open a second tab, or go offline for a while.",
    "When you come back, the text should be whole, in order, and there only once.",
    "Some sentences are short.",
    "Others take a little longer to arrive at their end, since they carry **strong words**, "
    "*emphasis* and `inline code` on the way.",
    "Scroll up while it runs: the page should let you read in peace.",
    "Nothing in it means anything beyond that, although it reads as if it might.",
)

_MARKS = re.compile(r"[*`_]")

_FIGURES = (
    "- one item\n- another item with `code`\n- a last item\n\n",
    "| Part | Words | Share |\n|:-----|------:|------:|\n| first | 120 | 40 % |\n"
    "| second | 180 | 60 % |\n\n",
    "```python\ndef area(width: float, height: float) -> float:\n"
    "    return width * height\n```\n\n",
    "The area under it is $\\int_0^1 x^2 \\, dx = \\frac{1}{3}$.\n\n",
    "More is written in the [CommonMark specification](https://spec.commonmark.org).\n\n",
    "1. first step\n2. second step\n3. third step\n\n",
)


def long_text(words: int) -> str:
    """Markdown of exactly `words` words (pieces between white space), the same each time."""
    pieces: list[str] = []
    left = words
    for section in itertools.count(1):
        block = f"## Section {section}\n\n{_paragraph(section)}{_figure(section)}"
        size = len(block.split())
        if size > left:
            break
        pieces.append(block)
        left -= size
    # The rest has no marks that a cut could leave open.
    return "".join(pieces) + _plain(left)


def _plain(words: int) -> str:
    """Sentences without markdown, the last one cut after so many words."""
    if not words:
        return ""
    text = " ".join(sentence for sentence in _SENTENCES if not _MARKS.search(sentence))
    chosen = list(itertools.islice(itertools.cycle(text.split()), words))
    return " ".join(chosen).rstrip(".,:") + ".\n"


def _paragraph(section: int) -> str:
    chosen = [_SENTENCES[(section * 3 + number) % len(_SENTENCES)] for number in range(5)]
    return " ".join(chosen) + "\n\n"


def _figure(section: int) -> str:
    return _FIGURES[(section - 1) % len(_FIGURES)]


_PLAN_HELP = (
    "| `plan: calculate 6*7; read the result; say it` | a plan, and its steps one by one |\n"
    "| `delegate: what time is it in Lisbon?` | a sub-agent does it, inside the call |\n"
)

_SKILL_HELP = (
    "| `/csv-summary data.csv` | takes a skill along with the message |\n"
    "| `use the skill csv-summary` | loads the instructions of a skill |\n"
    "| `run scripts/summary.py of csv-summary on data.csv` | asks, then runs a skill's script |\n"
)


def help_text(tools: tuple[ToolSpec, ...], asked: str) -> str:
    """What can be tried, with the tools of this chat."""
    opening = "**I am a scripted demo model, no AI:** I follow a few rules and call tools.\n\n"
    if asked:
        opening += "I have no rule for that message. "
    return (
        f"{opening}Try one of these:\n\n"
        "| Write | What happens |\n|:------|:-------------|\n"
        "| `long 2000` | an answer of 2000 words; add `fast`, `slow` or `at 20 tokens a second` |\n"
        "| `show markdown` | every construct of markdown |\n"
        "| `think about lunch` | thinking, then an answer |\n"
        "| `fail once` | the answer breaks off and is tried again |\n"
        "| `fail` | an error |\n"
        "| `refuse` or `empty` | a refusal, or an answer without a word |\n"
        "| `remember that tea is at four`, then `when is tea?` | what you told me comes back |\n"
        f"{_PLAN_HELP if any(tool.name == 'update_plan' for tool in tools) else ''}"
        f"{_SKILL_HELP if any(tool.name == 'use_skill' for tool in tools) else ''}\n"
        f"{_tool_list(tools)}"
    )


def _tool_list(tools: tuple[ToolSpec, ...]) -> str:
    if not tools:
        return "This chat has no tools.\n"
    lines = [f"- `{example_call(tool)}`{_first_line(tool)}" for tool in tools]
    return (
        "This chat has these tools. Ask for one in plain words or with a slash; arguments are "
        "`key=value`, JSON, or just words:\n\n" + "\n".join(lines) + "\n\n"
        "Several at once: `parallel: /a ... ; /b ...`. One after the other: `/a ... then /b ...`, "
        "where `{result}` stands for the last result.\n"
    )


def _first_line(tool: ToolSpec) -> str:
    line = tool.description.strip().partition("\n")[0]
    return f": {textwrap.shorten(line, 160, placeholder=' …')}" if line else ""


def unknown_tool(name: str, tools: tuple[ToolSpec, ...]) -> str:
    """The answer to a `/name` that no tool has."""
    names = ", ".join(f"`{tool.name}`" for tool in tools) or "none"
    return (
        f"{NOTICE}There is no tool `{name}` in this chat, and no skill that is switched on. The "
        f"tools are: {names}. Skills are chosen from the list that opens after a slash, and "
        "switched on under Setup. Write `help` to see how a tool is called.\n"
    )


def not_understood(parts: list[str], tools: tuple[ToolSpec, ...]) -> str:
    """The answer to several calls at once of which some are none."""
    shown = " and ".join(_quoted(part) for part in parts)
    return (
        f"{NOTICE}I called nothing, as I do not know which tool is meant by {shown}.\n\n"
        f"{_tool_list(tools)}"
    )


def calling(names: list[str], *, first: bool) -> str:
    """What is said before a call."""
    shown = " and ".join(f"`{name}`" for name in names)
    if not first:
        return f"Next I call {shown}."
    return f"I call {shown}."


def results(rounds: list[list[tuple[ToolUseBlock, ToolResultBlock]]], *, left: int) -> str:
    """What the calls of a turn brought. `left` steps were not taken."""
    parts = [_result(call, result) for step in rounds for call, result in step]
    if left > 0:
        steps = "step was" if left == 1 else "steps were"
        parts.append(f"So {left} further {steps} not taken.")
    return NOTICE + "\n\n".join(parts) + "\n"


def plan_done(steps: int, rounds: list[list[tuple[ToolUseBlock, ToolResultBlock]]]) -> str:
    """What is said when all steps of a plan are done."""
    brought = "\n\n".join(_result(call, result) for step in rounds for call, result in step)
    return f"{NOTICE}All {steps} steps of the plan are done.\n\n{brought}".rstrip() + "\n"


def _result(call: ToolUseBlock, result: ToolResultBlock) -> str:
    words = _result_text(call, result)
    return "\n\n".join([words, *(f"I saw {_seen(each)}" for each in result.pictures)])


def _result_text(call: ToolUseBlock, result: ToolResultBlock) -> str:
    text = result.text.strip()
    if len(text) > MAX_RESULT:
        text = text[:MAX_RESULT].rstrip() + "\n… (shortened)"
    if result.is_error:
        return f"`{call.name}` did not work:\n\n{_fenced(text)}"
    if not text:
        return f"`{call.name}` is done; it returned nothing."
    if "\n" not in text and "`" not in text and len(text) <= 80:
        stop = "" if text.endswith((".", "!", "?", "…")) else "."
        return f"`{call.name}` returned `{text}`{stop}"
    return f"`{call.name}` returned:\n\n{_fenced(text)}"


def _fenced(text: str) -> str:
    """`text` as a code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _seen(picture: ImageBlock) -> str:
    """A picture as the demo model can tell: not what it shows."""
    name = f" {_quoted(picture.name)}" if picture.name else ""
    if picture.left_out:
        return f"no picture{name}: {picture.left_out}."
    pixels = f"{picture.width:,} x {picture.height:,} pixels" if picture.width else "a size I lack"
    kind = picture.media_type.removeprefix("image/").upper()
    return f"the picture{name}: {kind}, {amount(len(picture.data))}, {pixels}."


def attached(attachments: tuple[ResourceBlock, ...], pictures: tuple[ImageBlock, ...] = ()) -> str:
    """What came with a message that asks for no tool."""
    parts = [f"I saw {_seen(picture)}" for picture in pictures]
    for block in attachments:
        place = f", from {_quoted(block.source)}" if block.source else ""
        has = f"has {len(block.text):,} characters and begins"
        if block.file_bytes is not None:
            has = f"has {amount(block.file_bytes)}, and of it I am told"
        parts.append(
            f"{_quoted(block.name or block.uri)}{place}, {has}:\n\n"
            f"{_fenced(block.text[:MAX_ATTACHED].strip())}"
        )
    count = "one attachment" if len(parts) == 1 else f"{len(parts)} attachments"
    return f"{NOTICE}I was given {count} with this message.\n\n" + "\n\n".join(parts) + "\n"


def thinking(prompt: str) -> str:
    """Thoughts about a prompt."""
    return (
        "This is scripted thinking; no model is behind it.\n\n"
        f"The message has {len(prompt.split())} words and {len(prompt)} characters. "
        "It begins with 'think', so first I show some thoughts, then I answer."
    )


def after_thinking(prompt: str) -> str:
    """The answer to a message that only asks to think."""
    subject = f" about {_quoted(prompt)}" if prompt else ""
    return (
        f"{NOTICE}I have shown some thoughts{subject}, and that is all there is to it. "
        "Write `help` to see what else I do.\n"
    )


def noted(wanted: str) -> str:
    """The answer to a wish to remember where no tool does that."""
    return (
        f"{NOTICE}I note for this conversation: {_quoted(wanted.rstrip('.'))}. Ask me about it. "
        "What outlives a conversation is saved by a tool, which this one lacks.\n"
    )


def remembered(known: list[str]) -> str:
    """The answer to a question about what was to be remembered."""
    if len(known) == 1:
        return f"{NOTICE}You told me: {_plainly(known[0])}\n"
    return f"{NOTICE}You told me:\n\n" + "".join(f"- {_plainly(each)}\n" for each in known)


def _plainly(text: str) -> str:
    """A text on one line, without what markdown would make of it."""
    line = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]<>#|~$])", r"\\\1", line[:600])


def failing(once: bool) -> str:
    """What is said before an answer breaks off."""
    if once:
        return NOTICE + "This answer breaks off in the middle of its first try, and is then "
    return NOTICE + "This answer ends with an error in "


AFTER_RETRY = NOTICE + (
    "The first try of this answer broke off; this is the second one. "
    "What the first had shown was taken back.\n"
)


def _quoted(text: str) -> str:
    line = " ".join(text.split())[:80].replace("`", "'")
    return f"`{line}`"
