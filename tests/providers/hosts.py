"""Hosts that answer in pieces, and as badly as a test wants."""

import asyncio

from aiohttp import web


def stream(*pieces: bytes, then=None):
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if then:
            await then(request)
        return response

    return handler


async def cut(request: web.Request) -> None:
    request.transport.close()


async def never(request: web.Request) -> None:
    await asyncio.Event().wait()
