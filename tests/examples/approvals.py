"""Tools that ask first: answered event by event, by an approver, or by nobody."""

from __future__ import annotations

import asyncio

from web.harness import (
    Agent,
    Answer,
    ApprovalRequired,
    PermissionLevel,
    ToolRegistry,
    ToolResult,
)

tools = ToolRegistry()


@tools.register(permission=PermissionLevel.ASK)
def send_letter(to: str, text: str) -> str:
    """Sends a letter."""
    return f"sent to {to}: {text}"


async def answer_each_question() -> None:
    """A stream waits at a question until `decide` answers it, here with other arguments."""
    async with (
        Agent(tools=tools) as agent,
        agent.run_stream('/send_letter to=Ana text="See you on Monday"') as events,
    ):
        async for event in events:
            if isinstance(event.body, ApprovalRequired):
                question = event.body
                print(f"asked: {question.name} {question.arguments}")
                agent.decide(
                    question.key,
                    "allow",
                    arguments={**question.arguments, "text": "See you on Tuesday"},
                )
            elif isinstance(event.body, ToolResult):
                print(f"result: {event.body.text.splitlines()[0]}")


async def let_an_approver_answer() -> None:
    """An approver answers instead of a person: here letters to Ana, for the whole conversation."""

    async def approver(question: ApprovalRequired) -> Answer:
        if question.arguments.get("to") == "Ana":
            return Answer("allow_chat")
        return Answer("deny", reason="Only Ana gets letters.")

    async with Agent(tools=tools, approver=approver) as agent:
        for name in ("Ben", "Ana"):
            result = await agent.run(f'/send_letter to={name} text="Hello"')
            print(f"{name}: {result.text}")
        print("allowed for the whole conversation:", agent.permissions.grants)


async def ask_nobody() -> None:
    """`run` without an approver refuses what would have to be asked."""
    async with Agent(tools=tools) as agent:
        result = await agent.run('/send_letter to=Ana text="Hello"')
        print("nobody to ask:", "nobody" in result.text)


async def main() -> None:
    await answer_each_question()
    await let_an_approver_answer()
    await ask_nobody()


if __name__ == "__main__":
    asyncio.run(main())
