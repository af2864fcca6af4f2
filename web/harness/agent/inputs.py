"""What the tools of a run ask a person for while they run, each request answered once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal, get_args

from web.harness.agent.answer import Emit
from web.harness.agent.putting import put
from web.harness.tools.forms import check_content, read_form
from web.harness.tools.tool import InputAnswer
from web.harness.tools.words import shown
from web.harness.values.errors import DecisionRefused
from web.harness.values.events import InputAction, InputAnswered, InputRequired
from web.harness.values.messages import JsonObject
from web.harness.values.text import sayable_json

log = logging.getLogger(__name__)

Answerer = Callable[[InputRequired], Awaitable[InputAnswer] | InputAnswer]
"""Answers a request in the name of a person; a plain function runs in a thread."""

Keep = Callable[[InputRequired], Awaitable[None]]
"""Writes a question down that outlives the process; returns when that is done."""

ACTIONS: tuple[InputAction, ...] = get_args(InputAction)


async def decline_all(required: InputRequired) -> InputAnswer:
    """The answerer of those who have nobody to ask."""
    return InputAnswer("decline")


class Inputs:
    """The open requests of one run. Without an `answerer` they wait for `answer`."""

    def __init__(self, emit: Emit, answerer: Answerer | None = None) -> None:
        self._emit = emit
        self._answerer = answerer
        self._open: dict[str, tuple[InputRequired, asyncio.Future[InputAnswer]]] = {}
        self._answered: set[str] = set()
        # Answers that are not written down yet; whoever asked tells of them when they are.
        self._untold: dict[str, InputAnswered] = {}
        self._counts: dict[str, int] = {}
        self._ended: set[str] = set()
        self._closed = False

    async def ask(
        self, call_id: str, request: JsonObject, *, start: int = 1, keep: Keep | None = None
    ) -> InputAnswer:
        """Puts a request of a call; the answer is a cancel once the call has ended.

        `start` says how often the call was started, `keep` writes the question down before anybody
        is waited for. Cancelled, it is withdrawn. Raises ValueError for a request that is nested
        too deep.
        """
        if self._closed or call_id in self._ended:
            return InputAnswer("cancel")
        count = self._counts[call_id] = self._counts.get(call_id, 0) + 1
        # A question of an earlier start may have been answered, and nothing is answered twice.
        of = call_id if start <= 1 else f"{call_id}-r{start}"
        required = InputRequired(f"{of}-in{count}", call_id, sayable_json(request))
        answered = self._opened(required)
        self._emit([required])
        try:
            if keep is not None:
                await keep(required)
            return await self._waited(required, answered)
        finally:
            self._end(required, "withdrawn")

    def reopen(self, required: InputRequired) -> Awaitable[InputAnswer]:
        """Opens again what was asked before the process ended; nobody is told of it anew.

        It can be answered at once; what is returned has to be awaited.
        """
        return self._waited(required, self._opened(required))

    def _opened(self, required: InputRequired) -> asyncio.Future[InputAnswer]:
        answered: asyncio.Future[InputAnswer] = asyncio.get_running_loop().create_future()
        self._open[required.key] = (required, answered)
        return answered

    async def _waited(
        self, required: InputRequired, answered: asyncio.Future[InputAnswer]
    ) -> InputAnswer:
        if self._answerer is not None:
            await self._ask_instead(self._answerer, required)
        return await answered

    def answer(self, key: str, answer: InputAnswer) -> None:
        """Answers a request.

        Raises DecisionRefused, a `FormRefused` where the content does not fit the form; then the
        request stays open.
        """
        if key in self._answered:
            raise DecisionRefused("This form was answered already.", hint="Nothing was changed.")
        if key not in self._open or self._open[key][1].done():
            raise DecisionRefused(
                "This form is not open any more.",
                hint="Its call has ended or was stopped. Nothing was changed.",
            )
        if answer.action not in ACTIONS:
            raise DecisionRefused(
                f"{shown(answer.action)} is no answer to a form.",
                hint=f"Say one of {', '.join(ACTIONS)}. The form is still open.",
            )
        required, answered = self._open[key]
        content = None
        if answer.action == "accept" and required.request.get("mode") != "url":
            content = answer.content or {}
            check_content(read_form(required.request.get("schema")), content)
        self._answered.add(key)
        del self._open[key]
        self._untold[key] = InputAnswered(key, required.call_id, answer.action)
        answered.set_result(InputAnswer(answer.action, content))

    def tell(self, call_id: str, key: str | None = None) -> None:
        """Tells how what a call asked was answered: all, or one of its questions."""
        for each in [*self._untold.values()]:
            if each.call_id == call_id and key in (None, each.key):
                self._emit([self._untold.pop(each.key)])

    def close_call(self, call_id: str) -> None:
        """Withdraws what a call that ends still asks."""
        self.tell(call_id)
        self._ended.add(call_id)
        for required, answered in list(self._open.values()):
            if required.call_id == call_id:
                self._end(required, "withdrawn")
                if not answered.done():
                    answered.set_result(InputAnswer("cancel"))

    def close(self) -> None:
        """Withdraws everything: the run ends."""
        self._closed = True
        for required, _ in list(self._open.values()):
            self.close_call(required.call_id)

    def _end(self, required: InputRequired, action: InputAction | Literal["withdrawn"]) -> None:
        if self._open.pop(required.key, None) is not None:
            self._emit([InputAnswered(required.key, required.call_id, action)])

    async def _ask_instead(self, answerer: Answerer, required: InputRequired) -> None:
        try:
            self.answer(required.key, await put(answerer, required))
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException:
            log.exception("The answerer of %s failed", required.call_id)
            # It may be answered by now, by somebody who calls `answer`.
            with suppress(DecisionRefused):
                self.answer(required.key, InputAnswer("cancel"))
