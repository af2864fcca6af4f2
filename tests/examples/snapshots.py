"""A conversation saved to a file, and gone on with later, by this process or another one.

A snapshot holds configuration, messages, usage, cost, learned limits, metadata and the state of
extensions. Tools, handlers and keys are in none: they are given again when it is loaded.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from web.harness import (
    Agent,
    AgentConfig,
    BaseExtension,
    HarnessError,
    HookEvent,
    Limits,
    Prices,
    SnapshotFolder,
)

CONFIG = AgentConfig(
    system_prompt="You keep the books.",
    limits=Limits(max_iterations=12, prices=Prices(input_cost_per_m=3, output_cost_per_m=15)),
)


class Questions(BaseExtension):
    """Counts the runs of a conversation; its count is saved with it."""

    name = "questions"

    def __init__(self) -> None:
        self.count = 0

    def install(self, agent: Agent) -> None:
        agent.hooks.on(HookEvent.RUN_ENDED, lambda happening: self.add())

    def add(self) -> None:
        self.count += 1

    def state(self) -> dict[str, Any]:
        return {"count": self.count}

    def restore(self, state: dict[str, Any]) -> None:
        self.count = state["count"]


async def save(folder: Path) -> str:
    """One conversation, saved when its run has ended."""
    async with Agent(CONFIG, extensions=[Questions()]) as agent:
        await agent.run("Remember that this project analyzes invoices.")
        agent.metadata["topic"] = "invoices"
        return await agent.save_session(storage_dir=folder)


async def go_on(session_id: str, folder: Path) -> None:
    """The same conversation, with the same extensions; `config` may be left out."""
    questions = Questions()
    restored = await Agent.load_session(
        session_id, storage_dir=folder, config=CONFIG, extensions=[questions]
    )
    async with restored:
        before = restored.usage.input_tokens
        for message in restored.memory.get_messages()[:1]:
            print(f"{message.role}: {message.text}")
        await restored.run("What does this project analyze?")
        print("tokens are counted on:", restored.usage.input_tokens > before > 0)
        print(f"its extension goes on: {questions.count} questions")
        await restored.save_session(storage_dir=folder)


async def what_is_refused(session_id: str, folder: Path) -> None:
    """Every way in which a snapshot does not fit is an error that says so."""
    other = replace(CONFIG, limits=replace(CONFIG.limits, max_iterations=50))
    try:
        await Agent.load_session(session_id, storage_dir=folder, config=other)
    except HarnessError as error:
        print("other limits:", error.message)

    file = folder / f"{session_id}.json"
    file.write_text(file.read_text().replace("invoices", "recipes"))
    for what, wanted in (("edited", session_id), ("no such id", "../elsewhere")):
        try:
            await Agent.load_session(wanted, storage_dir=folder)
        except HarnessError as error:
            print(f"{what}:", error.message)

    async with Agent(CONFIG, metadata={"opened": datetime.now(UTC)}) as agent:
        try:
            await agent.save_session(storage_dir=folder)
        except HarnessError as error:
            print("cannot be saved:", error.message)
    print("saved in all:", SnapshotFolder(folder).list() == [session_id])


async def main(folder: Path) -> None:
    session_id = await save(folder)
    await go_on(session_id, folder)
    await what_is_refused(session_id, folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(main(Path(scratch)))
