"""A request for the model's words, shown to the person before and after: read, put, answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import mcp_types as types

from web.harness.mcp.asking import Asker, Elicitation
from web.harness.mcp.failures import REJECTED
from web.harness.mcp.sampling import Sampler, SamplingAnswer, SamplingMessage, SamplingRequest
from web.harness.mcp.wording import tidy
from web.harness.values.errors import HarnessError
from web.harness.values.messages import JsonObject
from web.harness.values.text import amount

MAX_MESSAGES = 40
MAX_CHARS = 200_000
"""Of all messages and the system prompt: what a person can be asked to read, and more."""
MAX_ANSWER_TOKENS = 32_000
MAX_STOPS = 16


class SamplingRefused(Exception):
    """The request is not answered, for the reason that its words say to the server."""

    def __init__(self, words: str, code: int = REJECTED) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True, slots=True)
class Wish:
    """A request as the server made it. `remarks` tell the person what is not done as it wishes."""

    request: SamplingRequest
    remarks: tuple[str, ...] = ()


def read_wish(params: types.CreateMessageRequestParams) -> Wish:
    """What a server asks for. Raises SamplingRefused for what is too much or not offered."""
    if params.tools or params.tool_choice is not None:
        raise SamplingRefused("Tools are not offered to sampling here.", types.INVALID_PARAMS)
    if not params.messages:
        raise SamplingRefused("There are no messages to answer.", types.INVALID_PARAMS)
    unsent: list[str] = []
    messages = tuple(SamplingMessage(each.role, _text_of(each, unsent)) for each in params.messages)
    system_prompt = tidy(params.system_prompt, MAX_CHARS + 1)
    chars = sum(len(each.text) for each in messages) + len(system_prompt)
    if len(messages) > MAX_MESSAGES or chars > MAX_CHARS:
        raise SamplingRefused(
            f"At most {MAX_MESSAGES} messages with {MAX_CHARS:,} characters can be shown to a "
            "person, who has to read them first.",
            types.INVALID_PARAMS,
        )
    request = SamplingRequest(
        messages,
        max(1, min(params.max_tokens, MAX_ANSWER_TOKENS)),
        system_prompt,
        params.temperature,
        tuple(each for each in params.stop_sequences or () if each)[:MAX_STOPS],
    )
    return Wish(request, tuple(_remarks(params, unsent)))


async def sampled(server: str, wish: Wish, ask: Asker, sampler: Sampler) -> SamplingAnswer:
    """The answer that the person let go back to the server. Raises SamplingRefused."""
    request = await _approved(server, wish, ask, sampler.model)
    try:
        answer = await sampler(request)
    except HarnessError as error:
        raise SamplingRefused(f"The model did not answer: {error}", types.INTERNAL_ERROR) from error
    return await _released(server, answer, ask)


async def _approved(server: str, wish: Wish, ask: Asker, model: str) -> SamplingRequest:
    """The request as the person leaves it."""
    said = wish.request
    words = [
        f"It wants the model {model} to write something for it, and to be told what it wrote.",
        "This is what would be sent; it can be changed. You see the answer before the server does.",
        *wish.remarks,
    ]
    content = await _put(ask, Elicitation(server, "\n".join(words), schema=_request_form(said)))
    messages = tuple(
        replace(each, text=_text(content, _message_name(number), each.text))
        for number, each in enumerate(said.messages, 1)
    )
    limit = content.get("longest_answer", said.max_tokens)
    request = replace(
        said,
        messages=tuple(each for each in messages if each.text.strip()),
        system_prompt=_text(content, "system_prompt", said.system_prompt),
        max_tokens=int(limit) if isinstance(limit, int | float) else said.max_tokens,
    )
    if not request.messages:
        raise SamplingRefused("The person left nothing to be sent.")
    return request


async def _released(server: str, answer: SamplingAnswer, ask: Asker) -> SamplingAnswer:
    """The answer as the person leaves it."""
    used = answer.usage
    words = [f"The model {answer.model} has answered. This is what the server would be told."]
    if answer.stop_reason == "maxTokens":
        words.append("The answer reached its limit, so its end is missing.")
    if used.input_tokens or used.output_tokens:
        words.append(f"Tokens used: {used.input_tokens:,} in, {used.output_tokens:,} out.")
    text = answer.text[:MAX_CHARS]
    form: JsonObject = {
        "type": "object",
        "properties": {"answer": _text_field("Answer", text)},
    }
    content = await _put(ask, Elicitation(server, "\n".join(words), schema=form))
    return replace(answer, text=_text(content, "answer", text))


async def _put(ask: Asker, question: Elicitation) -> JsonObject:
    answer = await ask(question)
    if answer.action == "decline":
        raise SamplingRefused("The person declined.")
    if answer.action == "cancel":
        raise SamplingRefused("The person cancelled this, or the call has ended.")
    return answer.content or {}


def _request_form(request: SamplingRequest) -> JsonObject:
    total = len(request.messages)
    fields: JsonObject = {"system_prompt": _text_field("System prompt", request.system_prompt)}
    for number, each in enumerate(request.messages, 1):
        title = f"Message {number} of {total}, " if total > 1 else "Message, "
        title += "said by the user" if each.role == "user" else "said by the model"
        fields[_message_name(number)] = _text_field(title, each.text)
    fields["longest_answer"] = {
        "type": "integer",
        "title": "Longest answer",
        "description": "In tokens.",
        "default": request.max_tokens,
        "minimum": 1,
        "maximum": MAX_ANSWER_TOKENS,
    }
    # Nothing is required: what is left out goes as it is.
    return {"type": "object", "properties": fields}


def _text_field(title: str, text: str) -> JsonObject:
    return {"type": "string", "title": title, "default": text, "maxLength": MAX_CHARS}


def _message_name(number: int) -> str:
    return f"message_{number}"


def _text(content: JsonObject, name: str, otherwise: str) -> str:
    text = content.get(name, otherwise)
    return text if isinstance(text, str) else otherwise


def _text_of(message: types.SamplingMessage, unsent: list[str]) -> str:
    """The texts of a message, without what a person cannot see and a model reads.

    What else it holds is named in it and in `unsent`, and not sent.
    """
    pieces = []
    for each in message.content_as_list:
        match each:
            case types.TextContent():
                pieces.append(tidy(each.text, MAX_CHARS + 1))
            case types.ImageContent() | types.AudioContent():
                kind = "picture" if isinstance(each, types.ImageContent) else "sound"
                media_type = tidy(each.mime_type, 100, one_line=True)
                name = f"{kind}, {media_type}, {amount(len(each.data) * 3 // 4)}"
                unsent.append(name)
                pieces.append(f"[{name}: not sent]")
            case _:
                raise SamplingRefused(
                    "Only text is taken for sampling here, no use of tools.", types.INVALID_PARAMS
                )
    return "\n".join(pieces)


def _remarks(params: types.CreateMessageRequestParams, unsent: Sequence[str]) -> list[str]:
    remarks = []
    hints = params.model_preferences.hints if params.model_preferences is not None else None
    names = [tidy(each.name, 60, one_line=True) for each in (hints or ())[:5] if each.name]
    if names:
        remarks.append(f"It would like a model such as {', '.join(names)}.")
    if unsent:
        remarks.append(f"Not sent, for only text is: {'; '.join(unsent[:10])}.")
    if params.include_context not in (None, "none"):
        remarks.append("It asks for the conversation of this chat too, which is not sent.")
    return remarks
