"""`create_app(settings)`: builds every object and owns the lifespan.

The only file that picks implementations.
"""

from __future__ import annotations

import re
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from web import __version__
from web.chats.files.folders import ChatFolders
from web.chats.files.own_tools import OwnTools
from web.chats.memories.memories import ChatMemories
from web.chats.parts.channel import Clock
from web.chats.records.chat_limits import ChatLimits
from web.chats.registry.chats import Chats
from web.chats.runs.durability import Durability
from web.chats.runs.equipment import Equipment, joined
from web.chats.runs.run_control import NoRunControl
from web.chats.runs.turns import Turns
from web.chats.servers.servers import Servers
from web.chats.skills.skills import ChatSkills
from web.chats.snapshots.snapshots import ChatSnapshots
from web.chats.storage.chat_stores import ChatStores, at, in_memory
from web.chats.tasks import TaskOwner
from web.harness.host import HarnessRuntime
from web.harness.mcp.spec import ServerSpec
from web.harness.providers import make_provider
from web.harness.resources import ResourcePool
from web.harness.runtime.addresses import is_temporal
from web.harness.runtime.backend import Backend
from web.harness.runtime.sql import AddressedBackend
from web.harness.runtime.temporal.address import need_temporal
from web.harness.sessions.event_log import Listener
from web.harness.sessions.opening import store_kind
from web.harness.skills.library import SkillLibrary
from web.harness.tools.registry import ToolRegistry
from web.harness.tools.tool import Tool
from web.harness.values.config import DEMO_MODEL, AgentConfig, ModelName
from web.harness.values.model import Provider
from web.paths import (
    generated_dir,
    memory_dir,
    sample_skills_dir,
    skills_dir,
    static_dir,
    templates_dir,
)
from web.server_limits import attachment_limits, file_limits, most_uploaded, turn_limits
from web.settings import (
    Settings,
    configured_servers,
    process_environment,
    request_identity,
    token_store,
)
from web.ui.access.identity import RequestIdentity
from web.ui.access.open_streams import OpenStreams
from web.ui.added import Added
from web.ui.api.attachments import MESSAGES, most_message_bytes
from web.ui.api.routes import api_routes
from web.ui.errors import ErrorAnswers, html_errors
from web.ui.files.blobs import blob_routes
from web.ui.files.file_forms import file_form_routes
from web.ui.files.file_pages import file_page_routes
from web.ui.files.upload_forms import UPLOADS, upload_form_routes
from web.ui.form_data import MAX_TEXT_BYTES
from web.ui.markdown import prepare_block, render_block, warm
from web.ui.memory_forms import memory_form_routes
from web.ui.middleware.exact_routes import make_exact
from web.ui.middleware.loaded_chats import LoadedChats
from web.ui.middleware.safeguards import safety
from web.ui.pages.approval_pages import approval_page_routes
from web.ui.pages.forms import MESSAGES as TYPED, form_routes
from web.ui.pages.pages import page_routes
from web.ui.pages.token_pages import token_page_routes
from web.ui.rendering.fragments import Fragments
from web.ui.rendering.scripts import script_route, style_route
from web.ui.rendering.store_words import store_words
from web.ui.rendering.templating import make_environment
from web.ui.runs.run_forms import run_form_routes
from web.ui.runs.run_pages import run_page_routes
from web.ui.servers.prompt_forms import prompt_form_routes
from web.ui.servers.resource_forms import resource_form_routes
from web.ui.servers.server_forms import server_form_routes
from web.ui.servers.sign_in import sign_in_routes
from web.ui.services import UiServices
from web.ui.skill_uploads import MAX_UPLOAD_BYTES, SKILL_UPLOADS
from web.ui.skills.skill_forms import skill_form_routes
from web.ui.skills.skill_pages import skill_page_routes
from web.ui.snapshot_forms import (
    FORM_BYTES as SNAPSHOT_FORM_BYTES,
    SNAPSHOTS,
    snapshot_form_routes,
)
from web.ui.stream.stream import stream_routes

SYSTEM_PROMPT = (
    "You are a helpful assistant in a web chat. Answer in markdown. "
    "Use the tools you are given when they help, and say briefly what you did with them."
)

DEMO_SERVER = ServerSpec("demo", "stdio", command=sys.executable, args=("-m", "web", "demo-server"))

