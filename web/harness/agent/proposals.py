"""The calls of an answer looked over before any of them runs, and the questions about them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import Any

from web.harness.agent.answer import Emit
from web.harness.agent.call import Call
from web.harness.agent.nested import Surroundings
from web.harness.agent.putting import put
from web.harness.agent.questions import Answer, Approver, Questions, as_answer
from web.harness.loop.actions import ProposedCall
from web.harness.tools.permissions import Permissions
from web.harness.tools.previews import bounded, in_short
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.threads import run_in_thread
from web.harness.tools.tool import PermissionLevel, Tool, ToolContext
from web.harness.values.errors import DecisionRefused, ToolError
from web.harness.values.events import ApprovalRequired
from web.harness.values.messages import JsonObject

log = logging.getLogger(__name__)

PREVIEW_SECONDS = 5.0
"""A question is put without its preview when that takes longer."""


class Proposals:
    """Serves one run. `decide` takes the answers of an approver."""

    def __init__(
        self,
        *,
        tools: ToolRegistry,
        permissions: Permissions,
        context: ToolContext,
        emit: Emit,
        around: Surroundings,
        questions: Questions,
        decide: Callable[[str, Answer], None],
    ) -> None:
        self._tools = tools
        self._permissions = permissions
        self._context = context
        self._emit = emit
        self._approver = around.approver
        self._keep_question = around.keep_question
        self._questions = questions
        self._decide = decide
        self._asking: set[asyncio.Task[None]] = set()

    async def look_over(self, call: Call, resumes: int, tasks: asyncio.TaskGroup) -> ProposedCall:
        """Whether the call may run; where a person has to say so, the question is put."""
        use = call.use
        refused = ProposedCall(use.id, use.name, "refuse")
        if use.malformed is not None:
            call.refusal = f"The arguments are not a JSON object: {use.malformed[:200]!r}"
            return refused
        try:
            arguments = self._tools.validate(use.name, use.arguments)
            tool = self._tools.get(use.name)
            if tool is None:
                raise ToolError(f"There is no tool {use.name}.")
            call.replay = tool.replay
            level = self._permissions.level(tool)
            if level is PermissionLevel.DENY:
                call.refusal = f"The tool {use.name} is not allowed here."
                return refused
            if level is PermissionLevel.ALLOW:
                granted = self._permissions.granted_by(tool)
                call.granted, call.approval = granted is not None, granted or ""
                return ProposedCall(use.id, use.name)
            whole = await self._preview(tool, arguments, call)
            short = await _in_short(whole)
        except ToolError as error:
            call.refusal = error.message
            return refused
        key = call.approval = self._questions.ask(use, resumes).key
        question = self._question(call, key, tool, whole)
        self._put(call, question, tasks)
        self._emit([replace(question, preview=short)])
        return ProposedCall(use.id, use.name, "run", key)

    def ask_again(self, call: Call, key: str, tasks: asyncio.TaskGroup) -> None:
        """Opens a question that was put before the process ended; it is in the log already.

        It can be answered at once. Who answers in the place of a person, or keeps whole previews,
        is told of it again.
        """
        self._questions.reopen(key, call.use)
        if self._approver is not None or self._keep_question is not None:
            self._begin(self._tell_again(call, key, tasks), tasks)

    def close(self) -> None:
        """Ends all questions."""
        self._questions.close()
        for task in tuple(self._asking):
            task.cancel()

    async def _tell_again(self, call: Call, key: str, tasks: asyncio.TaskGroup) -> None:
        tool, whole = self._tools.get(call.use.name), None
        if tool is not None:
            with suppress(ToolError):
                arguments = self._tools.validate(call.use.name, call.use.arguments)
                whole = await self._preview(tool, arguments, call)
        self._put(call, self._question(call, key, tool, whole), tasks)

    def _question(
        self, call: Call, key: str, tool: Tool | None, whole: JsonObject | None
    ) -> ApprovalRequired:
        use = call.use
        return ApprovalRequired(
            *(key, use.id, use.name, deepcopy(use.arguments), call.message_id, whole),
            *((tool.hints, tool.always_asks) if tool is not None else ()),
        )

    def _put(self, call: Call, question: ApprovalRequired, tasks: asyncio.TaskGroup) -> None:
        if self._keep_question is not None:
            self._keep_question(question)
        if self._approver is not None:
            self._begin(self._ask(self._approver, question, call), tasks)

    def _begin(self, asking: Coroutine[Any, Any, None], tasks: asyncio.TaskGroup) -> None:
        task = tasks.create_task(asking)
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, approver: Approver, question: ApprovalRequired, call: Call) -> None:
        try:
            self._decide(question.key, as_answer(await put(approver, question)))
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:
            log.exception("The approver of %s gave no answer", question.name)
            # It may be answered by now, by somebody who calls `decide`.
            with suppress(DecisionRefused):
                self._decide(question.key, Answer("deny"))
                call.refusal = _unanswered(error)

    async def _preview(self, tool: Tool, arguments: JsonObject, call: Call) -> JsonObject | None:
        """What the call would do; raises ToolError where it can be seen to fail."""
        if tool.preview is None:
            return None
        context = replace(self._context, call_id=call.use.id)
        try:
            async with asyncio.timeout(PREVIEW_SECONDS):
                preview = await tool.preview(arguments, context)
                return bounded(preview) if preview is not None else None
        except (ToolError, asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException:
            log.exception("The preview of the tool %s failed", tool.name)
            return None


async def _in_short(whole: JsonObject | None) -> JsonObject | None:
    if whole is None:
        return None
    return await run_in_thread(lambda: in_short(whole), finish=True)


def _unanswered(error: BaseException) -> str:
    """Why a call did not run whose approver failed; a program's own errors are for its log."""
    why = error.message if isinstance(error, DecisionRefused) else "the approver failed."
    return f"This call was not allowed, so it did not run: {why}"
