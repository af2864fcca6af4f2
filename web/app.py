"""`create_app(settings)`: builds every object and owns the lifespan.

The only file that picks implementations.
"""

from __future__ import annotations

import re
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from web import __version__
from web.chats.attachments import AttachmentLimits
from web.chats.chat import Chat
from web.chats.chat_limits import ChatLimits
from web.chats.equipment import joined
from web.chats.folders import ChatFolders
from web.chats.identity import LocalIdentity
from web.chats.parts import Clock
from web.chats.records import InMemoryChatRecords
from web.chats.registry import Chats
from web.chats.servers import Servers
from web.chats.skills import ChatSkills
from web.chats.tasks import TaskOwner
from web.chats.turns import Equipment, TurnLimits, Turns
from web.harness.builtin import ChatFiles, standard_tools
from web.harness.builtin.file_limits import FileLimits
from web.harness.host import HarnessRuntime
from web.harness.mcp.spec import ServerSpec
from web.harness.providers import make_provider
from web.harness.sessions.event_log import InMemoryEventLog
from web.harness.sessions.in_memory import InMemorySessionStore
from web.harness.skills.library import SkillLibrary
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import Tool
from web.harness.values.config import DEMO_MODEL, AgentConfig, ModelName
from web.harness.values.model import Provider
from web.paths import generated_dir, sample_skills_dir, skills_dir, static_dir, templates_dir
from web.settings import (
    ServerLimits,
    Settings,
    configured_servers,
    process_environment,
    token_store,
)
from web.ui.api import api_routes
from web.ui.api_attachments import MESSAGES, most_message_bytes
from web.ui.approval_pages import approval_page_routes
from web.ui.blobs import blob_routes
from web.ui.errors import ErrorAnswers, html_errors
from web.ui.file_forms import file_form_routes
from web.ui.file_pages import file_page_routes
from web.ui.form_data import MAX_TEXT_BYTES
from web.ui.forms import MESSAGES as TYPED, form_routes
from web.ui.fragments import Fragments
from web.ui.markdown import prepare_block, render_block, warm
from web.ui.middleware import safety
from web.ui.open_streams import OpenStreams
from web.ui.pages import page_routes
from web.ui.prompt_forms import prompt_form_routes
from web.ui.resource_forms import resource_form_routes
from web.ui.scripts import script_route, style_route
from web.ui.server_forms import server_form_routes
from web.ui.services import UiServices
from web.ui.sign_in import sign_in_routes
from web.ui.skill_forms import skill_form_routes
from web.ui.skill_pages import skill_page_routes
from web.ui.skill_uploads import MAX_UPLOAD_BYTES, SKILL_UPLOADS
from web.ui.stream import stream_routes
from web.ui.templating import make_environment
from web.ui.upload_forms import FORM_BYTES, UPLOADS, upload_form_routes

MEMORY_WORDS = (
    "Chats are kept in the memory of this server. A refresh, a closed tab or a lost network lose "
    "nothing; a restart of the server ends them."
)

SYSTEM_PROMPT = (
    "You are a helpful assistant in a web chat. Answer in markdown. "
    "Use the tools you are given when they help, and say briefly what you did with them."
)

DEMO_SERVER = ServerSpec("demo", "stdio", command=sys.executable, args=("-m", "web", "demo-server"))

Providers = Callable[[ModelName], Provider]


def create_app(settings: Settings, *, providers: Providers | None = None) -> Starlette:
    """The application. `providers` replaces the model APIs; they then stay the caller's.

    Raises ConfigurationError for a model that cannot be asked, or MCP servers that cannot be read.
    """
    own = _OwnProviders(settings)
    if providers is None:
        # A model that cannot be asked, say for want of a key, is told of now and not in a chat.
        for model in settings.models:
            own.get(model)
    tasks = TaskOwner()
    services = _services(settings, providers or own.get, tasks)
    answers = ErrorAnswers(html_errors(services))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # What is slow at its first use is used once before anybody waits for it.
        warm()
        services.tools(None)
        async with tasks:
            services.chats.servers.start()
            services.chats.files.start()
            services.chats.skills.start()
            try:
                yield
            finally:
                await services.chats.servers.aclose()
                services.chats.files.stop()
        await own.aclose()

    application = Starlette(
        routes=[
            *page_routes(services),
            *form_routes(services),
            *approval_page_routes(services),
            *server_form_routes(services),
            *sign_in_routes(services),
            *resource_form_routes(services),
            *prompt_form_routes(services),
            *skill_form_routes(services),
            *file_page_routes(services),
            *file_form_routes(services),
            *skill_page_routes(services),
            *upload_form_routes(services),
            *stream_routes(services),
            *blob_routes(services),
            *api_routes(services),
            Mount(
                "/static/htmx",
                StaticFiles(packages=[("js_lib_htmx", "static/htmx")]),
            ),
            script_route(static_dir()),
            style_route(static_dir()),
            Mount("/static", StaticFiles(directory=static_dir())),
        ],
        middleware=safety(settings.limits.max_request_bytes, answers, larger=_larger(settings)),
        exception_handlers=answers.handlers,
        lifespan=lifespan,
    )
    # An address with a slash too many is none of ours, for people and programs alike.
    application.router.redirect_slashes = False
    return application


