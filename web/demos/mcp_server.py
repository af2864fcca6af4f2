"""An MCP server that shows what a host can do with one. It touches no disk and no network.

It speaks over stdin and stdout with clients of 2026-07-28 and of the handshake versions before it.
"""

from __future__ import annotations

import base64
import warnings
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import ElicitationResult, Image, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.mcpserver.prompts.base import Message, UserMessage
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import (
    INVALID_PARAMS,
    BlobResourceContents,
    Completion,
    CompletionArgument,
    CompletionContext,
    EmbeddedResource,
    PromptReference,
    ResourceLink,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import Field

from web import __version__
from web.demos.bar_chart import bar_chart
from web.demos.counter import COUNT_URI, Counter
from web.demos.pizza import PizzaOrder, ask_for_order, take_order
from web.demos.planets import (
    NAMES,
    NOTE,
    PLANETS,
    PlanetName,
    PlanetTable,
    find_planet,
    sheet,
)
from web.demos.request_states import open_states

INSTRUCTIONS = """\
A demo of MCP. Each tool shows one thing: greet (text), draw_bar_chart (image), list_planets \
(structured output), show_planet (embedded resource and resource link), count_to (progress, log \
messages, cancellation), order_pizza (a form for the person), divide (an error, when dividing by \
0). All data is made up or rounded; nothing outside this program is read or changed."""

GUIDE = """\
# What to try

- **Call a tool.** `greet` answers with text, `draw_bar_chart` with a picture, `order_pizza` asks.
- **Watch a resource.** Watch *The last count*, then have `count_to` count: it says when it changed.
- **Fill in a template.** *One planet* takes a name and completes it.
- **Use a prompt.** Type `/` in the message box and pick *Explain a planet*.
"""

LOOKS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
"""Of a tool that only computes."""
COUNTS_ORDERS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
)
"""Of a tool that adds something each time, here in the memory of this process."""

GREETINGS = {
    "English": "Hello, {}!",
    "Deutsch": "Guten Tag, {}!",
    "Français": "Bonjour, {} !",
    "Español": "¡Hola, {}!",
    "日本語": "こんにちは、{}さん!",
}
Language = Literal["English", "Deutsch", "Français", "Español", "日本語"]
AUDIENCES = ("a child", "a student", "an astronomer", "a poet")
PLANET_URI = "demo://planets/{name}"
GUIDE_URI = "demo://guide"

Number = Annotated[float, Field(ge=-1e9, le=1e9)]


def greet(
    name: Annotated[str, Field(min_length=1, max_length=100, description="Who is greeted")],
    language: Language = "English",
) -> str:
    """Greets somebody in one of five languages."""
    return GREETINGS[language].format(name)


def draw_bar_chart(
    numbers: Annotated[
        list[Number], Field(min_length=1, max_length=24, description="One bar for each")
    ],
) -> list[Image | TextContent]:
    """Draws a bar chart of up to 24 numbers. The answer is a PNG and a line of text."""
    said = f"A bar chart of {', '.join(f'{number:g}' for number in numbers)}."
    return [
        Image(data=bar_chart(numbers), format="png"),
        TextContent(type="text", text=said),
    ]


def list_planets(
    sort_by: Annotated[
        Literal["distance", "diameter", "name"], Field(description="Smallest, or A, first")
    ] = "distance",
) -> PlanetTable:
    """Lists the eight planets of the Sun with rounded values, as structured output."""
    match sort_by:
        case "distance":
            rows = sorted(PLANETS, key=lambda planet: planet.distance_million_km)
        case "diameter":
            rows = sorted(PLANETS, key=lambda planet: planet.diameter_km)
        case "name":
            rows = sorted(PLANETS, key=lambda planet: planet.name)
    return PlanetTable(note=NOTE, planets=rows)


def show_planet(name: PlanetName) -> list[TextContent | EmbeddedResource | ResourceLink]:
    """Shows one planet: its sheet and a picture of its size embedded, and a link to all planets."""
    planet = next(planet for planet in PLANETS if planet.name == name)
    uri = PLANET_URI.format(name=name)
    chart = bar_chart([planet.diameter_km, 12_756])
    return [
        TextContent(type="text", text=f"{name}, and its diameter beside that of Earth (in km):"),
        EmbeddedResource(
            type="resource",
            resource=TextResourceContents(uri=uri, mime_type="text/markdown", text=sheet(planet)),
        ),
        EmbeddedResource(
            type="resource",
            resource=BlobResourceContents(
                uri=f"{uri}/size.png",
                mime_type="image/png",
                blob=base64.b64encode(chart).decode(),
            ),
        ),
        ResourceLink(
            type="resource_link",
            uri="demo://planets",
            name="planets",
            title="All planets",
            mime_type="application/json",
        ),
    ]


