"""Who may come in, checked on every request before its body is read.

The contract for handlers (what other files of this room may count on):

- `request["principal"]` is a `Principal` on every route but those whose permission is `permissions.PUBLIC`. What its
  route needs has been checked; a handler that needs more, by what a request says, calls `principal.need(scope)`.
- Raise `errors.Refused(status, code, message)`, or any EverloopError, and the client is told in JSON.
- A request without an Origin passes with `Authorization: Bearer …` and never with a cookie. Browsers send no Origin
  with a GET of the same site, so the page POSTs to `/auth/session` once (cookie and Origin), is given
  `{"user", "name", "role", "scopes", "token"}`, keeps the token in memory and sends it as Bearer with whatever
  it fetches. The WebSocket is opened with the cookie: browsers send an Origin there.
- Coming in: the one-time link is `GET /login?code=…` (sets the cookie, redirects to `/`); `POST /auth/login
  {"password", "user"}`; `POST /auth/logout`; `POST /auth/password {"password", "current"}`.
"""

import asyncio
from functools import lru_cache
from typing import Protocol, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

from ...core.people import role_named
from ...ports import Audit, Credentials, Directory
from ...ports.audit import acting_as, line_of
from ...ports.rows import Known
from ..http.errors import Refused, respond
from ..transport.origins import Origins
from .permissions import KNOWN, PUBLIC, Route
from .principal import Principal, principal_of
from .scopes import SCOPES
from .secrets import LONGEST, SHORTEST, fits_password, hash_of, hash_password, new_secret, page_secret
from .throttle import Throttle

VISIT = 30 * 86_400.0  # seconds for which a browser stays logged in
LINK = 86_400.0
OWNER = "owner"
SMALL = 64_000  # bytes of a request from someone of whom nothing is known yet: two passwords, however they are written


Shape = TypeVar("Shape", bound=Struct)


class AuthStore(Credentials, Directory, Audit, Protocol):
    """Who may come in, and what they are called."""


