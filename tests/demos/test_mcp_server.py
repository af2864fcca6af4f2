"""The demo server as a host meets it: a real process, in both eras of the protocol."""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.context import ClientRequestContext
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp.types import (
    CallToolResult,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    LoggingMessageNotificationParams,
    ProgressNotification,
    PromptReference,
    ResourceLink,
    ResourceTemplateReference,
    ResourceUpdatedNotification,
    SubscribeRequest,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
)

from tests.support.environment import CHECKOUT, environment
from web.demos.counter import COUNT_URI

pytestmark = pytest.mark.anyio

SECONDS = 30
"""How long anything may take on a busy machine."""
PLANET = ResourceTemplateReference(type="ref/resource", uri="demo://planets/{name}")
EXPLAIN = PromptReference(type="ref/prompt", name="explain_planet")


class Host:
    """A client with a person before it: what they answer, were asked, and saw."""

    def __init__(self, mode: str) -> None:
        self.answer = ElicitResult(action="cancel")
        self.asked: list[ElicitRequestFormParams] = []
        self.logged: list[tuple[str, Any]] = []
        self.counted: list[tuple[float, float | None, str | None]] = []
        self.progressed: list[ProgressNotification] = []
        self.updated: list[str] = []
        self._news = anyio.Event()
        self.mode = mode
        self.client = Client(
            StdioServerParameters(
                command=sys.executable,
                args=["-m", "web", "demo-server"],
                env=environment(),
                cwd=CHECKOUT,
            ),
            mode=mode,
            read_timeout_seconds=SECONDS,
            elicitation_callback=self._ask,
            logging_callback=self._log,
            log_level="info",
            message_handler=self._watch,
        )

    async def call(self, tool: str, /, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(tool, arguments)

    async def count(self, number: int, pause_seconds: float) -> CallToolResult:
        return await self.client.call_tool(
            "count_to",
            {"number": number, "pause_seconds": pause_seconds},
            progress_callback=self._progress,
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for messages that arrive on their own."""
        with anyio.fail_after(SECONDS):
            while not condition():
                await self._news.wait()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def _ask(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(params)
        return self.answer

    async def _log(self, params: LoggingMessageNotificationParams) -> None:
        self.logged.append((params.level, params.data))
        self._tell()

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.counted.append((progress, total, message))
        self._tell()

    async def _watch(self, message: object) -> None:
        if isinstance(message, ProgressNotification):
            self.progressed.append(message)
            self._tell()
        elif isinstance(message, ResourceUpdatedNotification):
            self.updated.append(str(message.params.uri))
            self._tell()


@pytest.fixture(scope="module", params=["legacy", "2026-07-28"])
async def connected(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Host]:
    """One process for each era."""
    host = Host(request.param)
    async with host.client:
        yield host


@pytest.fixture
def host(connected: Host) -> Host:
    """A host that has seen nothing yet."""
    for seen in (connected.asked, connected.logged, connected.counted, connected.progressed):
        seen.clear()
    connected.answer = ElicitResult(action="cancel")
    return connected


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def pixels(png: bytes) -> list[bytes]:
    """Rows of palette places; fails unless it is a whole PNG with a right sum for each part."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks: dict[bytes, bytes] = {}
    place = 8
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place : place + 8])
        data = png[place + 8 : place + 8 + length]
        (total,) = struct.unpack(">I", png[place + 8 + length : place + 12 + length])
        assert total == zlib.crc32(kind + data)
        chunks[kind] = data
        place += 12 + length
    assert list(chunks) == [b"IHDR", b"PLTE", b"IDAT", b"IEND"]
    width, height, depth, colours, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, colours) == (8, 3)
    raw = zlib.decompress(chunks[b"IDAT"])
    assert len(raw) == height * (width + 1)
    return [raw[row * (width + 1) + 1 : (row + 1) * (width + 1)] for row in range(height)]


def bars(rows: list[bytes], colour: int) -> list[int]:
    """Heights of the bars of one colour, from left to right."""
    heights = [sum(row[column] == colour for row in rows) for column in range(len(rows[0]))]
    found = [height for height, before in zip(heights, [0, *heights], strict=False) if not before]
    return [height for height in found if height]


async def test_it_speaks_the_era_that_was_asked_for(host: Host) -> None:
    spoken = host.client.protocol_version
    assert (spoken >= "2026-07-28") == (host.mode != "legacy")


async def test_only_the_order_says_that_it_changes_something(host: Host) -> None:
    tools = (await host.client.list_tools()).tools
    assert {tool.name for tool in tools if tool.title and tool.description} == {
        *("greet", "draw_bar_chart", "list_planets", "show_planet"),
        *("count_to", "order_pizza", "divide"),
    }
    hints = {tool.name: tool.annotations for tool in tools}
    assert all(hint and hint.open_world_hint is False for hint in hints.values())
    assert all(hint and hint.destructive_hint is False for hint in hints.values())
    changing = [name for name, hint in hints.items() if hint and not hint.read_only_hint]
    assert changing == ["order_pizza"]


