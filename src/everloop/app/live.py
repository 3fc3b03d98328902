"""What was built of the settings, as it is now: in every process, another takes its place when the settings change.

The settings file is looked at when a turn begins, and the vault every two seconds, beside everything else. What has
changed is built anew and put in the place of what there was; turns that run end with what they began with. Settings
that cannot be used change nothing: what was in force stays, and why is told.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from ..core.briefing import Briefing, Situation
from ..errors import EverloopError, StoreError
from ..ports.vault import MCP_LOGIN, PERSONAL
from ..ports.voice import SpeechMaker, Transcriber
from ..providers.models import ResolvedModel
from ..runtime.calls import Kit
from ..runtime.models import Model
from ..settings import Settings
from .build import Builder, Built
from .opening import OpenHome

_log = logging.getLogger("everloop.settings")

EVERY = 2.0  # seconds between two looks at the vault
KEPT = "What was in force before stays so."


class LiveHouse:
    """The Models and the Briefer port of a house whose settings change, and its tools: of what there is `now`."""

    def __init__(self, opened: OpenHome, builder: Builder, first: Built) -> None:
        self.now = first
        self.problem = ""  # why the settings as they are by now are not in force, if that is so
        self._opened = opened
        self._builder = builder
        self._wanted = opened.settings  # as they were last read, with what has to wait for the next start
        self._kept = _keys_in(first.library.kept) if first.library else {}  # as the vault was last seen
        self._alone = asyncio.Lock()

    @property
    def default(self) -> str:
        return self.now.models.default

    async def look(self, name: str) -> Model:
        return await self.now.models.look(name)

    def find(self, name: str) -> Model:
        return self.now.models.find(name)

    async def small(self) -> Model | None:
        return await self.now.models.small()

    async def small_or_usual(self) -> Model:
        """The small one, else whoever answers. Raises ModelMissing."""
        return await self.small() or self.find("")

    @property
    def wants_titles(self) -> bool:
        defaults = self.now.settings.agents.defaults
        return bool(defaults.titles and defaults.small_model and self.now.presets)

    async def title_model(self) -> ResolvedModel | None:
        """Who names conversations, if anyone is to. Raises ModelMissing."""
        return await self.now.presets.for_titles() if self.now.presets else None

    async def transcriber(self) -> Transcriber | None:
        """Who transcribes voice messages, which is done before their turn begins, if anyone. Raises ModelMissing."""
        await self._follow()
        return await self.now.presets.transcriber() if self.now.presets else None

    async def speech_maker(self) -> SpeechMaker | None:
        """Who reads answers aloud, if anyone does. Raises ModelMissing."""
        await self._follow()
        return await self.now.presets.speech_maker() if self.now.presets else None

    def names(self) -> list[str]:
        return self.now.models.names()

    def kit_of(self, principal: str) -> Kit:
        return self.now.kits.of(principal)

    async def brief(self, situation: Situation) -> Briefing:
        """A turn begins here, and so does what has changed."""
        await self._follow()
        now = self.now
        is_usual = not now.personas.named and situation.terms is None and not situation.wish.name
        return await (now.usual if is_usual else now.briefer).brief(situation)

    async def _follow(self) -> None:
        if self.now.missing or self._opened.files.is_stale(self._opened.store.running > 1):
            await self.catch_up()

    async def catch_up(self) -> None:
        """Take over what the settings say by now; where nobody can answer, look again at keys and servers, too."""
        async with self._alone:
            files = self._opened.files
            keys_moved = files.see()
            try:
                wanted = await asyncio.to_thread(self._opened.settings_now)
                if files.is_being_written():
                    wanted = self._wanted  # it is read again when the next turn begins
                changed, self._wanted = wanted != self._wanted, wanted
                files.follow(wanted)
                if changed or keys_moved or self.now.missing or self.problem:
                    await self._make()
            except StoreError:
                raise  # it is away: whoever asked waits for it
            except (EverloopError, OSError) as error:
                self._tell(error)

    async def renew(self) -> Built:
        """Look again at keys and models, as they are now: a key that is gone is used no longer, and where nobody can
        answer without it, whoever asks is told. Raises SettingsError."""
        async with self._alone:
            await self._make(waits=True)
        return self.now

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[None]:
        """Nobody else puts something in the place of what there is meanwhile."""
        async with self._alone:
            yield

    def take(self, made: Built, wanted: Settings) -> None:
        """Put this in the place of what there was; `wanted` is what the file says now. The one place where it is done:
        whoever calls it is `changing`."""
        self.now, self._wanted, self.problem = made, wanted, ""
        self._opened.files.follow(wanted)

    async def _make(self, waits: bool = False) -> None:
        before = self.now.settings
        made = await self._builder.make(taken_over(before, self._wanted), waits=waits or bool(self.now.missing))
        self.take(made, self._wanted)
        if made.settings != before:
            _log.info("the settings have changed, and are in force from the next turn on")

    def _tell(self, error: Exception) -> None:
        """Once, however many turns begin meanwhile."""
        problem = f"The settings have changed and cannot be used: {str(error).rstrip('.')}. {KEPT}"
        if problem != self.problem:
            _log.warning("%s", problem)
        self.problem = problem

    async def watch_keys(self, look_at_own: Callable[[], Awaitable[None]]) -> None:
        """For as long as the house is open: a key that another process keeps or forgets is found here, too, the
        house's and people's own."""
        while True:
            await asyncio.sleep(EVERY)
            with suppress(StoreError):  # of which the lanes tell
                await look_at_own()
                if self.now.library:
                    await self.look_at_keys()

    async def look_at_keys(self) -> None:
        """Raises StoreError."""
        before, self._kept = self._kept, _keys_in(await self._opened.vault.kept())
        if self._kept == before:
            return
        try:
            await self.renew()
        except StoreError:
            raise
        except EverloopError as error:
            self._tell(error)


def _keys_in(kept: Mapping[str, float]) -> dict[str, float]:
    """What opens providers. A login is renewed by itself, and stays the same login."""
    others = (*PERSONAL, MCP_LOGIN)
    return {name: at if name.startswith("key:") else 0.0 for name, at in kept.items() if not name.startswith(others)}


def taken_over(now: Settings, wanted: Settings) -> Settings:
    """What of the wanted settings can be in force at once; what the house is built on stays as it is."""
    defaults = replace(
        wanted.agents.defaults,
        steering=now.agents.defaults.steering,
        max_message_chars=now.agents.defaults.max_message_chars,
    )
    commands = replace(
        wanted.tools.exec,
        network=now.tools.exec.network,
        unsafe_without_sandbox=now.tools.exec.unsafe_without_sandbox,
    )
    limits = wanted.files
    files = replace(
        now.files,
        max_bytes=limits.max_bytes,
        quota=limits.quota,
        guest_quota=limits.guest_quota,
        link_seconds=limits.link_seconds,
    )
    return replace(
        now,
        files=files,
        agents=replace(now.agents, defaults=defaults),
        models=wanted.models,
        personas=wanted.personas,
        prices=wanted.prices,
        providers=replace(wanted.providers, embedded=now.providers.embedded),
        skills=wanted.skills,
        tools=replace(wanted.tools, exec=commands),
        users=wanted.users,
        memory=wanted.memory,
        voice=wanted.voice,
        speech=wanted.speech,
    )
