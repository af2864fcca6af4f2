"""The commands of a message box come from several places and are told apart."""

from __future__ import annotations

from web.chats.parts.channel import Channel, Clock
from web.chats.parts.command_list import SHOWN_COMMANDS, CommandList
from web.chats.parts.offer_kinds import Command, Commands


def command(kind: str, name: str, source: str) -> Command:
    return Command(f"{kind} {source} {name}", f"/{name}", "", "", source)


def shown(channel: Channel) -> list[str]:
    return [
        each.label
        for part in channel.slot("commands")
        if isinstance(part.data, Commands)
        for each in part.data.commands
    ]


def test_kinds_stand_together_and_those_of_one_name_say_whose_they_are() -> None:
    channel = Channel("c", Clock("e"))
    commands = CommandList(channel)
    commands.put("skill", [command("skill", "plan", "skills"), command("skill", "sum", "skills")])
    commands.put("prompt", [command("prompt", "plan", "notes")])
    assert shown(channel) == ["/notes:plan", "/skills:plan", "/sum"]
    commands.put("prompt", [])
    assert shown(channel) == ["/plan", "/sum"]
    commands.put("skill", [])
    assert shown(channel) == []


def test_one_source_may_use_a_name_twice() -> None:
    channel = Channel("c", Clock("e"))
    CommandList(channel).put("prompt", [command("prompt", "plan", "notes")] * 2)
    assert shown(channel) == ["/plan", "/plan"]


def test_of_very_many_it_is_said_that_there_are_more() -> None:
    channel = Channel("c", Clock("e"))
    many = [command("prompt", f"n{number}", "notes") for number in range(SHOWN_COMMANDS + 7)]
    CommandList(channel).put("prompt", many)
    (part,) = channel.slot("commands")
    assert isinstance(part.data, Commands)
    assert (len(part.data.commands), part.data.more) == (SHOWN_COMMANDS, 7)
