"""The page's API, `/api/…`: one table of routes, from which the server and `/openapi.json` are made."""

from functools import cache
from typing import Any

from aiohttp import web

from ...core.people import Role
from ..answers import respond
from . import rest, sessions, shapes, tokens
from .desk import Desk
from .openapi import document
from .route import Route, served
from .traces import Traces

TABLE = (
    Route("GET", "/api/me", "Who you are, and which model answers", rest.me, shapes.Me, least=Role.GUEST),
    Route(
        *("GET", "/api/sessions", "Conversations, the latest first", sessions.list_sessions, shapes.SessionList),
        query=shapes.Listing,
    ),
    Route(
        *("GET", "/api/search", "Where something was said", sessions.search, shapes.FoundList), query=shapes.Searching
    ),
    Route(
        *("GET", "/api/sessions/{id}", "One conversation and its state", sessions.show, shapes.SessionState),
        at=shapes.OfSession,
    ),
    Route(
        *("PATCH", "/api/sessions/{id}", "Give it a title, or take it out of the list", sessions.change),
        *(shapes.SessionState, shapes.OfSession),
        body=shapes.Changing,
    ),
    Route(
        *("GET", "/api/sessions/{id}/entries", "What happened in it", sessions.entries, shapes.Entries),
        *(shapes.OfSession, shapes.Paging),
    ),
    Route(
        *("GET", "/api/sessions/{id}/trace", "Its turns as waterfalls", sessions.trace, Traces), at=shapes.OfSession
    ),
    Route(
        *("POST", "/api/sessions/{id}/fork", "Let a session go on in a copy", sessions.fork, shapes.Moved),
        at=shapes.OfSession,
        body=shapes.Forking,
    ),
    Route(
        *("POST", "/api/sessions/{id}/resume", "Let its session go on with it", sessions.resume, shapes.Moved),
        at=shapes.OfSession,
        body=shapes.Moving,
    ),
    Route(
        *("POST", "/api/sessions/{id}/undo", "Take the last turn back, with what it did to files", sessions.undo),
        *(shapes.Moved, shapes.OfSession),
        body=shapes.Nothing,
    ),
    Route(
        *("POST", "/api/sessions/{id}/edit", "Say something else instead of the last message", sessions.edit),
        *(shapes.Moved, shapes.OfSession),
        body=shapes.Editing,
    ),
    Route(
        *("POST", "/api/sessions/{id}/regenerate", "Ask again for the last answer", sessions.regenerate),
        *(shapes.Moved, shapes.OfSession),
        body=shapes.Nothing,
    ),
    Route("GET", "/api/approvals", "What waits for permission", rest.approvals, shapes.ApprovalList),
    Route(
        *("POST", "/api/approvals/{id}", "Allow it, or deny it", rest.decide, shapes.Decided),
        at=shapes.OfApproval,
        body=shapes.Deciding,
        needs="approve",
    ),
    Route(
        *("GET", "/api/usage", "What was used, by day and model", rest.usage, shapes.UsageRows),
        query=shapes.Days,
        least=Role.ADMIN,
    ),
    Route("GET", "/api/models", "Models that can be chosen", rest.models, shapes.ModelList),
    Route(
        *("GET", "/api/settings", "All settings, without secrets", rest.settings, shapes.SettingsShown),
        least=Role.ADMIN,
    ),
    Route("GET", "/api/tokens", "Your tokens", tokens.list_tokens, shapes.TokenList, least=Role.ADMIN, needs="admin"),
    Route(
        *("POST", "/api/tokens", "Make a token, which is told this once", tokens.create, shapes.NewToken),
        body=shapes.Creating,
        least=Role.ADMIN,
        needs="admin",
        status=201,
    ),
    Route(
        *("DELETE", "/api/tokens/{id}", "Let a token hold no longer, at once", tokens.revoke, shapes.Revoked),
        at=shapes.OfToken,
        least=Role.ADMIN,
        needs="admin",
    ),
    Route("POST", "/api/files", "Keep a file, to be named in a message", rest.keep, shapes.Kept,
          query=shapes.Naming, takes_bytes=True, status=201),
    Route("GET", "/api/files/{ref}", "A file that is kept", rest.fetch, None, at=shapes.OfFile),
)  # fmt: skip


@cache
def described() -> dict[str, Any]:
    """The document; it takes its time, so it is written when somebody asks for it."""
    from importlib.metadata import version

    return document(TABLE, version("everloop"))


def routes(house: Desk) -> list[web.RouteDef]:
    async def openapi(request: web.Request) -> web.Response:
        return respond(described())

    table = [web.route(route.method, route.path, served(route, house)) for route in TABLE]
    return [*table, web.get("/openapi.json", openapi)]