Providers = Callable[[ModelName], Provider]


def create_app(
    settings: Settings, *, providers: Providers | None = None, added: Added | None = None
) -> Starlette:
    """The application. `providers` replaces the model APIs; they then stay the caller's.

    Raises ConfigurationError for a model that cannot be asked, or MCP servers that cannot be read.
    """
    own = OwnProviders(settings)
    if providers is None:
        # A model that cannot be asked, say for want of a key, is told of now and not in a chat.
        for model in settings.models:
            own.get(model)
    identity = request_identity(settings)
    tasks, resources = TaskOwner(), ResourcePool()
    added = added or Added()
    stores, services = make_services(
        settings, identity, providers or own.get, tasks, resources, tools=added.tools
    )
    answers = ErrorAnswers(html_errors(services))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # What is slow at its first use is used once before anybody waits for it.
        warm()
        services.tools(None)
        await stores.open()
        async with tasks:
            services.chats.start()
            services.chats.servers.start()
            services.chats.files.start()
            services.chats.skills.start()
            services.chats.memories.start()
            try:
                yield
            finally:
                await services.chats.cut_off()
                await services.chats.servers.aclose()
                services.chats.files.stop()
        await resources.aclose()
        await stores.aclose()
        await own.aclose()

    application = Starlette(
        routes=[
            *page_routes(services),
            *token_page_routes(services),
            *form_routes(services),
            *approval_page_routes(services),
            *run_form_routes(services),
            *run_page_routes(services),
            *server_form_routes(services),
            *sign_in_routes(services),
            *resource_form_routes(services),
            *prompt_form_routes(services),
            *skill_form_routes(services),
            *file_page_routes(services),
            *file_form_routes(services),
            *skill_page_routes(services),
            *memory_form_routes(services),
            *upload_form_routes(services),
            *snapshot_form_routes(services),
            *stream_routes(services),
            *blob_routes(services),
            *api_routes(services),
            *added.routes(services),
            Mount(
                "/static/htmx",
                StaticFiles(packages=[("js_lib_htmx", "static/htmx")]),
            ),
            script_route(static_dir()),
            style_route(static_dir()),
            Mount("/static", StaticFiles(directory=static_dir())),
        ],
        middleware=[
            *safety(
                settings.limits.max_request_bytes,
                answers,
                allowed_hosts=settings.hosts,
                identity=identity,
                larger=_larger(settings),
            ),
            Middleware(LoadedChats, services=services),
        ],
        exception_handlers=answers.handlers,
        lifespan=lifespan,
    )
    # An address with a slash too many is none of ours, for people and programs alike.
    application.router.redirect_slashes = False
    make_exact(application.routes)
    return application


