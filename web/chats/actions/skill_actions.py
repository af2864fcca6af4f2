"""What a person does to skills that pages have to tell of: delete one, bring one back."""

from __future__ import annotations

from web.chats.chat import Chat
from web.chats.parts.skill_kinds import DeletedSkill
from web.chats.registry.chats import Chats
from web.harness.skills.skill import Skill


async def delete_skill(chats: Chats, chat: Chat, skill: Skill) -> None:
    """Takes a skill away; pages offer to bring it back. Raises what the skills raise."""
    await chats.skills.shelf(chat.identity).delete(skill)
    await chats.skills.look(chat.identity)
    chats.undos.offer(chat, "skill", skill.name, skill.origin)


async def restore_skill(chats: Chats, chat: Chat, deleted: DeletedSkill) -> None:
    """Undoes a deletion, or a replacement: then the two change places."""
    await chats.skills.shelf(chat.identity).restore(deleted)
    chats.undos.drop(chat.identity, "skill", deleted.name)
    await chats.skills.look(chat.identity)
