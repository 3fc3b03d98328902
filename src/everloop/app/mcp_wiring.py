"""How this process speaks with MCP servers: commands in the sandbox, addresses through `net`. Loaded with the first
connection, for the SDK takes its time."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..ports import Bus, Clock, KeepsFiles, Vault
from ..ports.events import ToolOutput
from ..ports.mcp import McpClient, McpServer, McpWires
from ..ports.tools import CallContext
from ..settings import Settings, workspace_of

if TYPE_CHECKING:
    from ..tools.mcp.oauth import McpLogins
    from ..tools.mcp.page_login import PageLogins
    from ..tools.mcp.questions import AnswersModels, AnswersPeople

Now = Callable[[], Settings]


def connections(
    home: Path,
    settings: Now,
    vault: Vault,
    stack: AsyncExitStack,
    *,
    clock: Clock,
    bus: Bus | None = None,
    keeper: KeepsFiles | None = None,
    models: "AnswersModels | None" = None,
    people: "AnswersPeople | None" = None,
) -> McpClient:
    """The connections of this process; whatever is opened for them is closed with the `stack`. `models` answer what a
    server may have one asked, `people` what it asks whoever has called it."""
    from ..tools.mcp.client import McpConnections
    from ..tools.mcp.questions import AnsweredBy

    wires = HouseWires(home, settings, vault, stack)
    told = partial(_tell, bus) if bus else _tell_nobody
    return McpConnections(wires=wires, questions=AnsweredBy(people, models), clock=clock, told=told, keeper=keeper)


class HouseWires:
    """McpWires for every transport, each made when it is first needed."""

    def __init__(self, home: Path, settings: Now, vault: Vault, stack: AsyncExitStack) -> None:
        self._home = home
        self._settings = settings
        self._vault = vault
        self._stack = stack
        self._commands: McpWires | None = None
        self._http: tuple[Any, Any] | None = None

    def open(self, server: McpServer) -> AbstractAsyncContextManager[Any]:
        if server.transport == "stdio":
            self._commands = self._commands or self._stdio()
            return self._commands.open(server)
        from ..tools.mcp.http import http_wire

        trusted, checked = self.ways()
        return http_wire(server, trusted=trusted, open=checked, vault=self._vault)

    def last_said(self, server: McpServer) -> str:
        return self._commands.last_said(server) if self._commands else ""

    def ways(self) -> tuple[Any, Any]:
        """To hosts that the owner has set, and to whatever these name: the latter are checked."""
        if self._http is None:
            self._http = ways_of(self._settings(), self._stack)
        return self._http

    def _stdio(self) -> McpWires:
        from ..net.proxy import Proxy
        from ..tools.mcp.stdio import StdioWires
        from ..tools.sandbox.choose import choose_way
        from ..tools.sandbox.servers import SandboxedServers

        settings = self._settings()
        choose = partial(choose_way, unsafe=settings.tools.exec.unsafe_without_sandbox)
        servers = SandboxedServers(self._home / "spool", choose, serve=lambda hosts: Proxy(hosts).serve)
        self._stack.push_async_callback(servers.close)
        return StdioWires(self._home, servers, workspace_of(settings, self._home))


class HouseLogins:
    """Logging in at servers that want it, made when somebody does."""

    def __init__(self, vault: Vault, settings: Now, stack: AsyncExitStack) -> None:
        self._vault = vault
        self._settings = settings
        self._stack = stack
        self._logins: McpLogins | None = None
        self._page: PageLogins | None = None

    def __call__(self) -> "McpLogins":
        if self._logins is None:
            from ..tools.mcp.oauth import McpLogins

            trusted, checked = ways_of(self._settings(), self._stack)
            self._logins = McpLogins(vault=self._vault, trusted=trusted, open=checked)
        return self._logins

    def page(self) -> "PageLogins":
        """Those that come back by the gateway; what waits ends with the house."""
        if self._page is None:
            from ..tools.mcp.page_login import PageLogins

            self._page = PageLogins(self())
            self._stack.push_async_exit(self._page)
        return self._page


class HousePackages:
    """What was installed for servers, each in a folder of its own in the home."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def question(self, name: str, command: Sequence[str], *, sandbox: bool) -> str:
        from ..tools.mcp.packages import installed, plan

        folder = self._folder(name)
        found = plan(command, folder, sandbox)
        return found.question if found and not installed(command, folder) else ""

    async def install(self, name: str, command: Sequence[str], *, sandbox: bool) -> tuple[tuple[str, ...], str]:
        from ..tools.mcp.installing import install
        from ..tools.mcp.packages import installed, plan

        folder = self._folder(name)
        found = plan(command, folder, sandbox)
        if found is None:
            return tuple(command), ""
        made = installed(command, folder) or await install(found)
        return made.command, made.digest

    async def remove(self, name: str) -> None:
        if (folder := self._folder(name)).exists():
            from ..tools.mcp.packages import remove

            await asyncio.to_thread(remove, folder)

    def _folder(self, name: str) -> Path:
        from ..tools.mcp.stdio import folder_of

        return folder_of(self._home, name)


def ways_of(settings: Settings, stack: AsyncExitStack) -> tuple[Any, Any]:
    from ..net.open import OpenHttp
    from ..net.trusted import TrustedHttp

    trusted = TrustedHttp(settings.net.ca_file or None, settings.net.proxy)
    checked = OpenHttp((), ca_file=settings.net.ca_file or None)
    stack.push_async_callback(trusted.close)
    stack.push_async_callback(checked.close)
    return trusted, checked


def _tell(bus: Bus, context: CallContext, text: str) -> None:
    """How far a call is, for whoever watches."""
    if bus.hears(context.thread):
        bus.publish(ToolOutput(context.thread, 0, context.key, text))


def _tell_nobody(context: CallContext, text: str) -> None:
    pass
