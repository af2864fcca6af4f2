"""Live things that outlast a call, as a driver or a tool asks for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from web.harness.values.errors import ConfigurationError

T = TypeVar("T")

Scope = Literal["run", "session", "host"]
"""How long it is kept: until the run ends, until the session is closed, or as its host likes."""

Ownership = Literal["runtime", "host"]
"""Who disposes of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Resource(Generic[T]):
    """A live value, such as a connection, and who ends it.

    With the ownership `runtime`, `dispose` (where there is one) is called once, when the scope
    ends, in a task that is not the one in which the value was made. What belongs to the `host` is
    lent, and never disposed of here.
    """

    value: T
    ownership: Ownership = "runtime"
    dispose: Callable[[], Awaitable[Any]] | None = None


class GetResource(Protocol):
    """Lends a resource, which is made the first time it is asked for by this id and scope."""

    async def __call__(
        self, id: str, scope: Scope, initialise: Callable[[], Awaitable[Resource[T]]]
    ) -> Resource[T]:
        """The value and its ownership; no `dispose`, which is the lender's concern.

        Raises what `initialise` raises, ConfigurationError for a resource that does not fit its
        scope, and LeaseLost where what it was asked of has ended.
        """
        ...


async def no_resources(
    id: str, scope: Scope, initialise: Callable[[], Awaitable[Resource[T]]]
) -> Resource[T]:
    """The `GetResource` of those who have none."""
    raise ConfigurationError(
        f"The resource '{id}' cannot be had here: nobody would end it.",
        hint="Run the agent through HarnessRuntime, and give it `resource=services.resource`.",
    )
