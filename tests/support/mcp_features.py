"""An MCP server written with the SDK that has all that is no tool. The same in both protocols.

As a program it speaks over stdio; a file that is named as its argument is counted up with each
start, so that a restart can be told.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server import ServerRequestContext
from mcp.server.mcpserver import Context, ListRoots, MCPServer, Resolve, Sample
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.resources import TextResource
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    CreateMessageResult,
    ElicitRequestURLParams,
    EmptyResult,
    ImageContent,
    ListRootsResult,
    ModelHint,
    ModelPreferences,
    PromptReference,
    ResourceTemplateReference,
    SamplingMessage,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)

TOWNS = {"fr": ["Paris", "Pau", "Nice"], "de": ["Berlin"]}
NOTES = "note://all"
PAGE = ElicitRequestURLParams(
    message="Pay here", url="https://pay.example/now", elicitation_id="visit-1"
)


def build_server() -> MCPServer:
    """Two resources, a template, a prompt, and tools that ask, grow and tell."""
    server = MCPServer("features", log_level="ERROR")
    _add_resources(server)
    _add_questions(server)
    _add_changes(server)
    return server


def _add_resources(server: MCPServer) -> None:
    @server.resource(NOTES, name="notes", mime_type="text/plain")
    def notes() -> str:
        return "Buy milk."

    @server.resource("picture://dot", mime_type="image/png")
    def dot() -> bytes:
        return b"\x89PNG\r\n\x1a\n"

    @server.resource("weather://{country}/{town}", name="weather")
    def weather(country: str, town: str) -> str:
        return f"Rain in {town}, {country}."

    @server.resource("big://text")
    def big() -> str:
        return "x" * 500_000

    @server.prompt(title="Plan a trip")
    def trip(country: str, town: str = "") -> str:
        """A weekend away."""
        return f"Plan a trip to {town or 'somewhere'} in {country}."

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(
        reference: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        if argument.name == "country":
            return Completion(values=[each for each in TOWNS if each.startswith(argument.value)])
        country = ((context and context.arguments) or {}).get("country", "")
        towns = TOWNS.get(country, [])
        return Completion(values=[each for each in towns if each.startswith(argument.value)])


def _ask_model(text: str) -> Sample:
    return Sample(
        [
            SamplingMessage(role="user", content=TextContent(text=text)),
            SamplingMessage(role="user", content=ImageContent(data="aGk=", mime_type="image/png")),
        ],
        max_tokens=50,
        system_prompt="Be brief.",
        stop_sequences=["STOP"],
        model_preferences=ModelPreferences(hints=[ModelHint(name="claude")]),
    )


def _ask_roots() -> ListRoots:
    return ListRoots()


def _add_questions(server: MCPServer) -> None:
    paid: list[str] = []

    @server.tool()
    def summarise(text: str, said: Annotated[CreateMessageResult, Resolve(_ask_model)]) -> str:
        words = said.content.text if isinstance(said.content, TextContent) else "?"
        return f"{said.model} ({said.stop_reason}): {words}"

    @server.tool()
    def roots(told: Annotated[ListRootsResult, Resolve(_ask_roots)]) -> str:
        return " ".join(f"{each.name} {each.uri}" for each in told.roots)

    @server.tool()
    def can(ctx: Context) -> str:
        able = ctx.client_capabilities
        return able.model_dump_json(by_alias=True, exclude_none=True) if able else "{}"

    @server.tool()
    def buy(ctx: Context, ever: bool = True) -> str:
        if not paid or not ever:
            paid.append("once")
            raise UrlElicitationRequiredError([PAGE])
        return "bought"

    @server.tool()
    async def pay(ctx: Context) -> str:
        result = await ctx.elicit_url(PAGE.message, PAGE.url, "visit-2")
        return f"paid: {result.action}"

    @server.tool()
    async def paid_elsewhere(ctx: Context, id: str) -> str:
        await ctx.session.send_elicit_complete(id)
        return "told"


def _add_changes(server: MCPServer) -> None:
    watched: set[str] = set()

    @server.tool()
    async def grow(ctx: Context) -> str:
        server.add_resource(TextResource(uri="note://late", name="late", text="late"))
        server.add_prompt(Prompt.from_function(lambda: "late", name="late"))
        await ctx.notify_resources_changed()
        await ctx.notify_prompts_changed()
        await ctx.session.send_resource_list_changed()
        await ctx.session.send_prompt_list_changed()
        return "grown"

    @server.tool()
    async def touch(uri: str, ctx: Context) -> str:
        await ctx.notify_resource_updated(uri)
        if uri in watched:
            await ctx.session.send_resource_updated(uri)
        return "touched"

    @server.tool()
    def end() -> str:
        os._exit(3)

    # The SDK serves watching to the newer protocol only.
    async def watch(
        context: ServerRequestContext[Any, Any], params: SubscribeRequestParams
    ) -> EmptyResult:
        if str(params.uri).startswith("secret:"):
            raise ValueError("not this one")
        watched.add(str(params.uri))
        return EmptyResult()

    async def unwatch(
        context: ServerRequestContext[Any, Any], params: UnsubscribeRequestParams
    ) -> EmptyResult:
        watched.discard(str(params.uri))
        return EmptyResult()

    low = server._lowlevel_server
    low.add_request_handler("resources/subscribe", SubscribeRequestParams, watch)
    low.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unwatch)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        starts = Path(sys.argv[1])
        starts.write_text((starts.read_text() if starts.exists() else "") + "x")
    build_server().run()