class _OwnProviders:
    """One provider for each model API, made when it is first needed and closed at the end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: dict[str, Provider] = {}

    def get(self, model: ModelName) -> Provider:
        provider = self._made.get(model.provider)
        if provider is None:
            key, address = self._access(model.provider)
            provider = make_provider(model.provider, api_key=key, base_url=address)
            self._made[model.provider] = provider
        return provider

    async def aclose(self) -> None:
        made, self._made = self._made, {}
        for provider in made.values():
            await provider.aclose()

    def _access(self, name: str) -> tuple[str | None, str | None]:
        settings = self._settings
        secret, address = {
            "openai": (settings.openai_api_key, settings.openai_base_url),
            "anthropic": (settings.anthropic_api_key, settings.anthropic_base_url),
        }.get(name, (None, None))
        return (secret.get_secret_value() if secret is not None else None), address


def _services(settings: Settings, providers: Providers, tasks: TaskOwner) -> UiServices:
    clock = Clock(secrets.token_hex(4))
    sessions = InMemorySessionStore()
    events = InMemoryEventLog(
        time.time, lambda run_id, new: turns.chat_of(run_id).transcript.fold(run_id, new)
    )
    folders = ChatFolders(
        generated_dir(settings.data_dir), tasks, limits=_file_limits(settings.limits)
    )
    own_tools = _OwnTools(folders)
    servers = Servers(
        tasks,
        process_environment(),
        new_id=lambda: secrets.token_hex(8),
        host=configured_servers(settings),
        demo=DEMO_SERVER,
        max_per_chat=settings.limits.max_servers,
        providers=providers,
        folder=folders.folder,
        tokens=token_store(settings),
        client_metadata_url=settings.mcp_client_metadata_url or "",
    )
    skills = ChatSkills(
        # Whoever reaches this server is the person at this machine, whose folder of skills it is.
        SkillLibrary(skills_dir(settings.data_dir), sample_skills_dir(), own_writable=True),
        tasks,
        folder=folders.folder,
        environ=process_environment(),
        files=folders.of,
    )
    turns = Turns(
        tasks=tasks,
        runtime=HarnessRuntime(sessions),
        events=events,
        equipment=Equipment(
            AgentConfig(model=settings.models[0], system_prompt=SYSTEM_PROMPT),
            providers,
            lambda chat: ToolRegistry(own_tools.of(chat)),
            joined(servers.connected, skills.connected),
        ),
        limits=_turn_limits(settings.limits),
        now=time.time,
        changed=lambda chat: chats.show(chat),
    )
    chats = Chats(
        tasks=tasks,
        turns=turns,
        sessions=sessions,
        records=InMemoryChatRecords(),
        clock=clock,
        models=settings.models,
        limits=ChatLimits(
            max_chats=settings.limits.max_chats,
            # A text that is too long for a message is not lost for that.
            max_draft_chars=2 * settings.limits.max_message_chars,
            max_title_chars=200,
            undo_seconds=settings.limits.undo_seconds,
            attachments=_attachment_limits(settings.limits),
        ),
        now=time.time,
        new_id=lambda: secrets.token_hex(8),
        skills=skills,
        files=folders,
        servers=servers,
    )
    environment = make_environment(templates_dir())
    return UiServices(
        chats=chats,
        events=events,
        identity=LocalIdentity(),
        fragments=Fragments(environment, render_block, prepare_block),
        templates=environment,
        open_streams=OpenStreams(settings.limits.max_open_streams),
        tools=lambda chat: [*own_tools.of(chat), *(skills.tools(chat) if chat else ())],
        demo=settings.models == (DEMO_MODEL,),
        memory=MEMORY_WORDS,
        store="memory",
        version=__version__,
        new_id=lambda: secrets.token_hex(8),
        max_request_bytes=settings.limits.max_request_bytes,
        files=folders.of,
        max_file_bytes=_most_uploaded(settings.limits),
    )


def _larger(settings: Settings) -> dict[re.Pattern[str], int]:
    """The paths whose requests may be larger than others, and how large in bytes."""
    return {
        UPLOADS: settings.limits.max_upload_bytes,
        TYPED: min(8 * settings.limits.max_request_bytes, MAX_TEXT_BYTES),
        MESSAGES: most_message_bytes(_attachment_limits(settings.limits)),
        SKILL_UPLOADS: MAX_UPLOAD_BYTES,
    }


def _turn_limits(limits: ServerLimits) -> TurnLimits:
    return TurnLimits(
        max_running=limits.max_running_turns,
        max_queued=limits.max_queued,
        max_message_chars=limits.max_message_chars,
        kept_runs=limits.kept_runs,
    )


def _file_limits(limits: ServerLimits) -> FileLimits:
    return FileLimits(
        max_file_bytes=limits.max_file_bytes,
        max_chat_bytes=limits.max_files_bytes,
        max_files=limits.max_files,
        kept_versions=limits.kept_versions,
        # Earlier versions may take as much room as the files themselves.
        kept_bytes=limits.max_files_bytes,
    )


def _attachment_limits(limits: ServerLimits) -> AttachmentLimits:
    return AttachmentLimits(
        max_count=limits.max_attachments,
        max_chars=limits.max_attachment_chars,
        max_picture_bytes=limits.max_picture_bytes,
        max_pictures_bytes=limits.max_pictures_bytes,
    )


def _most_uploaded(limits: ServerLimits) -> int:
    """How large a file may be that comes by the page: it has to fit a request as well."""
    room = limits.max_upload_bytes - min(FORM_BYTES, limits.max_upload_bytes // 2)
    return min(limits.max_file_bytes, limits.max_files_bytes, room)


class _OwnTools:
    """The ready-made tools of each chat, over its own files."""

    def __init__(self, folders: ChatFolders) -> None:
        self._folders = folders
        # What a new chat would have is only ever shown: it has no folder.
        self._nobodys = ChatFiles(folders.root)

    def of(self, chat: Chat | None) -> list[Tool]:
        files = self._folders.of(chat) if chat is not None else self._nobodys
        return standard_tools(files, lambda: datetime.now().astimezone())
