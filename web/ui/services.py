"""What the routes work with, made by the application."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jinja2 import Environment
from starlette.requests import HTTPConnection

from web.chats.chat import Chat
from web.chats.registry.chats import Chats
from web.chats.runs.run_control import NoRunControl, RunControl
from web.chats.snapshots.snapshots import ChatSnapshots
from web.chats.steps.opened_runs import OpenedRuns
from web.harness.builtin.chat_files import ChatFiles
from web.harness.sessions.event_log import EventLog
from web.harness.sessions.identity import HarnessIdentity
from web.harness.skills.library import identity_folder
from web.harness.tools.tool import Tool
from web.harness.values.errors import HarnessError
from web.ui.access.identity import RequestIdentity, unknown_identity
from web.ui.access.known_streams import KnownStreams
from web.ui.access.open_streams import OpenStreams
from web.ui.rendering.fragments import Fragments
from web.ui.skill_uploads import SkillUploads

PERSON_HEADER = "harness-person"
"""Of requests by a page's script: for whom the page was made."""


@dataclass(frozen=True, slots=True)
class UiServices:
    """Everything behind the pages, the stream and the API.

    `tools` lists what a chat has (None: what a new chat would have). `demo` is true where no
    model with a key is offered. `memory` says in words what becomes of chats. `files` are those
    that a chat made or was given; one has at most `max_file_bytes`. `runs` are those that are
    written down.
    """

    chats: Chats
    events: EventLog
    identity: RequestIdentity
    fragments: Fragments
    templates: Environment
    open_streams: OpenStreams
    tools: Callable[[Chat | None], list[Tool]]
    demo: bool
    memory: str
    store: str
    version: str
    new_id: Callable[[], str]
    max_request_bytes: int
    files: Callable[[Chat], ChatFiles]
    max_file_bytes: int
    snapshots: ChatSnapshots
    skill_uploads: SkillUploads = field(default_factory=SkillUploads)
    known_streams: KnownStreams = field(default_factory=KnownStreams)
    runs: RunControl = field(default_factory=NoRunControl)
    opened_runs: OpenedRuns = field(default_factory=lambda: OpenedRuns(secrets.token_urlsafe))
    now: Callable[[], float] = time.time

    @property
    def page_token(self) -> str:
        """What only this server's own pages hold; see `make_environment`."""
        return str(self.templates.globals["page_token"])

    def check_token(self, fields: Mapping[str, str]) -> None:
        """Raises HarnessError for a form that no page of this server, as it runs now, has shown."""
        given = fields.get("token", "")
        if not secrets.compare_digest(given.encode(), self.page_token.encode()):
            raise HarnessError(
                "This page is older than the server, or not its own, so nothing was started.",
                hint="Load the page again and try once more.",
                code="stale_page",
            )

    def identify(self, connection: HTTPConnection) -> HarnessIdentity:
        """Whose request it is. Raises HarnessError (`unknown_identity`) for a stranger."""
        identity = self.identity.identify(
            connection.scope["headers"], connection.client.host if connection.client else None
        )
        if identity is None:
            raise unknown_identity(self.identity)
        page_of = connection.headers.get(PERSON_HEADER)
        if page_of and page_of != self._person(identity):
            raise unknown_identity(self.identity)
        return identity

    def person(self, connection: HTTPConnection) -> str:
        """Stands for whoever asks in what a browser keeps and shares between its tabs; '' for the
        person at this machine. Pages send it along, so that one that is left open does nothing for
        whoever signed in since."""
        return self._person(self.identify(connection))

    def _person(self, identity: HarnessIdentity) -> str:
        if self.identity.is_local:
            return ""
        return identity_folder(identity.tenant_id, identity.user_id)[:16]
