"""One runtime goes from session to session, and takes nothing of one along to another."""

from __future__ import annotations

import pytest

from tests.harness.runtime.runtimes import agent_for, ended, first_of, runtime_for, session
from tests.support.scripted_provider import calls, says
from web.harness.agent.extensions import BaseExtension
from web.harness.host import ExecutionServices, HarnessRuntime
from web.harness.runtime.agent_runtime import AgentRuntime
from web.harness.runtime.lending import KEPT
from web.harness.runtime.sql import SQLiteBackend
from web.harness.sessions.identity import LOCAL_IDENTITY, HarnessIdentity
from web.harness.tools.permissions import Permissions
from web.harness.values.errors import ConfigurationError, HarnessError
from web.harness.values.events import ApprovalRequired
from web.harness.values.messages import JsonObject, Message, TextBlock

pytestmark = pytest.mark.anyio

SAVE = calls(("save", {"text": "x"}))


class Noted(BaseExtension):
    name = "noted"

    def __init__(self) -> None:
        self.notes = ["first"]

    def state(self) -> JsonObject:
        return {"notes": self.notes}

    def restore(self, state: JsonObject) -> None:
        self.notes = state["notes"]


async def allowed_for_session(runtime: AgentRuntime, session_id: str) -> None:
    handle = await runtime.submit("save", session_id=session_id)
    await runtime.approve(await first_of(handle, ApprovalRequired), for_session=True)
    await ended(handle)


async def asks(runtime: AgentRuntime, session_id: str) -> bool:
    """Whether a call of `save` waits for a person, whom it is refused by then."""
    asked = False
    handle = await runtime.submit("save", session_id=session_id)
    async for event in handle.stream():
        if isinstance(event.body, ApprovalRequired):
            asked = True
            await runtime.decline(event.body)
    return asked


async def test_what_was_allowed_in_one_session_is_asked_about_in_another(
    backend: SQLiteBackend,
) -> None:
    script = (SAVE, says("done")) * 4
    async with runtime_for(backend, *script) as runtime:
        await allowed_for_session(runtime, "a")
        assert await asks(runtime, "b")
        assert not await asks(runtime, "a")
        assert (await session(backend, "b")).state[KEPT]["grants"] == []
    # The same where it was brought back from what the session keeps.
    async with runtime_for(backend, *script) as fresh:
        assert not await asks(fresh, "a")
        assert await asks(fresh, "b")


async def test_what_was_allowed_in_a_run_that_was_paused_goes_to_no_other_session(
    backend: SQLiteBackend,
) -> None:
    two = calls(("save", {"text": "x"}), ("save", {"text": "y"}))
    async with runtime_for(backend, two, SAVE, says("done")) as runtime:
        handle = await runtime.submit("save", session_id="a")
        await runtime.approve(await first_of(handle, ApprovalRequired), for_session=True)
        await runtime.pause("a")
        with pytest.raises(HarnessError):
            await ended(handle)
        assert await asks(runtime, "b")


async def test_usage_and_the_state_of_extensions_stay_with_their_session(
    backend: SQLiteBackend,
) -> None:
    noted = Noted()
    async with runtime_for(backend, says("hello"), extensions=[noted]) as runtime:
        await runtime.run("hi", session_id="a")
        used = runtime.agent.usage
        noted.notes.append("of a")
        await runtime.run("hi", session_id="a")
        await runtime.run("hi", session_id="b")
        assert noted.notes == ["first"]
        assert runtime.agent.usage == used
        await runtime.run("hi", session_id="a")
        assert noted.notes == ["first", "of a"]
        assert runtime.agent.usage.output_tokens == 3 * used.output_tokens


async def test_another_person_with_a_session_of_that_name_begins_anew(
    backend: SQLiteBackend,
) -> None:
    script = (SAVE, says("done")) * 2
    agent = agent_for(*script)
    async with AgentRuntime(agent, backend=backend) as runtime:
        await allowed_for_session(runtime, "s")
        runtime.identity = HarnessIdentity("there", "bob")
        assert await asks(runtime, "s")


async def test_what_the_application_allowed_holds_in_every_session(backend: SQLiteBackend) -> None:
    permissions = Permissions(grants=["save"])
    script = (SAVE, says("done")) * 2
    async with runtime_for(backend, *script, permissions=permissions) as runtime:
        assert not await asks(runtime, "a")
        assert not await asks(runtime, "b")


async def test_a_plain_turn_while_a_run_stands_still_stands_behind_it(
    backend: SQLiteBackend,
) -> None:
    async with runtime_for(backend, SAVE, says("done")) as runtime:
        handle = await runtime.submit("first")
        question = await first_of(handle, ApprovalRequired)
    stores = await backend.open()

    async def plain(services: ExecutionServices) -> None:
        last = services.history[-1].id if services.history else None
        services.history.append(Message("p-0", "user", (TextBlock("second"),), last))
        services.history.append(Message("p-1", "assistant", (TextBlock("plain"),), "p-0"))

    await HarnessRuntime(stores.sessions).run(LOCAL_IDENTITY, "s", plain)
    async with runtime_for(backend, says("done")) as runtime:
        await ended(await runtime.approve(question))
    kept = (await session(backend)).history
    assert [message.text for message in kept if message.role != "tool"] == [
        *("first", "", "done", "second", "plain")
    ]
    parents = [message.parent_id for message in kept]
    assert parents == [None, *(message.id for message in kept[:-1])]


async def test_a_session_that_cannot_be_brought_back_leaves_nothing_on_the_agent(
    backend: SQLiteBackend,
) -> None:
    class Picky(Noted):
        def restore(self, state: JsonObject) -> None:
            raise ConfigurationError("This cannot be read.")

    async with runtime_for(backend, says("hello"), extensions=[Noted()]) as runtime:
        await runtime.run("hi", session_id="other")
    async with runtime_for(backend, says("never"), extensions=[Picky()]) as runtime:
        agent = runtime.agent
        before = agent.session_id, agent.resource, agent.state
        with pytest.raises(ConfigurationError):
            await runtime.run("hi", session_id="other")
        assert (agent.session_id, agent.resource, agent.state) == before
