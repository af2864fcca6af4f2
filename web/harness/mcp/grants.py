"""What is kept of the answers of authorisation servers: the fields that are used, and not more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import BaseModel, ValidationError

from web.harness.mcp.tokens import Grant

MAX_SCOPES_CHARS = 8_000
MAX_ENTRIES = 20

_CLIENT = {
    "client_id",
    "client_secret",
    "client_secret_expires_at",
    "redirect_uris",
    "token_endpoint_auth_method",
    "issuer",
}
_METADATA = {
    "issuer",
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "scopes_supported",
    "token_endpoint_auth_methods_supported",
    "code_challenge_methods_supported",
    "client_id_metadata_document_supported",
    "authorization_response_iss_parameter_supported",
}
_RESOURCE = {"resource", "authorization_servers", "scopes_supported"}
_TOKENS = {"access_token", "token_type", "expires_in", "scope", "refresh_token"}

_ACCESS_TOKEN = re.compile(r"[\x21-\x7e]+")
"""What a header can carry as one word (RFC 6750)."""
_REFRESH_TOKEN = re.compile(r"[\x20-\x7e]+")


def kept_client(client: OAuthClientInformationFull | None) -> dict[str, Any]:
    """How this program is known; {} where it is not."""
    return _kept(client, _CLIENT) or {}


def kept_tokens(tokens: OAuthToken | None) -> dict[str, Any] | None:
    return _kept(tokens, _TOKENS)


def kept_metadata(metadata: OAuthMetadata | None) -> dict[str, Any] | None:
    return _kept(metadata, _METADATA)


def kept_resource(resource: ProtectedResourceMetadata | None) -> dict[str, Any] | None:
    return _kept(resource, _RESOURCE)


def is_usable(tokens: OAuthToken) -> bool:
    """Whether the tokens can be sent: no line ends, no other signs that end a header."""
    refresh = tokens.refresh_token
    return _ACCESS_TOKEN.fullmatch(tokens.access_token) is not None and (
        not refresh or _REFRESH_TOKEN.fullmatch(refresh) is not None
    )


def is_readable(grant: Grant) -> bool:
    """Whether what was kept is still what the SDK knows, and can be used."""
    try:
        OAuthClientInformationFull.model_validate(grant.client)
        if grant.tokens is not None and not is_usable(OAuthToken.model_validate(grant.tokens)):
            return False
        if grant.metadata is not None:
            OAuthMetadata.model_validate(grant.metadata)
        if grant.resource is not None:
            ProtectedResourceMetadata.model_validate(grant.resource)
    except ValidationError:
        return False
    return True


def _kept(model: BaseModel | None, fields: set[str]) -> dict[str, Any] | None:
    if model is None:
        return None
    known = model.model_dump(mode="json", include=fields, exclude_none=True)
    return {
        name: _first(value, name) if isinstance(value, list) else value
        for name, value in known.items()
    }


def _first(values: Sequence[str], name: str) -> list[str]:
    """As many as anybody needs: a list of scopes is known by its length, others by their number."""
    if name == "authorization_servers":
        return list(values[:1])
    if name != "scopes_supported":
        return list(values[:MAX_ENTRIES])
    kept, chars = [], 0
    for value in values:
        chars += len(value) + 1
        if chars > MAX_SCOPES_CHARS:
            break
        kept.append(value)
    return kept
