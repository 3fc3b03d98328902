"""The desk of MCP servers without the rest of a house: for the command line."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from ..ports.mcp_rows import McpShown
from ..runtime.clock import MACHINE
from ..runtime.mcp_answers import McpAnswers
from ..settings.editor import SettingsEditor
from .mcp import Connects, HouseMcp
from .mcp_desk import McpDesk, McpLogsIn
from .mcp_setup import InstallsPackages, McpSetup
from .mcp_wiring import HouseLogins, HousePackages, connections
from .opening import opened_home


@asynccontextmanager
async def open_mcp_desk(
    home: Path | None = None,
    connect: Connects | None = None,
    packages: InstallsPackages | None = None,
    logins: Callable[[], McpLogsIn] | None = None,
) -> AsyncIterator[McpDesk]:
    """A gateway that runs sees what changes. Raises SettingsError, StoreError."""
    async with opened_home(home) as opened, AsyncExitStack() as stack:
        settings = opened.settings
        make = partial(connections, opened.home, lambda: settings, opened.vault, stack, clock=MACHINE)
        mcp = HouseMcp(opened.store, opened.vault, connect or make)
        stack.push_async_callback(mcp.close)
        await mcp.follow(settings.tools.mcp_servers)

        async def changed() -> None:
            now = await asyncio.to_thread(opened.settings_now)
            await mcp.follow(now.tools.mcp_servers)

        log = logins or HouseLogins(opened.vault, lambda: settings, stack)
        book = SettingsEditor(opened.home, os.environ)
        setup = McpSetup(opened, book, mcp, changed, packages=packages or HousePackages(opened.home), logins=log)
        yield McpDesk(opened, setup, mcp, log)


@asynccontextmanager
async def open_mcp_answers(home: Path | None = None) -> AsyncIterator[McpAnswers]:
    """For who answers what is asked in another process. Raises SettingsError, StoreError."""
    async with opened_home(home) as opened:
        yield McpAnswers(opened.store.mcp_questions, "everloop mcp answer")


async def log_in_here(desk: McpDesk, name: str, show_url: Callable[[str], Awaitable[None]]) -> McpShown:
    """Log in with a browser of this machine, which comes back to it. Raises EverloopError."""
    from ..tools.mcp.callback import loopback_redirect

    await desk.login_server(name)
    async with loopback_redirect() as back:
        return await desk.log_in(name, back.url, show_url, back.wait)
