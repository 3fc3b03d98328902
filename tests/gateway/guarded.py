"""Routes behind the gateway's own guard, for callers whom a test names."""

import warnings
from collections.abc import Callable, Iterable

from aiohttp import web

from everloop.gateway.access.guard import guard
from everloop.gateway.access.permissions import Permissions, Route
from everloop.gateway.access.principal import Principal


class Named:
    """Stands in for passwords, tokens and cookies; every page may call."""

    def __init__(self, name: Callable[[str], Principal | None]) -> None:
        self._name = name

    def check_origin(self, request: web.Request) -> None:
        pass

    async def authenticate(self, request: web.Request) -> Principal | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return self._name(token) if scheme == "Bearer" else None


def guarded(routes: Iterable[Route], name: Callable[[str], Principal | None]) -> web.Application:
    """`name` says who a token is."""
    warnings.filterwarnings("ignore", category=web.NotAppKeyWarning)
    permissions = Permissions()
    app = web.Application(middlewares=[guard(Named(name), permissions)], client_max_size=2**26)
    permissions.mount(app, routes)
    return app
