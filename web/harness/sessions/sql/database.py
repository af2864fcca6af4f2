"""What the stores see of a database: transactions, and signals of what was committed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar

from web.harness.sessions.sql.signals import Signals
from web.harness.values.errors import StoreError

T = TypeVar("T")

Row = Sequence[Any]
Values = Mapping[str, Any]


class Transaction(Protocol):
    """Statements that count together or not at all. Values stand in the SQL as `:name`."""

    async def rows(self, sql: str, values: Values | None = None) -> Sequence[Row]: ...

    async def row(self, sql: str, values: Values | None = None) -> Row | None:
        """The first row, or None."""
        ...

    async def do(self, sql: str, values: Values | Sequence[Values] | None = None) -> None:
        """One statement, or the same one for each of several values."""
        ...

    def signal(self, topic: str, key: str, *, here: bool = True) -> None:
        """Tells everybody who listens, on every server, once this is committed; on all others where
        it is not for those `here`."""
        ...


Work = Callable[[Transaction], Awaitable[T]]


class Database(Protocol):
    """A database that is open and has the schema of this version.

    A transaction that was begun ends by itself, also when its caller is cancelled. Work of `write`
    runs again where a connection was lost, also in the middle of its commit: it has to recognise
    what it wrote before. Both raise StoreError; nothing of the work is written then, unless the
    error says that this is not known.

    `now` is SQL for the seconds since the epoch by the clock that all writers share; `locked` is
    put after a SELECT whose rows nobody else may change until the end of the transaction.
    """

    name: Literal["sqlite", "postgresql"]
    now: str
    locked: str
    signals: Signals

    @property
    def presence(self) -> str:
        """Names this server in its leases, so that `is_gone` of others sees it die; '' where that
        cannot be seen."""
        ...

    async def is_gone(self, transaction: Transaction, presence: str) -> bool:
        """Whether the server of a presence has died. In doubt it has not; ask again."""
        ...

    @property
    def failure(self) -> StoreError | None:
        """Why it does not work at the moment, as far as that is seen without asking it."""
        ...

    async def write(self, work: Work[T]) -> T: ...

    async def write_at_once(self, work: Work[T]) -> T:
        """The same in a fraction of the time, of work that awaits its transaction alone, and shares
        nothing with what may run beside it: SQLite does it in a thread."""
        ...

    async def read(self, work: Work[T]) -> T: ...

    async def whole(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs it to its end, whatever becomes of the caller."""
        ...

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Runs it in the background until it ends or the database is closed."""
        ...

    async def aclose(self) -> None:
        """Lets transactions end, stops what runs in the background, closes every connection."""
        ...
