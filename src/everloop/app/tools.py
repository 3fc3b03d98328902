"""Which tools this house has: the built-in ones, and those that other packages bring.

What a tool needs is made when it is first used: a house in which nobody searches the web never loads what that takes.
"""

import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ..core.people import OWNER
from ..errors import SettingsError
from ..ports import (
    Archive,
    Arrivals,
    Bus,
    Channel,
    Clock,
    Directory,
    FileRecords,
    Files,
    Http,
    KeepsFiles,
    Log,
    Mailroom,
    Memory,
    Outgoing,
    Taints,
    ToolSource,
)
from ..ports.channel import DOORS, Traits
from ..ports.command_homes import CommandHomes
from ..ports.events import ToolOutput
from ..ports.fact_search import FactWords
from ..ports.memory import FactFinder
from ..ports.outbox import SentAnswers
from ..ports.skills import SkillFolders
from ..ports.tools import CallContext, Tool
from ..readings.brought_commands import BroughtCommand
from ..readings.found_tools import ESSENTIAL
from ..runtime.calls import LONGEST_RESULT, Kit
from ..runtime.clock import MACHINE
from ..settings import Search, Settings
from ..tools.credentials import EXEC, FETCH, CredentialBox, credential_tools
from ..tools.cron import ScheduleClerk, cron_tool
from ..tools.exec import Shell, exec_tools
from ..tools.files import file_tools
from ..tools.find_tools import Specs, finding_tools
from ..tools.history import history_tools
from ..tools.home import Home
from ..tools.keep_file import FileKeeper
from ..tools.load_file import load_file_tool
from ..tools.marks import MARKS, Marks
from ..tools.message import message_tool
from ..tools.produced import ProducedFiles
from ..tools.recall import recall_tool
from ..tools.remember import memory_tools
from ..tools.run_python import run_python_tool
from ..tools.sandbox.later import LaterSandbox
from ..tools.sandbox.port import CommandLimits, CommandView, Sandbox
from ..tools.sandbox.view import environment
from ..tools.send_file import send_file_tool
from ..tools.sent_messages import sent_message_tools
from ..tools.spawn import spawn_tool
from ..tools.tainted import Tainted, place_of
from ..tools.undo_file import UndoFile
from ..tools.web_fetch import web_fetch_tool
from ..tools.web_search import Engine, choose_engine, web_search_tool
from ..tools.workspace import Workspace
from .brought_tools import BroughtTools, Joined
from .subagents import plain_profile, profiles_of
from .workspaces import check_workspace, workspace_for

if TYPE_CHECKING:
    from ..memory.forgetting import ForgettingStore
    from ..memory.remembering import Remembering
    from ..tools.browse import QuotaOf

MemoryChanged = Callable[[str], Awaitable[None]]  # by its principal

PEOPLE = 500  # whose tools are kept ready


class Toolset(Struct, frozen=True):
    """`large` are those that a small model is not shown. `commands` run in the background. `take_back` undoes what a
    tool did to a file, `keep` keeps what it has made of one."""

    tools: tuple[Tool, ...]
    large: frozenset[str]
    commands: Sandbox
    ways: tuple["Later", ...]  # out to the network
    take_back: UndoFile
    keep: FileKeeper
    place: str  # the name of the workspace
    built_in: frozenset[str] = frozenset()  # the names of all that there are, also of those that were left out
    personal: tuple[Tool, ...] = ()  # for those who keep credentials
    slash: Mapping[str, BroughtCommand] = {}  # commands that plugins bring

    def kit(self, given: Iterable[Tool] = (), longest: int = LONGEST_RESULT) -> Kit:
        """These tools, and what a program has brought, as they are run."""
        tools = {tool.spec.name: tool for tool in (*self.tools, *given)}
        personal = {tool.spec.name: tool for tool in self.personal if tool.spec.name not in tools}
        return Kit(tools, self.place, self.take_back, self.keep, longest, personal)

    @property
    def web(self) -> Http:
        """To whatever someone aims at: every address is checked."""
        return self.ways[0]

    async def leave(self, thread: str) -> None:
        """End what a conversation has left running."""
        await self.commands.stop(thread)

    async def forget(self, thread: str) -> None:
        """As `leave`; and nothing is kept of what its commands said."""
        await self.commands.forget(thread)

    async def close(self) -> None:
        await self.commands.close()
        for way in self.ways:
            await way.close()


class ToolStore(
    Log,
    Mailroom,
    Arrivals,
    Archive,
    Taints,
    FileRecords,
    Directory,
    Outgoing,
    SentAnswers,
    Memory,
    FactWords,
    CommandHomes,
    Protocol,
):
    """What tools look back at, post to and are watched by."""


