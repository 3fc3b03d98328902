"""The server: one application with every route, one middleware before all of them, and a stop that lets things end."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from aiohttp import web

from ..ports.jobs import TaskState
from . import api, hooks, live_log, mcp, openai, page, platform, signed_links
from .access.auth import Auth
from .access.guard import Check, guard
from .access.permissions import KNOWN, NUMBERS, PUBLIC, Permissions, Route
from .api.ports import ServedAgent
from .http.errors import Refused, respond
from .http.handler import Handler, Middleware
from .metrics import Metrics
from .transport.headers import protect
from .transport.limits import LINGER, ConnectionLimits, LimitSettings, note_known
from .transport.listen import BACKLOG, ListenSettings, check_listen, listen, shown_host
from .transport.origins import origins_of
from .transport.tls import tls_context
from .ws.connection import ConnectionContext
from .ws.connections import ClientConnections
from .ws.hub import Hub

PERMISSIONS = web.AppKey("permissions", Permissions)  # of an application: what each of its routes needs
LARGEST = 32_000_000  # bytes of a request
HANDSHAKE = 10.0  # seconds for TLS to begin
LAST_WORDS = 1.0  # seconds for an answer that is being written when all turns are over
LOOK = 0.05


class GatewaySettings(ListenSettings, LimitSettings, Protocol):
    """What the settings say of the gateway."""


class Gateway:
    """An open gateway: where it is, and the link by which its owner comes in for the first time."""

    def __init__(
        self,
        url: str,
        link: str,
        unused: Sequence[str] = (),
        tasks: Callable[[], Sequence[TaskState]] = list,
        listening: Sequence[str] = (),
    ) -> None:
        self.url = url
        self.tasks = tasks  # what runs for as long as it is open, as it stands
        self.unused = unused  # what is set and does nothing yet, in sentences
        self.listening = listening  # the names of the channels that are open
        self.link = link  # "" when there is a password


@asynccontextmanager
async def serve(
    agent: ServedAgent, settings: GatewaySettings, home: Path, *, version: str = "", grace: float = 5.0
) -> AsyncIterator[Gateway]:
    """Answer for as long as the block lasts; then let what runs end, for `grace` seconds.

    Raises SettingsError for a place that would not be safe, HomeError when it cannot be had.
    """
    check_listen(settings)
    tls = tls_context(settings, home)
    listening = listen(settings)
    port = listening.getsockname()[1]
    auth, metrics = Auth(agent.store, origins_of(settings, port)), Metrics()
    hub = Hub(agent, metrics)
    sockets = ClientConnections(ConnectionContext(agent, hub, auth, metrics, version), settings.sockets_per_user)
    limits = ConnectionLimits(settings)
    app = application(agent, auth, metrics, sockets, limits, version)
    runner = web.AppRunner(
        app, access_log=None, handle_signals=False, shutdown_timeout=LAST_WORDS, lingering_time=LINGER
    )
    async with hub.open(), _beside(agent, "sockets", sockets.patrol), _beside(agent, "connections", limits.patrol):
        await runner.setup()
        assert runner.server is not None
        door = await asyncio.get_running_loop().create_server(
            limits.connect(runner.server),
            sock=listening,
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=HANDSHAKE if tls else None,
        )
        try:
            url = f"{'https' if tls else 'http'}://{shown_host(settings.host)}:{port}"
            link = await auth.new_link()
            yield Gateway(url, f"{url}{link}" if link else "", agent.unused, agent.tasks, agent.listening)
        finally:
            sockets.drain()
            await _rest(agent, grace)
            door.close()
            await agent.put_down()
            await sockets.close()
            await runner.cleanup()


def application(
    agent: ServedAgent,
    auth: Auth,
    metrics: Metrics,
    sockets: ClientConnections,
    limits: ConnectionLimits,
    version: str = "",
) -> web.Application:
    warnings.filterwarnings("ignore", category=web.NotAppKeyWarning)  # a plain key is enough for request["principal"]
    permissions = Permissions()
    app = web.Application(
        middlewares=[limits.watch(), _counting(metrics), guard(auth, permissions, note_known, _draining(sockets))],
        client_max_size=LARGEST,
    )
    app[PERMISSIONS] = permissions
    permissions.mount(app, routes_of(agent, auth, metrics, sockets, limits, version))
    app.on_response_prepare.append(protect)
    return app


def routes_of(
    agent: ServedAgent,
    auth: Auth,
    metrics: Metrics,
    sockets: ClientConnections,
    limits: ConnectionLimits,
    version: str = "",
) -> list[Route]:
    """Every route there is, with what it needs. Those of the page hold nothing but the page itself."""
    own = [*_own(agent, metrics, sockets, limits), *live_log.routes(agent.log)]
    doors = [
        *openai.routes(agent),
        *platform.routes(agent),
        *mcp.routes(agent, version),
        *api.routes(agent),
        *live_log.routes(agent.log),
    ]
    return [*own, *auth.routes(), *doors, *signed_links.routes(agent), *hooks.routes(agent.hooks), *page.routes()]


def _own(agent: ServedAgent, metrics: Metrics, sockets: ClientConnections, limits: ConnectionLimits) -> list[Route]:
    async def health(request: web.Request) -> web.Response:
        return respond({"status": "ok"})

    async def ready(request: web.Request) -> web.Response:
        return respond({"status": "draining"}, 503) if sockets.draining else respond({"status": "ready"})

    async def tell(request: web.Request) -> web.Response:
        now = {
            "connections": float(len(limits)),
            "ws_connections": float(len(sockets)),
            "turns_running": float(agent.store.running),
        }
        return web.Response(
            text=metrics.tell(now, agent.tasks()), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    return [
        Route("GET", "/health", health, PUBLIC),
        Route("GET", "/ready", ready, PUBLIC),
        Route("GET", "/metrics", tell, NUMBERS),
        Route("GET", "/ws", sockets.serve, KNOWN, allows_head=False),  # each frame has its own permission
    ]


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


def _draining(sockets: ClientConnections) -> Check:
    def check(request: web.Request) -> None:
        if sockets.draining and request.path not in ("/health", "/ready"):
            raise Refused(503, "draining", "the gateway stops; try again when it is back", 1)

    return check


@asynccontextmanager
async def _beside(agent: ServedAgent, name: str, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    task = agent.supervise(name, work)
    try:
        yield
    finally:
        await task.end()


async def _rest(agent: ServedAgent, grace: float) -> None:
    """Wait until no turn runs; those that take longer are put down at their next step, and go on at the next start."""
    for _ in range(round(grace / LOOK)):
        if not agent.store.running:
            return
        await asyncio.sleep(LOOK)
