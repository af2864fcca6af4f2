"""The model API of an agent: handed in and left alone, or made when it is needed and closed."""

from __future__ import annotations

import logging

from web.harness.providers import make_provider
from web.harness.values.config import DEMO_MODEL, ModelName
from web.harness.values.model import Provider

log = logging.getLogger(__name__)

DEMO_WORDS = (
    "No model is configured, so the scripted demo model answers. It needs no key and follows a "
    "script; it does not think."
)
"""What a person is told who may take the demo model for a real one."""


class OwnProvider:
    """Gives the provider of a model; what it made it closes, what was given it does not."""

    def __init__(self, given: Provider | None) -> None:
        self._given = given
        self._made: dict[str, Provider] = {}
        self._told = False

    def get(self, model: ModelName) -> Provider:
        """Raises ConfigurationError where none can be made, say for want of a key."""
        if self._given is not None:
            return self._given
        if model.provider not in self._made:
            self._made[model.provider] = make_provider(model.provider)
        return self._made[model.provider]

    def demo_note(self, model: ModelName) -> str:
        """Words for the first run on a demo model that nobody handed in; '' from then on."""
        if self._told or self._given is not None or model.provider != DEMO_MODEL.provider:
            return ""
        self._told = True
        log.warning(DEMO_WORDS)
        return DEMO_WORDS

    async def aclose(self) -> None:
        """Closes what it made. Closing twice is fine."""
        while self._made:
            _, made = self._made.popitem()
            try:
                await made.aclose()
            except Exception:
                log.exception("A provider could not be closed")
