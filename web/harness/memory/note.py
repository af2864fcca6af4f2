"""One note: what is known of it, and how it is named."""

from __future__ import annotations

import hashlib
import logging
import re
import unicodedata
from dataclasses import dataclass, field
from itertools import chain, count

from web.harness.memory.arguments import as_text
from web.harness.memory.note_text import parse
from web.harness.memory.times import plausible
from web.harness.tools.front_matter import FrontMatterFault
from web.harness.tools.words import shorten, shown
from web.harness.values.errors import NotFound

log = logging.getLogger(__name__)

SUFFIX = ".md"

MAX_ID_BYTES = 252
"""With the suffix a name is as long as most disks take."""
_SLUG_CHARS = 50
_EXCERPT_CHARS = 200


@dataclass(frozen=True, slots=True)
class NoteInfo:
    """What is listed of a note. With a `fault`, one line, it cannot be read and is not found.

    `id` is the name of its file without `.md`. Times are in seconds since 1970. `excerpt` is how it
    begins, on one line.
    """

    id: str
    title: str
    tags: tuple[str, ...] = ()
    created: float = 0.0
    updated: float = 0.0
    excerpt: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Note(NoteInfo):
    """A whole note. `digest` tells one state of its file from another; `score` is how well it fits
    a query, to be compared with others of the same search alone."""

    content: str = field(default="", kw_only=True)
    digest: str = field(default="", kw_only=True)
    score: float = field(default=0.0, kw_only=True)


@dataclass(frozen=True, slots=True)
class DeletedNote:
    """What brings a deleted note back; `data` is None for what could not be read."""

    id: str
    title: str
    data: bytes | None = field(repr=False)


def checked_id(id: str) -> str:
    """An id that names a file in the folder and nothing else. Raises NotFound."""
    try:
        size = len(as_text(id, "The id").encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= MAX_ID_BYTES or id.startswith(".") or re.search(r"[/\\\x00-\x1f]", id):
        raise NotFound(f"There is no note {shown(id)}.")
    return id


def understood(id: str, data: bytes, written: float) -> Note:
    """What a file says, or what is wrong with it."""
    digest = hashlib.sha256(data).hexdigest()[:16]
    written = plausible(written)
    text = data.decode("utf-8-sig", "replace")
    try:
        data.decode("utf-8-sig")
        note = parse(text, id)
    except UnicodeDecodeError:
        fault = "The file is not text in UTF-8."
    except FrontMatterFault as error:
        fault = str(error)
    except Exception:
        # Anybody may write these files; what one of them does to a parser harms no other.
        log.warning("A note cannot be understood.", exc_info=True)
        fault = "The file cannot be understood."
    else:
        return Note(
            id,
            note.title,
            note.tags,
            note.created or note.updated or written,
            note.updated or written,
            shorten(" ".join(note.content[: 2 * _EXCERPT_CHARS].split()), _EXCERPT_CHARS),
            content=note.content,
            digest=digest,
        )
    return Note(id, id, (), written, written, fault=fault, content=text, digest=digest)


def info_of(note: Note) -> NoteInfo:
    return NoteInfo(
        note.id, note.title, note.tags, note.created, note.updated, note.excerpt, note.fault
    )


def slug(title: str) -> str:
    """A name for a file that a person recognises."""
    words = re.sub(r"[\W_]+", "-", unicodedata.normalize("NFKC", title).casefold())
    return words.strip("-")[:_SLUG_CHARS].strip("-") or "note"


def free_id(wanted: str, names: set[str]) -> str:
    """The id itself, or with a number behind it where it is taken; `names` are casefolded."""
    ids = chain([wanted], (f"{wanted}-{number}" for number in count(2)))
    return next(id for id in ids if f"{id}{SUFFIX}".casefold() not in names)
