"""Memory that outlives a conversation, with tools of your own over the same stores.

The model gets `save_memory` and `recall_memories`, and a third tool that this program adds: it
shares the stores with the other two, so each sees at once what another one wrote. The files are for
people too: notes are markdown, and may be edited by hand.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from web.harness import Agent, AgentMemory, LongTermMemory, PermissionLevel
from web.harness.builtin import MemoryExtension, register_memory_tools


def new_agent(notes: AgentMemory, facts: LongTermMemory) -> Agent:
    """An agent with the memory tools and one of our own."""
    agent = Agent()  # without a provider: the scripted demo model
    register_memory_tools(agent.tools, long_term=facts, agent_memory=notes)

    @agent.tools.register(permission=PermissionLevel.ALLOW)
    def count_memories(tag: str = "") -> str:
        """Counts what is remembered.

        Args:
            tag: Count only notes with this tag.
        """
        if tag:
            return f"{len(notes.list(tags=[tag]))} notes with the tag {tag}"
        return f"{len(notes.list())} notes and {len(facts.list())} facts"

    return agent


async def main(folder: Path) -> None:
    notes, facts = AgentMemory(storage_dir=folder), LongTermMemory(storage_dir=folder)

    # One conversation learns something ...
    async with new_agent(notes, facts) as agent:
        result = await agent.run("Remember that this project analyzes invoices.")
        print(result.text)

    # ... the program itself adds to it ...
    notes.save("Invoices", "They come by mail, as PDF files.", tags=["project"])
    fact_id = facts.save("The deadline is in May", category="project")
    facts.update(fact_id, "The deadline is in June")
    print([fact.text for fact in facts.search(query="deadline")])

    # ... and another conversation, or another process, knows it.
    async with new_agent(AgentMemory(folder), LongTermMemory(folder)) as agent:
        result = await agent.run("What do you remember about invoices?")
        print(result.text)
        result = await agent.run("/count_memories")
        print(result.text)

    # As an extension it brings the tools, and has the model told what is remembered beforehand.
    extension = MemoryExtension(long_term=facts, agent_memory=notes)
    async with Agent(extensions=[extension]) as agent:
        result = await agent.run("What does this project analyze?")
        print(result.text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(main(Path(scratch)))
