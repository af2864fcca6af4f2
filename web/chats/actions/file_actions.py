"""What a person does to the files of a chat: delete, bring back, remove for good, take off."""

from __future__ import annotations

from web.chats.chat import Chat
from web.chats.parts.kinds import UserMessage
from web.chats.records.attachments import OWN_FILE
from web.chats.registry.chats import Chats
from web.harness.builtin.versions import PERSON, Origin
from web.harness.values.errors import HarnessError
from web.harness.values.messages import AttachedBlock, ImageBlock


async def delete_file(chats: Chats, chat: Chat, path: str) -> None:
    """Deletes a file; its versions stay, and the page offers to bring it back.

    Raises NotFound, ToolError.
    """
    gone = await chats.files.of(chat).delete(path, PERSON)
    await chats.files.look(chat)
    # Numbers are not skipped: the one before was the file.
    chats.undos.offer(chat, "file", path, str(gone.number - 1))


async def restore_file(chats: Chats, chat: Chat, path: str, number: int) -> None:
    """Brings a version back, also of a file that was deleted. Raises NotFound, ToolError."""
    await chats.files.of(chat).restore(path, number, Origin("restore"))
    chats.undos.drop(chat.identity, "file", path)
    await chats.files.look(chat)


async def purge_file(chats: Chats, chat: Chat, path: str) -> None:
    """Removes a file with all its versions. Raises NotFound, ToolError."""
    await chats.files.of(chat).purge(path)
    chats.undos.drop(chat.identity, "file", path)
    await chats.files.look(chat)


async def take_off(chats: Chats, chat: Chat, attachment_id: str) -> None:
    """Takes an attachment off the next message. A file that was put in for it and that nothing else
    has to do with goes too, with its version: it was never a part of the chat."""
    block = next((each.block for each in chat.record.attachments if each.id == attachment_id), None)
    await chats.detach(chat, attachment_id)
    if block is None or _is_used(chat, block):
        return
    files = chats.files.of(chat)
    try:
        versions = await files.versions(block.name)
        if not versions or _digest(block) not in (versions[-1].sha256, ""):
            return
        taken = await files.take_back(block.name, versions[-1].sha256)
    except HarnessError:
        # No file can be called so, or the folder is busy. It is off the message all the same.
        return
    if taken:
        await chats.files.look(chat)
        chats.undos.offer(chat, "upload", block.name)


def _is_used(chat: Chat, block: AttachedBlock) -> bool:
    """Whether this is no file of the chat, or one that some message has, sent or not."""
    if isinstance(block, ImageBlock):
        named = bool(block.name)
    else:
        named = bool(block.name) and block.source == OWN_FILE
    waiting = [each.block for each in chat.record.attachments]
    waiting += [each for turn in chat.queue for each in turn.attachments]
    said = (part.data for part in chat.channel.slot("log"))
    names = {
        each.name for data in said if isinstance(data, UserMessage) for each in data.attachments
    }
    return not named or block.name in names | {each.name for each in waiting}


def _digest(block: AttachedBlock) -> str:
    """The digest of the file it was made from, '' where only its name can tell."""
    return block.sha256 if isinstance(block, ImageBlock) else ""