def build_tools(
    home: Path,
    workspace: Path,
    settings: Settings,
    files: Files,
    bus: Bus,
    max_chars: int,
    store: ToolStore | None = None,
    commands: Sandbox | None = None,
    own: Home | None = None,
    ways: tuple["Later", ...] = (),
    channels: Mapping[str, Traits] = DOORS,
    keeper: KeepsFiles | None = None,
    quota_of: "QuotaOf | None" = None,
    bounded: Files | None = None,
    credentials: CredentialBox | None = None,
    open_channels: Mapping[str, Channel] = {},
    clock: Clock = MACHINE,
    memory_changed: MemoryChanged | None = None,
    facts: FactFinder | None = None,
    skills: SkillFolders | None = None,
    clerk: Callable[[], ScheduleClerk] | None = None,
    specs: Specs | None = None,
) -> Toolset:
    """The built-in tools, and the plugins that the settings name; without a store none of those that need one.

    `commands` is where an earlier set has left some running, `own` the home as it was at the start, `ways` those of
    another set, which closes them; `keeper` keeps what people are given, `bounded` are the files within quotas.
    Raises SettingsError, HomeError."""
    chosen = settings.tools
    own = own or Home(home)
    check_workspace(workspace, home)
    commands = commands or sandbox_of(home, settings, store)
    marks = Marks(Tainted(store, place_of(workspace), commands.ended)) if store else MARKS
    seen = Workspace(workspace, hidden=own)
    limits = CommandLimits(
        memory=chosen.exec.memory_mb << 20,
        processes=chosen.exec.processes,
        disk=chosen.exec.disk_mb << 20,
        files=chosen.exec.files,
    )
    shell = Shell(
        commands,
        CommandView(workspace, hidden=(home,), network=chosen.exec.network),
        environment(os.environ, chosen.exec.env),
        limits,
        longest=chosen.exec.timeout,
        free=chosen.exec.unsafe_without_sandbox,
        told=partial(_tell, bus),
        home=own,
        marks=marks,
        produced=ProducedFiles(seen, keeper) if keeper else None,
        skills=skills,
    )
    remembers = store and partial(_remembering, store, clock, memory_changed)
    if chosen.web.allow:
        _check_allowed(chosen.web.allow)
    web, searched = ways or (Later(lambda: _open_web(settings)), Later(lambda: _trusted(settings)))
    built_in = [
        *file_tools(seen, files, max_chars, marks, skills),
        *([load_file_tool(seen, files, store, quota_of)] if store else ()),
        *([send_file_tool(seen, keeper)] if keeper else ()),
        *exec_tools(shell),
        run_python_tool(shell),
        web_fetch_tool(web, max_chars),
        *(history_tools(store, max_chars) if store else ()),
        *(memory_tools(remembers) if remembers and settings.memory.enabled else ()),
        *([recall_tool(facts, store, max_chars)] if store and facts else ()),
        *([message_tool(store, bus.wake, seen, bounded or files, channels, open_channels)] if store else ()),
        *(sent_message_tools(store, open_channels) if store else ()),
        *([spawn_tool(profiles_of(settings.agents), plain_profile(settings.agents))] if store else ()),
        *([cron_tool(clerk, shell.risk_of_command)] if clerk else ()),
        *(finding_tools(specs) if specs else ()),
    ]
    if engine := _engine(searched, settings.tools.web.search, os.environ):
        built_in.append(web_search_tool(engine, max_chars))
    for_credentials = credential_tools(credentials, web, shell, max_chars) if credentials else ()
    there_are = frozenset({tool.spec.name for tool in built_in} | {"web_search"})  # which needs an engine
    built_in = _enabled(built_in, chosen.disabled)
    names = {tool.spec.name for tool in built_in}
    brought, slash = _plugged_in(chosen.plugins, names)
    after = (UndoFile(seen, files), FileKeeper(seen, files))
    large, place = frozenset(names - ESSENTIAL), place_of(workspace)
    enabled = tuple(tool for tool in for_credentials if not _is_disabled(tool, chosen.disabled))
    return Toolset((*built_in, *brought), large, commands, (web, searched), *after, place, there_are, enabled, slash)


def _plugged_in(plugins: Sequence[str], names: Iterable[str]) -> tuple[tuple[Tool, ...], Mapping[str, BroughtCommand]]:
    """Tools and slash commands that other packages bring. Raises SettingsError."""
    if not plugins:
        return (), {}
    from .plugins import plugged_in

    found = plugged_in(plugins, names)
    return found.tools, found.commands


