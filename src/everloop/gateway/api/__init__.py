"""The page's API, `/api/…`: one table of routes, from which the server and `/openapi.json` are made."""

from functools import cache
from typing import Any

from aiohttp import web

from ..access.permissions import KNOWN, Route
from ..http.errors import respond
from .ports import ApiAgent
from .route import served
from .routes import ROWS


@cache
def described() -> dict[str, Any]:
    """The document; it takes its time, so it is written when somebody asks for it."""
    from importlib.metadata import version

    from .openapi import document
    from .routes.table import TABLE

    return document(TABLE, version("everloop"))


def routes(agent: ApiAgent) -> list[Route]:
    async def openapi(request: web.Request) -> web.Response:
        return respond(described())

    table = [Route(each.method, each.path, served(each, agent), each.permission) for each in ROWS]
    return [*table, Route("GET", "/openapi.json", openapi, KNOWN)]
