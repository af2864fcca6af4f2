"""What the numbers are to be, and how they stand beside that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tests.bench.load import Outcome


@dataclass(frozen=True, slots=True)
class Verdict:
    """One number beside its target; `most` says whether it may be at most, or at least, that."""

    name: str
    value: float
    target: float
    unit: str
    most: bool = True

    @property
    def met(self) -> bool:
        return self.value <= self.target if self.most else self.value >= self.target

    def __str__(self) -> str:
        bound = "at most" if self.most else "at least"
        mark = "ok  " if self.met else "MISS"
        value, target = f"{self.value:,.4g}", f"{self.target:,.4g}"
        return f"{mark} {self.name:<44} {value:>9} {self.unit:<9} {bound} {target}"


def load_verdicts(case: str, found: Mapping[str, Outcome]) -> Iterable[Verdict]:
    """Verdicts on one case, from the outcome of each way to read it."""
    proxy = found.get("proxy")
    for reader, outcome in found.items():
        if reader != "proxy":
            name = f"{case} {reader}:"
            yield from _verdicts(case, name, outcome, proxy)
            yield Verdict(f"{name} lost or doubled", outcome.lost + outcome.doubled, 0, "tokens")


def _verdicts(case: str, name: str, found: Outcome, proxy: Outcome | None) -> Iterable[Verdict]:
    if case == "1x50":
        yield Verdict(f"{name} p50", found.p50, 12, "ms")
        if proxy is not None:
            added = found.first_p50 - proxy.first_p50
            yield Verdict(f"{name} first token beyond the proxy's", added, 8, "ms")
    if case == "10xmax":
        yield Verdict(f"{name} rate", found.tokens_per_second, 20_000, "tokens/s", most=False)
    if case == "100x50":
        yield Verdict(f"{name} rate", found.tokens_per_second, 4_800, "tokens/s", most=False)
        yield Verdict(f"{name} p50", found.p50, 60, "ms")
        yield Verdict(f"{name} p99", found.p99, 200, "ms")
        if proxy is not None:
            yield Verdict(f"{name} CPU beside the proxy's", found.cpu / proxy.cpu, 1.5, "times")
    if case == "500x2":
        yield Verdict(f"{name} first token, the last of all", found.first_max, 1_200, "ms")
        yield Verdict(f"{name} p99", found.p99, 500, "ms")
