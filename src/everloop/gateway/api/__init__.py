"""The page's API, `/api/…`: one table of routes, from which the server and `/openapi.json` are made."""

from functools import cache
from importlib.metadata import version
from typing import Any

from aiohttp import web

from ...core.people import Role
from ..answers import respond
from . import files, outbox, rest, sessions, setup, setup_shapes, shapes, tokens
from .desk import Desk
from .openapi import document
from .route import Route, served

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
        *("PATCH", "/api/sessions/{id}", "Give it a title, pin it, or take it out of the list", sessions.change),
        *(shapes.SessionState, shapes.OfSession),
        body=shapes.Changing,
    ),
    Route(
        *("GET", "/api/sessions/{id}/entries", "What happened in it", sessions.entries, shapes.Entries),
        *(shapes.OfSession, shapes.Paging),
    ),
    Route(
        *("GET", "/api/sessions/{id}/trace", "Its turns as spans", sessions.trace, shapes.Traces), at=shapes.OfSession
    ),
    Route(
        *("POST", "/api/sessions/{id}/fork", "Let a session go on in a copy", sessions.fork, shapes.Moved),
        at=shapes.OfSession,
        body=shapes.Forking,
        tells=True,
    ),
    Route(
        *("POST", "/api/sessions/{id}/resume", "Let its session go on with it", sessions.resume, shapes.Moved),
        at=shapes.OfSession,
        body=shapes.Moving,
        tells=True,
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
    Route("GET", "/api/commands", "Slash commands", rest.commands, shapes.CommandList, least=Role.GUEST),
    Route("GET", "/api/approvals", "What waits for permission", rest.approvals, shapes.ApprovalList),
    Route(
        *("POST", "/api/approvals/{id}", "Allow it, or the like of it too, or deny it", rest.decide, shapes.Decided),
        at=shapes.OfApproval,
        body=shapes.Deciding,
        needs="approve",
    ),
    Route("GET", "/api/grants", "What is allowed ahead", rest.grants, shapes.GrantList),
    Route(
        *("DELETE", "/api/grants/{id}", "Take back what was allowed ahead", rest.revoke_grant, shapes.Revoked),
        at=shapes.OfGrant,
        needs="approve",
    ),
    Route(
        *("GET", "/api/usage", "What was used, by day and model", rest.usage, shapes.UsageRows),
        query=shapes.Days,
        least=Role.ADMIN,
    ),
    Route("GET", "/api/models", "Models that can be chosen", rest.models, shapes.ModelList),
    Route(
        *("POST", "/api/models/test", "Ask a model for an answer and a tool call", setup.try_model),
        setup_shapes.TriedModel,
        body=setup_shapes.Trying,
        least=Role.OWNER,
        needs="admin",
    ),
    Route(
        *("GET", "/api/settings", "All settings, without secrets, and where each comes from", setup.settings),
        setup_shapes.SettingsShown,
        least=Role.ADMIN,
    ),
    Route(
        *("PATCH", "/api/settings", "Change settings by their keys, null: back to the default", setup.change_settings),
        setup_shapes.SettingsShown,
        body=dict[str, Any],
        least=Role.OWNER,
        needs="admin",
        further={412: "the settings are not those of If-Match any more"},
    ),
    Route(
        *("GET", "/api/keys", "Which providers have a key, and where it is", setup.keys, setup_shapes.KeyList),
        least=Role.OWNER,
        needs="admin",
    ),
    Route(
        *("PUT", "/api/keys/{name}", "Keep the key of a provider in the vault", setup.keep_key, setup_shapes.KeyKept),
        at=setup_shapes.OfProvider,
        body=setup_shapes.KeepFile,
        least=Role.OWNER,
        needs="admin",
        tells=True,  # what is said goes out under the account of this key
    ),
    Route(
        *("DELETE", "/api/keys/{name}", "Forget a key of the vault", setup.forget_key, setup_shapes.KeyForgotten),
        at=setup_shapes.OfProvider,
        least=Role.OWNER,
        needs="admin",
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
    Route(
        *("GET", "/api/outbox", "Answers that a channel could not deliver", outbox.list_undelivered),
        shapes.OutboxList,
        least=Role.OWNER,
        needs="admin",
    ),
    Route(
        *("POST", "/api/outbox/{id}/retry", "Try it again, now and for a day", outbox.retry, shapes.OutboxChanged),
        at=shapes.OfOutbox,
        body=shapes.Nothing,
        least=Role.OWNER,
        needs="admin",
    ),
    Route(
        *("DELETE", "/api/outbox/{id}", "Never send it", outbox.drop, shapes.OutboxChanged),
        at=shapes.OfOutbox,
        least=Role.OWNER,
        needs="admin",
    ),
    Route("POST", "/api/files", "Keep a file, to be named in a message", files.keep, shapes.Kept,
          query=shapes.Naming, takes_bytes=True, status=201),
    Route("GET", "/api/files/{ref}", "A file of yours that is kept", files.fetch, None, at=shapes.OfFile),
    Route("GET", "/api/files/{ref}/{name}", "A file that one of your conversations tells of", files.fetch_told, None,
          at=shapes.NamedFile, query=shapes.ClientFeed),
)  # fmt: skip


@cache
def described() -> dict[str, Any]:
    """The document; it takes its time, so it is written when somebody asks for it."""

    return document(TABLE, version("everloop"))


def routes(house: Desk) -> list[web.RouteDef]:
    async def openapi(request: web.Request) -> web.Response:
        return respond(described())

    table = [web.route(route.method, route.path, served(route, house)) for route in TABLE]
    return [*table, web.get("/openapi.json", openapi)]
