"""The form of a pizza order: one field of each kind that a form of MCP can have."""

from __future__ import annotations

from itertools import count
from typing import Any, Literal

from mcp.server.mcpserver import AcceptedElicitation, Elicit, ElicitationResult
from pydantic import BaseModel, Field

Size = Literal["small", "medium", "large"]
Topping = Literal["basil", "mushrooms", "olives", "onions", "peppers", "salami"]
SIZES: dict[str, str] = {
    "small": "Small (24 cm)",
    "medium": "Medium (30 cm)",
    "large": "Large (36 cm)",
}


def _with_titles(schema: dict[str, Any]) -> None:
    schema["oneOf"] = [{"const": size, "title": SIZES[size]} for size in schema.pop("enum")]


class PizzaOrder(BaseModel):
    """What a person fills in. MCP allows no nested fields here."""

    name: str = Field(
        title="Your name", description="We call it when it is ready", min_length=1, max_length=40
    )
    pizzas: int = Field(1, title="How many", ge=1, le=10)
    size: Size = Field("medium", title="Size", json_schema_extra=_with_titles)
    toppings: list[Topping] = Field(
        ["basil", "olives"], title="Toppings", description="Up to three", max_length=3
    )
    extra_cheese: bool = Field(False, title="Extra cheese")


_numbers = count(1)


def ask_for_order() -> Elicit[PizzaOrder]:
    """The question. It is asked in the way that the client's version of the protocol has."""
    return Elicit("What pizza would you like?", PizzaOrder)


def take_order(answer: ElicitationResult[PizzaOrder]) -> str:
    """Gives an accepted order a number, and says what was understood."""
    if not isinstance(answer, AcceptedElicitation):
        did = "declined" if answer.action == "decline" else "cancelled"
        return f"No pizza was ordered: the person {did} the form."
    order = answer.data
    pizzas = "1 pizza" if order.pizzas == 1 else f"{order.pizzas} pizzas"
    toppings = ", ".join(order.toppings) or "no toppings"
    cheese = " and extra cheese" if order.extra_cheese else ""
    return (
        f"Order {next(_numbers)} for {order.name}: {pizzas}, {order.size}, with {toppings}{cheese}."
        " This is a demo: nobody bakes it."
    )
