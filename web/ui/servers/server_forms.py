"""The forms that connect MCP servers to a chat. What starts or calls something needs the token."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.servers.typed_servers import TypedServer
from web.ui.form_data import Fields
from web.ui.pages.forms import leave, of_a_chat, read_fields, stay
from web.ui.services import UiServices


def server_form_routes(services: UiServices) -> list[Route]:
    forms = _ServerForms(services)
    return [
        Route("/chats/with-demo-server", forms.create_with_demo, methods=["POST"]),
        *(
            Route(f"/chats/{{chat_id}}/{path}", of_a_chat(services, handler), methods=["POST"])
            for path, handler in (
                ("servers", forms.connect),
                ("servers/demo", forms.connect_demo),
                ("servers/{key}/retry", forms.retry),
                ("servers/{key}/disconnect", forms.disconnect),
                ("proposals/{proposal_id}/start", forms.start),
                ("proposals/{proposal_id}/dismiss", forms.dismiss),
                ("tools/{tool}/switch", forms.switch),
            )
        ),
    ]


class _ServerForms:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._chats = services.chats
        self._servers = services.chats.servers

    async def create_with_demo(self, request: Request) -> Response:
        """A new chat that is connected to the demo server."""
        identity = self._services.identify(request)
        fields = await read_fields(request)
        self._services.check_token(fields)
        chat = await self._chats.create(
            identity, model=fields.get("model", ""), request_id=fields.get("request_id", "")
        )
        self._servers.connect_demo(chat)
        return leave(request, f"/chats/{chat.id}")

    async def connect_demo(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        self._servers.connect_demo(chat)
        # The page then suggests what to ask the server for.
        return leave(request, f"/chats/{chat.id}")

    async def connect(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """Connects an address; a command is only shown, and waits until it is started."""
        self._services.check_token(fields)
        servers = self._servers.of(chat)
        spec = servers.typed(
            TypedServer(
                target=fields.get("target", ""),
                name=fields.get("name", ""),
                folder=fields.get("folder", ""),
                protocol=fields.get("protocol", ""),
                roots=fields.get("roots") == "yes",
                secrets=fields.get("secrets", ""),
            )
        )
        if spec.kind == "stdio":
            servers.propose(spec)
        else:
            servers.connect(spec)
        return stay(request, chat)

    async def start(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        self._servers.of(chat).accept(request.path_params["proposal_id"])
        return stay(request, chat)

    async def dismiss(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._servers.of(chat).dismiss(request.path_params["proposal_id"])
        return stay(request, chat)

    async def retry(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        self._servers.of(chat).retry(request.path_params["key"])
        return stay(request, chat)

    async def disconnect(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._servers.of(chat).disconnect(request.path_params["key"])
        return stay(request, chat)

    async def switch(self, chat: Chat, fields: Fields, request: Request) -> Response:
        tool = request.path_params["tool"]
        await self._chats.switch_tool(chat, tool, on=fields.get("on") == "yes")
        return stay(request, chat)
