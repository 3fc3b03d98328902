"""Routes, each with what it needs of whoever asks. There is no other table: a route cannot be mounted without its
permission, and what the router knows and this does not is refused to all (deny by default)."""

from collections.abc import Iterable, Mapping

from aiohttp import web
from msgspec import Struct

from ...core.people import Role
from ..http.errors import Refused
from ..http.handler import Handler
from .principal import Principal


class Permission(Struct, frozen=True):
    """The scopes that a token must have been given, and the lowest role that may ask. `names_platform`: a bot's token,
    which names the platforms whose people it speaks for."""

    scopes: tuple[str, ...] = ()
    least: Role = Role.GUEST
    is_public: bool = False  # nobody needs to have logged in, and nobody is looked up
    names_platform: bool = False

    def check(self, principal: Principal) -> None:
        """Raises Refused (403)."""
        for scope in self.scopes:
            principal.need(scope)
        if self.names_platform:
            principal.check_names_platform()
        if principal.role < self.least:
            raise Refused(403, "forbidden", f"this needs the role {self.least.name.lower()}, which you do not have")


PUBLIC = Permission(is_public=True)  # it tells nothing, is how one comes in, or knows its callers by itself
KNOWN = Permission()  # any principal
READ = Permission(("read",))
CHAT = Permission(("chat",))
BOT = Permission(("chat",), names_platform=True)
ADMIN = Permission(("admin",))
NUMBERS = Permission(("read",), Role.ADMIN)  # what all people together use, and of which models


class Route(Struct, frozen=True):
    method: str
    path: str
    handle: Handler
    permission: Permission
    allows_head: bool = True  # of GET: HEAD is answered as well

    @property
    def methods(self) -> tuple[str, ...]:
        return ("GET", "HEAD") if self.method == "GET" and self.allows_head else (self.method,)


class Permissions:
    """What each mounted route needs."""

    def __init__(self) -> None:
        self._needs: dict[web.AbstractRoute, Permission] = {}

    def mount(self, app: web.Application, routes: Iterable[Route]) -> None:
        for each in routes:
            resource = app.router.add_resource(each.path)
            for method in each.methods:
                self._needs[resource.add_route(method, each.handle)] = each.permission

    def of(self, request: web.Request) -> Permission | None:
        """None when nobody has said who may ask for it, or there is no such route."""
        return self._needs.get(request.match_info.route)

    @property
    def table(self) -> Mapping[tuple[str, str], Permission]:
        """By method and path."""
        return {(route.method, _path(route)): needs for route, needs in self._needs.items()}


def _path(route: web.AbstractRoute) -> str:
    assert route.resource is not None
    return route.resource.canonical
