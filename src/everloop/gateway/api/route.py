"""One row of the API: what is asked, by whom, and what comes back. A table of these is the API, and its document."""

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from ...core.people import Role
from ...errors import MailRefused, NoRoom
from ..access.permissions import Permission
from ..access.principal import Principal, principal_of
from ..http.errors import Refused, refusal, respond, sentence
from ..http.handler import Handler
from .ports import ApiAgent
from .shapes import Nothing

LARGEST_BODY = 3_000_000  # bytes: the longest message, with each of its letters written as two escapes


class ApiCall(Struct, frozen=True):
    """A request that has been checked. `path`, `query` and `body` are of the types that its route names."""

    agent: ApiAgent
    principal: Principal
    path: Any
    query: Any
    body: Any
    request: web.Request


ApiAnswer = Struct | web.StreamResponse


class ApiRoute(Struct, frozen=True):
    """`least` is the lowest role that may ask, `needs` the scope that a token must have been given."""

    method: str
    path: str
    summary: str
    handle: Callable[[ApiCall], Awaitable[ApiAnswer]]
    answers: type[Struct] | None = None  # None: bytes
    at: type[Struct] = Nothing
    query: type[Struct] = Nothing
    body: Any = None  # the type of it
    takes_bytes: bool = False
    may_be_empty: bool = False  # of bytes
    least: Role = Role.USER
    status: int = 200
    needs: str | tuple[str, ...] = ""  # "": `read` for looking, `chat` for anything else
    tells: bool = False  # it brings something of another conversation along, or to others: it needs `read` as well
    further: Mapping[int, str] = {}  # refusals that others do not have

    @property
    def permission(self) -> Permission:
        return _permission(self.method, self.needs, self.least, self.tells)

    def loaded(self) -> "ApiRoute":
        return self


class LateApiRoute(Struct, frozen=True):
    """A row whose handler and shapes are named, as `module:name` of this folder, and loaded with the first request: few
    houses have anything of its subject."""

    method: str
    path: str
    summary: str
    handle: str
    answers: str
    at: str = "shapes:Nothing"
    body: str = ""
    least: Role = Role.USER
    needs: str | tuple[str, ...] = ""
    further: Mapping[int, str] = {}

    @property
    def permission(self) -> Permission:
        return _permission(self.method, self.needs, self.least)

    def loaded(self) -> ApiRoute:
        return ApiRoute(
            self.method,
            self.path,
            self.summary,
            handle=_named(self.handle),
            answers=_named(self.answers),
            at=_named(self.at),
            body=_named(self.body) if self.body else None,
            least=self.least,
            needs=self.needs,
            further=self.further,
        )


def _permission(method: str, needs: str | tuple[str, ...], least: Role, tells: bool = False) -> Permission:
    needs = needs or ("read" if method == "GET" else "chat")
    scopes = (needs,) if isinstance(needs, str) else needs
    return Permission((*scopes, "read") if tells else scopes, least)


def _named(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f".{module}", __package__), name)


def served(row: ApiRoute | LateApiRoute, agent: ApiAgent) -> Handler:
    """The route as aiohttp calls it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        route = row.loaded()
        try:
            told = await route.handle(await _checked(route, agent, request))
        except Refused as refused:
            return refusal(refused)
        except NoRoom as error:
            return refusal(Refused(413, error.code, sentence(error)))
        except MailRefused as error:
            return refusal(Refused(409, "refused", sentence(error)))
        return told if isinstance(told, web.StreamResponse) else respond(told, route.status)

    return answer


async def _checked(route: ApiRoute, agent: ApiAgent, request: web.Request) -> ApiCall:
    body = await _body(route, request)
    try:
        at = msgspec.convert(dict(request.match_info), route.at)
    except msgspec.ValidationError as error:
        raise Refused(404, "not_found", "There is nothing of that name.") from error
    return ApiCall(agent, principal_of(request), at, _query(route, request.query), body, request)


def _query(route: ApiRoute, given: Mapping[str, str]) -> Struct:
    try:
        return msgspec.convert(dict(given), route.query, strict=False)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Refused(400, "bad_request", f"The query is not understood: {error}") from error


async def _body(route: ApiRoute, request: web.Request) -> Any:
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
