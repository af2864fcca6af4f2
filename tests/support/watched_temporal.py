"""A backend over Temporal that stands still at each thing it hands over to Temporal, or takes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, PayloadCodec

from tests.support.temporal_runs import QUICK
from web.harness.runtime.temporal.backend import TemporalBackend, Where
from web.harness.sessions.opening import Stores

At = Callable[[str], None]
"""Told where the process is: it may stand still there, or be killed."""


class WatchedTemporal(TemporalBackend):
    """Keeps runs in stores that are open already and stay their owner's.

    Boundaries are called `gives X` right before something goes to Temporal, and `takes X` right
    after it came: a `start` of a workflow, a `claimed` run, a `task` for the worker by what it is,
    `news` of what came of it, and the `words` that stand alone, as the run that is to be claimed.
    """

    def __init__(self, address: str, stores: Stores, at: At, workers: Where) -> None:
        codec = _WatchedCodec(at)
        super().__init__(
            address,
            workers=workers,
            times=None if workers == "here" else QUICK,
            converter=dataclasses.replace(DataConverter.default, payload_codec=codec),
        )
        self._stores = stores

    async def open(self) -> Stores:
        return self._stores


class _WatchedCodec(PayloadCodec):
    """Changes nothing."""

    def __init__(self, at: At) -> None:
        self._at = at

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        for payload in payloads:
            self._at(f"gives {_named(payload)}")
        return list(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        for payload in payloads:
            self._at(f"takes {_named(payload)}")
        return list(payloads)


def _named(payload: Payload) -> str:
    match json.loads(payload.data) if payload.data else None:
        case {"times": _}:
            return "start"
        case {"what": what}:
            return f"task {what}"
        case {"outcomes": _}:
            return "news"
        case {"fence": _}:
            return "claimed"
        case _:
            return "words"
