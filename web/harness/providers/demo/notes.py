"""How the demo model sums up a conversation: what the person said, in short, the newest most,
and before that what was to be remembered."""

from __future__ import annotations

import re

from web.harness.providers.demo.remembering import wish
from web.harness.values.messages import CONVERSATION_URI, SUMMARY_URI, Message
from web.harness.values.model import ModelRequest

LINE_CHARS = 90
CHARS_PER_WORD = 5
NOTICE = "Scripted notes, no AI. The person said:"

_ROUNDS = re.compile(r"^Rounds of calls that the next message has brought: (\d+)$", re.MULTILINE)


def conversation_of(request: ModelRequest) -> str:
    """The conversation that a request wants summed up, '' where it wants something else."""
    blocks = request.messages[-1].attachments if request.messages else ()
    return next((block.text for block in blocks if block.uri == CONVERSATION_URI), "")


def notes(request: ModelRequest, conversation: str) -> str:
    """Lines of notes, those of before first, as many as an answer may have."""
    before = [
        line
        for block in request.messages[-1].attachments
        if block.uri == SUMMARY_URI
        for line in block.text.splitlines()
        if line.startswith("- ")
    ]
    said = [
        f"- {_short(line.removeprefix('Person: '))}"
        for line in conversation.splitlines()
        if line.startswith("Person: ")
    ]
    kept: list[str] = []
    room = _words(request) * CHARS_PER_WORD - len(NOTICE) - 80
    newest = reversed(list(dict.fromkeys([*before, *said])))
    # What was to be remembered goes before all else.
    for line in sorted(newest, key=lambda line: wish(line.removeprefix("- ")) is None):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    lines = [NOTICE, "", *reversed(kept)]
    rounds = _rounds_at_end(conversation) + (0 if said else rounds_before(request.messages[-1]))
    if rounds:
        lines += ["", f"Rounds of calls that the next message has brought: {rounds}"]
    return "\n".join(lines)


def _words(request: ModelRequest) -> int:
    found = re.search(r"at most (\d+) words", request.messages[-1].text)
    return int(found[1]) if found else 200


def rounds_before(message: Message) -> int:
    """How many rounds of calls the notes that came with a message say that it has brought."""
    texts = [block.text for block in message.attachments if block.uri == SUMMARY_URI]
    return sum(int(number) for text in texts for number in _ROUNDS.findall(text))


def _rounds_at_end(conversation: str) -> int:
    """Answers with calls after the last thing that was said: the turn that goes on has them."""
    count = 0
    for piece in reversed(conversation.split("\n\n")):
        if piece.startswith("Assistant: ") and "[calls " in piece:
            count += 1
        elif piece.startswith(("Person: ", "Assistant: ")):
            break
    return count


def _short(text: str) -> str:
    return text if len(text) <= LINE_CHARS else f"{text[: LINE_CHARS - 1]}…"