async def test_text_arrives_in_any_script(host: Host) -> None:
    assert text_of(await host.call("greet", name="Ada")) == "Hello, Ada!"
    assert (
        text_of(await host.call("greet", name="Ada", language="日本語")) == "こんにちは、Adaさん!"
    )


async def test_the_bars_of_a_chart_are_as_high_as_its_numbers(host: Host) -> None:
    result = await host.call("draw_bar_chart", numbers=[1, 2, -1.5, 4])
    image, said = result.content
    assert isinstance(image, ImageContent)
    assert isinstance(said, TextContent)
    assert image.mime_type == "image/png"
    assert said.text == "A bar chart of 1, 2, -1.5, 4."
    rows = pixels(base64.b64decode(image.data))
    rising, falling = bars(rows, 3), bars(rows, 4)
    unit = rising[2] / 4
    assert [round(height / unit, 1) for height in rising] == [1, 2, 4]
    assert [round(height / unit, 1) for height in falling] == [1.5]


@pytest.mark.parametrize("numbers", [[0], [-3], [7] * 24, [1e9, -1e9], [0.001, -123456.789] * 12])
async def test_a_chart_of_extreme_numbers_is_a_whole_picture(
    host: Host, numbers: list[float]
) -> None:
    result = await host.call("draw_bar_chart", numbers=numbers)
    image = result.content[0]
    assert isinstance(image, ImageContent)
    assert len(pixels(base64.b64decode(image.data))) == 270


async def test_a_table_is_structured_as_its_schema_says(host: Host) -> None:
    (tool,) = [
        tool for tool in (await host.client.list_tools()).tools if tool.name == "list_planets"
    ]
    assert tool.output_schema is not None
    assert set(tool.output_schema["required"]) == {"note", "planets"}
    # The client checks the result against the schema, and raises if it does not fit.
    result = await host.call("list_planets", sort_by="diameter")
    table = result.structured_content
    assert isinstance(table, dict)
    assert table["note"].startswith("Sample data")
    diameters = [row["diameter_km"] for row in table["planets"]]
    assert diameters == sorted(diameters)
    assert len(diameters) == 8
    assert json.loads(text_of(result)) == table


async def test_what_is_embedded_and_linked_can_be_read(host: Host) -> None:
    result = await host.call("show_planet", name="Mars")
    _, embedded, picture, link = result.content
    assert isinstance(embedded, EmbeddedResource)
    assert isinstance(picture, EmbeddedResource)
    assert isinstance(link, ResourceLink)
    assert picture.resource.mime_type == "image/png"
    (read,) = (await host.client.read_resource(embedded.resource.uri)).contents
    assert read.model_dump(exclude={"meta"}) == embedded.resource.model_dump(exclude={"meta"})
    (linked,) = (await host.client.read_resource(link.uri)).contents
    assert isinstance(linked, TextResourceContents)
    assert len(json.loads(linked.text)["planets"]) == 8


async def test_a_count_reports_each_step_and_logs_what_was_asked_for(host: Host) -> None:
    if host.mode == "legacy":
        with pytest.warns(match="logging"):
            await host.client.set_logging_level("info")
    assert text_of(await host.count(3, 0.01)) == "Counted to 3."
    await host.until(lambda: len(host.counted) >= 3 and ("info", "Done.") in host.logged)
    assert host.counted == [(1, 3, "1 of 3"), (2, 3, "2 of 3"), (3, 3, "3 of 3")]
    assert host.logged == [("info", "Counting to 3."), ("info", "Done.")]


async def test_a_count_that_is_cancelled_stops(host: Host) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.count, 1000, 0.02)
        await host.until(lambda: len(host.counted) > 0)
        tasks.cancel_scope.cancel()
    await host.call("greet", name="Ada")
    before = len(host.progressed)
    # While this one counts to ten, the one before would have counted on.
    await host.count(10, 0.02)
    await host.until(lambda: len(host.progressed) >= before + 10)
    assert [note.params.progress for note in host.progressed[before:]] == list(range(1, 11))


async def test_the_form_has_a_field_of_each_kind(host: Host) -> None:
    await host.call("order_pizza")
    (form,) = host.asked
    fields = form.requested_schema["properties"]
    assert form.requested_schema["required"] == ["name"]
    assert (fields["name"]["type"], fields["name"]["maxLength"]) == ("string", 40)
    assert (fields["pizzas"]["minimum"], fields["pizzas"]["maximum"]) == (1, 10)
    assert fields["size"]["default"] == "medium"
    assert {"const": "small", "title": "Small (24 cm)"} in fields["size"]["oneOf"]
    assert "olives" in fields["toppings"]["items"]["enum"]
    assert (fields["toppings"]["maxItems"], fields["toppings"]["default"]) == (
        *(3, ["basil", "olives"]),
    )
    assert (fields["extra_cheese"]["type"], fields["extra_cheese"]["default"]) == ("boolean", False)


