"""The API of a house behind a stand-in for the doors: whoever names a person is that person."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from everloop.app.agent import Agent
from everloop.core.people import Role
from everloop.gateway import api
from everloop.gateway.principal import SCOPES, Principal

PEOPLE = {
    "owner": Principal("owner", Role.OWNER, frozenset(SCOPES), "token"),
    "reader": Principal("owner", Role.OWNER, frozenset({"read"}), "token"),
    "guest": Principal("bob", Role.GUEST, frozenset(SCOPES), "token"),
    "user": Principal("ada", Role.USER, frozenset(SCOPES), "token"),
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def recognize(request: web.Request, handler: Handler) -> web.StreamResponse:
    if who := PEOPLE.get(request.headers.get("Authorization", "").removeprefix("Bearer ")):
        request["principal"] = who
    return await handler(request)


def stand_in(agent: Agent) -> web.Application:
    app = web.Application(middlewares=[recognize])
    app.add_routes(api.routes(agent))
    return app
