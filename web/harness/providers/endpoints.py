"""Where a model API is and what opens it, checked before anything is sent."""

from __future__ import annotations

import httpx

from web.harness.providers.failures import Api
from web.harness.values.errors import ConfigurationError

_DEFAULT_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}


def vendor_api(
    provider: str, api_key: str | None, base_url: str | None, variables: bool = False
) -> tuple[Api, httpx.URL]:
    """The API of `provider` with its address; see `make_provider`.

    Raises ConfigurationError for what cannot work.
    """
    key_variable = f"{provider.upper()}_API_KEY" if variables else "api_key"
    url_variable = f"{provider.upper()}_BASE_URL" if variables else "base_url"
    vendor = httpx.URL(_DEFAULT_URLS[provider])
    url = _url(base_url.strip(), url_variable) if base_url and base_url.strip() else vendor
    key = api_key.strip() if api_key else ""
    if not key and url.host == vendor.host:
        raise ConfigurationError(
            f"The provider '{provider}' needs an API key.",
            hint=f"Set {key_variable}."
            if variables
            else f"Give the agent one that has it: provider=make_provider('{provider}', "
            "api_key=...), from web.harness. No environment variable is read here.",
        )
    if not all("!" <= character <= "~" for character in key):
        raise ConfigurationError(
            f"{key_variable} holds characters that no API key has.",
            hint="Copy the key again, without line breaks or quotation marks.",
        )
    api = Api(
        provider=provider,
        host=url.netloc.decode("ascii"),
        key_variable=key_variable,
        url_variable=url_variable,
        key=key or None,
    )
    return api, url


def _url(text: str, variable: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigurationError(
            f"{variable} is not the address of a server.",
            hint="Write it as http://host:port/v1 or https://host/v1.",
        )
    return url
