"""The part of the JSON API that connects MCP servers to a chat."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from web.chats.chat import Chat
from web.chats.servers.chat_servers import ChatServers
from web.chats.servers.shown_servers import where
from web.chats.servers.typed_servers import spec_of_entry
from web.harness.mcp.spec import ServerSpec
from web.harness.mcp.status import State
from web.ui.api.operations import Call, Operation
from web.ui.api.shapes import Asked, Nothing, Told


class NewServer(Asked):
    """An entry as in `mcpServers`: either `url` or `command` is given."""

    name: str | None = Field(None, description="Without one, it is named after what it is.")
    url: str | None = None
    headers: dict[str, str] | None = Field(None, description="Never told again.")
    command: str | None = Field(None, description="A program; a person has to start it.")
    args: tuple[str, ...] | None = Field(None, strict=False)
    env: dict[str, str] | None = Field(None, description="Never told again.")
    cwd: str | None = None
    protocol: Literal["auto", "2026-07-28", "legacy"] | None = None
    roots: bool | None = Field(None, description="It may know of the chat's folder unless false.")


class ToolOfServer(Told):
    """`name` is what models call it; `hints` are what the server says of it, unchecked."""

    name: str
    title: str
    description: str
    hints: tuple[str, ...]
    on: bool = Field(description="Whether it is offered to the model.")
    granted: bool = Field(description="A person allowed it for the chat.")
    changed: bool = Field(description="The server changed it since, so it asks again.")


class ServerOfChat(Told):
    key: str = Field(description="Of one that is proposed, the id of its proposal.")
    name: str
    state: State | Literal["proposed"]
    cause: str = Field(description="Why it is not ready.")
    of_host: bool = Field(description="It is of the configuration, so every chat has it.")
    where: str
    title: str
    version: str
    protocol: str
    instructions: str
    tools: tuple[ToolOfServer, ...]
    more_tools: int = Field(description="How many tools it has beside those listed.")


class ServerTaken(Told):
    """`connecting`; or `proposed`, until a person starts the command on the page.

    It is listed under `key`, which becomes another when it is started.
    """

    state: Literal["connecting", "proposed"]
    key: str


async def list_servers(call: Call[Nothing]) -> list[ServerOfChat]:
    servers = _servers(call)
    connected = [
        ServerOfChat(
            **{name: getattr(server, name) for name in _SAME},
            tools=tuple(map(ToolOfServer.model_validate, tools.tools)) if tools else (),
            more_tools=tools.more if tools else 0,
        )
        for server, tools in servers.shown()
    ]
    return connected + [_proposed(id, spec) for id, spec in servers.proposed().items()]


def _proposed(id: str, spec: ServerSpec) -> ServerOfChat:
    return ServerOfChat(
        key=id,
        name=spec.name,
        state="proposed",
        cause="A person has to start it on the page.",
        of_host=False,
        where=where(spec),
        title="",
        version="",
        protocol="",
        instructions="",
        tools=(),
        more_tools=0,
    )


_SAME = frozenset(ServerOfChat.model_fields) - {"tools", "more_tools"}


async def connect_server(call: Call[NewServer]) -> ServerTaken:
    servers = _servers(call)
    entry = call.body.model_dump(exclude={"name"}, exclude_none=True)
    spec = servers.checked(spec_of_entry(entry, call.body.name or "", servers.names()))
    if spec.kind == "stdio":
        return ServerTaken(state="proposed", key=servers.propose(spec))
    servers.connect(spec)
    key = next(server.key for server, _ in servers.shown() if server.name == spec.name)
    return ServerTaken(state="connecting", key=key)


async def disconnect_server(call: Call[Nothing]) -> None:
    servers, key = _servers(call), call.path["key"]
    if key in servers.proposed():
        servers.dismiss(key)
    else:
        servers.disconnect(key)


def _servers(call: Call[Any]) -> ChatServers:
    chats = call.services.chats
    chat: Chat = chats.get(call.identity, call.path["chat_id"])
    return chats.servers.of(chat)


SERVER_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        "/api/chats/{chat_id}/servers",
        "List the MCP servers of a chat, their states and their tools",
        list_servers,
        Nothing,
        list[ServerOfChat],
        refusals=("not_found",),
    ),
    Operation(
        "POST",
        "/api/chats/{chat_id}/servers",
        "Connect an MCP server; a command is only shown, and a person starts it on the page",
        connect_server,
        NewServer,
        ServerTaken,
        202,
        ("not_found", "configuration_error", "limit_exceeded"),
    ),
    Operation(
        "DELETE",
        "/api/chats/{chat_id}/servers/{key}",
        "Disconnect one of the chat's own MCP servers, or take a proposed one back",
        disconnect_server,
        Nothing,
        status=204,
        refusals=("not_found", "configuration_error"),
    ),
)
