"""What answers a request, and what stands before it."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Middleware(Protocol):
    def __call__(self, request: web.Request, handler: Handler) -> Awaitable[web.StreamResponse]: ...
