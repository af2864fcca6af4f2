"""What the servers of a chat offer its person: resources, templates, prompts."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from web.chats.chat import Chat
from web.chats.parts.command_list import SHOWN_COMMANDS
from web.chats.parts.offer_kinds import (
    Command,
    FoundResources,
    Prompts,
    Resources,
    ShownField,
    ShownPrompt,
    ShownResource,
    ShownTemplate,
    Templates,
)
from web.chats.servers.readings import Material, attachable, filled, shown_contents
from web.chats.servers.uri_templates import read_template
from web.harness.mcp.connection import Connection
from web.harness.mcp.status import Status
from web.harness.mcp.wording import tidy
from web.harness.tools.outputs import MAX_URI_CHARS
from web.harness.values.errors import HarnessError, NotFound
from web.harness.values.events import ResultPart

if TYPE_CHECKING:
    import mcp_types

SHOWN_ENTRIES = 200
"""Of each list of a server; the rest is found by searching."""
SHOWN_CHARS = 100_000
"""The same, of all that is said of its entries."""
SHOWN_FOUND = 50
RESOURCES_RANK, TEMPLATES_RANK, PROMPTS_RANK = 1, 2, 3
"""After the tools of a server, whenever each of its lists comes in."""
MAX_NAME_CHARS = 200
MAX_DESCRIPTION_CHARS = 1_000
MAX_FIELDS = 40
MAX_COMMAND_CHARS = 200
"""Of what is said of a command."""

T = TypeVar("T")


class Offers:
    """What the servers of one chat offer, by the key of each server."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._servers: dict[str, Connection] = {}
        self._sources: dict[str, tuple[object, ...]] = {}
        """What was shown last of each server: its lists are replaced as a whole."""
        self._rows: dict[str, set[str]] = {}
        """The ids of the resources that are shown, of each server."""
        self._prompts: dict[str, tuple[mcp_types.Prompt, ...]] = {}

    # What is shown.

    def show(self, key: str, connection: Connection) -> None:
        """Brings the parts of one server up to what it offers now."""
        self._servers[key] = connection
        status = connection.status
        source = (
            *(status.resources, status.templates, status.prompts),
            *(status.watched, status.updated, status.completes, status.subscribable),
        )
        before = self._sources.get(key, ())
        if len(before) == len(source) and all(
            one is other for one, other in zip(before, source, strict=True)
        ):
            return
        self._sources[key] = source
        self._show_resources(key, connection)
        channel, name = self._chat.channel, connection.spec.name
        templates = _first(map(_template, status.templates))
        prompts = _first(_prompt(key, connection, each) for each in status.prompts)
        if templates:
            more = len(status.templates) - len(templates)
            part = Templates(name, key, templates, more, status.completes, status.subscribable)
            channel.put(f"{key}-templates", key, part, rank=TEMPLATES_RANK)
        else:
            channel.remove(f"{key}-templates")
        if prompts:
            more = len(status.prompts) - len(prompts)
            channel.put(f"{key}-prompts", key, Prompts(name, prompts, more), rank=PROMPTS_RANK)
        else:
            channel.remove(f"{key}-prompts")

    def _show_resources(self, key: str, connection: Connection) -> None:
        """The first of them, and all that are watched: each a part, as one may change often."""
        channel, status, slot = self._chat.channel, connection.status, f"{key}-resources"
        rows = _listed(key, status)
        ids = [f"{slot}-{each.ref}" for each in rows]
        for id in self._rows.get(key, set()).difference(ids):
            channel.remove(id)
        self._rows[key] = set(ids)
        if not rows:
            channel.remove(slot)
            return
        unlisted = sum(1 for each in rows if not each.title)
        count = len(status.resources) + unlisted
        updated = any(each.updated is not None for each in rows)
        name = connection.spec.name
        part = Resources(name, key, count, max(0, count - len(rows)), updated)
        channel.put(slot, key, part, rank=RESOURCES_RANK)
        for number, (id, each) in enumerate(zip(ids, rows, strict=True)):
            channel.put(id, slot, each, rank=number)

    def drop(self, key: str) -> None:
        """A server is gone; its parts go with its own."""
        self._servers.pop(key, None)
        self._sources.pop(key, None)
        self._rows.pop(key, None)

    def show_commands(self) -> None:
        """Brings the commands up to the prompts of all servers; after `show` of each."""
        prompts = {key: each.status.prompts for key, each in self._servers.items()}
        if prompts.keys() == self._prompts.keys() and all(
            prompts[key] is self._prompts[key] for key in prompts
        ):
            return
        self._prompts = prompts
        shown, more = prompt_commands("prompt", self._servers)
        self._chat.commands.put("prompt", shown, more)

    def search(self, key: str, words: str) -> FoundResources:
        """The resources in which these words stand. Raises NotFound."""
        status = self._server(key).status
        words = words.strip().casefold()[:MAX_NAME_CHARS]
        found = [each for each in status.resources if words in _searched(each)]
        rows = tuple(_resource(key, each, status) for each in found[:SHOWN_FOUND])
        return FoundResources(rows, len(found) - len(rows))

    # Resources.

    def listed(self, key: str, ref: str) -> tuple[str, str]:
        """Address and name of a resource that is listed or watched. Raises NotFound."""
        status = self._server(key).status
        for resource in status.resources:
            if ref_of(resource.uri) == ref:
                return resource.uri, _title(resource)
        for uri in status.watched:
            if ref_of(uri) == ref:
                return uri, ""
        raise NotFound("The server does not list this resource any more.")

    def expanded(self, key: str, ref: str, values: Mapping[str, str]) -> str:
        """The address that a template gives. Raises NotFound or HarnessError."""
        template = _find(self._server(key).status.templates, ref, lambda each: each.uri_template)
        try:
            return read_template(template.uri_template).expanded(values)
        except ValueError as error:
            raise HarnessError(
                f"This template cannot be filled in: {error}.", code="invalid_arguments"
            ) from None

    async def read(self, key: str, uri: str) -> tuple[ResultPart, ...]:
        """What a resource holds now, for a page. Raises ToolError or NotFound."""
        result = await self._server(key).read_resource(uri)
        return await shown_contents(result, self._chat.blobs.keep)

    async def material(self, key: str, uri: str, name: str = "") -> Material:
        """What of a resource goes with a message. Raises ToolError, NotFound or HarnessError."""
        connection = self._server(key)
        found = await connection.read_resource(uri)
        # In a thread: a picture has to be unpacked.
        return await asyncio.to_thread(attachable, found, name, connection.spec.name)

    async def watch(self, key: str, uri: str, *, on: bool) -> None:
        """Has changes of a resource told, or not any more. Raises ToolError or NotFound."""
        connection = self._server(key)
        await (connection.watch_resource(uri) if on else connection.unwatch_resource(uri))

    # Prompts.

    def prompt(self, key: str, ref: str) -> ShownPrompt:
        """Raises NotFound."""
        connection = self._server(key)
        found = _find(connection.status.prompts, ref, lambda each: each.name)
        return _prompt(key, connection, found)

    async def use(self, key: str, ref: str, typed: Mapping[str, str]) -> Material:
        """What a prompt brings, with what was typed by the names of its arguments.

        Raises HarnessError for a missing one, ToolError or NotFound.
        """
        connection = self._server(key)
        prompt = _find(connection.status.prompts, ref, lambda each: each.name)
        missing = [
            tidy(each.title or each.name, MAX_NAME_CHARS, one_line=True)
            for each in prompt.arguments or ()
            if each.required and not typed.get(each.name)
        ]
        if missing:
            raise HarnessError(
                f"Still to be filled in: {', '.join(missing)}.", code="invalid_arguments"
            )
        result = await connection.get_prompt(
            prompt.name, {name: value for name, value in typed.items() if value}
        )
        title = _title(prompt) or "Prompt"
        return await asyncio.to_thread(filled, result, title, connection.spec.name)

    # What is typed into their fields.

    def fields(self, key: str, kind: str, ref: str) -> tuple[str, ...]:
        """The names of the fields of a `template` or a `prompt`, in order. Raises NotFound."""
        status = self._server(key).status
        if kind == "template":
            template = _find(status.templates, ref, lambda each: each.uri_template)
            return _variables(template)[0]
        prompt = _find(status.prompts, ref, lambda each: each.name)
        return tuple(each.name for each in (prompt.arguments or ())[:MAX_FIELDS])

    async def complete(
        self, key: str, kind: str, ref: str, name: str, typed: Mapping[str, str]
    ) -> tuple[str, ...]:
        """What a field may become; the others that are typed are told. Raises NotFound."""
        import mcp_types as types

        connection = self._server(key)
        reference: types.PromptReference | types.ResourceTemplateReference
        if kind == "template":
            template = _find(connection.status.templates, ref, lambda each: each.uri_template)
            reference = types.ResourceTemplateReference(
                type="ref/resource", uri=template.uri_template
            )
        else:
            prompt = _find(connection.status.prompts, ref, lambda each: each.name)
            reference = types.PromptReference(type="ref/prompt", name=prompt.name)
        others = {each: value for each, value in typed.items() if value and each != name}
        return await connection.complete(reference, name, typed.get(name, ""), others)

    def _server(self, key: str) -> Connection:
        connection = self._servers.get(key)
        if connection is None:
            raise NotFound("There is no such MCP server in this chat.", hint="It was disconnected.")
        return connection


