"""The kinds of part that show what servers offer a person, and what was attached to a message.

Names, addresses and descriptions in here are a stranger's words, tidied but not checked. A `ref`
names a thing in forms: its own name may be anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class ShownAttachment:
    """What was attached.

    `text` is shown up to a limit, `size` is all of it in characters; of a picture or a file it is
    in bytes. `sha256` names the bytes of a picture.
    """

    kind: Literal["text", "picture", "file"]
    name: str
    uri: str
    source: str
    media_type: str
    text: str
    size: int
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that goes with the next message, until it is taken off."""

    kind: ClassVar[str] = "attachment"
    attachment_id: str
    shown: ShownAttachment


@dataclass(frozen=True, slots=True)
class ShownResource:
    """A resource of the server `key`. `size` is in bytes, None where the server does not say.

    `updated` (seconds since the epoch) is when a watched one changed after it was last read.
    """

    kind: ClassVar[str] = "resource"
    key: str
    ref: str
    title: str
    uri: str
    media_type: str
    description: str
    size: int | None = None
    watchable: bool = False
    watched: bool = False
    updated: float | None = None


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a server: a slot that the first of them lie in. `more` are not shown.

    `updated` says that one of them changed after it was last read.
    """

    kind: ClassVar[str] = "resources"
    server: str
    key: str
    count: int
    more: int = 0
    updated: bool = False


@dataclass(frozen=True, slots=True)
class FoundResources:
    """What a search has found; `more` are not shown."""

    resources: tuple[ShownResource, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class ShownField:
    """A field that a person fills in for a template or a prompt; what it takes is text."""

    title: str
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class ShownTemplate:
    """A template of addresses. `fault` says why it cannot be filled in, '' if it can."""

    ref: str
    title: str
    template: str
    media_type: str
    description: str
    fields: tuple[ShownField, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Templates:
    """The resource templates of a server. `completes` says that it completes what is typed."""

    kind: ClassVar[str] = "templates"
    server: str
    key: str
    templates: tuple[ShownTemplate, ...]
    more: int = 0
    completes: bool = False
    subscribable: bool = False


@dataclass(frozen=True, slots=True)
class ShownPrompt:
    """A prompt of a server; `key` is the server's, `label` how it is called by a command."""

    key: str
    ref: str
    label: str
    title: str
    description: str
    server: str
    fields: tuple[ShownField, ...] = ()
    completes: bool = False


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a server. `more` is how many beyond these it has."""

    kind: ClassVar[str] = "prompts"
    server: str
    prompts: tuple[ShownPrompt, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Command:
    """What a message box offers after a slash.

    `command_id` says to the server which it is: its kind, a space, and what the kind needs. `label`
    starts with the slash, `source` says whose it is, `asks` that a form comes first.
    """

    command_id: str
    label: str
    title: str
    description: str
    source: str
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Commands:
    """All commands of a chat. `more` is how many beyond these there are."""

    kind: ClassVar[str] = "commands"
    commands: tuple[Command, ...]
    more: int = 0


OfferData = Attachment | ShownResource | Resources | Templates | Prompts | Commands
