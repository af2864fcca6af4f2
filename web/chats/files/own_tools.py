"""The ready-made tools of each chat, over its own files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from web.chats.chat import Chat
from web.chats.files.folders import ChatFolders
from web.harness.builtin import ChatFiles, standard_tools
from web.harness.tools.tool import Tool


class OwnTools:
    """`more` are tools that every chat has besides."""

    def __init__(self, folders: ChatFolders, more: Sequence[Tool] = ()) -> None:
        self._folders = folders
        self._more = more
        # What a new chat would have is only ever shown: it has no folder.
        self._nobodys = ChatFiles(folders.root)

    def of(self, chat: Chat | None) -> list[Tool]:
        """The tools of a chat; None stands for a new one."""
        files = self._folders.of(chat) if chat is not None else self._nobodys
        return [*standard_tools(files, lambda: datetime.now().astimezone()), *self._more]
