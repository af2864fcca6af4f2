"""What a chat waits for, as the API tells it."""

from __future__ import annotations

from web.chats.chat import Chat
from web.chats.parts.listed_calls import all_calls
from web.chats.transcript.asked import uncertain_calls
from web.chats.transcript.inputs import open_inputs
from web.ui.api.shapes import OpenInput, OpenQuestion, OpenRecovery


def questions_of(chat: Chat) -> tuple[OpenQuestion, ...]:
    return tuple(
        OpenQuestion(
            key=call.question.key,
            run_id=call.run_id,
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments or {},
            preview=call.question.preview,
            always_asks=call.question.always_asks,
        )
        for call in all_calls(chat.channel)
        if call.status == "asking" and call.question is not None
    )


def inputs_of(chat: Chat) -> tuple[OpenInput, ...]:
    return tuple(
        OpenInput(
            key=asked.key,
            run_id=call.run_id,
            call_id=call.call_id,
            name=call.name,
            request=asked.request,
        )
        for call, asked in open_inputs(chat.channel)
    )


def recoveries_of(chat: Chat) -> tuple[OpenRecovery, ...]:
    return tuple(
        OpenRecovery(
            key=asked.key,
            run_id=call.run_id,
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments or {},
        )
        for call, asked in uncertain_calls(chat.channel)
    )
