"""The contract of backends: where runs are written down, and who performs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from web.harness.agent.agent import Agent
from web.harness.agent.run import Prepare
from web.harness.sessions.journal import Executions, GivenAnswer, Recorded, Submission
from web.harness.sessions.opening import Stores
from web.harness.tools.previews import KeepQuestion
from web.harness.values.errors import ConfigurationError
from web.harness.values.events import RunResult

Missing = Literal["", "worker", "temporal", "namespace"]
"""What a run waits for before its next step, while it is there: nothing, somebody who performs it,
what keeps it, or its place there."""

Alone = Callable[[Missing], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """A run that is to be performed, from its message on or from where it was cut off.

    `agent` has the conversation from before the run. `prepare` and `keep_question` are those of
    `Agent.perform`. `answers_before` is how many answers there were when somebody wanted it to be
    performed: a pause among those is over. None stands for all that there are when it is begun.
    `only_here` says that nobody else can perform it: this process has what a person opened by hand.
    `alone` is told again and again what is missing for it to go on.
    """

    agent: Agent
    submission: Submission
    prepare: Prepare | None = None
    keep_question: KeepQuestion | None = None
    answers_before: int | None = None
    only_here: bool = False
    alone: Alone | None = None

    @property
    def run_id(self) -> str:
        return self.submission.run_id


@dataclass(frozen=True, slots=True)
class Performed:
    """What became of a run: its result, under the fence that it was written with.

    Where the turn's agent ran itself, its conversation has the run's messages; otherwise `recorded`
    has them.
    """

    result: RunResult
    fence: int
    recorded: Recorded | None = None


class Backend(Protocol):
    """Keeps runs and has them performed. One serves any number of runtimes and sessions.

    Whoever made it closes it; what it opened itself it closes. All methods raise StoreError where
    the database fails, and ConfigurationError for an address that is none. One that needs more than
    the database may have a `failure`: a StoreError that says why no run goes on, or None.
    """

    async def open(self) -> Stores:
        """Opens what is not open yet. The stores are the same each time, with `executions`."""
        ...

    async def perform(self, turn: Turn) -> Performed:
        """Performs a run to its end, or goes on with it; whoever holds its session does this.

        It takes the run over (`Executions.begin`) where it runs here, and hands over the answers
        that people give. Steps and events are committed when it returns; history and the end of
        the execution are left to the caller.
        Raises RunPaused where it was paused, and LeaseLost where another goes on with it. Cancelled
        it stops what runs in this process, and writes nothing of that: the run can be resumed.
        """
        ...

    async def answered(self, run_id: str, answer: GivenAnswer) -> None:
        """An answer was just written down (`Executions.answer`): whoever performs the run looks.

        Nothing to do where the database itself tells of it.
        """
        ...

    async def aclose(self) -> None:
        """Closes what it opened. Twice is fine."""
        ...


def executions_of(stores: Stores) -> Executions:
    """Raises ConfigurationError for stores that keep no runs: memory."""
    if stores.executions is None:
        raise ConfigurationError(
            "These stores keep no runs that are under way.",
            hint="Use a backend in SQLite or PostgreSQL.",
        )
    return stores.executions