def divide(number: Number, by: Number) -> float:
    """Divides one number by another. Dividing by 0 shows what an error looks like."""
    if by == 0:
        raise ToolError("Nothing can be divided by 0. Call this again with another `by`.")
    return number / by


async def order_pizza(
    answer: Annotated[ElicitationResult[PizzaOrder], Resolve(ask_for_order)],
) -> str:
    """Asks the person what pizza they want, in a form. A demo: nothing is baked or paid."""
    return take_order(answer)


def all_planets() -> PlanetTable:
    """The table of planets as JSON."""
    return PlanetTable(note=NOTE, planets=list(PLANETS))


def planet_sheet(name: str) -> str:
    """One planet as Markdown."""
    planet = find_planet(name)
    if planet is None:
        raise ResourceNotFoundError(f"There is no planet {name!r}. There are {', '.join(NAMES)}.")
    return sheet(planet)


def explain_planet(
    planet: Annotated[str, Field(description="The planet, such as Saturn")],
    audience: Annotated[str, Field(description="Who it is for, such as a child")] = "a child",
) -> str:
    """Asks the model to explain one planet to somebody."""
    found = find_planet(planet)
    if found is None:
        raise MCPError(
            INVALID_PARAMS, f"There is no planet {planet!r}. There are {', '.join(NAMES)}."
        )
    return f"Explain {found.name} to {audience} in three sentences.\n\n{sheet(found)}"


def guide() -> str:
    """What there is to try, as Markdown."""
    return GUIDE


def tour() -> list[Message]:
    """Asks the model to propose what to try first. It brings the guide along."""
    resource = TextResourceContents(uri=GUIDE_URI, mime_type="text/markdown", text=GUIDE)
    return [
        UserMessage(EmbeddedResource(type="resource", resource=resource)),
        UserMessage("Tell me in three sentences what I should try first here, and why."),
    ]


async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion:
    """Values that start with what was typed, in any case of its letters."""
    known = {"name": NAMES, "planet": NAMES, "audience": AUDIENCES}.get(argument.name, ())
    typed = argument.value.lower()
    values = [value for value in known if value.lower().startswith(typed)]
    return Completion(values=values, total=len(values), has_more=False)


def create_server() -> MCPServer[Any]:
    """The server with all that it offers; `run()` serves it over stdin and stdout."""
    server: MCPServer[Any] = MCPServer(
        "harness-web-demo",
        title="Demo server of harness-web",
        instructions=INSTRUCTIONS,
        version=__version__,
        # A failed call is told to the client; stderr is for what is wrong with the server.
        log_level="WARNING",
        request_state_security=open_states(),
    )
    counter = Counter()
    for function, title, hints in (
        (greet, "Greet somebody", LOOKS),
        (draw_bar_chart, "Draw a bar chart", LOOKS),
        (list_planets, "List the planets", LOOKS),
        (show_planet, "Show one planet", LOOKS),
        (counter.count_to, "Count slowly", LOOKS),
        (order_pizza, "Order a pizza", COUNTS_ORDERS),
        (divide, "Divide", LOOKS),
    ):
        server.add_tool(function, title=title, annotations=hints)
    server.resource(
        "demo://planets", name="planets", title="All planets", mime_type="application/json"
    )(all_planets)
    server.resource(PLANET_URI, name="planet", title="One planet", mime_type="text/markdown")(
        planet_sheet
    )
    server.resource(GUIDE_URI, name="guide", title="What to try", mime_type="text/markdown")(guide)
    server.resource(COUNT_URI, name="count", title="The last count", mime_type="text/plain")(
        counter.count
    )
    server.prompt(title="Explain a planet")(explain_planet)
    server.prompt(title="Show me around")(tour)
    server.completion()(complete)  # type: ignore[no-untyped-call]
    counter.answer_older_clients(server)
    return server


def serve() -> None:
    """Serves over stdin and stdout until stdin is closed, or the client is gone."""
    # Log messages are on their way out of the protocol, but clients of today still show them.
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    try:
        create_server().run("stdio")
    except* BrokenPipeError:
        pass
