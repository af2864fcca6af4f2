"""What a person does to memories that pages have to tell of."""

from __future__ import annotations

from collections.abc import Sequence

from web.chats.chat import Chat
from web.chats.parts.memory_kinds import ShownMemory
from web.chats.registry.chats import Chats


async def add_memory(
    chats: Chats, chat: Chat, text: str, *, title: str = "", tags: Sequence[str] = ()
) -> ShownMemory:
    """Writes a note if there is a title, else a fact. Raises what the stores raise."""
    made = await chats.memories.shelf(chat.identity).add(text, title=title, tags=tags)
    await chats.memories.look(chat.identity)
    return made


async def edit_memory(
    chats: Chats,
    chat: Chat,
    ref: str,
    *,
    text: str | None = None,
    title: str | None = None,
    tags: Sequence[str] | None = None,
    seen: str = "",
) -> None:
    """Changes what is given. Raises what the stores raise, also where it is not as it was seen."""
    shelf = chats.memories.shelf(chat.identity)
    await shelf.edit(ref, text=text, title=title, tags=tags, seen=seen)
    await chats.memories.look(chat.identity)


async def forget_memory(chats: Chats, chat: Chat, ref: str) -> None:
    """Removes a memory from the disk; pages offer to bring it back. Raises what the stores do."""
    title, deleted = await chats.memories.shelf(chat.identity).delete(ref)
    await chats.memories.look(chat.identity)
    chats.memories.keep_deleted(chat.identity, ref, deleted)
    chats.undos.offer(chat, "memory", title, ref)


async def restore_memory(chats: Chats, chat: Chat, ref: str) -> None:
    """Undoes that. Raises NotFound when it is too late."""
    deleted = chats.memories.take_deleted(chat.identity, ref)
    try:
        await chats.memories.shelf(chat.identity).restore(deleted)
    except BaseException:
        chats.memories.keep_deleted(chat.identity, ref, deleted)
        raise
    chats.undos.drop_ref(chat.identity, "memory", ref)
    await chats.memories.look(chat.identity)
