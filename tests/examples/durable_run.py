"""A run whose process is killed while it waits for a yes: another process goes on with it."""

import asyncio
import os
import signal
import subprocess
import sys

from web.harness import Agent, AgentRuntime, ApprovalRequired, ToolRegistry

tools = ToolRegistry()


@tools.register(replay="manual")
def send_letter(to: str, text: str) -> str:
    """Sends a letter."""
    return f"sent to {to}: {text}"


async def begin() -> None:
    async with AgentRuntime(Agent(tools=tools, session_id="letters")) as runtime:
        handle = await runtime.submit('/send_letter to=Ana text="See you"', request_id="letter-1")
        async for event in handle.stream():
            if isinstance(event.body, ApprovalRequired):
                os.kill(os.getpid(), signal.SIGKILL)


async def go_on() -> None:
    async with AgentRuntime(Agent(tools=tools, session_id="letters")) as runtime:
        if run := await runtime.status():
            print(f"{run.status}: {run.pending[0].type}")
            handle = await runtime.approve(run.pending[0])
            print((await handle.result()).text)


if sys.argv[1:] == ["begin"]:
    asyncio.run(begin())
elif __name__ == "__main__":
    print("ended with", subprocess.run([sys.executable, __file__, "begin"]).returncode)
    asyncio.run(go_on())
