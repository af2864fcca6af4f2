"""Whose certificates are trusted: read once, since that takes a twentieth of a second."""

from __future__ import annotations

import ssl
from functools import cache

import httpx2


@cache
def trusted() -> ssl.SSLContext:
    """The context for every connection over https; it is shared, so nobody may change it."""
    return httpx2.create_ssl_context()
