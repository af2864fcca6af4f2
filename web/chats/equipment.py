"""What a chat brings to a model call, joined from all that has something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from web.chats.chat import Chat
from web.chats.equipping import Connected

Source = Callable[[Chat], Awaitable[Connected]]


def joined(*sources: Source) -> Source:
    """One source of several, asked one after another. Of two tools of one name the first counts."""

    async def connected(chat: Chat) -> Connected:
        found = [await source(chat) for source in sources]
        tools = [tool for each in found for tool in each.tools]
        words = [each.instructions for each in found if each.instructions]
        return Connected(tools, "\n\n".join(words))

    return connected
