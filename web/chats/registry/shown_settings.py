"""What can be changed of a chat, as its page shows it."""

from __future__ import annotations

from web.chats.parts.setup_kinds import ChatSettings
from web.chats.records.records import ChatRecord
from web.chats.runs.equipment import Equipment
from web.chats.setup import Setup, standard_limits
from web.harness.values.config import ModelName
from web.harness.values.usage import Usage


def shown_settings(
    record: ChatRecord, title: str, models: tuple[str, ...], equipment: Equipment
) -> ChatSettings:
    standard = equipment.config
    prices = equipment.prices.get(ModelName.parse(record.model), standard.limits.prices)
    return ChatSettings(
        title,
        record.model,
        models,
        record.system_prompt,
        record.setup,
        Setup(**standard_limits(standard)),
        prices.cost(Usage()) is not None,
        standard.system_prompt,
    )
