"""A small table of planets: something to look up, link to and complete."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel, Field

PlanetName = Literal["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]
NAMES: tuple[str, ...] = get_args(PlanetName)
NOTE = "Sample data: rounded values that are written into this demo, not looked up anywhere."


class Planet(BaseModel):
    """One row of the table."""

    name: PlanetName
    kind: Literal["rocky", "gas giant", "ice giant"]
    diameter_km: int = Field(description="Diameter at the equator, in kilometres")
    distance_million_km: float = Field(
        description="Mean distance to the Sun, in million kilometres"
    )
    year_days: int = Field(description="One turn around the Sun, in days on Earth")


class PlanetTable(BaseModel):
    """The rows, and what they are worth."""

    note: str = Field(description="Where the values come from")
    planets: list[Planet]


PLANETS = (
    Planet(name="Mercury", kind="rocky", diameter_km=4_879, distance_million_km=57.9, year_days=88),
    Planet(
        name="Venus", kind="rocky", diameter_km=12_104, distance_million_km=108.2, year_days=225
    ),
    Planet(
        name="Earth", kind="rocky", diameter_km=12_756, distance_million_km=149.6, year_days=365
    ),
    Planet(name="Mars", kind="rocky", diameter_km=6_792, distance_million_km=228, year_days=687),
    Planet(
        name="Jupiter",
        kind="gas giant",
        diameter_km=142_984,
        distance_million_km=778.5,
        year_days=4_331,
    ),
    Planet(
        name="Saturn",
        kind="gas giant",
        diameter_km=120_536,
        distance_million_km=1_432,
        year_days=10_747,
    ),
    Planet(
        name="Uranus",
        kind="ice giant",
        diameter_km=51_118,
        distance_million_km=2_867,
        year_days=30_589,
    ),
    Planet(
        name="Neptune",
        kind="ice giant",
        diameter_km=49_528,
        distance_million_km=4_515,
        year_days=59_800,
    ),
)


def find_planet(name: str) -> Planet | None:
    """The planet of this name, in any case of its letters; None if there is none."""
    return next((planet for planet in PLANETS if planet.name.lower() == name.lower()), None)


def sheet(planet: Planet) -> str:
    """One planet as Markdown."""
    return (
        f"# {planet.name}\n\n"
        f"- Kind: {planet.kind}\n"
        f"- Diameter: {planet.diameter_km:,} km\n"
        f"- Distance to the Sun: {planet.distance_million_km:,g} million km\n"
        f"- One year: {planet.year_days:,} days on Earth\n\n"
        f"{NOTE}\n"
    )
