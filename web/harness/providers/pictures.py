"""Which pictures of a conversation an API is sent: the newest, as far as its limits go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from web.harness.tools.picture_faults import picture_fault
from web.harness.tools.pictures import MODEL_TYPES, is_too_large, pixel_size
from web.harness.tools.sniff import HEAD_BYTES, media_type_of
from web.harness.values.messages import ImageBlock, Message
from web.harness.values.model import ModelRequest
from web.harness.values.pictures import has_pictures, leave_out
from web.harness.values.text import amount

MAX_COUNT = 20
"""Of a request. Anthropic takes more, but none over 2,000 pixels a side then; Scaleway takes 12."""

MAX_TOTAL_BYTES = 20_000_000
"""Of a request: 27 MB as base64. Anthropic refuses requests of 32 MB, OpenAI pictures of 50 MB."""


@dataclass(frozen=True, slots=True)
class PictureLimits:
    """What an API takes of one picture, in bytes before base64 and in pixels (0: no limit)."""

    max_bytes: int
    max_side: int = 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """A request that fits, and in words what this turn's message and results had to leave out."""

    request: ModelRequest
    left_out: tuple[str, ...] = ()


def fitted(request: ModelRequest, limits: PictureLimits) -> Fitted:
    """The request without the pictures that the API would refuse; a line stands for each."""
    if not any(map(has_pictures, request.messages)):
        return Fitted(request)
    judge = _Judge(limits)
    start = _turn_start(request.messages)
    newest = leave_out(request.messages[start:], judge)
    told = tuple(judge.left_out)
    messages = (*leave_out(request.messages[:start], judge), *newest)
    return Fitted(replace(request, messages=messages), told)


def picture_type(picture: ImageBlock) -> str:
    """The media type by the picture's bytes."""
    return media_type_of(picture.data[:HEAD_BYTES])


class _Judge:
    def __init__(self, limits: PictureLimits) -> None:
        self.left_out: list[str] = []
        self._limits = limits
        self._count = 0
        self._total = 0

    def __call__(self, picture: ImageBlock) -> str:
        why = self._fault(picture)
        if why:
            words = replace(picture, left_out=why).line.strip("[]")
            self.left_out.append(f"{words[:1].upper()}{words[1:]}.")
        else:
            self._count += 1
            self._total += len(picture.data)
        return why

    def _fault(self, picture: ImageBlock) -> str:
        limits = self._limits
        if picture_type(picture) not in MODEL_TYPES:
            return "the model takes PNG, JPEG, GIF and WebP"
        if len(picture.data) > limits.max_bytes:
            return f"the model takes at most {amount(limits.max_bytes)}"
        fault = picture_fault(picture.data)
        if fault:
            return fault
        size = pixel_size(picture.data)
        if size is None or is_too_large(size):
            return "it is broken or has too many pixels"
        if limits.max_side and max(size) > limits.max_side:
            return f"the model takes at most {limits.max_side:,} pixels a side"
        if self._count >= MAX_COUNT:
            return f"only the newest {MAX_COUNT} pictures are sent"
        if self._total + len(picture.data) > MAX_TOTAL_BYTES:
            return f"only the newest {amount(MAX_TOTAL_BYTES)} of pictures are sent"
        return ""


def _turn_start(messages: Sequence[Message]) -> int:
    """The index of the person's last message."""
    places = [place for place, message in enumerate(messages) if message.role == "user"]
    return places[-1] if places else 0
