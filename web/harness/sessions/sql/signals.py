"""Who is told what was committed: here, and by other processes on the same database."""

from __future__ import annotations

import logging
from collections.abc import Callable

Callback = Callable[[str | None], None]
"""Called with the key that a transaction named; with None where anything may have changed."""

logger = logging.getLogger(__name__)


class Signals:
    """Callbacks by topic. They run on the event loop, and may not wait."""

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callback]] = {}

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return bool(self._callbacks)

    def listen(self, topic: str, callback: Callback) -> Callable[[], None]:
        """Calls it for each signal of a topic, until what is returned is called."""
        self._callbacks.setdefault(topic, []).append(callback)

        def stop() -> None:
            callbacks = self._callbacks.get(topic, [])
            if callback in callbacks:
                callbacks.remove(callback)
            if not callbacks:
                self._callbacks.pop(topic, None)

        return stop

    def deliver(self, topic: str, key: str | None) -> None:
        for callback in tuple(self._callbacks.get(topic, ())):
            try:
                callback(key)
            except Exception:
                logger.exception("A listener to %s failed", topic)

    def deliver_all(self) -> None:
        """Anything may have changed."""
        for topic in tuple(self._callbacks):
            self.deliver(topic, None)
