"""One pass through the SDK's OAuth flow, driven step by step.

It is not handed to the HTTP client: so the flow's own requests go through the guard, its errors
become words, and the requests of a connection need not wait for one another.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from mcp.client.auth import (
    OAuthClientProvider,
    OAuthFlowError,
    OAuthRegistrationError,
    OAuthTokenError,
)
from mcp.client.auth.utils import (
    build_protected_resource_metadata_discovery_urls,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    union_scopes,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from web.harness.mcp.grants import (
    is_usable,
    kept_client,
    kept_metadata,
    kept_resource,
    kept_tokens,
)
from web.harness.mcp.guard import Forbidden, Guard, host_of
from web.harness.mcp.sign_in import Returned, SignIn, SignInFailed
from web.harness.mcp.tokens import Grant
from web.harness.mcp.wording import tidy

# It logs the answers of authorisation servers as they are, codes and states among them.
logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)

CLIENT_NAME = "harness-web"
MAX_PAGE_CHARS = 20_000
"""Of the address of a page to sign in at."""

_NOWHERE = "http://127.0.0.1/"
"""Stands where the SDK wants an address to come back to, though nobody is sent away."""


class Flow(OAuthClientProvider):
    """Begins with what a `grant` knows already, and hands every new one to `keep`.

    With `redirect_uri` it ends in a sign-in of a person, who comes back there; without it only
    renews the tokens.
    """

    def __init__(
        self,
        access: SignIn,
        guard: Guard,
        grant: Grant | None,
        keep: Callable[[Grant], Awaitable[None]],
        redirect_uri: str = "",
    ) -> None:
        self._access = access
        self._spec = access.spec
        self._guard = guard
        self._grant = grant
        self._keep = keep
        self._redirect_uri = redirect_uri
        self._returned: Returned | None = None
        self._failing: httpx2.Response | None = None
        self._descriptions: list[str] = []
        """Where the server may describe itself (RFC 9728), of which one is looked at."""
        self._fault = ""
        """What was wrong with the first of those that is there."""
        super().__init__(
            server_url=access.server,
            client_metadata=OAuthClientMetadata(
                client_name=CLIENT_NAME, redirect_uris=[AnyUrl(redirect_uri or _NOWHERE)]
            ),
            storage=self,
            redirect_handler=self._redirect,
            callback_handler=self._callback,
            client_metadata_url=access.setup.client_metadata_url or None,
        )
        if grant is None:
            return
        self.context.token_expiry_time = grant.expires_at
        if grant.metadata is not None:
            self.context.oauth_metadata = OAuthMetadata.model_validate(grant.metadata)
        if grant.resource is not None:
            resource = ProtectedResourceMetadata.model_validate(grant.resource)
            self.context.protected_resource_metadata = resource
            self.context.auth_server_url = str(resource.authorization_servers[0])

    async def renew(self, request: httpx2.Request) -> bool:
        """Whether new tokens were given for the old ones. Raises SignInFailed where none can be."""
        self.context.token_expiry_time = 1.0
        await self._follow(request, None)
        return self.context.current_tokens is not None

    async def sign_in(self, request: httpx2.Request, refusal: httpx2.Response) -> None:
        """Has a person sign in since `request` was refused. Raises SignInFailed."""
        self._descriptions = build_protected_resource_metadata_discovery_urls(
            extract_resource_metadata_from_www_auth(refusal), self._access.server
        )
        try:
            await self._follow(request, refusal)
        except (OAuthFlowError, ValidationError, StopAsyncIteration) as error:
            raise SignInFailed(self._words(error)) from None

    async def _follow(self, request: httpx2.Request, refusal: httpx2.Response | None) -> None:
        """Does what the flow asks for, until the request may be sent once more."""
        async with aclosing(self.async_auth_flow(request)) as steps, self._guard.client() as client:
            outgoing = await anext(steps)
            while outgoing is not request or refusal is not None:
                if outgoing is not request:
                    outgoing = await steps.asend(await self._fetch(client, outgoing))
                elif refusal is not None:
                    outgoing, refusal = await steps.asend(refusal), None

    async def _fetch(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        host = tidy(host_of(str(request.url)), 100, one_line=True) or "The sign-in service"
        try:
            response = await self._guard.fetch(client, request)
        except Forbidden as error:
            raise SignInFailed(str(error)) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise SignInFailed(f"{host}, needed to sign in, {_reason(error)}", "failed") from None
        status = response.status_code
        if not self._redirect_uri and (status >= 500 or status == 429):
            raise SignInFailed(f"{host} could not renew the sign-in ({status}).", "failed")
        if status >= 400:
            self._failing = response
        if str(request.url) in self._descriptions and not self._fault:
            self._fault = _fault_of(response)
        return response

    def _words(self, error: Exception) -> str:
        """Why the SDK gave up. Its own words may hold what a server wrote, codes too."""
        service, told = f"The sign-in service of {self._spec.host}", _told(self._failing)
        if isinstance(error, OAuthTokenError):
            return f"{service} gave no token{told}."
        if self._fault and self.context.protected_resource_metadata is None:
            return f"{self._spec.host} {self._fault}."
        if isinstance(error, OAuthRegistrationError):
            needed = "It needs a client id in the configuration."
            return f"{service} does not register this program{told}. {needed}"
        text = str(error)
        if isinstance(error, OAuthFlowError) and " iss" in text:
            return f"{service} says that it is another one than the server named."
        if isinstance(error, OAuthFlowError) and text.startswith("Protected resource http"):
            return f"{self._spec.host} describes itself as another server."
        return f"{service} gives answers that cannot be used{told}."

    # The storage of the SDK's flow.

    async def get_tokens(self) -> OAuthToken | None:
        tokens = self._grant.tokens if self._grant is not None else None
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        if not is_usable(tokens):
            self._access.hide(tokens.access_token, tokens.refresh_token)
            raise SignInFailed(
                f"The sign-in service of {self._spec.host} gave a token that cannot be sent."
            )
        await self._keep(self._made())

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The client to go on with; None where this program has to be made known first."""
        grant, given = self._grant, self._spec.oauth
        stored = OAuthClientInformationFull.model_validate(grant.client) if grant else None
        if given is not None and given.client_id:
            known = stored if stored and stored.client_id == given.client_id else None
            return OAuthClientInformationFull(
                client_id=given.client_id,
                client_secret=given.client_secret or None,
                redirect_uris=self.context.client_metadata.redirect_uris,
                token_endpoint_auth_method=known.token_endpoint_auth_method if known else None,
                issuer=given.issuer or (known.issuer if known else None),
            )
        if stored is None or not self._redirect_uri:
            return stored
        # A program that has moved to another port is known under its old address only.
        return stored if AnyUrl(self._redirect_uri) in (stored.redirect_uris or ()) else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self._keep(self._made())

    def _made(self) -> Grant:
        """What the flow has come to."""
        context = self.context
        client, tokens, metadata = (
            context.client_info,
            context.current_tokens,
            context.oauth_metadata,
        )
        issuer = (
            str(metadata.issuer) if metadata else context.auth_server_url or self._access.server
        )
        if client is not None and client.issuer is None:
            client.issuer = issuer
        return Grant(
            issuer=issuer,
            client=kept_client(client),
            tokens=kept_tokens(tokens),
            expires_at=context.token_expiry_time if tokens is not None else None,
            metadata=kept_metadata(metadata),
            resource=kept_resource(context.protected_resource_metadata),
        )

    # The person.

    async def _redirect(self, address: str) -> None:
        """Sends the person to the page, after a look at where that is."""
        context = self.context
        metadata = context.oauth_metadata
        methods = (metadata.code_challenge_methods_supported or ()) if metadata else ("S256",)
        if "S256" not in methods:
            raise SignInFailed(
                f"The sign-in service of {self._spec.host} does not protect its codes (PKCE)."
            )
        if context.client_info is not None:
            _choose_method(context.client_info, metadata)
        given = self._spec.oauth.scope if self._spec.oauth is not None else ""
        if given:
            wanted = extract_scope_from_www_auth(wanting(self._access.wanted))
            context.client_metadata.scope = union_scopes(given, wanted)
        endpoint = str(metadata.authorization_endpoint) if metadata else ""
        asked, parameters = _parted(address, endpoint)
        if given:
            parameters["scope"] = context.client_metadata.scope or given
        address = _joined(asked, parameters)
        if not address or len(address) > MAX_PAGE_CHARS:
            raise SignInFailed(
                f"The sign-in service of {self._spec.host} has no address that can be used."
            )
        try:
            self._guard.check_page(address)
        except Forbidden as error:
            raise SignInFailed(str(error)) from None
        self._returned = await self._access.visit(address, parameters.get("state", ""))
        self._access.hide(self._returned.code)

    async def _callback(self) -> AuthorizationCodeResult:
        back = self._returned
        if back is None:
            raise RuntimeError("Nobody was sent away.")
        return AuthorizationCodeResult(code=back.code, state=back.state, iss=back.issuer)


