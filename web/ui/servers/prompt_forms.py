"""The forms of prompts, as commands of the message box and in the panel, and completions."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from web.chats.chat import Chat
from web.chats.registry.composing import before_draft
from web.chats.servers.readings import Material, words_of
from web.harness.values.errors import HarnessError, NotFound
from web.ui.form_data import Fields
from web.ui.pages.forms import by_script, leave, of_a_chat, read_fields, stay
from web.ui.servers.resource_forms import typed_fields
from web.ui.services import UiServices

COMMAND_PLACE = "[data-command-place]"
"""Where the page shows the form of a command, and what it brought."""

SKILL_WORDS = "Its instructions go with this message. Say after its name what it is for."


def prompt_form_routes(services: UiServices) -> list[Route]:
    forms = _PromptForms(services)
    return [
        Route("/chats/commands", forms.begin, methods=["POST"]),
        *(
            Route(f"/chats/{{chat_id}}/{path}", of_a_chat(services, handler), methods=["POST"])
            for path, handler in (
                ("commands", forms.command),
                ("servers/{key}/prompts", forms.use),
                ("servers/{key}/completions", forms.complete),
            )
        ),
    ]


class _PromptForms:
    def __init__(self, services: UiServices) -> None:
        self._services = services
        self._chats = services.chats

    async def begin(self, request: Request) -> Response:
        """A command that was chosen where there is no chat yet. A skill needs none; for a prompt,
        which may bring attachments, one is made, in which the page's script chooses it again."""
        identity = self._services.identify(request)
        fields = await read_fields(request)
        self._services.check_token(fields)
        kind, _, rest = fields.get("command", "").partition(" ")
        if kind == "skill":
            skill = (await self._chats.skills.look(identity)).find(rest)
            return self._in_box(f"/{skill.name} ", SKILL_WORDS)
        if kind != "host-prompt":
            raise NotFound("There is no such command here.")
        self._chats.servers.host_name(rest.partition(" ")[0])
        chat = await self._chats.create(
            identity, model=fields.get("model", ""), request_id=fields.get("request_id", "")
        )
        return leave(request, f"/chats/{chat.id}")

    async def command(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """A command that was chosen: it is done, or asks for its fields first."""
        self._services.check_token(fields)
        kind, _, rest = fields.get("command", "").partition(" ")
        if kind == "skill":
            return await self._called(chat, request, rest)
        if kind not in ("prompt", "host-prompt"):
            raise NotFound("There is no such command in this chat.")
        key, _, ref = rest.partition(" ")
        servers = self._chats.servers.of(chat)
        if kind == "host-prompt":
            key = servers.key_of(self._chats.servers.host_name(key))
        offers = servers.offers
        prompt = offers.prompt(key, ref)
        if not prompt.fields:
            return await self._used(chat, request, await offers.use(key, ref, {}))
        html = self._services.templates.get_template("parts/command_form.html").render(
            channel=chat.id, prompt=prompt
        )
        return _in_place(html)

    async def use(self, chat: Chat, fields: Fields, request: Request) -> Response:
        self._services.check_token(fields)
        key, ref = request.path_params["key"], fields.get("ref", "")
        offers = self._chats.servers.of(chat).offers
        typed = typed_fields(offers.fields(key, "prompt", ref), fields)
        return await self._used(chat, request, await offers.use(key, ref, typed))

    async def complete(self, chat: Chat, fields: Fields, request: Request) -> Response:
        """What may stand in the field `argument`, as `{"values": [...]}`."""
        self._services.check_token(fields)
        key, ref = request.path_params["key"], fields.get("ref", "")
        kind = request.query_params.get("kind", "")
        if kind not in ("prompt", "template"):
            raise NotFound("There is nothing to complete here.")
        offers = self._chats.servers.of(chat).offers
        names = offers.fields(key, kind, ref)
        number = fields.get("argument", "").removeprefix("a")
        if not number.isdecimal() or int(number) >= len(names):
            raise HarnessError("There is no such field.", code="invalid_arguments")
        typed = typed_fields(names, fields)
        values = await offers.complete(key, kind, ref, names[int(number)], typed)
        return JSONResponse({"values": values})

    async def _called(self, chat: Chat, request: Request, ref: str) -> Response:
        """The name of a skill for the message box: the message that begins with it calls it."""
        skill = (await self._chats.skills.look(chat.identity)).find(ref)
        return await self._used(chat, request, Material((), (), f"/{skill.name} "), SKILL_WORDS)

    async def _used(
        self, chat: Chat, request: Request, material: Material, words: str = ""
    ) -> Response:
        """Attaches what belongs to it, and gives the text to the message box."""
        if not by_script(request):
            await self._put(chat, material)
            return stay(request, chat)
        await self._chats.attach(chat, material.blocks)
        return self._in_box(material.text, words or words_of(material.left_out))

    def _in_box(self, text: str, words: str) -> Response:
        """A text for the message box, and words beside it."""
        html = self._services.templates.get_template("parts/used.html").render(
            text=text, words=words
        )
        response = _in_place(html)
        response.headers["HX-Trigger"] = "changed"
        return response

    async def _put(self, chat: Chat, material: Material) -> None:
        """Attaches what belongs to it, and puts the text before what is typed. All or nothing."""
        draft = before_draft(chat.record.draft, material.text)
        self._chats.check_draft(draft)
        await self._chats.attach(chat, material.blocks)
        await self._chats.keep_draft(chat, draft)


def _in_place(html: str) -> Response:
    return HTMLResponse(html.encode(errors="replace"), headers={"HX-Retarget": COMMAND_PLACE})
