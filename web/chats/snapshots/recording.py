"""What a chat's record is made of: its runs, as the page shows them, with all that is known."""

from __future__ import annotations

from web.chats.chat import Chat
from web.chats.parts.kinds import Foot, UserMessage
from web.harness.builtin.record import RecordedRun, Said
from web.harness.sessions.event_log import EventLog
from web.harness.values.events import Event, UsageReport
from web.harness.values.messages import ImageBlock, Message, ResourceBlock


async def recorded_runs(chat: Chat, log: EventLog) -> list[RecordedRun]:
    """All runs of a chat, oldest first. What is taken back from the page stays in the record."""
    chat.channel.settled()
    first = {message.id: message for message in chat.messages if message.role == "user"}
    return [
        await _recorded(chat, log, run_id, first.get(f"{run_id}-0")) for run_id in tuple(chat.runs)
    ]


async def _recorded(chat: Chat, log: EventLog, run_id: str, message: Message | None) -> RecordedRun:
    events = await _events(log, run_id)
    part = chat.channel.get(f"u-{run_id}")
    said = None
    if part is not None and isinstance(part.data, UserMessage):
        attached = chat.attached.get(run_id) or _attached(message)
        said = Said(part.data.text, part.data.at, attached)
    elif message is not None:
        # Tried again later: what the page shows of it belongs to another run now.
        said = Said(message.text, events[0].at if events else 0.0, _attached(message))
    return RecordedRun(run_id, said, _model(chat, run_id, events), events)


def _attached(message: Message | None) -> tuple[ResourceBlock | ImageBlock, ...]:
    content = message.content if message is not None else ()
    return tuple(block for block in content if isinstance(block, ResourceBlock | ImageBlock))


def _model(chat: Chat, run_id: str, events: list[Event]) -> str:
    """The model that answered, as far as it is known."""
    part = chat.channel.get(f"e-{run_id}")
    if part is not None and isinstance(part.data, Foot):
        return part.data.model
    if chat.turn is not None and chat.turn.run_id == run_id:
        return chat.turn.model
    reports = (event.body for event in events if isinstance(event.body, UsageReport))
    return next((report.model for report in reports), "")


async def _events(log: EventLog, run_id: str) -> list[Event]:
    """All events of a run that are kept."""
    events: list[Event] = []
    while True:
        page = await log.read(run_id, events[-1].number if events else 0)
        if not page.events:
            return events
        events += page.events