def _remembering(store: "ForgettingStore", clock: Clock, changed: MemoryChanged | None = None) -> "Remembering":
    from ..memory.learning import tell_nobody
    from ..memory.remembering import Remembering
    from .redaction import redacted

    return Remembering(store, clock, redacted, changed or tell_nobody)


class Kits:
    """Everybody's tools: the owner's, and for each other person and each group the same in a workspace of their own."""

    def __init__(
        self,
        home: Path,
        workspace: Path,
        owners: Kit,
        make: Callable[[Path], Kit],
        sources: Iterable[ToolSource] = (),
        with_personal: Callable[[str, Kit], Kit] = lambda principal, kit: kit,
    ) -> None:
        """`with_personal` adds the tools for credentials to the kit of somebody who keeps any."""
        self._with_personal = with_personal
        self._home = home
        self._workspace = workspace
        self._make = make
        brought = BroughtTools(sources)
        self._brought = brought if brought.has_sources else None
        self._owners = Joined(owners)
        self._others: OrderedDict[str, Joined] = OrderedDict()

    def workspace(self, principal: str) -> Path:
        return workspace_for(principal, self._home, self._workspace)

    def of(self, principal: str) -> Kit:
        joined = self._owners if principal == OWNER else self._others.get(principal) or self._join(principal)
        kit = joined.with_tools(self._brought.tools()) if self._brought else joined.own
        return self._with_personal(principal, kit)

    def _join(self, principal: str) -> Joined:
        joined = self._others[principal] = Joined(self._make(self.workspace(principal)))
        if len(self._others) > PEOPLE:
            self._others.popitem(last=False)
        return joined


def _enabled(tools: list[Tool], disabled: Sequence[str]) -> list[Tool]:
    """Those that the owner has not left out. Raises SettingsError for a name that leaves nothing out."""
    known = [*(tool.spec.name for tool in tools), FETCH, EXEC]
    for pattern in disabled:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise SettingsError(f"tools.disabled: there is no tool {pattern!r}; see docs/tools.md for their names")
    return [tool for tool in tools if not _is_disabled(tool, disabled)]


def _is_disabled(tool: Tool, disabled: Sequence[str]) -> bool:
    return any(fnmatchcase(tool.spec.name, pattern) for pattern in disabled)


def sandbox_of(home: Path, settings: Settings, store: CommandHomes | None = None) -> Sandbox:
    """Raises SettingsError now, not at the first command, if the hosts that commands may reach are none."""
    spool, chosen, serve = home / "spool", settings.tools.exec, None
    if chosen.network:
        from ..net.proxy import Proxy

        serve = Proxy(chosen.network).serve

    def make() -> Sandbox:
        from ..tools.sandbox.choose import choose_way
        from ..tools.sandbox.commands import SandboxedCommands
        from ..tools.sandbox.elsewhere import Elsewhere
        from ..tools.sandbox.outlet import Outlet

        choose = partial(choose_way, unsafe=chosen.unsafe_without_sandbox)
        elsewhere = Elsewhere(spool, store) if store and settings.store.url else None
        return SandboxedCommands(spool, choose, elsewhere, outlet=Outlet(serve) if serve else None)

    return LaterSandbox(spool, make)


def _tell(bus: Bus, context: CallContext, text: str) -> None:
    if bus.hears(context.thread):
        bus.publish(ToolOutput(context.thread, 0, context.key, text))


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


def _check_allowed(hosts: Iterable[str]) -> None:
    """Said now, to who wrote it, and not to a model at its first page."""
    from ..net.addresses import Allowed

    try:
        Allowed(hosts)
    except SettingsError as error:
        raise SettingsError(f"tools.web.allow: {error}") from error


def _open_web(settings: Settings) -> Any:
    from ..net.open import OpenHttp

    return OpenHttp(settings.tools.web.allow, ca_file=settings.net.ca_file or None)


def _trusted(settings: Settings) -> Http:
    from ..net.trusted import TrustedHttp

    return TrustedHttp(settings.net.ca_file or None, settings.net.proxy)


def _engine(http: Http, search: Search, environ: Mapping[str, str]) -> Engine | None:
    keys = _search_keys(search, environ)
    if search.engine in keys and not keys[search.engine]:
        raise SettingsError(f"tools.web.search.engine is {search.engine}, which needs {_NEEDS[search.engine]}")
    if search.engine:
        keys = {name: key if name == search.engine else "" for name, key in keys.items()}
    chosen = choose_engine(http, searxng=keys["searxng"], brave_key=keys["brave"], tavily_key=keys["tavily"])
    if search.engine and chosen is None:
        raise SettingsError(f"tools.web.search.engine is {search.engine}, which needs the extra [web]")
    return chosen


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
