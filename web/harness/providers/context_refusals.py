"""Refusals for length: what servers say when a request does not fit into a model's context."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NUMBER = r"(\d[\d,_]*)"

_WORDS = re.compile(
    r"context_length_exceeded|exceed_context_size"
    r"|maximum (?:context|prompt) length|context (?:window|length|size) of only"
    r"|(?:prompt|input) (?:is|are) too long|prompt contains .{0,60}too large for model"
    r"|exceeds? (?:the )?(?:\w+'?s? )?(?:maximum |available )?context"
    r"|longer than the (?:model'?s? )?context"
    r"|tokens exceed|input token count|too many tokens|input is too long"
    r"|reduce the length of (?:the|your) (?:messages|prompt|input)"
    r"|request too large\b.{0,200}tokens?\b"
    r"|`inputs` tokens \+ `max_new_tokens` must be|prompt tokens? .{0,40}exceeds?",
    re.I | re.S,
)
"""By these a refusal is known. They name the context, or the length of the input itself."""

_TOKENS = re.compile(r"\btokens?\b|\bcontext\b", re.I)

_CONTEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|context (?:window|length|size|limit)"
    r"|(?:maximum|available|model'?s?) context|request too large\b.{0,200}tokens?\b",
    re.I | re.S,
)
"""What leaves no doubt. Of a 429 nothing else counts: its tokens are mostly those of a minute."""

_OTHER = re.compile(
    r"for (?:the )?(?:field|parameter|property|argument)\b|maximum string length"
    r"|max(?:imum)? (?:number of |allowed )*(?:output|completion)[ _]tokens"
    r"|please wait|per (?:minute|hour|day)\b|rate.?limit|throttl",
    re.I,
)
"""What speaks of another length, or of how often one may ask."""

_LIMITS = tuple(
    re.compile(pattern, re.I | re.S)
    for pattern in (
        rf"maximum (?:context|prompt) length (?:is|of) {_NUMBER}",
        rf"maximum context length:? {_NUMBER}",
        rf"{_NUMBER} maximum context length",
        rf"is too long: {_NUMBER} tokens? > (?P<limit>\d[\d,_]*)",
        rf"exceed context limit: {_NUMBER} \+ {_NUMBER} > (?P<limit>\d[\d,_]*)",
        r"available context size \((?P<limit>\d[\d,_]*)",
        r"context length \((?P<limit>\d[\d,_]*)",
        r"\"?n_ctx\"?[:=]? ?(?P<limit>\d[\d,_]*)",
        rf"configured limit of {_NUMBER}",
        r"number of tokens allowed \((?P<limit>\d[\d,_]*)",
        rf"must be <= {_NUMBER}",
        rf"cannot exceed {_NUMBER}",
        rf"while limit is {_NUMBER}",
        r"\blimit (?P<limit>\d[\d,_]*), requested",
        r"context (?:window|length|size|limit)[^.\d]{0,40}?(?P<limit>\d[\d,_]{2,})",
    )
)

_COUNTS = tuple(
    re.compile(pattern, re.I | re.S)
    for pattern in (
        rf"\({_NUMBER} (?:in the|of text|tokens from the) (?:messages|input|prompt)",
        rf"{_NUMBER} tokens from the input",
        rf"messages resulted in {_NUMBER}",
        rf"is too long: {_NUMBER} tokens? >",
        rf"exceed context limit: {_NUMBER} \+",
        rf"request has {_NUMBER} input tokens",
        rf"(?:request|input) \({_NUMBER} tokens?\)",
        r"\"?n_prompt_tokens\"?[:=]? ?(?P<limit>\d[\d,_]*)",
        rf"prompt contains {_NUMBER} tokens",
        rf"input token count \({_NUMBER}",
        rf"request contains {_NUMBER} tokens",
        rf"given: {_NUMBER} `inputs` tokens",
        rf"received {_NUMBER}",
        rf"current length is {_NUMBER}",
        rf"prompt is too long: {_NUMBER},",
    )
)


@dataclass(frozen=True, slots=True)
class Refused:
    """`limit` is the context that was named, `counted` the tokens of the input; None: not said."""

    limit: int | None = None
    counted: int | None = None


def length_refusal(said: str, status: int | None) -> Refused | None:
    """What a refusal for length says; None where it is about something else.

    `said` is all of an error: type, code, message and further fields. Status 413 alone is about
    bytes, often of a proxy before the server, and tells nothing of a context.
    """
    if _CONTEXT.search(said) is None and (status == 429 or _OTHER.search(said) is not None):
        return None
    if _WORDS.search(said) is None and not (status == 413 and _TOKENS.search(said)):
        return None
    return Refused(_first(_LIMITS, said), _first(_COUNTS, said))


def _first(patterns: tuple[re.Pattern[str], ...], said: str) -> int | None:
    for pattern in patterns:
        match = pattern.search(said)
        if match is not None:
            text = match.groupdict().get("limit") or match.group(1)
            digits = text.replace(",", "").replace("_", "")
            return int(digits) if len(digits) <= 12 else None
    return None
