"""The part of the JSON API that has skills: what a chat can use, and what a person may change.

Skills belong to a person, so that a change counts for all chats of that person; each chat has its
own switch.
"""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field
from starlette.responses import Response

from web.chats.actions import skill_actions
from web.chats.chat import Chat
from web.chats.skills.skill_shelf import SkillShelf, ref_of
from web.harness.skills.skill import Skill, SkillOrigin
from web.harness.values.errors import HarnessError
from web.ui.api.operations import Call, Operation
from web.ui.api.shapes import Asked, Nothing, Told
from web.ui.form_data import fields_of
from web.ui.skill_uploads import installed


class SkillSummary(Told):
    """A skill that a chat can use while it is `on`; one with a `fault` cannot be used at all."""

    key: str
    name: str
    description: str
    origin: SkillOrigin = Field(description="Put in by this person, the server's own, or a sample.")
    fault: str
    writable: bool = Field(description="Else a new text makes a copy of this person's own.")
    changed_at: float = Field(description="Seconds since the epoch, 0 where it is not known.")
    on: bool


class FileOfSkill(Told):
    path: str
    size: int = Field(description="In bytes.")


class SkillWhole(SkillSummary):
    license: str
    compatibility: str
    metadata: dict[str, str]
    allowed_tools: tuple[str, ...] = Field(description="Its author's wish; they permit nothing.")
    text: str | None = Field(description="The whole `SKILL.md`; null where it is no text.")
    sha256: str = Field(description="Of the text, for `seen`.")
    files: tuple[FileOfSkill, ...]
    left_out: int = Field(description="Links, hidden and oddly named files in its folder.")


class SkillMade(Told):
    skill: SkillSummary
    replaced: bool
    left_out: int = Field(description="Hidden files that were not taken.")


class GoneSkill(Told):
    """A skill that was deleted or replaced, by the key that it had."""

    key: str
    name: str
    origin: SkillOrigin


class SkillChange(Asked):
    """What is left out stays. A new text needs `seen`, lest it undo what was saved meanwhile."""

    model_config = ConfigDict(json_schema_extra={"dependentRequired": {"text": ["seen"]}})

    on: bool | None = Field(None, description="Whether this chat can use it.")
    text: str | None = Field(None, description="A new `SKILL.md`.")
    seen: str = Field("", description="With `text`: the `sha256` of what it replaces.")


async def list_skills(call: Call[Nothing]) -> list[SkillSummary]:
    chat, shelf = await _looked(call)
    return [SkillSummary(**_summary(chat, skill)) for skill in shelf.listed]


async def get_skill(call: Call[Nothing]) -> SkillWhole:
    chat, shelf = await _looked(call)
    return await _whole(chat, shelf, shelf.find(call.path["key"]))


async def get_skill_file(call: Call[Nothing]) -> Response:
    """The bytes of a file of a skill."""
    _, shelf = await _looked(call)
    skill, path = shelf.find(call.path["key"]), call.path["path"]
    content = await shelf.do(lambda: shelf.skills.read_file(skill.name, path, origin=skill.origin))
    headers = {"Content-Disposition": "attachment"}
    return Response(content, media_type="application/octet-stream", headers=headers)


async def upload_skill(call: Call[Nothing]) -> SkillMade:
    chat, shelf = await _looked(call)
    if not call.request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise HarnessError(
            "The content has to be a form with files.",
            hint="Send multipart/form-data with a part `file`, or parts `folder`.",
            code="unsupported_media_type",
        )
    async with call.services.skill_uploads.read(call.request) as form:
        replace = fields_of(call.request, form).get("replace") in ("yes", "true")
        made = await installed(shelf, form, replace=replace)
    await call.services.chats.skills.look(chat.identity)
    skill = shelf.named(made.name) or Skill(made.name, origin="upload")
    return SkillMade(
        skill=SkillSummary(**_summary(chat, skill)),
        replaced=made.replaced,
        left_out=made.left_out,
    )


async def change_skill(call: Call[SkillChange]) -> SkillWhole:
    """Of a skill with a new text the answer may have another key: that of a copy."""
    chat, shelf = await _looked(call)
    skill, asked = shelf.find(call.path["key"]), call.body
    if asked.text is not None:
        if not asked.seen:
            raise HarnessError(
                "A new text needs `seen`, the `sha256` of the text that it replaces.",
                hint=f"Nothing was changed. GET {call.request.url.path} has it.",
                code="invalid_request",
            )
        await shelf.edit(skill, asked.text, asked.seen)
        await call.services.chats.skills.look(chat.identity)
        skill = shelf.named(skill.name) or skill
    if asked.on is not None:
        await call.services.chats.switch_skill(chat, skill.name, on=asked.on)
    return await _whole(chat, shelf, skill)


