"""The application's pages over a chat room: with a test's own tools, asked by several people.

Each tool gets what keeps the binary data of its chat.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from tests.support.app_server import AppServer, plain_client, served
from tests.support.folders import NO_FOLDER
from tests.support.kept_runs import KeptRuns
from tests.support.scripted_provider import ScriptedProvider
from tests.support.skills import no_skills
from web.chats.chat import Chat
from web.chats.files.folders import ChatFolders
from web.chats.parts.channel import Clock
from web.chats.records.chat_limits import ChatLimits
from web.chats.records.records import InMemoryChatRecords
from web.chats.registry.chats import Chats
from web.chats.runs.equipment import Equipment, TurnLimits
from web.chats.runs.turns import Turns
from web.chats.snapshots.snapshots import ChatSnapshots
from web.chats.tasks import TaskOwner
from web.harness.host import HarnessRuntime
from web.harness.sessions.event_log import EventLog, InMemoryEventLog
from web.harness.sessions.identity import HarnessIdentity
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import KeepBlob, Tool
from web.harness.values.config import AgentConfig, ModelName
from web.paths import static_dir, templates_dir
from web.ui.access.identity import Headers
from web.ui.access.open_streams import OpenStreams
from web.ui.api.routes import api_routes
from web.ui.errors import ErrorAnswers, html_errors
from web.ui.files.blobs import blob_routes
from web.ui.files.file_forms import file_form_routes
from web.ui.files.file_pages import file_page_routes
from web.ui.markdown import prepare_block, render_block
from web.ui.middleware.safeguards import safety
from web.ui.pages.approval_pages import approval_page_routes
from web.ui.pages.forms import form_routes
from web.ui.pages.pages import page_routes
from web.ui.rendering.fragments import Fragments
from web.ui.rendering.scripts import script_route, style_route
from web.ui.rendering.templating import make_environment
from web.ui.runs.run_forms import run_form_routes
from web.ui.runs.run_pages import run_page_routes
from web.ui.services import UiServices
from web.ui.snapshot_forms import snapshot_form_routes
from web.ui.stream.stream import stream_routes

USER = "x-user"
"""The header that says who asks, for tests with several people."""


class HeaderIdentity:
    is_local = False
    hint = ""

    def identify(self, headers: Headers, peer: str | None) -> HarnessIdentity:
        return HarnessIdentity("local", dict(headers).get(USER.encode(), b"local").decode())


@dataclass(frozen=True, slots=True)
class ToolServer(AppServer):
    chats: Chats
    log: EventLog
    runs: KeptRuns

    def chat_here(self, chat_id: str, user: str = "local") -> Chat:
        return self.chats.get(HarnessIdentity("local", user), chat_id)


@asynccontextmanager
async def tool_server(
    provider: ScriptedProvider, tools: Callable[[KeepBlob], list[Tool]]
) -> AsyncIterator[ToolServer]:
    """A server whose chats have these tools."""
    async with TaskOwner() as tasks:
        services = _services(provider, tools, tasks)
        runs = KeptRuns(services.events)
        services = replace(services, runs=runs)
        async with (
            served(_app(services)) as address,
            plain_client(address) as client,
        ):
            yield ToolServer(address, client, services.chats, services.events, runs)


def _services(
    provider: ScriptedProvider, tools: Callable[[KeepBlob], list[Tool]], tasks: TaskOwner
) -> UiServices:
    times, ids = iter(range(1_790_000_000, 1_800_000_000)), iter(range(1, 10**9))
    events = InMemoryEventLog(
        lambda: float(next(times)),
        lambda run_id, new: turns.chat_of(run_id).transcript.fold(run_id, new),
    )
    sessions = InMemorySessionStore()
    turns = Turns(
        tasks=tasks,
        runtime=HarnessRuntime(sessions),
        events=events,
        equipment=Equipment(
            AgentConfig(),
            lambda model: provider,
            lambda chat: ToolRegistry(tools(chat.blobs.keep)),
        ),
        limits=TurnLimits(10, 10, 10_000, 10),
        now=lambda: float(next(times)),
        changed=lambda chat: chats.show(chat),
    )
    chats = Chats(
        tasks=tasks,
        turns=turns,
        sessions=sessions,
        records=InMemoryChatRecords(),
        clock=Clock("e"),
        models=(ModelName("demo", "demo"),),
        limits=ChatLimits(100, 10_000, 80, 30),
        now=lambda: float(next(times)),
        new_id=lambda: f"x{next(ids)}",
        skills=no_skills(tasks),
        files=ChatFolders(NO_FOLDER, tasks),
    )
    environment = make_environment(templates_dir())
    return UiServices(
        chats=chats,
        events=events,
        identity=HeaderIdentity(),
        fragments=Fragments(environment, render_block, prepare_block),
        templates=environment,
        open_streams=OpenStreams(100),
        tools=lambda chat: tools(lambda blob: False),
        demo=False,
        memory="In memory.",
        store="memory",
        version="0",
        new_id=lambda: f"x{next(ids)}",
        max_request_bytes=1_000_000,
        files=chats.files.of,
        max_file_bytes=1_000_000,
        snapshots=ChatSnapshots(
            chats,
            turns,
            sessions,
            turns.equipment,
            max_bytes=1_000_000,
            now=lambda: float(next(times)),
            new_id=lambda: f"x{next(ids)}",
        ),
    )


def _app(services: UiServices) -> Starlette:
    answers = ErrorAnswers(html_errors(services))
    return Starlette(
        routes=[
            *page_routes(services),
            *form_routes(services),
            *approval_page_routes(services),
            *run_form_routes(services),
            *run_page_routes(services),
            *file_page_routes(services),
            *file_form_routes(services),
            *snapshot_form_routes(services),
            *stream_routes(services),
            *blob_routes(services),
            *api_routes(services),
            Mount("/static/htmx", StaticFiles(packages=[("js_lib_htmx", "static/htmx")])),
            script_route(static_dir()),
            style_route(static_dir()),
            Mount("/static", StaticFiles(directory=static_dir())),
        ],
        middleware=safety(1_000_000, answers),
        exception_handlers=answers.handlers,
    )
