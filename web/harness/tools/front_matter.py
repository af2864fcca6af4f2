"""The YAML at the top of a markdown file, read so that no text in it can do harm.

Every value is text, a list or a mapping: nothing is turned into dates, numbers or objects, so
`version: 1.0` stays as it was written. Aliases, which can make a few bytes stand for gigabytes,
keys that are there twice, and deep nesting are refused.
"""

from __future__ import annotations

from typing import Any

import frontmatter
import yaml
from frontmatter.default_handlers import YAMLHandler

from web.harness.tools.words import shown

MAX_FRONT_MATTER_CHARS = 8 * 1024
MAX_YAML_DEPTH = 10


class FrontMatterFault(ValueError):
    """The front matter cannot be read; the words say why in one line."""


class _PlainLoader(yaml.BaseLoader):
    """Makes text, lists and mappings only; `BaseLoader` knows no types."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise FrontMatterFault("The front matter uses a YAML alias; write the value out.")
        if self._depth >= MAX_YAML_DEPTH:
            raise FrontMatterFault(f"The front matter is nested more than {MAX_YAML_DEPTH} deep.")
        self._depth += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(names) < len(node.value):
            raise FrontMatterFault("The front matter has a key that is not text.")
        for name in names:
            if names.count(name) > 1:
                raise FrontMatterFault(f"The front matter has {shown(name)} twice.")
        return super().construct_mapping(node, deep)


class _Handler(YAMLHandler):
    def load(self, fm: str, **kwargs: object) -> dict[str, Any]:
        if len(fm) > MAX_FRONT_MATTER_CHARS:
            raise FrontMatterFault(
                f"The front matter has {len(fm):,} characters; "
                f"at most {MAX_FRONT_MATTER_CHARS:,} are read."
            )
        try:
            # No types and no objects: this loader is stricter than the safe one.
            values = yaml.load(fm, Loader=_PlainLoader)  # noqa: S506
        except FrontMatterFault:
            raise
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            # The first line of the front matter is the second of the file.
            place = f" (line {mark.line + 1})" if mark is not None else ""
            raise FrontMatterFault(
                f"The front matter is not YAML: {error.problem}{place}."
            ) from None
        except (yaml.YAMLError, ValueError, OverflowError, RecursionError):
            raise FrontMatterFault("The front matter is not YAML.") from None
        if not isinstance(values, dict):
            raise FrontMatterFault("The front matter has no fields: write `name: ...` on a line.")
        return values


_HANDLER = _Handler()


def has_front_matter(text: str) -> bool:
    """Whether the text begins with a line `---`."""
    return bool(_HANDLER.detect(text.lstrip()))


def read_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The fields at the top of the text, and the body below them.

    Raises FrontMatterFault for what has no front matter or one that cannot be read.
    """
    text = text.lstrip()
    if not _HANDLER.detect(text):
        raise FrontMatterFault("There is no front matter: the first line must be `---`.")
    try:
        _HANDLER.split(text)
    except ValueError:
        raise FrontMatterFault(
            "The front matter does not end: a second line `---` is missing."
        ) from None
    fields, body = frontmatter.parse(text, handler=_HANDLER)
    return fields, body
