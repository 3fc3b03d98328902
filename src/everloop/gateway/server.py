"""The server: one application with every route, one middleware before all of them, and a stop that lets things end."""

import asyncio
import socket
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from aiohttp import web

from ..core.errors import HomeError
from ..core.jobs import TaskState
from . import hooks
from .answers import Refused, respond
from .auth import Auth, Handler, Middleware, guard
from .connection_limits import LINGER, ConnectionLimits, Limits, note_known
from .house import House
from .hub import Hub
from .metrics import Metrics
from .origins import Place, check_place, context_of, doorway_of
from .socket import Rooms
from .sockets import Sockets

LARGEST = 32_000_000  # bytes of a request
HANDSHAKE = 10.0  # seconds for TLS to begin
WAITING = 1024  # connections that the kernel keeps for us
LAST_WORDS = 1.0  # seconds for an answer that is being written when all turns are over
LOOK = 0.05

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Wanted(Place, Limits, Protocol):
    """What the settings say of the gateway."""


class Gateway:
    """An open gateway: where it is, and the link by which its owner comes in for the first time."""

    def __init__(
        self, url: str, link: str, unused: Sequence[str] = (), tasks: Callable[[], Sequence[TaskState]] = list
    ) -> None:
        self.url = url
        self.tasks = tasks  # what runs for as long as it is open, as it stands
        self.unused = unused  # what is set and does nothing yet, in sentences
        self.link = link  # "" when there is a password


@asynccontextmanager
async def serve(
    house: House, place: Wanted, home: Path, *, version: str = "", grace: float = 5.0
) -> AsyncIterator[Gateway]:
    """Answer for as long as the block lasts; then let what runs end, for `grace` seconds.

    Raises SettingsError for a place that would not be safe, HomeError when it cannot be had.
    """
    check_place(place)
    tls = context_of(place, home)
    listening = _listen(place)
    port = listening.getsockname()[1]
    auth, metrics = Auth(house.store, doorway_of(place, port)), Metrics()
    hub = Hub(house, metrics)
    sockets = Sockets(Rooms(house, hub, auth, metrics, version), place.sockets_per_user)
    limits = ConnectionLimits(place)
    app = application(house, auth, metrics, sockets, limits)
    runner = web.AppRunner(
        app, access_log=None, handle_signals=False, shutdown_timeout=LAST_WORDS, lingering_time=LINGER
    )
    async with hub.open(), _beside(house, "sockets", sockets.patrol), _beside(house, "connections", limits.patrol):
        await runner.setup()
        assert runner.server is not None
        door = await asyncio.get_running_loop().create_server(
            limits.connect(runner.server),
            sock=listening,
            backlog=WAITING,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE if tls else None,
        )
        try:
            url = f"{'https' if tls else 'http'}://{_shown(place.host)}:{port}"
            link = await auth.new_link()
            yield Gateway(url, f"{url}{link}" if link else "", house.unused, house.tasks)
        finally:
            sockets.drain()
            await _rest(house, grace)
            door.close()
            await house.put_down()
            await sockets.close()
            await runner.cleanup()


def application(
    house: House, auth: Auth, metrics: Metrics, sockets: Sockets, limits: ConnectionLimits
) -> web.Application:
    """Every route there is. Those of the page are open to all, because they hold nothing but the page itself."""
    warnings.filterwarnings("ignore", category=web.NotAppKeyWarning)  # a plain key is enough for request["principal"]
    page = page_routes()
    hooked = hooks.routes(house.hooks)
    public = frozenset(route.path for route in (*page, *hooked))
    app = web.Application(
        middlewares=[limits.watch(), _counting(metrics), guard(auth, public), note_known, _draining(sockets)],
        client_max_size=LARGEST,
    )
    app.add_routes([*_own(house, metrics, sockets, limits), *auth.routes(), *_further(house), *hooked, *page])
    app.on_response_prepare.append(_protect)
    return app


def _own(house: House, metrics: Metrics, sockets: Sockets, limits: ConnectionLimits) -> list[web.RouteDef]:
    async def health(request: web.Request) -> web.Response:
        return respond({"status": "ok"})

    async def ready(request: web.Request) -> web.Response:
        return respond({"status": "draining"}, 503) if sockets.draining else respond({"status": "ready"})

    async def tell(request: web.Request) -> web.Response:
        now = {
            "connections": float(len(limits)),
            "ws_connections": float(len(sockets)),
            "turns_running": float(house.store.running),
        }
        return web.Response(
            text=metrics.tell(now, house.tasks()), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    return [
        web.get("/health", health),
        web.get("/ready", ready),
        web.get("/metrics", tell),
        web.get("/ws", sockets.serve, allow_head=False),
    ]


def _further(house: House) -> list[web.RouteDef]:
    """The routes of the other doors, as far as they are there: /v1, /message, /api."""
    found: list[web.RouteDef] = []
    for name in ("openai", "platform", "api"):
        if find_spec(f"{__package__}.{name}"):
            found += import_module(f"{__package__}.{name}").routes(house)
    return found


def page_routes() -> list[web.RouteDef]:
    """The files of the page, if it is there: open to all, because they hold nothing but the page."""
    routes: list[web.RouteDef] = (
        import_module(f"{__package__}.page").routes() if find_spec(f"{__package__}.page") else []
    )
    return routes


def _counting(metrics: Metrics) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        route = resource.canonical if resource else "none"  # never the path itself: that may be anything
        method = request.method if request.method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") else "other"
        response = await handler(request)
        metrics.count("requests_total", method=method, route=route, status=str(response.status))
        return response

    return middleware


def _draining(sockets: Sockets) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if sockets.draining and request.path not in ("/health", "/ready"):
            raise Refused(503, "draining", "the gateway stops; try again when it is back", 1)
        return await handler(request)

    return middleware


async def _protect(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.popall("Server", None)


def _listen(place: Place) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        return socket.create_server((place.host, place.port), family=family, backlog=WAITING)
    except OSError as error:
        raise HomeError(
            f"the gateway cannot listen at {place.host}:{place.port} ({error.strerror or error}); another one may be "
            "running there. Choose another with --port or gateway.port"
        ) from error


def _shown(host: str) -> str:
    """A name by which a browser of this machine gets there."""
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


@asynccontextmanager
async def _beside(house: House, name: str, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    task = house.supervise(name, work)
    try:
        yield
    finally:
        await task.end()


async def _rest(house: House, grace: float) -> None:
    """Wait until no turn runs; those that take longer are put down at their next step, and go on at the next start."""
    for _ in range(round(grace / LOOK)):
        if not house.store.running:
            return
        await asyncio.sleep(LOOK)
