"""A home with servers over stdio, in each way to confine them that this machine has."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from tests.tools.servers_world import WAYS, skip_without, way_called

from everloop.ports.mcp import McpServer
from everloop.tools.mcp.stdio import CONFINED_LIMITS, StdioWires
from everloop.tools.sandbox.choose import Confinement
from everloop.tools.sandbox.outlet import Serve
from everloop.tools.sandbox.port import CommandLimits
from everloop.tools.sandbox.servers import SandboxedServers

__all__ = ["CONFINED", "WAYS", "StdioWorld", "stdio_world"]
CONFINED = ("bwrap", "landlock")


class StdioWorld:
    """`way` is how its servers are confined; by `none` they have no sandbox."""

    def __init__(self, base: Path, way: str, wires: StdioWires) -> None:
        self.home, self.workspace = base / "home", base / "workspace"
        self.way = way
        self.wires = wires

    def server(self, *command: str, **given: Any) -> McpServer:
        return McpServer(name="it", command=command, sandbox=self.way != "none", **given)

    def client(self, *command: str, **given: Any) -> AbstractAsyncContextManager[Client]:
        return self.connected(self.server(*command, **given))

    def connected(self, server: McpServer) -> AbstractAsyncContextManager[Client]:
        return Client(self.wires.open(server))

    @property
    def data(self) -> Path:
        return self.home / "mcp" / "it" / "data"


@asynccontextmanager
async def stdio_world(
    base: Path,
    way: str,
    serve: Callable[[tuple[str, ...]], Serve] | None = None,
    limits: CommandLimits = CONFINED_LIMITS,
) -> AsyncIterator[StdioWorld]:
    """Skips where this machine does not have the way."""
    skip_without(way)
    for folder in ("home", "workspace"):
        (base / folder).mkdir()
    servers = SandboxedServers(base / "home" / "spool", chosen(way), serve=serve)
    try:
        yield StdioWorld(base, way, StdioWires(base / "home", servers, base / "workspace", limits))
    finally:
        await servers.close()


def chosen(way: str) -> Callable[[], Awaitable[Confinement]]:
    async def choose() -> Confinement:
        return way_called(way)

    return choose
