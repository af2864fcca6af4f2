"""Says once that a limit of cost can stop nothing, as no prices are known."""

from __future__ import annotations

import logging

from web.harness.memory.conversation import Conversation
from web.harness.values.config import AgentConfig
from web.harness.values.usage import Usage

log = logging.getLogger(__name__)

NO_PRICES = (
    "A limit of cost is set, but no prices are, so no run can be stopped by it. Set the prices of "
    "the model beside the limit."
)


class LimitsNote:
    """Of one agent. A person is told where the conversation begins, the log in any case."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._told = False

    def of(self, config: AgentConfig) -> str:
        """The words for the first turn; '' later and where there is nothing to say."""
        limits = config.limits
        if self._told or limits.max_cost_dollars is None or limits.prices.cost(Usage()) is not None:
            return ""
        self._told = True
        log.warning(NO_PRICES)
        return NO_PRICES if len(self._conversation) <= 1 else ""
