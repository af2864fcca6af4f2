"""A bare proxy of a model server: the least that Starlette and httpx can do with its stream.

`python -m tests.bench.proxy ADDRESS` prints its own address.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from web.commands.server import listen


def proxy_of(address: str) -> Starlette:
    """An application that hands `POST /` on and streams the answer back as it comes."""
    client = httpx.AsyncClient(
        base_url=address, timeout=600, limits=httpx.Limits(max_connections=None)
    )

    async def pass_on(request: Request) -> StreamingResponse:
        asked = client.build_request(
            "POST",
            "/v1/chat/completions",
            content=await request.body(),
            headers={"content-type": "application/json"},
        )
        answer = await client.send(asked, stream=True)

        async def body() -> AsyncIterator[bytes]:
            try:
                async for data in answer.aiter_raw():
                    yield data
            finally:
                await answer.aclose()

        return StreamingResponse(body(), answer.status_code, media_type="text/event-stream")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    return Starlette(routes=[Route("/", pass_on, methods=["POST"])], lifespan=lifespan)


def main() -> None:
    parser = argparse.ArgumentParser(description="Proxies a model server, and does nothing else.")
    parser.add_argument("address", help="of the model server")
    listener = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        proxy_of(parser.parse_args().address),
        log_level="warning",
        access_log=False,
        ws="none",
        backlog=2048,
        timeout_graceful_shutdown=1,
    )
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