def ref_of(name: str) -> str:
    """What stands for a name or an address in forms."""
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]


def _find(entries: Iterable[T], ref: str, name: Callable[[T], str]) -> T:
    for each in entries:
        if ref_of(name(each)) == ref:
            return each
    raise NotFound("The server does not offer this any more.")


def _title(entry: mcp_types.Resource | mcp_types.ResourceTemplate | mcp_types.Prompt) -> str:
    return tidy(entry.title or entry.name, MAX_NAME_CHARS, one_line=True)


def _words(text: str | None) -> str:
    return tidy(text, MAX_DESCRIPTION_CHARS, one_line=True)


def _listed(key: str, status: Status) -> list[ShownResource]:
    """The first resources, and all that are watched, also those that no list has."""
    first = _first(_resource(key, each, status) for each in status.resources)
    pairs = zip(status.resources, first, strict=False)
    rows = {each.uri: row for each, row in pairs}
    for each in status.resources[len(first) :]:
        if each.uri in status.watched:
            rows[each.uri] = _resource(key, each, status)
    for uri in sorted(status.watched - rows.keys()):
        rows[uri] = ShownResource(
            key, ref_of(uri), "", _uri(uri), "", "", None, True, True, status.updated.get(uri)
        )
    return list(rows.values())


def _searched(resource: mcp_types.Resource) -> str:
    words = (resource.title, resource.name, resource.uri, resource.description)
    return "\n".join(each for each in words if each).casefold()