class OwnProviders:
    """One provider for each model API, made when it is first needed and closed at the end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made: dict[str, Provider] = {}

    def get(self, model: ModelName) -> Provider:
        provider = self._made.get(model.provider)
        if provider is None:
            key, address = self._access(model.provider)
            provider = make_provider(model.provider, api_key=key, base_url=address, variables=True)
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


def make_services(
    settings: Settings,
    identity: RequestIdentity,
    providers: Providers,
    tasks: TaskOwner,
    resources: ResourcePool,
    *,
    tools: Sequence[Tool] = (),
) -> tuple[ChatStores, UiServices]:
    """All objects of an application, put together; a worker uses some of them too."""
    clock = Clock(secrets.token_hex(4))
    stores, connect = (
        in_memory(time.time)
        if settings.chat_store == "memory"
        else at(settings.chat_store, time.time, tasks, _backends(settings))
    )
    sessions, events = stores.sessions, stores.events
    folders = ChatFolders(
        generated_dir(settings.data_dir),
        tasks,
        limits=file_limits(settings.limits),
        stored=settings.chat_store != "memory",
    )
    own_tools = OwnTools(folders, tools)
    servers = Servers(
        tasks,
        process_environment(),
        new_id=lambda: secrets.token_hex(8),
        host=configured_servers(settings),
        # It is a command, and those are only for whoever sits at this machine.
        demo=DEMO_SERVER if identity.is_local else None,
        max_per_chat=settings.limits.max_servers,
        providers=providers,
        folder=folders.folder,
        tokens=token_store(settings),
        resources=resources,
        client_metadata_url=settings.mcp_client_metadata_url or "",
    )
    skills = ChatSkills(
        # The server's own skills are those of the person at this machine.
        SkillLibrary(
            skills_dir(settings.data_dir), sample_skills_dir(), own_writable=identity.is_local
        ),
        tasks,
        folder=folders.folder,
        environ=process_environment(),
        files=folders.of,
    )
    memories = ChatMemories(
        tasks,
        settings.memory_dir or memory_dir(settings.data_dir),
        on=settings.memory,
        undo_seconds=settings.limits.undo_seconds,
    )
    turns = Turns(
        tasks=tasks,
        runtime=HarnessRuntime(sessions, resources),
        events=events,
        equipment=Equipment(
            AgentConfig(model=settings.models[0], system_prompt=SYSTEM_PROMPT),
            providers,
            lambda chat: ToolRegistry(own_tools.of(chat)),
            joined(servers.connected, skills.connected, memories.connected),
            only_here=servers.holds,
            prices=settings.prices,
        ),
        limits=turn_limits(settings.limits),
        now=time.time,
        changed=lambda chat: chats.show(chat),
        journal=stores.journal,
        durable=Durability(stores.backend, settings.resume, tuple(map(str, settings.models)))
        if stores.backend is not None
        else None,
    )
    chats = Chats(
        tasks=tasks,
        turns=turns,
        sessions=sessions,
        records=stores.records,
        clock=clock,
        models=settings.models,
        limits=ChatLimits(
            max_chats=settings.limits.max_chats,
            # A text that is too long for a message is not lost for that.
            max_draft_chars=2 * settings.limits.max_message_chars,
            max_title_chars=200,
            undo_seconds=settings.limits.undo_seconds,
            attachments=attachment_limits(settings.limits),
        ),
        now=time.time,
        new_id=lambda: secrets.token_hex(8),
        skills=skills,
        files=folders,
        servers=servers,
        memories=memories,
        kept=(kept := connect(turns)),
    )
    kind = store_kind(settings.chat_store) or "memory"
    environment = make_environment(templates_dir())
    services = UiServices(
        chats=chats,
        events=events,
        identity=identity,
        fragments=Fragments(environment, render_block, prepare_block),
        templates=environment,
        open_streams=OpenStreams(settings.limits.max_open_streams),
        tools=lambda chat: [
            *own_tools.of(chat),
            *(skills.tools(chat) if chat else ()),
            *memories.tools(chat),
        ],
        demo=settings.models == (DEMO_MODEL,),
        memory=store_words(
            kind, written_down=stores.backend is not None, asks=settings.resume == "ask"
        ),
        store=kind,
        version=__version__,
        new_id=lambda: secrets.token_hex(8),
        max_request_bytes=settings.limits.max_request_bytes,
        files=folders.of,
        max_file_bytes=most_uploaded(settings.limits),
        snapshots=ChatSnapshots(
            chats,
            turns,
            sessions,
            turns.equipment,
            max_bytes=settings.limits.max_snapshot_bytes,
            now=time.time,
            new_id=lambda: secrets.token_hex(8),
        ),
        runs=kept.written if kept is not None and kept.written is not None else NoRunControl(),
    )
    return stores, services


def _backends(settings: Settings) -> Callable[[Listener], Backend] | None:
    """What makes the backend that the settings name, once it is known who listens to it."""
    address = settings.run_backend
    if address is None:
        return None
    if is_temporal(address):
        # It is an extra, and imported only where it is asked for.
        need_temporal()
        from web.harness.runtime.temporal.backend import server_backend

        return lambda listener: server_backend(address, now=time.time, listener=listener)
    return lambda listener: AddressedBackend(address, now=time.time, listener=listener)


def _larger(settings: Settings) -> dict[re.Pattern[str], int]:
    """The paths whose requests may be larger than others, and how large in bytes."""
    return {
        UPLOADS: settings.limits.max_upload_bytes,
        TYPED: min(8 * settings.limits.max_request_bytes, MAX_TEXT_BYTES),
        MESSAGES: most_message_bytes(attachment_limits(settings.limits)),
        SKILL_UPLOADS: MAX_UPLOAD_BYTES,
        SNAPSHOTS: settings.limits.max_snapshot_bytes + SNAPSHOT_FORM_BYTES,
    }
