"""How fast harness-web is, and how large, beside its targets.

    python -m tests.bench                     everything, some five minutes
    python -m tests.bench 100x50 page         some scenarios
    python -m tests.bench 100x50 --readers proxy,events --seconds 20 --repeats 3

The server (or the bare proxy) has one core for itself; the model server and all readers share
another. Other work on the machine spoils latencies first: `--first` (Linux, as root) puts the
processes before it. Otherwise look at several repeats, and at what the proxy took in the same
minutes.

Scenarios
    1x50 10xmax 100x50 500x2    chats x tokens a second of each, all asked at the same moment. Each
                                is read as a program does (`events`), as an open page does (`page`)
                                and through a bare Starlette and httpx proxy (`proxy`)
    idle      memory of 1,000 page streams in which nothing happens
    chats     memory of an open chat before its first message
    page      the first page: after the command, and in Chromium with an empty cache
    markdown  what rendering a long answer costs
    turns     10,000 turns of the library with the demo model: what a late one costs, what is left
    journals  what it costs to write runs down, in SQLite and PostgreSQL
    durable   what `AgentRuntime` costs beside `Agent`: in SQLite, PostgreSQL and Temporal

Columns
    tokens/s  from the first message sent to the last token seen
    first     from sending a message to its first token: the median of the chats, and the slowest
    p50 p99   age of a token when a reader sees it
    CPU       seconds of the server for 1,000 tokens, starting the runs included; and how many
              times the proxy's of the same repeat
    others    share of a core that model server and readers took. Near 1.0 they are what is
              measured, and not the server
    lost, twice   tokens that were missing, or there twice, at the end
A row is the median of the repeats, each column by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import subprocess
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import fields
from statistics import median

import uvloop

from tests.bench.durable import durable_verdicts
from tests.bench.first_page import first_page, seconds_to_first_page
from tests.bench.journals import journal_verdicts
from tests.bench.load import CASES, READERS, Case, Outcome, measure
from tests.bench.memory import chat_bytes, stream_bytes
from tests.bench.processes import Place, Running, anywhere, module, places, running, server
from tests.bench.targets import Verdict, load_verdicts
from tests.bench.turns import late_against_early, left_after

OTHERS = ("idle", "chats", "page", "markdown", "turns", "journals", "durable")
COLUMNS = (
    f"{'case':<8} {'reader':<7} {'tokens/s':>9} {'first':>7} {'slowest':>8} {'p50':>8} {'p99':>8}"
    + (f" {'CPU':>7} {'proxy x':>8} {'others':>7} {'lost':>5} {'twice':>5}")
)


class Bench:
    """Runs scenarios; each measurement has a server of its own."""

    def __init__(self, options: argparse.Namespace, place: Place, model: Running) -> None:
        self._options = options
        self._place = place
        self._model = model

    def load(self, case: Case) -> Iterable[Verdict]:
        """Measures one case with every reader, some times over."""
        found: dict[str, list[Outcome]] = {reader: [] for reader in self._options.readers}
        for _ in range(self._options.repeats):
            for reader in self._options.readers:
                with self._started(reader) as process:
                    outcome = uvloop.run(
                        measure(
                            case,
                            reader,
                            process,
                            self._model,
                            seconds=self._options.seconds,
                            side_bar=self._options.side_bar,
                        )
                    )
                found[reader].append(outcome)
        merged = {reader: _median(outcomes) for reader, outcomes in found.items()}
        for reader, outcome in merged.items():
            ratios = [
                one.cpu / proxy.cpu
                for one, proxy in zip(found[reader], found.get("proxy", ()), strict=False)
            ]
            print(_row(case.name, reader, outcome, median(ratios) if ratios else None), flush=True)
        return load_verdicts(case.name, merged)

    def idle(self) -> Iterable[Verdict]:
        with self._started("page") as process:
            size = uvloop.run(stream_bytes(process, 1000))
        yield Verdict("1,000 idle page streams", size / 1e6, 150, "MB")

    def chats(self) -> Iterable[Verdict]:
        with self._started("events") as process:
            size = uvloop.run(chat_bytes(process, 2000))
        yield Verdict("an open chat before its first message", size / 1000, 30, "KB")

    def page(self) -> Iterable[Verdict]:
        starts = []
        for _ in range(max(3, self._options.repeats)):
            with self._started("page") as process:
                starts.append(uvloop.run(seconds_to_first_page(process)))
        yield Verdict("first page after the command", median(starts), 1.5, "s")
        # Nothing is measured beside the browser, which wants more than one core.
        with self._started("page") as process, anywhere():
            seen = asyncio.run(first_page(process.address, max(3, self._options.repeats)))
        yield Verdict("first page over the wire", seen.kilobytes, 60, "KB")
        yield Verdict("first page", seen.requests, 6, "requests")
        yield Verdict("composer usable after navigation", seen.usable_ms, 300, "ms")

    def turns(self) -> Iterable[Verdict]:
        ratio = uvloop.run(late_against_early(10_000))
        yield Verdict("turns: a late one beside an early one", ratio, 1.3, "times")
        left = uvloop.run(left_after(10_000)) / 1_000
        yield Verdict("turns: left without the conversation", left, 100, "KB")

    def journals(self) -> Iterable[Verdict]:
        return journal_verdicts()

    def durable(self) -> Iterable[Verdict]:
        # The databases are processes of their own, and the server's are not with its readers.
        with anywhere():
            yield from durable_verdicts()

    def markdown(self) -> Iterable[Verdict]:
        """A program of its own prints what rendering costs, where there is one."""
        if importlib.util.find_spec("tests.bench.markdown_cost") is not None:
            subprocess.run(module("markdown_cost"), check=True)
        return ()

    def _started(self, reader: str) -> AbstractContextManager[Running]:
        address = self._model.address
        if reader == "proxy":
            return running(*module("proxy"), address, place=self._place)
        return server(self._place, address)


def main() -> int:
    options = _options()
    for_server, for_others = places(first=options.first)
    for_others.take()
    gc.freeze()
    verdicts: list[Verdict] = []
    with running(*module("model"), place=for_others) as model:
        bench = Bench(options, for_server, model)
        cases = [case for case in CASES if case.name in options.scenarios]
        if cases:
            print(COLUMNS, flush=True)
        for case in cases:
            verdicts += bench.load(case)
        for name in OTHERS:
            if name in options.scenarios:
                verdicts += getattr(bench, name)()
    print()
    print(*verdicts, sep="\n")
    return 0 if all(verdict.met for verdict in verdicts) else 1


def _options() -> argparse.Namespace:
    known = (*(case.name for case in CASES), *OTHERS)
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(known))
    parser.add_argument("--seconds", type=float, default=10.0, help="of one answer")
    parser.add_argument("--repeats", type=int, default=1, help="of each measurement")
    parser.add_argument("--readers", default=",".join(READERS), help="of the loads, by comma")
    parser.add_argument("--side-bar", action="store_true", help="page streams carry the list too")
    parser.add_argument("--first", action="store_true", help="run before all other programs")
    options = parser.parse_args()
    options.scenarios = options.scenarios or known
    options.readers = options.readers.split(",")
    unknown = [
        *(name for name in options.scenarios if name not in known),
        *(name for name in options.readers if name not in READERS),
    ]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    return options


def _median(outcomes: list[Outcome]) -> Outcome:
    """Each number by itself; what was lost or doubled in all repeats together."""
    numbers = {
        each.name: [getattr(outcome, each.name) for outcome in outcomes] for each in fields(Outcome)
    }
    return Outcome(
        **{
            name: sum(values) if name in ("lost", "doubled") else median(values)
            for name, values in numbers.items()
        }
    )


def _row(case: str, reader: str, found: Outcome, ratio: float | None) -> str:
    beside = f"{ratio:.2f}" if ratio is not None else "-"
    return (
        f"{case:<8} {reader:<7} {found.tokens_per_second:>9,.0f} {found.first_p50:>7,.0f}"
        f" {found.first_max:>8,.0f} {found.p50:>8,.1f} {found.p99:>8,.0f} {found.cpu:>7.3f}"
        f" {beside:>8} {found.others:>7.2f} {found.lost:>5} {found.doubled:>5}"
    )


if __name__ == "__main__":
    sys.exit(main())
