"""What people do with runs from any process: answer, cancel, pause, look."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from web.harness.agent.agent import Agent
from web.harness.agent.questions import check_edited, once_only
from web.harness.runtime.backend import Backend, executions_of
from web.harness.runtime.handle import RunHandle
from web.harness.runtime.questions import Question, open_questions
from web.harness.runtime.run_info import RunInfo, info_of
from web.harness.runtime.taking_up import check_fit
from web.harness.sessions.answers import STOP, check_answer, next_pause
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.journal import Execution, GivenAnswer
from web.harness.sessions.store import SessionStore
from web.harness.tools.forms import check_content, read_form
from web.harness.values.errors import (
    AgentBusy,
    DecisionRefused,
    HarnessError,
    NotFound,
    SessionConflict,
)
from web.harness.values.events import (
    ApprovalRequired,
    Decision,
    InputAction,
    InputRequired,
    RecoveryRequired,
    Resolution,
)
from web.harness.values.messages import JsonObject

LEASE_WAIT_SECONDS = 60.0
"""At a time, for a session that another process has; a lease is shorter."""


class Answering(ABC):
    """The part of `AgentRuntime` that works on runs of any process, through the database.

    A question is given as the event that put it, from a stream or from `status`, or by its key. It
    is bound to its call and its arguments, and answered once: DecisionRefused is raised for one
    that was answered already or is not open. With `resume` the run goes on here if no process has
    it and this runtime is free; the handle follows it wherever it is.
    """

    agent: Agent
    backend: Backend
    identity: HarnessIdentity
    session_id: str

    async def approve(
        self,
        pending: Question | str,
        *,
        arguments: JsonObject | None = None,
        for_session: bool = False,
        resume: bool = True,
        wait: float = 0,
    ) -> RunHandle:
        """Lets a call run, with other `arguments` where they are given, or its tool from now on
        without a question. Raises DecisionRefused (`invalid_arguments`) for arguments that do not
        fit; the question is still open then."""
        decision: Decision = "allow_chat" if for_session else "allow"

        def answer(question: Question) -> GivenAnswer:
            question = _approval(question)
            if for_session and question.always_asks:
                raise once_only(question.name)
            body: JsonObject = {"decision": decision}
            if arguments is not None and arguments != question.arguments:
                check_answer(
                    GivenAnswer("decision", question.key, {**body, "arguments": arguments})
                )
                body["arguments"] = check_edited(self.agent.tools, question.name, arguments)
            return GivenAnswer("decision", question.key, body)

        return await self._answer(pending, answer, resume, wait)

    async def decline(
        self, pending: Question | str, reason: str = "", *, resume: bool = True, wait: float = 0
    ) -> RunHandle:
        """Says no: the call does not run and the model is told, with the reason; a tool that asks
        for input gets none."""

        def answer(question: Question) -> GivenAnswer:
            if isinstance(question, InputRequired):
                return GivenAnswer("input", question.key, {"action": "decline"})
            key = _approval(question).key
            return GivenAnswer("decision", key, {"decision": "deny", "reason": reason})

        return await self._answer(pending, answer, resume, wait)

    async def answer_input(
        self,
        pending: Question | str,
        content: JsonObject | None = None,
        *,
        action: InputAction = "accept",
        resume: bool = True,
        wait: float = 0,
    ) -> RunHandle:
        """Gives a tool what it asks for. Raises FormRefused for content that does not fit its form;
        the question is still open then."""

        def answer(question: Question) -> GivenAnswer:
            if not isinstance(question, InputRequired):
                raise _other_kind(question)
            body: JsonObject = {"action": action}
            if action == "accept" and question.request.get("mode") != "url":
                body["content"] = {} if content is None else content
                check_answer(GivenAnswer("input", question.key, body))
                check_content(read_form(question.request.get("schema")), body["content"])
            return GivenAnswer("input", question.key, body)

        return await self._answer(pending, answer, resume, wait)

    async def resolve_tool(
        self,
        pending: Question | str,
        how: Resolution,
        text: str = "",
        *,
        resume: bool = True,
        wait: float = 0,
    ) -> RunHandle:
        """Says what is done about a call of which nobody knows whether it ran.

        "result": it ran, and `text` is what it gave; "retry": it runs again; "abort": the run is
        given up.
        """

        def answer(question: Question) -> GivenAnswer:
            if not isinstance(question, RecoveryRequired):
                raise _other_kind(question)
            if how not in ("result", "retry", "abort"):
                raise DecisionRefused(
                    "This is no way to go on.", hint="Say result, retry or abort."
                )
            return GivenAnswer("resolution", question.key, {"how": how, "text": text})

        return await self._answer(pending, answer, resume, wait)

    async def cancel(
        self, session_id: str | None = None, *, run_id: str | None = None, wait: float = 0
    ) -> RunHandle:
        """Stops the run of a session for good, wherever it is performed. One that was cut off or
        paused is brought to its end here, whatever its agent was; where the process that had it is
        not known to be gone, by whoever waits with the handle until its lease has run out.
        Raises NotFound without a run."""
        execution = await self._unfinished(session_id, run_id)
        await self._tell(execution, STOP)
        handle = await self._went_on(execution, resume=True, wait=wait)
        if not handle.is_here:
            handle.instead = partial(self._in_its_place, execution)
        return handle

    async def pause(self, session_id: str | None = None, *, run_id: str | None = None) -> RunHandle:
        """Stops the run of a session so that `resume` goes on with it, wherever it is performed.

        Tools that run are let end; the answer that a model is writing is begun anew later.
        Raises NotFound without a run.
        """
        execution = await self._unfinished(session_id, run_id)
        stores = await self.backend.open()
        given = await executions_of(stores).answers(execution.submission.run_id)
        await self._tell(execution, next_pause(given))
        if self._handle_here(execution.submission.run_id) is None:
            await self._mark_paused(execution)
        return await self._went_on(execution, resume=False, wait=0)

    async def status(
        self, session_id: str | None = None, *, run_id: str | None = None
    ) -> RunInfo | None:
        """How the unfinished run of a session stands, or the one that is named; None for none.

        Of several the one that has begun, else the oldest."""
        stores = await self.backend.open()
        executions = executions_of(stores)
        if run_id is not None:
            found = await executions.find(run_id)
            execution = found if found is not None and self._is_own(found) else None
        else:
            execution = await self._first(session_id or self.session_id)
        if execution is None:
            return None
        here = self._handle_here(execution.submission.run_id) is not None
        return await info_of(stores, execution, is_here=here)

    @abstractmethod
    def _handle_here(self, run_id: str) -> RunHandle | None: ...

    @abstractmethod
    async def _start(self, execution: Execution, wait: float) -> RunHandle: ...

    @abstractmethod
    async def _sessions(self) -> SessionStore: ...

    async def _mark_paused(self, execution: Execution) -> None:
        """Says of a run that no process performs that it is to stay so."""
        submission = execution.submission
        executions, sessions = executions_of(await self.backend.open()), await self._sessions()
        try:
            async with await sessions.acquire(submission.identity, submission.session_id):
                now = await executions.find(submission.run_id)
                if now is not None and now.status != "ended":
                    await executions.set_status(submission.run_id, "paused", now.fence)
        except SessionConflict:
            pass  # Whoever performs it has been told.

    async def _unfinished(self, session_id: str | None, run_id: str | None) -> Execution:
        if run_id is None:
            execution = await self._first(session_id or self.session_id)
        else:
            execution = await executions_of(await self.backend.open()).find(run_id)
        if execution is not None and execution.status != "ended" and self._is_own(execution):
            return execution
        raise NotFound("There is no run that has not ended.", hint="Nothing was done.")

    async def _first(self, session_id: str) -> Execution | None:
        """The run of a session that is under way or was; else the message that waits longest."""
        executions = executions_of(await self.backend.open())
        waiting = await executions.unfinished(self.identity, session_id)
        for execution in waiting:
            is_here = self._handle_here(execution.submission.run_id) is not None
            if is_here or execution.fence or execution.steps:
                return execution
        return waiting[0] if waiting else None

    async def _answer(
        self,
        pending: Question | str,
        answer: Callable[[Question], GivenAnswer],
        resume: bool,
        wait: float,
    ) -> RunHandle:
        key = pending if isinstance(pending, str) else getattr(pending, "key", None)
        if not isinstance(key, str) or not key:
            raise DecisionRefused(
                "This is no question.",
                hint="Give one of `status().pending`, the event that put it, or its key.",
            )
        execution = await self._asked_by(key)
        run_id, stores = execution.submission.run_id, await self.backend.open()
        executions = executions_of(stores)
        for question in await open_questions(executions, stores.events, run_id):
            if question.key == key:
                given = answer(question)
                check_answer(given)
                break
        else:
            raise _not_open()
        if resume:
            await self._check_may_go_on(execution, wait)
        await executions.answer(run_id, given)
        await self.backend.answered(run_id, given)
        return await self._went_on(execution, resume=resume, wait=wait)

    async def _check_may_go_on(self, execution: Execution, wait: float) -> None:
        """Raises where nobody but this runtime would go on with a run, and its agent cannot: what
        was said would be written down, and nothing would come of it."""
        submission = execution.submission
        if self._handle_here(submission.run_id) is not None or self.agent.is_running:
            return
        executions = executions_of(await self.backend.open())
        if any(each.kind == "cancel" for each in await executions.answers(submission.run_id)):
            return
        try:
            await check_fit(executions, execution, self.agent)
        except HarnessError:
            sessions = await self._sessions()
            with suppress(SessionConflict):
                async with await sessions.acquire(
                    submission.identity, submission.session_id, wait=wait
                ):
                    raise

    async def _asked_by(self, key: str) -> Execution:
        """The run that a question is of: its key begins with the run's id."""
        executions = executions_of(await self.backend.open())
        for execution in await executions.unfinished(self.identity):
            if key.startswith(f"{execution.submission.run_id}-"):
                return execution
        raise _not_open()

    async def _tell(self, execution: Execution, given: GivenAnswer) -> None:
        run_id = execution.submission.run_id
        # Somebody may have said it already, or the run has ended meanwhile.
        with suppress(DecisionRefused):
            await executions_of(await self.backend.open()).answer(run_id, given)
        await self.backend.answered(run_id, given)

    async def _went_on(self, execution: Execution, *, resume: bool, wait: float) -> RunHandle:
        """A handle of a run that was told something; it is performed here if nobody does."""
        here = self._handle_here(execution.submission.run_id)
        if here is not None:
            return here
        if resume:
            # Else whoever performs it is told, and so is who resumes it.
            with suppress(SessionConflict, AgentBusy):
                here = await self._begun_here(execution, wait)
        return here if here is not None else RunHandle(await self.backend.open(), execution)

    async def _begun_here(self, execution: Execution, wait: float) -> RunHandle | None:
        """None where another process brought the run to its end meanwhile, or it was forgotten."""
        try:
            return await self._start(execution, wait)
        except HarnessError as error:
            if error.code not in ("run_ended", "not_found"):
                raise
            return None

    async def _in_its_place(self, execution: Execution) -> RunHandle | None:
        """Waits until no process has the session of a run, then goes on with it here. None where
        it has ended. Raises what beginning a run raises."""
        submission, sessions = execution.submission, await self._sessions()
        while True:
            try:
                # This runtime is free for other runs until then.
                async with await sessions.acquire(
                    submission.identity, submission.session_id, wait=LEASE_WAIT_SECONDS
                ):
                    pass
                return await self._begun_here(execution, wait=0)
            except SessionConflict as error:
                if error.code != "session_conflict":
                    raise

    def _is_own(self, execution: Execution) -> bool:
        return execution.submission.identity == self.identity


def _approval(question: Question) -> ApprovalRequired:
    if isinstance(question, ApprovalRequired):
        return question
    raise _other_kind(question)


def _other_kind(question: Question) -> DecisionRefused:
    asks = {
        "approval_required": "approve it or decline it",
        "input_required": "answer it with answer_input, or decline it",
        "recovery_required": "answer it with resolve_tool",
    }
    return DecisionRefused(
        "This question is of another kind.",
        hint=f"To go on, {asks[question.type]}. It is still open.",
    )


def _not_open() -> DecisionRefused:
    return DecisionRefused(
        "This question is not open.",
        hint="It was answered already, or its run has gone on or ended. Nothing was changed.",
    )