async def delete_skill(call: Call[Nothing]) -> None:
    chat, shelf = await _looked(call)
    await skill_actions.delete_skill(call.services.chats, chat, shelf.find(call.path["key"]))


async def list_deleted_skills(call: Call[Nothing]) -> list[GoneSkill]:
    _, shelf = await _looked(call)
    return [
        GoneSkill(key=ref_of(each), name=each.name, origin=each.origin)
        for each in shelf.deleted.skills
    ]


async def restore_skill(call: Call[Nothing]) -> SkillSummary:
    chat, shelf = await _looked(call)
    key = call.path["key"]
    await skill_actions.restore_skill(call.services.chats, chat, shelf.find_deleted(key))
    return SkillSummary(**_summary(chat, shelf.find(key)))


async def _looked(call: Call[Any]) -> tuple[Chat, SkillShelf]:
    """The chat, and the skills of its person as they are on disk now."""
    chats = call.services.chats
    chat = chats.get(call.identity, call.path["chat_id"])
    return chat, await chats.skills.look(chat.identity)


def _summary(chat: Chat, skill: Skill) -> dict[str, Any]:
    return {
        "key": ref_of(skill),
        "name": skill.name,
        "description": skill.description,
        "origin": skill.origin,
        "fault": skill.fault,
        "writable": skill.writable,
        "changed_at": skill.changed,
        "on": not skill.fault and skill.name not in chat.record.skills_off,
    }


async def _whole(chat: Chat, shelf: SkillShelf, skill: Skill) -> SkillWhole:
    text, _ = await shelf.read(skill)
    return SkillWhole(
        **_summary(chat, skill),
        license=skill.license,
        compatibility=skill.compatibility,
        metadata=dict(skill.metadata),
        allowed_tools=skill.allowed_tools,
        text=text.source if text else None,
        sha256=text.sha256 if text else "",
        files=tuple(FileOfSkill(path=path, size=size) for path, size in text.files) if text else (),
        left_out=text.left_out if text else 0,
    )


_FILES = {"type": "array", "items": {"type": "string", "format": "binary"}}
_UPLOAD = {
    "file": {**_FILES, "description": "One `SKILL.md`, or one zip of a skill's folder."},
    "folder": {
        **_FILES,
        "description": "Or the files of its folder, each named by its path: `greeting/SKILL.md`.",
    },
    "replace": {"type": "string", "enum": ["yes"], "description": "One of the same name may go."},
}
_FOUND = ("not_found", "skill_refused", "too_large", "limit_exceeded")
_WRITING = (*_FOUND, "skill_read_only", "skill_exists", "skill_changed", "skills_busy")
_PATH = "/api/chats/{chat_id}/skills"

SKILL_OPERATIONS: tuple[Operation[Any], ...] = (
    Operation(
        "GET",
        _PATH,
        "The skills that a chat can use, and those that are broken, with what is wrong",
        list_skills,
        Nothing,
        list[SkillSummary],
        refusals=("not_found",),
    ),
    Operation(
        "POST",
        _PATH,
        "Put a skill in: a `SKILL.md`, a zip, or the files of a folder",
        upload_skill,
        Nothing,
        SkillMade,
        201,
        (*_WRITING, "bad_request", "unsupported_media_type"),
        form=_UPLOAD,
    ),
    Operation(
        "GET",
        "/api/chats/{chat_id}/deleted-skills",
        "The skills that can be brought back",
        list_deleted_skills,
        Nothing,
        list[GoneSkill],
        refusals=("not_found",),
    ),
    Operation(
        "POST",
        "/api/chats/{chat_id}/deleted-skills/{key}/restore",
        "Undo a deletion; after a replacement the two change places",
        restore_skill,
        Nothing,
        SkillSummary,
        refusals=_WRITING,
    ),
    Operation(
        "GET", _PATH + "/{key}", "Read a skill", get_skill, Nothing, SkillWhole, refusals=_FOUND
    ),
    Operation(
        "PATCH",
        _PATH + "/{key}",
        "Switch a skill on or off in this chat, or give it another text",
        change_skill,
        SkillChange,
        SkillWhole,
        refusals=_WRITING,
    ),
    Operation(
        "DELETE",
        _PATH + "/{key}",
        "Delete a skill",
        delete_skill,
        Nothing,
        status=204,
        refusals=_WRITING,
    ),
    Operation(
        "GET",
        _PATH + "/{key}/files/{path:path}",
        "The bytes of a file of a skill",
        get_skill_file,
        Nothing,
        bytes,
        refusals=_FOUND,
        media_type="application/octet-stream",
    ),
)
