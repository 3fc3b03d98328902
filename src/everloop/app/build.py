"""Makes what follows from the settings, at the opening and again whenever they change: models, tools, prompts.

Where no model can be had, the house may open all the same and say what is missing.
"""

import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..core.people import OWNER, Role
from ..core.tool import ToolSpec
from ..errors import McpDown, ModelMissing, SettingsError
from ..memory.recall import Recall
from ..ports import Briefer, Bus, Channel, Clock, Http, Provider, ToolSource
from ..ports.memory import FactFinder
from ..ports.tools import Tool
from ..providers.keys import Keys
from ..providers.models import ResolvedModel
from ..providers.models import given as given_model
from ..readings.personas import Personas
from ..runtime.budgets import BudgetControl, BudgetRules
from ..runtime.calls import Kit
from ..runtime.clock import MACHINE
from ..runtime.models import Models, OneModel
from ..runtime.supervisor import Supervisor
from ..settings import Preset, Settings, unused, workspace_of
from ..settings.unused import switched_on
from ..tools.bootstrap import make_workspace
from ..tools.home import Home
from ..tools.house_prompt_files import HousePromptFiles
from ..tools.sandbox.port import Sandbox
from .briefer import HouseBriefer
from .budgets import budget_rules
from .channels import known as known_channels
from .channels import traits_in, wrong_in
from .credentials import PersonalCredentials
from .files import FileStorage
from .guest_tools import check_guest_tools
from .mcp_later import McpLater
from .memory_files import MemoryFiles
from .models import ModelLibrary, keys_of, network_of, open_models, prices_of
from .opening import OpenHome
from .personas import PersonaBriefer, missing_tools, personas_of
from .presets import HouseModels, Presets, filled, preset_model
from .prompt_files import memory_files, watched_files
from .recall import NO_EMBEDDER
from .settled import SettledSections
from .skills import HouseSkills
from .subagents import TaskBriefer
from .tools import Kits, Later, Toolset, build_tools
from .waiting_models import WaitingModels, absent, sentence_of
from .workspaces import check_workspace

if TYPE_CHECKING:
    from ..ports.mcp import McpClient
    from ..runtime.schedule_words import ScheduleWords
    from .mcp import Connects

READ_BY_SMALL = 4000  # characters of a result; the embedded model is shown less, and what was counted in all of it


class Built(Struct, frozen=True):
    """What is made of the settings. `library` and `presets` are None where one model was handed over; `missing` says
    why nobody can answer, `unused` what is set and does nothing yet. `usual` briefs where there is neither persona nor
    task."""

    settings: Settings
    model: ResolvedModel
    models: Models
    briefer: Briefer
    usual: Briefer
    toolset: Toolset
    kits: Kits
    library: ModelLibrary | None = None
    presets: Presets | None = None
    missing: str = ""
    unused: tuple[str, ...] = ()
    personas: Personas = Personas()
    budgets: BudgetRules = BudgetRules()


class ChosenModel(Struct, frozen=True):
    """Who answers when nobody else is chosen, and who can be chosen."""

    model: ResolvedModel
    models: Models
    library: ModelLibrary | None = None
    presets: Presets | None = None
    missing: str = ""


class Overrides(Struct, frozen=True):
    """What a program brings along, in the place of what the house would make."""

    provider: Provider | None = None
    http: Http | None = None
    tools: tuple[Tool | ToolSource, ...] = ()
    channels: tuple[Channel, ...] = ()
    roles: Mapping[str, Role] = {}  # of those who speak through the program
    waits: bool = False  # open also when no model can be had: one may be chosen later
    warms: bool = True  # a model that runs in this process is loaded beside everything else
    embeds: bool = True  # what is remembered; a process that answers once finds it by its words
    listens: bool = False  # at the channels that the settings name
    clock: Clock | None = None
    whose: str = OWNER  # jobs are seen to here; "" is everyone's
    in_process: Mapping[str, ResolvedModel] = {}  # embedded models, by what stands behind "embedded/"
    mcp: "Connects | None" = None  # who speaks with MCP servers


