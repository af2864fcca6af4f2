"""A client for the conformance suite: `python -m tests.conformance.client URL`.

It connects as a chat does, offers the tools as to a model, and uses all that the server has once.
Where a server asks, it answers as a person who sends the page's form as it is; where it wants a
sign-in, it goes to the page as that person's browser would.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence

import httpx2
import mcp_types

from web.harness.mcp.connection import Connection
from web.harness.mcp.connections import live_connections
from web.harness.mcp.offered import offered_tools
from web.harness.mcp.sign_in import SignInSetup
from web.harness.mcp.spec import OAuthClient, ServerSpec
from web.harness.mcp.tokens import TokenStore
from web.harness.tools.forms import read_form, read_typed
from web.harness.tools.tool import InputAnswer, ToolContext
from web.harness.values.messages import JsonObject

LISTED_ONLY = "json-schema-ref-no-deref"
"""The scenario whose server lists a tool and knows no call."""
HAS_MORE = "http-standard-headers"
"""The scenario whose server has resources and prompts too."""

_DESCRIBED_AT = "https://conformance-test.local/client-metadata.json"
"""The address of a client's description that the suite expects; nobody fetches it."""
_CALLBACK = "http://127.0.0.1:3030/callback"
_VALUES = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
}


async def main(url: str, scenario: str, told: JsonObject) -> None:
    """Raises ToolError where the server cannot be used, or refuses something."""
    spec = ServerSpec("conformance", "http", url=url, oauth=_registered(told))
    sign_in = SignInSetup(
        tokens=TokenStore(),
        client_metadata_url=_DESCRIBED_AT,
        redirect_uri=_CALLBACK,
        visit=redirected,
    )
    async with live_connections(os.environ, sign_in=sign_in) as connections:
        connection = connections.connect(spec)
        await connection.ready()
        await _call_tools(connection, told.get("toolCalls"), really=scenario != LISTED_ONLY)
        if scenario == HAS_MORE:
            await _read_all(connection)


async def _call_tools(
    connection: Connection, wanted: list[JsonObject] | None, *, really: bool
) -> None:
    """Calls what the suite wants to be called, else each tool with what it needs."""
    listed = connection.status.tools
    tools = {each.wire_name: each.tool for each in offered_tools("s", listed, connection.call)}
    for name, arguments in _calls(listed, wanted):
        tool = tools[name]
        # What the suite wants is sent as it is, null for a boolean too.
        if wanted is None and tool.validate is not None:
            arguments = tool.validate(arguments)
        if really:
            await tool.handler(arguments, ToolContext(name, ask=accepted_as_it_is))


async def _read_all(connection: Connection) -> None:
    """Reads each resource and prompt; their lists come soon after the connection is ready."""
    news = asyncio.Event()
    connection.watch(lambda _: news.set())
    while not (connection.status.resources and connection.status.prompts):
        await news.wait()
        news.clear()
    for resource in connection.status.resources:
        await connection.read_resource(resource.uri)
    for prompt in connection.status.prompts:
        await connection.get_prompt(prompt.name, {})


def _calls(
    tools: Sequence[mcp_types.Tool], wanted: list[JsonObject] | None
) -> list[tuple[str, JsonObject]]:
    if wanted is not None:
        return [(call["name"], call["arguments"]) for call in wanted]
    return [(tool.name, _needed(tool.input_schema)) for tool in tools]


def _needed(schema: JsonObject) -> JsonObject:
    properties = schema.get("properties", {})
    return {
        name: _VALUES.get(properties.get(name, {}).get("type"), "text")
        for name in schema.get("required", ())
    }


def _registered(told: JsonObject) -> OAuthClient | None:
    """How this client was made known to the authorisation server beforehand, if it was."""
    if "client_id" not in told:
        return None
    return OAuthClient(told["client_id"], told["client_secret"], issuer=told["issuer"])


async def accepted_as_it_is(
    request: JsonObject, /, *, state: JsonObject | None = None
) -> InputAnswer:
    """The answer of a person who changes nothing in the form and sends it."""
    fields = read_form(request.get("schema"))
    content, _ = read_typed(fields, {field.name: field.typed_default for field in fields})
    return InputAnswer("accept", content)


async def redirected(address: str) -> str:
    """Where the sign-in page sends the browser back to; it asks nothing in the suite."""
    async with httpx2.AsyncClient() as browser:
        page = await browser.get(address)
    return page.headers["location"]


if __name__ == "__main__":
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    asyncio.run(main(sys.argv[1], os.environ.get("MCP_CONFORMANCE_SCENARIO", ""), context))
