"""Model APIs behind the `Provider` protocol, each imported when it is first asked for."""

from __future__ import annotations

from web.harness.values.errors import ConfigurationError
from web.harness.values.model import Provider

PROVIDER_NAMES = ("openai", "anthropic", "demo")


def make_provider(
    name: str,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    variables: bool = False,
) -> Provider:
    """The provider called `name`: "openai", "anthropic" or "demo".

    The vendor's own address is used without `base_url`, and wants a key; another server may need
    none. Nothing is read from the environment: `variables` suits an application that read it, and
    has the words of errors name OPENAI_API_KEY and its like instead of these arguments. Raises
    ConfigurationError for an unknown name, a missing or impossible key, and a `base_url` that is no
    http address. Whoever makes a provider closes it.
    """
    if name == "demo":
        from web.harness.providers.demo.provider import DemoProvider

        return DemoProvider()
    if name not in PROVIDER_NAMES:
        raise ConfigurationError(
            f"There is no provider '{name}'.", hint=f"Choose one of {', '.join(PROVIDER_NAMES)}."
        )
    from web.harness.providers.endpoints import vendor_api

    api, url = vendor_api(name, api_key, base_url, variables)
    if name == "anthropic":
        from web.harness.providers.anthropic import AnthropicProvider

        return AnthropicProvider(api, url)
    from web.harness.providers.openai import OpenAIProvider

    return OpenAIProvider(api, url)