class Auth:
    """Knows who is asking. Nothing is remembered between two requests, so what is revoked is refused at once."""

    def __init__(self, credentials: AuthStore, origins: Origins, throttle: Throttle | None = None) -> None:
        self._credentials = credentials
        self._throttle = throttle or Throttle()
        self.origins = origins

    def cookie(self, request: web.Request) -> str:
        """The name of the cookie; cookies do not tell ports apart, so this does."""
        return "__Host-everloop" if self.origins.is_secure(request) else f"everloop_{self.origins.port}"

    def check_origin(self, request: web.Request) -> None:
        """Raises Refused: 421 for a name that is not ours, 403 for a page that is not."""
        self.origins.check(request)

    async def authenticate(self, request: web.Request) -> Principal | None:
        """Who is asking, by their token or, from our own page, by their cookie; None when nobody we know.

        Whoever shows a token is judged by it alone: one that is wrong is not made good by a cookie.
        """
        shown = request.headers.getall("Authorization", [])
        if shown:
            scheme, _, secret = shown[0].partition(" ")
            return await self._by_token(secret.strip()) if len(shown) == 1 and scheme.lower() == "bearer" else None
        cookie = request.cookies.get(self.cookie(request), "")
        if not cookie or "Origin" not in request.headers:  # whose exact words the doorway has checked
            return None
        if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return None
        return _principal(await self._credentials.known_visit(hash_of(cookie)), "cookie")

    async def _by_token(self, secret: str) -> Principal | None:
        hashed = hash_of(secret)
        if token := await self._credentials.known_token(hashed):
            return _principal(token, "token")
        return _principal(await self._credentials.known_visit(hashed, page=True), "cookie")

    async def new_link(self) -> str:
        """The path of a one-time link, in place of an earlier one; "" where a password has been set."""
        if await self._credentials.login(OWNER, "password"):
            return ""
        code = new_secret()
        await self._credentials.keep_login(OWNER, "link", hash_of(code), LINK)
        return f"/login?code={code}"

    async def follow_link(self, request: web.Request) -> web.Response:
        """The first exchange, after which no address holds a credential any more."""
        _check_opened(request)
        code = request.query.get("code", "")
        if not code:
            return _see("/")
        # Nobody guesses 256 bits, so tries are not counted; and nothing is written for who tries.
        known = request.method == "GET" and await self._credentials.link_owner(hash_of(code))
        user = await self._credentials.use_link(hash_of(code)) if known else ""
        if not user and "text/html" in request.headers.get("Accept", ""):
            return _see("/#/used-link")  # a person is told by the page, where they can log in
        if not user:
            raise Refused(401, "link", "this link has been used, or is too old; start the gateway again for a new one")
        with acting_as(user, "a link that lets in once"):
            return await self._welcome(request, user, _see("/"))

    async def log_in(self, request: web.Request) -> web.Response:
        caller = self.origins.caller(request)
        self._throttle.begin(caller)
        asked = await _read(request, _Login)
        user = await self._named(asked.user) if asked.user else OWNER
        kept = await self._credentials.login(user, "password")
        if asked.user and not kept:  # takes as long as for somebody who has one
            await asyncio.to_thread(hash_password, asked.password[:LONGEST])
        if not kept or not await asyncio.to_thread(fits_password, asked.password[:LONGEST], kept):
            await self._credentials.note(line_of("login.failed", user))  # never what was typed
            raise Refused(401, "login", "that is not the password")
        self._throttle.succeed(caller)
        with acting_as(user, "their password"):
            return await self._welcome(request, user, respond({"user": user}))

    async def _named(self, name: str) -> str:
        """Who is called so, by id, account, or a name of theirs alone; "" if nobody is, or is not to come in."""
        people = await self._credentials.people()
        exact = [each for each in people if name == each.id or name in each.accounts]
        found = exact or [each for each in people if each.name.casefold() == name.casefold()]
        return found[0].id if len(found) == 1 and not found[0].blocked else ""

    async def show_visit(self, request: web.Request) -> web.Response:
        """Who the page speaks for, and the token that it sends along with what it fetches."""
        principal = principal_of(request)
        person = await self._credentials.person(principal.user)
        name, role = person.name if person else principal.user, principal.role.name.lower()
        told = {"user": principal.user, "name": name, "role": role, "scopes": sorted(principal.scopes)}
        cookie = request.cookies.get(self.cookie(request), "")
        by_cookie = principal.kind == "cookie" and "Authorization" not in request.headers
        has_password = await self._credentials.login(principal.user, "password") is not None
        return respond({**told, "token": page_secret(cookie) if by_cookie else None, "has_password": has_password})

    async def log_out(self, request: web.Request) -> web.Response:
        principal = principal_of(request)
        if principal.kind == "cookie":
            await self._credentials.end_visits(principal.user, principal.credential)
        response = respond({"user": None})
        secure = self.origins.is_secure(request)
        response.del_cookie(self.cookie(request), path="/", secure=secure, httponly=True, samesite="Strict")
        return response

    async def set_password(self, request: web.Request) -> web.Response:
        """Whoever knows the old one, or has come by the link where there is none, may set another. Whoever logs in with
        it has every scope, so a token that lacks one does not set the first."""
        principal = principal_of(request)
        if principal.kind != "cookie":
            principal.need("admin")
        asked = await _read(request, _NewPassword)
        if not SHORTEST <= len(asked.password) <= LONGEST:
            raise Refused(400, "password", f"a password has {SHORTEST} to {LONGEST} characters")
        kept = await self._credentials.login(principal.user, "password")
        if kept:
            caller = self.origins.caller(request)
            self._throttle.begin(caller)
            if not await asyncio.to_thread(fits_password, asked.current[:LONGEST], kept):
                await self._credentials.note(line_of("login.failed", principal.user))
                raise Refused(403, "login", "that is not the current password")
            self._throttle.succeed(caller)
        elif principal.kind != "cookie":
            principal.check_lasting()
            for scope in SCOPES:
                principal.need(scope)
        hashed = await asyncio.to_thread(hash_password, asked.password)
        await self._credentials.keep_login(principal.user, "password", hashed)
        await self._credentials.end_visits(principal.user, but=principal.credential)
        return respond({"user": principal.user})

    async def _welcome(self, request: web.Request, user: str, response: web.Response) -> web.Response:
        """A new cookie each time: one that somebody has planted before (session fixation) is worth nothing."""
        cookie = new_secret()
        await self._credentials.keep_visit(user, hash_of(cookie), hash_of(page_secret(cookie)), VISIT)
        secure = self.origins.is_secure(request)
        response.set_cookie(
            self.cookie(request),
            cookie,
            path="/",
            max_age=int(VISIT),
            httponly=True,
            samesite="Strict",
            secure=secure,
        )
        return response

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/login", self.follow_link, PUBLIC),
            Route("POST", "/auth/login", self.log_in, PUBLIC),
            Route("POST", "/auth/session", self.show_visit, KNOWN),
            Route("POST", "/auth/logout", self.log_out, KNOWN),
            Route("POST", "/auth/password", self.set_password, KNOWN),
        ]


def _check_opened(request: web.Request) -> None:
    """Raises Refused when some page has fetched the link as its image, frame or script, and no person has opened it."""
    site, dest = (request.headers.get(f"Sec-Fetch-{name}", "") for name in ("Site", "Dest"))
    if site in ("cross-site", "same-site") and dest != "document":
        raise Refused(403, "link", "another page has asked for this; open the link itself")


def _see(path: str) -> web.Response:
    return web.Response(status=303, headers={"Location": path})


def _principal(known: Known | None, kind: str) -> Principal | None:
    return None if known is None else _principal_of(known, kind)


@lru_cache(256)  # by what the store has just said, so nothing of it is older than that
def _principal_of(known: Known, kind: str) -> Principal:
    return Principal(
        user=known.owner,
        role=role_named(known.role),
        scopes=frozenset(SCOPES if kind == "cookie" else known.scopes),
        kind="cookie" if kind == "cookie" else "token",
        credential=known.id,
        until=known.until,
        platforms=frozenset(known.platforms),
    )


class _Login(Struct):
    """Without a `user`, the owner."""

    password: str
    user: str = ""


class _NewPassword(Struct):
    password: str
    current: str = ""


async def _read(request: web.Request, shape: type[Shape]) -> Shape:
    if request.content_type != "application/json":  # what a form of any page could send is not JSON
        raise Refused(415, "content_type", "send JSON, with Content-Type: application/json")
    data = bytearray()
    async for piece in request.content.iter_any():
        data += piece
        if len(data) > SMALL:
            raise Refused(413, "too_large", "the request is larger than what is taken")
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, RecursionError):
        fields = ", ".join(shape.__struct_fields__)
        raise Refused(400, "bad_request", f"send a JSON object with {fields}") from None
