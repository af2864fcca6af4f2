"""The MCP servers of a chat as they are kept: what they are reached by, and no secret.

A connection itself is never kept. When its chat is loaded an address is connected again, a command
is proposed again, and where a secret was typed the page says that it is needed again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from web.chats.chat import Chat
from web.chats.parts.setup_kinds import NeededAgain
from web.chats.servers.chat_servers import ChatServers
from web.chats.servers.typed_servers import spec_of_entry
from web.harness.mcp.secret_looks import secrets_of_arguments, secrets_of_path
from web.harness.mcp.spec import ServerSpec
from web.harness.values.errors import HarnessError
from web.harness.values.messages import JsonObject

log = logging.getLogger(__name__)

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|PWD|AUTH|CRED|COOKIE|SIGNATURE|//[^/]*@", re.I)
"""What an argument of a command holds if it may be a secret, or comes before one."""


def kept_servers(
    chat: Chat, servers: ChatServers, demo: ServerSpec | None
) -> tuple[JsonObject, ...]:
    """The entries of a chat's own servers, in their order."""
    own = [*servers.own_specs(), *servers.proposed().values()]
    names = {spec.name for spec in own}
    entries = [kept_entry(spec, demo) for spec in own]
    for part in chat.channel.parts():
        if isinstance(part.data, NeededAgain):
            if part.data.name in names:
                servers.dismiss(part.data.proposal_id)
            else:
                entries.append(part.data.entry)
    tools = {name: mark for name, mark in servers.marks.items() if name in chat.grants}
    return (*entries, {"tools": tools}) if tools else tuple(entries)


def kept_entry(spec: ServerSpec, demo: ServerSpec | None = None) -> JsonObject:
    """A server without its secrets; `needed` says in words what was left out."""
    if spec == demo:
        return {"name": spec.name, "demo": True}
    entry: JsonObject = {"protocol": spec.protocol, "roots": spec.roots}
    needed: list[str] = []
    if spec.kind == "stdio":
        named = any(_SECRET.search(argument) for argument in spec.args)
        secret = named or bool(secrets_of_arguments(spec.args))
        entry |= {"command": spec.command, "args": [] if secret else list(spec.args)}
        if spec.cwd is not None:
            entry["cwd"] = spec.cwd
        if secret:
            needed.append("its arguments")
        needed += [f"the variable {name}" for name in spec.env]
    else:
        parts = urlsplit(spec.url)
        entry |= {"type": spec.kind, "url": spec.address}
        if parts.query or "@" in parts.netloc or secrets_of_path(parts.path):
            needed.append("the rest of its address")
        needed += [f"the header {name}" for name in spec.headers]
        if spec.oauth is not None:
            needed.append("its registered client")
    return {"name": spec.name, "entry": entry, "needed": needed}


def connect_again(
    chat: Chat,
    servers: ChatServers,
    entries: Iterable[JsonObject],
    demo: ServerSpec | None,
    new_id: Callable[[], str],
) -> None:
    """Does with each server of a chat that was loaded what may be done without a person."""
    for entry in entries:
        try:
            if "tools" in entry:
                servers.marks.update(
                    {str(name): str(mark) for name, mark in entry["tools"].items()}
                )
            elif entry.get("demo"):
                if demo is not None:
                    servers.connect(demo)
            elif entry["needed"]:
                needed = tuple(map(str, entry["needed"]))
                shown = NeededAgain(new_id(), str(entry["name"]), needed, entry)
                servers.needed[shown.proposal_id] = shown.name
                chat.channel.put(f"p-{shown.proposal_id}", "proposals", shown)
            else:
                spec = spec_of_entry(entry["entry"], str(entry["name"]), servers.names())
                if spec.kind == "stdio":
                    servers.propose(spec)
                else:
                    servers.connect(spec)
        except (HarnessError, KeyError, AttributeError) as error:
            log.warning("A server of chat %s is not connected again: %s", chat.id, error)
