"""Which tools this house has: the built-in ones, and those that other packages bring.

What a tool needs is made when it is first used: a house in which nobody searches the web never loads what that takes.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from .core.errors import SettingsError
from .core.ports import Bus, Event, Files, Http
from .core.tool import CallContext, Tool
from .settings import Search, Settings
from .tools.exec import Shell, exec_tools
from .tools.files import workspace_tools
from .tools.run_python import run_python_tool
from .tools.sandbox.choose import choose_way
from .tools.sandbox.commands import Commands
from .tools.sandbox.port import Limits, View
from .tools.sandbox.view import environment
from .tools.taking_back import TakingBack
from .tools.web_fetch import web_fetch_tool
from .tools.web_search import Engine, choose_engine, web_search_tool
from .tools.workspace import Workspace

PLUGINS = "everloop.tools"  # the group of entry points
ESSENTIAL = frozenset({"read_file", "write_file", "edit_file", "list_dir"})  # what a small model is shown


class Toolset(Struct, frozen=True):
    """`large` are those that a small model is not shown. `commands` run in the background. `take_back` undoes what a
    tool did to a file."""

    tools: tuple[Tool, ...]
    large: frozenset[str]
    commands: Commands
    web: "Later"
    take_back: TakingBack

    async def leave(self, thread: str) -> None:
        """End what a conversation has left running."""
        await self.commands.stop(thread)

    async def close(self) -> None:
        await self.commands.close()
        await self.web.close()


def furnish(home: Path, workspace: Path, settings: Settings, files: Files, bus: Bus, max_chars: int) -> Toolset:
    """The built-in tools, and the plugins that the settings name. Raises SettingsError."""
    chosen = settings.tools
    commands = Commands(
        home / "spool",
        partial(choose_way, unsafe=chosen.exec.unsafe_without_sandbox),
        shared=bool(settings.store.url),
    )
    limits = Limits(memory=chosen.exec.memory_mb << 20, processes=chosen.exec.processes)
    shell = Shell(
        *(commands, View(workspace, hidden=(home,)), environment(os.environ, chosen.exec.env), limits),
        longest=chosen.exec.timeout,
        free=chosen.exec.unsafe_without_sandbox,
        told=partial(_tell, bus),
    )
    web = Later(lambda: _open_web(settings))
    own = [
        *workspace_tools(workspace, files, max_chars),
        *exec_tools(shell),
        run_python_tool(shell),
        web_fetch_tool(web, max_chars),
    ]
    if engine := _engine(settings, os.environ):
        own.append(web_search_tool(engine))
    names = {tool.spec.name for tool in own}
    plugged = plugged_in(chosen.plugins, names) if chosen.plugins else ()
    return Toolset(
        (*own, *plugged), frozenset(names - ESSENTIAL), commands, web, TakingBack(Workspace(workspace), files)
    )


def _tell(bus: Bus, context: CallContext, text: str) -> None:
    if bus.hears(context.thread):
        bus.publish(Event("tool_output", context.thread, data={"call": context.key, "text": text}))


class Later:
    """An Http that is made when it is first used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._http: Any = None

    def request(self, *args: Any, **named: Any) -> AbstractAsyncContextManager[Any]:
        if self._http is None:
            self._http = self._make()
        made: AbstractAsyncContextManager[Any] = self._http.request(*args, **named)
        return made

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()


def _open_web(settings: Settings) -> Any:
    from .net.open import OpenHttp

    return OpenHttp(settings.tools.web.allow, ca_file=settings.net.ca_file or None)


def _trusted(settings: Settings) -> Http:
    from .net.trusted import TrustedHttp

    return TrustedHttp(settings.net.ca_file or None, settings.net.proxy)


def _engine(settings: Settings, environ: Mapping[str, str]) -> Engine | None:
    search = settings.tools.web.search
    keys = _search_keys(search, environ)
    if search.engine in keys and not keys[search.engine]:
        raise SettingsError(f"tools.web.search.engine is {search.engine}, which needs {_NEEDS[search.engine]}")
    if search.engine:
        keys = {name: key if name == search.engine else "" for name, key in keys.items()}
    return choose_engine(
        Later(lambda: _trusted(settings)),
        searxng=keys["searxng"],
        brave_key=keys["brave"],
        tavily_key=keys["tavily"],
    )


_NEEDS = {
    "searxng": "tools.web.search.url",
    "brave": "tools.web.search.api_key or BRAVE_API_KEY",
    "tavily": "tools.web.search.api_key or TAVILY_API_KEY",
}


def _search_keys(search: Search, environ: Mapping[str, str]) -> dict[str, str]:
    given = {search.engine or "brave": search.api_key}
    return {
        "searxng": search.url,
        "brave": given.get("brave") or environ.get("BRAVE_API_KEY", ""),
        "tavily": given.get("tavily") or environ.get("TAVILY_API_KEY", ""),
    }


def plugged_in(names: Iterable[str], taken: Iterable[str]) -> tuple[Tool, ...]:
    """The tools that other packages bring under these names. Raises SettingsError when one cannot be had."""
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=PLUGINS)}
    tools: list[Tool] = []
    for name in names:
        if name not in found:
            there = ", ".join(sorted(found)) or "none is installed"
            raise SettingsError(f"tools.plugins: no package brings {name!r}; there are: {there}")
        try:
            loaded = found[name].load()
        except Exception as error:  # a stranger's code runs here
            raise SettingsError(
                f"tools.plugins: {name!r} cannot be loaded ({type(error).__name__}: {error})"
            ) from error
        tools += _tools_in(name, loaded)
    names_seen = [*taken]
    for tool in tools:
        if tool.spec.name in names_seen:
            raise SettingsError(f"tools.plugins: there is a tool {tool.spec.name!r} already")
        names_seen.append(tool.spec.name)
    return tuple(tools)


def _tools_in(name: str, loaded: Any) -> list[Tool]:
    tools = [loaded] if isinstance(loaded, Tool) else list(loaded) if isinstance(loaded, list | tuple) else []
    if not tools or not all(isinstance(tool, Tool) for tool in tools):
        raise SettingsError(
            f"tools.plugins: {name!r} is no tool; a plugin is what `@everloop.tool` makes, or a list of it"
        )
    return tools