class Builder:
    """Makes what follows from the settings: at the opening, and again whenever they change."""

    def __init__(
        self,
        opened: OpenHome,
        storage: FileStorage,
        bus: Bus,
        given: Overrides,
        supervisor: Supervisor,
        stack: AsyncExitStack,
        credentials: PersonalCredentials | None = None,
        facts: FactFinder | None = None,
        connect_mcp: "Connects | None" = None,
    ) -> None:
        """Without `connect_mcp` no MCP server can be spoken with."""
        self._facts = facts or Recall(opened.store, NO_EMBEDDER)
        self._credentials = credentials
        self.vault = opened.vault
        self._home = opened.home
        self.own = Home(opened.home)  # of which nobody sees anything
        stack.callback(self.own.close)
        self._store = opened.store
        self._settings = opened.settings
        self.budgets = BudgetControl(opened.store)  # of the owner, who tries models
        self._storage = storage
        self._bus = bus
        self._given = given
        self.channels = self._traits = traits_in(given.channels)
        self.open_channels = {each.manifest.name: each for each in given.channels}  # who opens more adds them
        self._tools_given = tuple(tool for tool in given.tools if isinstance(tool, Tool))
        self._sources = tuple(source for source in given.tools if not isinstance(source, Tool))
        self.mcp = McpLater(opened.store, opened.vault, given.mcp or connect_mcp or _nobody)
        self._supervisor = supervisor
        self._stack = stack
        self._http = given.http
        self._in_process = dict(given.in_process)  # what runs in this process is loaded once
        self._first: Toolset | None = None
        self._made_kits: Kits | None = None
        self.prompt_files: HousePromptFiles | None = None  # is made with the first tools
        self.memory: MemoryFiles | None = None  # as are these
        self._last: tuple[tuple[object, ...], Toolset] | None = None
        self._settings = opened.settings
        self.skills = HouseSkills(opened.home, lambda: self.prompt_files, lambda: self._settings)
        self._settled = SettledSections((self.skills,))
        stack.push_async_callback(self._close_in_process)

    @cached_property
    def schedules(self) -> "ScheduleWords":
        """Who makes and changes what is to happen later."""
        from .schedules import schedules_in

        return schedules_in(self._store, self._bus, self._given.clock or MACHINE, lambda: self._settings)

    @property
    def settings(self) -> Settings:
        """Those of which something was made last."""
        return self._settings

    async def make(self, settings: Settings, *, waits: bool = False) -> Built:
        """Raises SettingsError and, unless it `waits` for a model to be chosen later, ModelMissing."""
        choice = await self._choose_model(settings, waits or self._given.waits)
        self._settings = settings
        longest = settings.agents.defaults.tool_result_max_chars
        results = min(longest, READ_BY_SMALL) if choice.model.compact else longest
        toolset = self._tools(settings, results)
        kits = self._made_kits = self._kits(settings, results, toolset)
        known = self._check_guests(settings, toolset)
        await self.mcp.follow(settings.tools.mcp_servers, {*known, *toolset.built_in})
        if self.prompt_files is None or self.memory is None:
            files, ended = self._storage.files, toolset.commands.ended
            self.prompt_files = watched_files(self.own, settings, self._store, files, ended)
            self.memory = memory_files(
                self._home, settings, self._store, self.prompt_files, self._given.clock or MACHINE
            )
            self._settled = SettledSections((self.skills,), revocable=(self.memory,))
            await self.prompt_files.owners.look()
        personas = personas_of(settings)
        owners = self.prompt_files.owners
        plain = HouseBriefer(settings, kits, toolset.large, owners, self.open_channels, self._settled)
        return Built(
            settings,
            choice.model,
            choice.models,
            TaskBriefer(plain, PersonaBriefer(plain, personas, self._home), settings.agents.profiles),
            plain,
            toolset,
            kits,
            library=choice.library,
            presets=choice.presets,
            missing=choice.missing,
            unused=(*self._unused(settings), *missing_tools(personas, kits.of(OWNER).tools)),
            personas=personas,
            budgets=budget_rules(settings.users.budgets),
        )

    def _unused(self, settings: Settings) -> tuple[str, ...]:
        """Of channels only where none is opened; who opens them tells more of them."""
        if self._given.listens:
            return unused(settings, switched_on(settings.channels))
        brought = {each.manifest.name for each in self._given.channels}
        wrong = [each.sentence for each in wrong_in(settings, self._home)]
        return (*wrong, *unused(settings, known_channels(settings) | brought))

    def watched(self) -> HousePromptFiles:
        """The files that stand in prompts, once the first tools are made."""
        assert self.prompt_files is not None
        return self.prompt_files

    async def memory_changed(self, owner: str) -> None:
        """The files of it follow."""
        if self.memory:
            await self.memory.changed(owner)

    async def _close_in_process(self) -> None:
        for model in self._in_process.values():
            await model.provider.close()

    def check(self, settings: Settings) -> None:
        """Raises SettingsError for what would keep the house from opening the next time."""
        from ..gateway.transport.listen import check_listen
        from ..gateway.transport.tls import tls_context

        place = settings.gateway
        check_listen(place)
        tls_context(place, self._home)
        check_settings(settings, self._home)
        try:
            make_workspace(workspace_of(settings, self._home))
        except (OSError, ValueError) as error:
            raise SettingsError(f"workspace cannot be used ({getattr(error, 'strerror', error)})") from error
        try:
            family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
            socket.create_server((place.host, 0), family=family).close()
        except (OSError, TypeError, ValueError) as error:
            why = getattr(error, "strerror", error)
            raise SettingsError(f"gateway.host: nobody can listen there ({why})") from error

    def rehearse(self, settings: Settings) -> None:
        """What `make` would follow of them, without a model and with nothing kept of it. Raises SettingsError."""
        check_settings(settings, self._home)
        toolset = self._tools(settings, settings.agents.defaults.tool_result_max_chars)
        self._check_guests(settings, toolset)
        personas_of(settings)

    def _check_guests(self, settings: Settings, toolset: Toolset) -> dict[str, ToolSpec]:
        known = {tool.spec.name: tool.spec for tool in (*toolset.tools, *self._tools_given)}
        comes_and_goes = bool(self._sources or settings.tools.mcp_servers)
        check_guest_tools(settings.users.guest_tools, known, toolset.built_in, comes_and_goes=comes_and_goes)
        return known

    async def keys(self, settings: Settings) -> Keys:
        return await keys_of(self._home, settings, self.vault)

    def _tools(self, settings: Settings, results: int) -> Toolset:
        """Commands that run in the background are those of the first set, and stay."""
        own = replace(settings.tools, mcp_servers={})  # whose tools come and go
        made_of = own, settings.agents.profiles, settings.agents.tasks, settings.memory, results
        if self._last and self._last[0] == made_of:
            return self._last[1]
        commands = self._first.commands if self._first else None
        toolset = self._toolset(settings, results, workspace_of(settings, self._home), commands)
        self._last = made_of, toolset
        if self._first is None:
            self._stack.push_async_callback(toolset.close)
            self._first = toolset
        else:
            for way in toolset.ways:
                self._stack.push_async_callback(way.close)
        return toolset

    def _kits(self, settings: Settings, results: int, owners: Toolset) -> Kits:
        def make(workspace: Path) -> Kit:
            toolset = self._toolset(settings, results, workspace, owners.commands, owners.ways)
            return toolset.kit(self._tools_given, results)

        own = owners.kit(self._tools_given, results)
        workspace, credentials = workspace_of(settings, self._home), self._credentials
        mcp = (self.mcp,) if settings.tools.mcp_servers or self.mcp.is_loaded else ()
        sources = (*self._sources, *mcp)
        if credentials is None:
            return Kits(self._home, workspace, own, make, sources)
        return Kits(self._home, workspace, own, make, sources, credentials.kit)

    def _toolset(
        self,
        settings: Settings,
        results: int,
        workspace: Path,
        commands: Sandbox | None,
        ways: tuple[Later, ...] = (),
    ) -> Toolset:
        return build_tools(
            self._home,
            workspace,
            settings,
            self._storage.files,
            self._bus,
            max_chars=results,
            store=self._store,
            commands=commands,
            own=self.own,
            ways=ways,
            channels=self._traits,
            keeper=self._storage.attachments,
            quota_of=self._storage.bounded.quota_of,
            bounded=self._storage.bounded,
            credentials=self._credentials,
            open_channels=self.open_channels,
            clock=self._given.clock or MACHINE,
            memory_changed=self.memory_changed,
            facts=self._facts,
            skills=self.skills,
            clerk=lambda: self.schedules,
            specs=self._specs,
        )

    def _specs(self, principal: str) -> dict[str, ToolSpec]:
        """All tools that there are for somebody, whatever of them prompts have room for."""
        return (
            {name: tool.spec for name, tool in self._made_kits.of(principal).tools.items()} if self._made_kits else {}
        )

    async def _choose_model(self, settings: Settings, waits: bool) -> ChosenModel:
        now = this_minute(self._given.clock or MACHINE)
        if self._given.provider is not None:
            only = given_model(self._given.provider, prices_of(settings))
            asked = filled(Preset(only.name), settings.agents.defaults)
            return ChosenModel(only, OneModel(preset_model(only, asked, now)))
        self._http = self._http or network_of(settings, self._stack)
        # Of a later one nothing is to be closed but what runs in this process.
        stack = None if self._first else self._stack
        library = await open_models(self._home, settings, self.vault, stack, self._http, self._in_process)
        presets = Presets(settings, library.models)
        try:
            model = await presets.look("")
        except ModelMissing as error:
            if not waits:
                raise
            why = sentence_of(error)
            model = absent(presets.asked("").model, why)
            return ChosenModel(model, WaitingModels(presets, now, model), library, presets, why)
        if model.warm and self._given.warms and not self._first:
            warming = self._supervisor.start("warm-up", model.warm, once=True)  # it loads while the person types
            self._stack.push_async_callback(warming.end)
        return ChosenModel(model, HouseModels(presets, now), library, presets)


def check_settings(settings: Settings, home: Path) -> None:
    """Raises SettingsError for values that each look right, and that no house could be opened with."""
    from ..net.proxy import Proxy
    from ..telemetry.target import target_of

    Proxy(settings.tools.exec.network)
    target_of(settings.telemetry.otlp_endpoint, {}, {}, "")
    if settings.store.url and not settings.store.url.startswith(("postgresql://", "postgres://")):
        raise SettingsError("store.url must begin with postgresql://, or be empty for SQLite in the home")
    try:
        check_workspace(workspace_of(settings, home), home)
    except (OSError, ValueError) as error:
        raise SettingsError(f"workspace cannot be used ({getattr(error, 'strerror', error)})") from error


def _nobody() -> "McpClient":
    raise McpDown("no MCP server is spoken with here")


def this_minute(clock: Clock) -> Callable[[], str]:
    """A clock for the prompt. Formatting a time zone costs more than a thread's fold, so it is done once a minute."""
    shown, text = -1, ""

    def now() -> str:
        nonlocal shown, text
        if (minute := int((at := clock.now()) // 60)) != shown:
            shown, text = minute, f"{datetime.fromtimestamp(at).astimezone():%A %Y-%m-%d %H:%M %Z}"
        return text

    return now
