"""Which link reference definitions a source may refer to."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markdown_it.common.utils import normalizeReference

from .blocks import Reference

_CANDIDATE = re.compile(r"\[((?:[^\[\]\\]|\\.){1,999})\]", re.DOTALL)
_QUOTED = re.compile(r"\n[ \t>]*")


def mentions(source: str) -> list[str]:
    """Labels, normalised, that stand in brackets here; rather one too many than one too few."""
    if "]" not in source:
        return []
    labels: dict[str, None] = {}
    for found in _CANDIDATE.finditer(source):
        label = _QUOTED.sub(" ", found.group(1))
        labels[normalizeReference(label)] = None
        if "\\|" in label:
            labels[normalizeReference(label.replace("\\|", "|"))] = None
    return list(labels)


def resolved(labels: list[str], *known: Mapping[str, tuple[str, str]]) -> tuple[Reference, ...]:
    """The definitions of those labels that are known, the earlier mapping first."""
    found: list[Reference] = []
    for label in labels:
        for definitions in known:
            if label in definitions:
                found.append((label, *definitions[label]))
                break
    return tuple(found)
