"""What a server tells by itself: changed lists, and news of the resources that are watched.

The older protocol tells of lists unasked and takes one request for each resource. The newer one
has a stream that is asked for with all that is wanted; for another set of resources a new stream
is opened before the old one ends, so that nothing is missed between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup, TaskStatus
from mcp.client import Client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from web.harness.mcp.mending import Report
from web.harness.mcp.watches import MAX_WATCHED, Watches
from web.harness.values.errors import ToolError

LISTEN_AGAIN_SECONDS = (1.0, 60.0)
"""The first and the longest wait before a lost stream is asked for again."""
HEALTHY_SECONDS = 60.0
"""After so long a stream that is lost is asked for as if it were the first."""

_FAILURES = (MCPError, ValidationError, RuntimeError, TimeoutError)
"""Of a request; a lost stream is a RuntimeError, and so is a session that has just ended."""


class Subscriptions:
    """The subscriptions of one session, which lives in `group`.

    `missed` is called when something may have changed unheard. `words` puts an error of the
    server in words, `seconds` limits how long it may take to answer.
    """

    def __init__(
        self,
        client: Client,
        group: TaskGroup,
        watches: Watches,
        *,
        legacy: bool,
        missed: Callable[[], None],
        words: Callable[[Exception], str],
        report: Report,
        seconds: float,
    ) -> None:
        self._client = client
        self._group = group
        self._watches = watches
        self._legacy = legacy
        self._missed = missed
        self._words = words
        self._report = report
        self._seconds = seconds
        self._one_at_a_time = anyio.Lock()
        self._stream: anyio.CancelScope | None = None
        self._lost = anyio.Event()

    @property
    def offered(self) -> bool:
        """Whether the server lets its resources be watched."""
        resources = self._client.server_capabilities.resources
        return resources is not None and resources.subscribe is True

    async def keep(self) -> None:
        """Watches what was watched before, and has changes told, until it is cancelled."""
        self._watches.tell_all()
        if self._legacy:
            for uri in sorted(self._watches.uris):
                await self._ask_again(uri)
        else:
            await self._keep_listening()

    async def watch(self, uri: str) -> None:
        """Begins to watch; returns when the server has agreed. Raises ToolError in words."""
        if not self.offered:
            raise ToolError("The server does not tell of changes of its resources.")
        async with self._one_at_a_time:
            if uri in self._watches.uris:
                return
            if len(self._watches.uris) >= MAX_WATCHED:
                raise ToolError(
                    f"{MAX_WATCHED} resources are watched, the limit.", hint="Let go of some."
                )
            await self._begin(uri)
            self._watches.add(uri)

    async def unwatch(self, uri: str) -> None:
        """Ends it. A server that refuses that is not listened to any more."""
        async with self._one_at_a_time:
            if uri not in self._watches.uris:
                return
            self._watches.discard(uri)
            try:
                with anyio.fail_after(self._seconds):
                    if self._legacy:
                        await self._request(uri, types.UnsubscribeRequest)
                    else:
                        await self._open(self._watches.uris)
            except _FAILURES as error:
                words = f"The server was not told that {uri} is watched no more"
                self._report("warning", f"{words}: {self._words(error)}")

    async def _begin(self, uri: str) -> None:
        try:
            with anyio.fail_after(self._seconds):
                if self._legacy:
                    await self._request(uri, types.SubscribeRequest)
                    return
                honored = await self._open(self._watches.uris | {uri})
        except _FAILURES as error:
            raise ToolError(f"This resource cannot be watched: {self._words(error)}") from error
        if uri not in honored:
            raise ToolError("The server does not let this resource be watched.")

    # The older protocol.

    async def _request(
        self, uri: str, kind: type[types.SubscribeRequest] | type[types.UnsubscribeRequest]
    ) -> None:
        request: types.SubscribeRequest | types.UnsubscribeRequest
        if kind is types.SubscribeRequest:
            request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        else:
            request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
        await self._client.session.send_request(request, types.EmptyResult)

    async def _ask_again(self, uri: str) -> None:
        try:
            with anyio.fail_after(self._seconds):
                await self._request(uri, types.SubscribeRequest)
        except (MCPError, ValidationError, TimeoutError) as error:
            self._report("warning", f"{uri} is not watched any more: {self._words(error)}")

    # The newer protocol.

    def _filter(self, uris: frozenset[str]) -> dict[str, Any]:
        capabilities = self._client.server_capabilities
        offered = {
            "tools_list_changed": capabilities.tools,
            "resources_list_changed": capabilities.resources,
            "prompts_list_changed": capabilities.prompts,
        }
        wanted: dict[str, Any] = {
            name: True for name, each in offered.items() if each is not None and each.list_changed
        }
        return {**wanted, "resource_subscriptions": sorted(uris)} if uris else wanted

    async def _keep_listening(self) -> None:
        wait, longest = LISTEN_AGAIN_SECONDS
        while True:
            began = anyio.current_time()
            try:
                await self._listen_until_lost()
            except MCPError as error:
                if error.code == types.METHOD_NOT_FOUND:
                    return
            except ListenNotSupportedError:
                return
            except (SubscriptionLost, TimeoutError):
                pass
            if anyio.current_time() - began > HEALTHY_SECONDS:
                wait = LISTEN_AGAIN_SECONDS[0]
            await anyio.sleep(wait)
            wait = min(2 * wait, longest)
            # Nothing is sent again that happened meanwhile.
            self._missed()
            self._watches.tell_all()

    async def _listen_until_lost(self) -> None:
        async with self._one_at_a_time:
            uris = self._watches.uris
            self._lost = anyio.Event()
            with anyio.fail_after(self._seconds):
                honored = await self._open(uris)
        for uri in sorted(uris - honored):
            self._report("warning", f"The server does not let {uri} be watched any more.")
        await self._lost.wait()

    async def _open(self, uris: frozenset[str]) -> frozenset[str]:
        """Has a stream for these in the place of the one before; returns those agreed to."""
        wanted = self._filter(uris)
        if not wanted:
            self._replace(None)
            return uris
        honored: frozenset[str] = await self._group.start(self._listen, wanted)
        return honored

    async def _listen(
        self, wanted: dict[str, Any], *, task_status: TaskStatus[frozenset[str]]
    ) -> None:
        """One stream, to its end. What it brings is heard by the session like all notifications."""
        with anyio.CancelScope() as scope:
            async with self._client.listen(**wanted) as changes:
                self._replace(scope)
                task_status.started(frozenset(changes.honored.resource_subscriptions or ()))
                try:
                    async for _ in changes:
                        pass
                except SubscriptionLost:
                    pass
        if self._stream is scope:
            self._lost.set()

    def _replace(self, stream: anyio.CancelScope | None) -> None:
        before, self._stream = self._stream, stream
        if before is not None:
            before.cancel()
