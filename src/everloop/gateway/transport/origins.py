"""Under which names the gateway answers, and which pages may call it.

A browser says with Host what it believes to speak to, and with Origin which page speaks. Both are compared as whole
words: a page of another site, another port or another scheme is a stranger (this is the CSRF check), and a name that
someone has pointed at this machine is not ours (this is the check against DNS rebinding).
"""

from aiohttp import web
from msgspec import Struct

from ..http.errors import Refused
from .listen import ListenSettings

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Origins(Struct, frozen=True):
    """The names it has, in small letters and with the port, and the further origins that are let in."""

    hosts: frozenset[str]
    origins: frozenset[str]
    port: int
    tls: bool = False
    trusts_proxy: bool = False

    def check(self, request: web.Request) -> None:
        """Raises Refused: 421 for a name that is not ours, 403 for a page that is not."""
        hosts, origins = request.headers.getall("Host", []), request.headers.getall("Origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise Refused(421, "host", "this gateway does not go by that name; see gateway.allowed_hosts")
        if origins and (len(origins) > 1 or origins[0] not in {self.origin(request), *self.origins}):
            raise Refused(403, "origin", "pages of that origin may not call this gateway; see gateway.allowed_origins")

    def origin(self, request: web.Request) -> str:
        """What a browser calls the page that it has from us under this name."""
        return f"{'https' if self.is_secure(request) else 'http'}://{_host(request)}"

    def is_secure(self, request: web.Request) -> bool:
        """Whether nobody on the way can read along; a proxy in front of us sees to that for names of the outside."""
        here = _host(request).rpartition(":")[0] in LOOPBACK
        return self.tls or (self.trusts_proxy and not here)

    def caller(self, request: web.Request) -> str:
        """The address that is calling; what a proxy says of it counts only where there is one."""
        forwarded = request.headers.getall("X-Forwarded-For", [])
        if self.trusts_proxy and forwarded:
            return forwarded[-1].rpartition(",")[2].strip()
        return request.remote or ""


def _host(request: web.Request) -> str:
    return request.headers["Host"].lower()


def origins_of(place: ListenSettings, port: int) -> Origins:
    given = [name.lower() for name in place.allowed_hosts]
    own = (
        [] if place.host in ("", "0.0.0.0", "::") else [f"[{place.host}]" if ":" in place.host else place.host.lower()]
    )
    hosts = {f"{name}:{port}" for name in (*LOOPBACK, *own, *given)}
    hosts |= {name for name in given if _has_port(name)}
    if port == (443 if place.tls_cert else 80) or place.behind_proxy:  # then browsers leave the port out
        hosts |= {*given, *own}
    return Origins(frozenset(hosts), frozenset(place.allowed_origins), port, bool(place.tls_cert), place.behind_proxy)


def _has_port(name: str) -> bool:
    return name.rpartition(":")[2].isdigit() and not name.endswith("]")
