"""How long to wait before a call that failed is tried again."""

from __future__ import annotations

from web.harness.loop.state import RunLimits


def next_delay(
    limits: RunLimits, attempt: int, retry_after: float | None, jitter: float
) -> float | None:
    """Seconds to wait after try `attempt` (1, 2, ...), None where it would be longer than allowed.

    `retry_after` is what the provider asked for; `jitter` (0 to 1) spreads the waits of many runs.
    """
    backoff = limits.backoff_seconds * 2 ** (attempt - 1) * (1 + jitter / 2)
    delay = max(min(backoff, limits.max_backoff_seconds), retry_after or 0.0)
    return delay if delay <= limits.max_backoff_seconds else None
