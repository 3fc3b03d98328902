"""One row of the API: what is asked, by whom, and what comes back. A table of these is the API, and its document."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from ...core.errors import MailRefused, NoRoom
from ...core.people import Role
from ..answers import Refused, refusal, respond
from ..principal import Principal
from .desk import Desk
from .shapes import Nothing

LARGEST_BODY = 3_000_000  # bytes: the longest message, with each of its letters written as two escapes


class Call(Struct, frozen=True):
    """A request that has been checked. `path`, `query` and `body` are of the types that its route names."""

    desk: Desk
    principal: Principal
    path: Any
    query: Any
    body: Any
    request: web.Request


Answer = Struct | web.StreamResponse


class Route(Struct, frozen=True):
    """`least` is the lowest role that may ask, `scope` what a token must have been given."""

    method: str
    path: str
    summary: str
    handle: Callable[[Call], Awaitable[Answer]]
    answers: type[Struct] | None = None  # None: bytes
    at: type[Struct] = Nothing
    query: type[Struct] = Nothing
    body: Any = None  # the type of it
    takes_bytes: bool = False
    least: Role = Role.USER
    status: int = 200
    needs: str = ""  # "": `read` for looking, `chat` for anything else
    tells: bool = False  # it brings something of another conversation along, or to others: it needs `read` as well
    further: Mapping[int, str] = {}  # refusals that others do not have

    @property
    def scope(self) -> str:
        return self.needs or ("read" if self.method == "GET" else "chat")

    @property
    def scopes(self) -> tuple[str, ...]:
        return (self.scope, "read") if self.tells else (self.scope,)


def permits(principal: Principal, route: Route) -> bool:
    return principal.role >= route.least and route.scope in principal.scopes


def served(route: Route, desk: Desk) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """The route as aiohttp calls it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            told = await route.handle(await _checked(route, desk, request))
        except Refused as refused:
            return refusal(refused)
        except NoRoom as error:
            return refusal(Refused(413, "no_room", _sentence(str(error))))
        except MailRefused as error:
            return refusal(Refused(409, "refused", _sentence(str(error))))
        return told if isinstance(told, web.StreamResponse) else respond(told, route.status)

    return answer


async def _checked(route: Route, desk: Desk, request: web.Request) -> Call:
    principal: Principal | None = request.get("principal")
    if principal is None:
        raise Refused(401, "unauthorized", "Log in first, or send a token: Authorization: Bearer …")
    if not permits(principal, route):
        raise Refused(403, "forbidden", f"This needs the role {route.least.name.lower()} and the scope {route.scope}.")
    body = await _body(route, request)
    try:
        at = msgspec.convert(dict(request.match_info), route.at)
    except msgspec.ValidationError as error:
        raise Refused(404, "not_found", "There is nothing of that name.") from error
    if route.tells:
        principal.need("read")
    return Call(desk, principal, at, _query(route, request.query), body, request)


def _query(route: Route, given: Mapping[str, str]) -> Struct:
    try:
        return msgspec.convert(dict(given), route.query, strict=False)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Refused(400, "bad_request", f"The query is not understood: {error}") from error


async def _body(route: Route, request: web.Request) -> Any:
    if route.body is None:
        return None
    if request.content_type != "application/json":
        raise Refused(415, "unsupported", "Send JSON, with Content-Type: application/json.")
    data = await request.content.read(LARGEST_BODY + 1)
    while len(data) <= LARGEST_BODY and (more := await request.content.read(LARGEST_BODY + 1)):
        data += more
    if len(data) > LARGEST_BODY:
        raise Refused(413, "too_large", f"The request is larger than {LARGEST_BODY:,} bytes.")
    try:
        return msgspec.convert(_whole(msgspec.json.decode(data)), route.body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refused(400, "bad_request", f"The body is not understood: {error}") from error


def _whole(value: Any) -> Any:
    """With 5.0 as 5: JSON does not tell them apart, and some clients write the one for the other."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list) else value


def _sentence(text: str) -> str:
    if text.partition(" ")[0].isalpha():  # a file's name or a setting is left as it is
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", ")")) else f"{text}."
