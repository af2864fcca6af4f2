"""Questions of a server, put to the person as the tool's own."""

from __future__ import annotations

from web.harness.mcp.asking import Asker, Elicitation, ElicitationAnswer
from web.harness.mcp.checking import MAX_SCHEMA_WEIGHT, weight
from web.harness.mcp.wording import tidy
from web.harness.tools.tool import Ask
from web.harness.values.messages import JsonObject

MAX_MESSAGE_CHARS = 4_000
MAX_ADDRESS_CHARS = 20_000


def asker(ask: Ask) -> Asker:
    """Puts a question of a server through the `ask` of a tool's context.

    One that is too large to be shown is declined.
    """

    async def put(question: Elicitation) -> ElicitationAnswer:
        too_large = weight(question.schema, MAX_SCHEMA_WEIGHT) >= MAX_SCHEMA_WEIGHT
        if too_large or len(question.url) > MAX_ADDRESS_CHARS:
            return ElicitationAnswer("decline")
        try:
            if question.state is None:
                answer = await ask(_request(question))
            else:
                answer = await ask(_request(question), state=question.state)
        except ValueError:
            return ElicitationAnswer("decline")
        return ElicitationAnswer(answer.action, answer.content)

    return put


def _request(question: Elicitation) -> JsonObject:
    request: JsonObject = {
        "mode": question.mode,
        "server": tidy(question.server, 100, one_line=True),
        "message": tidy(question.message, MAX_MESSAGE_CHARS),
    }
    if question.mode == "url":
        return {**request, "url": question.url}
    return {**request, "schema": question.schema or {}}