def wanting(challenge: str, request: httpx2.Request | None = None) -> httpx2.Response:
    """A refusal with this challenge, as it came for an earlier request."""
    return httpx2.Response(403, headers={"www-authenticate": challenge}, request=request)


def _choose_method(client: OAuthClientInformationFull, metadata: OAuthMetadata | None) -> None:
    """How a secret from the configuration is sent, which nobody has agreed on."""
    if client.client_secret is None or client.token_endpoint_auth_method is not None:
        return
    methods = (metadata.token_endpoint_auth_methods_supported or ()) if metadata else ()
    basic = "client_secret_basic" in methods or "client_secret_post" not in methods
    client.token_endpoint_auth_method = "client_secret_basic" if basic else "client_secret_post"


def _parted(address: str, endpoint: str) -> tuple[str, dict[str, str]]:
    """The page that a service names, and what the SDK asks for there.

    The SDK puts its `?` behind an address that has one already, and behind a fragment.
    """
    page = endpoint if endpoint and address.startswith(endpoint) else address.partition("?")[0]
    return page.partition("#")[0], dict(parse_qsl(address[len(page) + 1 :]))


def _joined(page: str, parameters: dict[str, str]) -> str:
    """The page with what it asks for itself (RFC 6749, 3.1); '' where it says the same twice."""
    own = urlsplit(page).query
    if {name for name, _ in parse_qsl(own, keep_blank_values=True)} & parameters.keys():
        return ""
    rest = urlencode(parameters)
    return f"{page.rstrip('?&')}&{rest}" if own else f"{page.rstrip('?')}?{rest}"


def _fault_of(response: httpx2.Response) -> str:
    """What is wrong with a server's description of itself; '' for nothing, or where none is."""
    if response.is_redirect:
        return "answers with a redirect where it describes how to sign in, which is not followed"
    if response.status_code != 200:
        return ""
    try:
        ProtectedResourceMetadata.model_validate_json(response.content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        if first["type"] == "json_invalid":
            return "describes how to sign in with something that is no JSON"
        if first["loc"][:1] == ("authorization_servers",):
            return "names no sign-in service with an address that can be used"
        return "describes how to sign in without what is needed"
    return ""


def _told(response: httpx2.Response | None) -> str:
    """What an authorisation server says of a refusal: its status and the code of the error."""
    if response is None:
        return ""
    try:
        code = response.json().get("error", "")
    except (ValueError, AttributeError):
        code = ""
    known = isinstance(code, str) and code.replace("_", "").isalpha() and len(code) <= 60
    return f" ({response.status_code} {code})" if known else f" ({response.status_code})"


def _reason(error: Exception) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "did not answer in time."
    words = tidy(str(error), 200, one_line=True) or type(error).__name__
    return f"cannot be used: {words.rstrip('.')}."