async def test_an_accepted_order_is_repeated(host: Host) -> None:
    host.answer = ElicitResult(
        action="accept",
        content={
            "name": "Ada",
            "pizzas": 2,
            "size": "large",
            "toppings": ["basil"],
            "extra_cheese": True,
        },
    )
    result = await host.call("order_pizza")
    assert not result.is_error
    assert "for Ada: 2 pizzas, large, with basil and extra cheese. This is a demo" in text_of(
        result
    )
    assert len(host.asked) == 1


@pytest.mark.parametrize(("action", "did"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_no_pizza_without_consent(host: Host, action: Any, did: str) -> None:
    host.answer = ElicitResult(action=action)
    result = await host.call("order_pizza")
    assert not result.is_error
    assert text_of(result) == f"No pizza was ordered: the person {did} the form."


async def test_an_order_out_of_bounds_is_refused(host: Host) -> None:
    host.answer = ElicitResult(action="accept", content={"name": "Ada", "pizzas": 11})
    result = await host.call("order_pizza")
    assert result.is_error
    assert "does not match" in text_of(result)


async def test_an_error_says_what_to_do(host: Host) -> None:
    result = await host.call("divide", number=1, by=0)
    assert result.is_error
    assert "another `by`" in text_of(result)
    assert (await host.call("divide", number=1, by=4)).structured_content == {"result": 0.25}


async def test_resources_are_listed_and_an_unknown_one_names_the_known(host: Host) -> None:
    resources = (await host.client.list_resources()).resources
    (template,) = (await host.client.list_resource_templates()).resource_templates
    assert [each.uri for each in resources] == ["demo://planets", "demo://guide", "demo://count"]
    assert template.uri_template == PLANET.uri
    with pytest.raises(MCPError, match=r"no planet 'Pluto'.*Neptune"):
        await host.client.read_resource("demo://planets/Pluto")


@pytest.mark.parametrize(
    ("ref", "argument", "typed", "values"),
    [
        (PLANET, "name", "m", ["Mercury", "Mars"]),
        (EXPLAIN, "planet", "NEP", ["Neptune"]),
        (EXPLAIN, "audience", "a p", ["a poet"]),
        (EXPLAIN, "audience", "zz", []),
    ],
)
async def test_what_is_typed_is_completed(
    host: Host,
    ref: PromptReference | ResourceTemplateReference,
    argument: str,
    typed: str,
    values: list[str],
) -> None:
    result = await host.client.complete(ref, {"name": argument, "value": typed})
    assert result.completion.values == values


async def test_the_prompt_takes_its_arguments(host: Host) -> None:
    prompt, other = (await host.client.list_prompts()).prompts
    assert (other.name, other.arguments) == ("tour", [])
    assert prompt.name == EXPLAIN.name
    assert [(item.name, item.required) for item in prompt.arguments or []] == [
        ("planet", True),
        ("audience", False),
    ]
    result = await host.client.get_prompt(
        "explain_planet", {"planet": "saturn", "audience": "a poet"}
    )
    (message,) = result.messages
    assert isinstance(message.content, TextContent)
    assert message.content.text.startswith("Explain Saturn to a poet")
    with pytest.raises(MCPError, match="no planet 'Pluto'"):
        await host.client.get_prompt("explain_planet", {"planet": "Pluto"})


async def test_a_prompt_brings_the_guide_along(host: Host) -> None:
    brought, asked = (await host.client.get_prompt("tour")).messages
    assert isinstance(brought.content, EmbeddedResource)
    (read,) = (await host.client.read_resource(brought.content.resource.uri)).contents
    assert read.model_dump(exclude={"meta"}) == brought.content.resource.model_dump(
        exclude={"meta"}
    )
    assert isinstance(asked.content, TextContent)


async def test_the_count_tells_those_who_watch_it(host: Host) -> None:
    async def counted() -> str:
        (read,) = (await host.client.read_resource(COUNT_URI)).contents
        assert isinstance(read, TextResourceContents)
        return read.text

    if host.mode == "legacy":
        await host.client.session.send_request(
            SubscribeRequest(params=SubscribeRequestParams(uri=COUNT_URI)), EmptyResult
        )
        await host.count(2, 0)
        await host.until(lambda: COUNT_URI in host.updated)
    else:
        async with host.client.listen(resource_subscriptions=[COUNT_URI]) as changes:
            await host.count(2, 0)
            with anyio.fail_after(SECONDS):
                event = await anext(aiter(changes))
        assert isinstance(event, ResourceUpdated)
        assert event.uri == COUNT_URI
    assert await counted() == "2\n"
