"""The whole table of routes, walked by somebody else and by nobody: what others have is not there.

A route, or a method of one, that no row of `every_route` asks for fails the first test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.routing import BaseRoute, Match, Mount, Route

from tests.support.app_server import app_server, plain_client
from tests.support.every_route import ROWS
from tests.support.two_people import BY_PROXY, EVE, OWNER, SECRET, Answer, House, Row, two_people
from web.app import create_app
from web.settings import Settings

pytestmark = pytest.mark.anyio

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def rows(*, heads: bool = True) -> Iterator[Row]:
    """Every row, and each that reads as HEAD too."""
    for row in ROWS:
        yield row
        if heads and row.method == "GET":
            yield row._replace(method="HEAD")


def route_of(row: Row, routes: Iterable[BaseRoute]) -> BaseRoute | None:
    """The route that answers, as the application finds it."""
    scope = {"type": "http", "method": row.method, "path": urlsplit(row.path).path}
    return next((each for each in routes if each.matches(dict(scope))[0] is Match.FULL), None)


def test_every_method_of_every_route_is_walked(tmp_path: Path) -> None:
    routes = create_app(Settings(data_dir=tmp_path, **BY_PROXY)).routes
    there = {
        (route.path, method)
        for route in routes
        if isinstance(route, Route)
        for method in route.methods or METHODS
    }
    there |= {(route.path, "GET") for route in routes if isinstance(route, Mount)}
    assert all(isinstance(route, Route | Mount) for route in routes)
    walked = set()
    for row in rows():
        route = route_of(row, routes)
        assert isinstance(route, Route | Mount), f"no route answers {row.method} {row.path}"
        walked.add((route.path, row.method))
    assert there - walked == set()


async def picture(house: House) -> dict[str, tuple[int, str]]:
    """All that the owner can see, and what lies on the disk."""
    found: dict[str, tuple[int, str]] = {}
    for row in ROWS:
        if row.method == "GET" and row.real and "/oauth/" not in row.path:
            answer = await house.ask(OWNER, row, house.ids)
            assert answer.status < 400, f"{row.path}: {answer.status} {answer.text[:300]}"
            found[row.path] = answer.alike()
    return found


@pytest.mark.parametrize(
    "store", ["memory", pytest.param("sqlite:///{}/chats.db", marks=pytest.mark.full)]
)
async def test_somebody_else_and_nobody_see_and_change_nothing(tmp_path: Path, store: str) -> None:
    async with two_people(tmp_path, store.format(tmp_path)) as house:
        seen, stored = await picture(house), house.on_disk()
        assert any(SECRET in text for _, text in seen.values())
        # In the long form HEAD is asked too, which answers as GET does, and each other method.
        long = store != "memory"
        for row in rows(heads=long):
            await _ask_as_nobody(house, row)
            await _ask_as_eve(house, row)
        await _ask_with_other_methods(house, 1 if long else 6)
        now_seen = await picture(house)
        assert {path: each for path, each in now_seen.items() if each != seen[path]} == {}
        now = house.on_disk()
        assert {path: now.get(path) for path in stored} == stored
        await _ask_as_owner(house)


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.full)])
async def test_what_a_server_finds_in_its_store_is_no_strangers_either(
    tmp_path: Path, step: int
) -> None:
    store = f"sqlite:///{tmp_path}/chats.db"
    async with two_people(tmp_path, store) as before:
        ids = before.ids
    settings = {**BY_PROXY, "store": store}
    async with (
        app_server(tmp_path / "data", settings=settings) as server,
        plain_client(server.address) as client,
    ):
        # Nobody has opened these chats since it began.
        house = House(server, client, tmp_path / "data", ids)
        for row in [row for row in ROWS if row.kind == "theirs"][::step]:
            await _ask_as_nobody(house, row)
            await _ask_as_eve(house, row)
        answer = await house.ask(OWNER, Row("GET", "/api/chats/{chat}"), ids)
        assert (answer.status, SECRET in answer.text) == (200, True)


async def _ask_as_nobody(house: House, row: Row) -> None:
    answer = await house.ask(None, row, house.ids)
    where = f"nobody, {row.method} {row.path}: {answer.status} {answer.text[:300]}"
    assert SECRET not in known_apart(house, answer), where
    if row.kind != "open":
        assert answer.status == 401, where


async def _ask_as_eve(house: House, row: Row) -> None:
    answer = await house.ask(EVE, row, house.ids)
    where = f"eve, {row.method} {row.path}: {answer.status} {answer.text[:300]}"
    assert SECRET not in known_apart(house, answer), where
    if row.kind == "theirs":
        assert answer.status == 404, where
    if row.kind in ("theirs", "same"):
        unknown = await house.ask(EVE, row, house.unknown)
        assert unknown.alike(house.unknown) == answer.alike(house.ids), where
    if row.kind == "own":
        named = [id for name, id in house.ids.items() if name in ("chat", "run", "asking", "lost")]
        assert not [id for id in named if id in answer.text + answer.headers], where


def known_apart(house: House, answer: Answer) -> str:
    """What an answer says beside the ids that were sent to it."""
    return answer.alike(house.ids)[1] + answer.headers


async def _ask_with_other_methods(house: House, step: int) -> None:
    """A method that a route lacks is refused, whatever is there; asks every `step`th route."""
    routes = create_app(Settings(data_dir=house.data.parent / "other", **BY_PROXY)).routes
    known = {id(route_of(row, routes)): row for row in ROWS if row.kind != "open"}
    for row in [*known.values()][::step]:
        for method in METHODS:
            other = Row(method, row.path)
            if route_of(other, routes) is None:
                assert (await house.ask(None, other, house.ids)).status == 401, other
                answer = await house.ask(EVE, other, house.ids)
                assert answer.status == 405, other
                assert SECRET not in known_apart(house, answer), other


async def _ask_as_owner(house: House) -> None:
    """What strangers did not find was there. Comes last: it changes what there is."""
    for row in ROWS:
        answer = await house.ask(OWNER, row, house.ids)
        where = f"owner, {row.method} {row.path}: {answer.status} {answer.text[:300]}"
        assert answer.status not in (401, 405), where
        assert answer.status < 500, where
        if row.real:
            assert answer.status != 404, where
        if "/oauth/callback" in row.path:
            (outcome,) = re.findall("location: (.*)", answer.headers)
            told = await house.ask(OWNER, Row("GET", outcome), house.ids)
            assert "Signed in to" in told.text, "somebody else used the way back up"