def _resource(key: str, resource: mcp_types.Resource, status: Status) -> ShownResource:
    return ShownResource(
        key=key,
        ref=ref_of(resource.uri),
        title=_title(resource) or _uri(resource.uri),
        uri=_uri(resource.uri),
        media_type=tidy(resource.mime_type, 100, one_line=True),
        description=_words(resource.description),
        size=resource.size,
        watchable=status.subscribable,
        watched=resource.uri in status.watched,
        updated=status.updated.get(resource.uri),
    )


def _uri(uri: str) -> str:
    return tidy(uri, MAX_URI_CHARS, one_line=True)


def _template(template: mcp_types.ResourceTemplate) -> ShownTemplate:
    names, fault = _variables(template)
    return ShownTemplate(
        ref=ref_of(template.uri_template),
        title=_title(template),
        template=_uri(template.uri_template),
        media_type=tidy(template.mime_type, 100, one_line=True),
        description=_words(template.description),
        fields=tuple(ShownField(name) for name in names),
        fault=fault,
    )


def _variables(template: mcp_types.ResourceTemplate) -> tuple[tuple[str, ...], str]:
    """The names of the variables, or why there are none."""
    try:
        return read_template(template.uri_template).names, ""
    except ValueError as error:
        return (), str(error)


def _prompt(key: str, connection: Connection, prompt: mcp_types.Prompt) -> ShownPrompt:
    return ShownPrompt(
        key=key,
        ref=ref_of(prompt.name),
        label=_label(prompt),
        title=tidy(prompt.title, MAX_NAME_CHARS, one_line=True),
        description=_words(prompt.description),
        server=connection.spec.name,
        fields=tuple(
            ShownField(
                tidy(each.title or each.name, MAX_NAME_CHARS, one_line=True) or "Value",
                _words(each.description),
                bool(each.required),
            )
            for each in (prompt.arguments or ())[:MAX_FIELDS]
        ),
        completes=connection.status.completes,
    )


def prompt_commands(kind: str, servers: Mapping[str, Connection]) -> tuple[list[Command], int]:
    """The prompts of servers, by their keys, as commands of a kind; and how many more there are."""
    every = (
        (f"{kind} {key} {ref_of(prompt.name)}", connection, prompt)
        for key, connection in servers.items()
        for prompt in connection.status.prompts
    )
    shown = [_command(*each) for each in islice(every, SHOWN_COMMANDS)]
    count = sum(len(connection.status.prompts) for connection in servers.values())
    return shown, count - len(shown)


def _command(id: str, connection: Connection, prompt: mcp_types.Prompt) -> Command:
    return Command(
        command_id=id,
        label=_label(prompt),
        title=tidy(prompt.title, MAX_NAME_CHARS, one_line=True),
        description=tidy(prompt.description, MAX_COMMAND_CHARS, one_line=True),
        source=connection.spec.name,
        asks=bool(prompt.arguments),
    )


def _label(prompt: mcp_types.Prompt) -> str:
    said = (tidy(each, MAX_NAME_CHARS, one_line=True) for each in (prompt.name, prompt.title))
    return f"/{next(filter(None, said), 'prompt')}"


def _first(rows: Iterable[T]) -> tuple[T, ...]:
    """The first of them, as many as are shown: one at least, and the rest is not even made."""
    shown: list[T] = []
    left = SHOWN_CHARS
    for row in rows:
        left -= len(repr(row))
        if shown and left < 0:
            break
        shown.append(row)
        if len(shown) == SHOWN_ENTRIES:
            break
    return tuple(shown)
