"""The channels that the settings name, as they are now: another is opened in the place of one whose settings, or whose
secrets, have changed; one that cannot be opened is told, and keeps nothing else from listening.

The settings file and the vault are looked at every two seconds, and at once when something was changed here.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..errors import SettingsError, StoreError
from ..ports import Channel, Http
from ..ports.backup import RestoredCopy
from ..ports.policy import ChannelPolicy
from ..runtime.policy import AdmitByPolicy
from ..settings import Settings
from ..settings.unused import switched_on
from .channels import Unopened, expanded, opened, placed, secrets_named, without_secrets_of
from .listening import unopened_lease_of
from .open_channels import OpenChannels
from .opening import OpenHome
from .policies import policy_of
from .secrets import kept_secrets
from .settings_files import SettingsFiles

_log = logging.getLogger("everloop.channels")

A_COPY = (
    "this home is restored from a backup, and nobody listens or speaks here while the original may do so. If this "
    "is the one that goes on, say: everloop backup adopt"
)
EVERY = 2.0  # seconds between two looks
AGAIN = 15  # looks after which what cannot be opened is tried again: the vault may have been unlocked


class Wanted(Struct, frozen=True):
    """What a channel is opened with: its own settings, looked up, and what holds for every channel."""

    values: Mapping[str, Any]
    policy: ChannelPolicy


class ConfiguredChannels:
    """`unopened` are those that are set and do not listen here."""

    def __init__(
        self,
        home: OpenHome,
        channels: OpenChannels,
        http: Callable[[], Http],
        admission: Callable[[Channel, ChannelPolicy], AdmitByPolicy],
        brought: frozenset[str] = frozenset(),
    ) -> None:
        """`brought` are the names of those that a program has opened itself."""
        self._home = home
        self._channels = channels
        self._http = http
        self._admission = admission
        self._brought = brought
        self._files = SettingsFiles(home.home)
        self._settings = home.settings
        self._values: dict[str, Wanted] = {}  # those that are open, and what they were opened with
        self._tried: dict[str, Wanted | Unopened] = {}  # those that are not, and what was tried
        self._kept: dict[str, float] = {}  # the secrets that they refer to, and when each was kept
        self._problem = ""
        self._copy: RestoredCopy | None = None  # of which backup this is a copy that nobody has adopted
        self._is_due = False
        self._alone = asyncio.Lock()
        self.unopened: dict[str, Unopened] = {}

    @property
    def names(self) -> list[str]:
        """Of those that are open."""
        return [*self._brought, *self._values]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open what can be opened; what changes later is seen to by `watch`."""
        self._kept = await self._secrets()
        self._copy = await self._home.store.restored()
        await self._follow()
        try:
            yield
        finally:
            for name in [*self.unopened]:
                await self._forget_unopened(name)

    async def watch(self) -> None:
        """`run` it under a supervisor."""
        for look in count(1):
            await self._tell_unopened()
            await asyncio.sleep(EVERY)
            again = self._is_due or (self.unopened and look % AGAIN == 0)
            if self._copy and await self._is_adopted():
                again = True
            if again or self._files.is_stale() or self._kept != await self._secrets():
                await self.follow()

    async def follow(self, *, surely: bool = False) -> None:
        """Take over what the settings and the vault say by now. What cannot be read changes nothing, nor does half of a
        file; `surely`: we have written it ourselves."""
        async with self._alone:
            self._is_due = True  # until it is done: the store may be away
            self._files.see()
            try:
                wanted = await asyncio.to_thread(self._home.settings_now)
            except (SettingsError, OSError) as error:
                self._complain(f"the channels stay as they were: {error}")
                self._is_due = False  # it is looked at again when the file is another
                return
            if self._files.is_being_written() and not surely:
                return  # it is looked at again
            self._problem, self._settings = "", wanted
            self._kept = await self._secrets()
            await self._follow()
            self._is_due = False
        await self._tell_unopened()

    async def _is_adopted(self) -> bool:
        """Whether what was a copy is the one that goes on, since the last look. A store that is away says nothing."""
        try:
            self._copy = await self._home.store.restored()
        except StoreError as error:
            self._complain(f"it cannot be seen whether this copy was adopted: {error}")
        return self._copy is None

    async def _secrets(self) -> dict[str, float]:
        """Raises StoreError."""
        named = secrets_named(self._settings)
        kept = await kept_secrets(self._home.vault) if named else {}
        return {name: at for name, at in kept.items() if name in named}

    async def _follow(self) -> None:
        settings = self._settings
        wanted = {name: await self._expanded(settings, name) for name in switched_on(settings.channels)}
        for name in [name for name in self._values if wanted.get(name) != self._values[name]]:
            await self._channels.end(name)
            del self._values[name]
            if name not in wanted:
                self._channels.unhook(name)
                _log.info("the channel %s is set no longer, and was left", name)
        for name in [name for name in self.unopened if name not in wanted]:
            self._channels.unhook(name)
            await self._forget_unopened(name)
        for name, values in wanted.items():
            if name not in self._values and self._tried.get(name) != values:
                await self._open(name, values, settings)

    async def _expanded(self, settings: Settings, name: str) -> Wanted | Unopened:
        if self._copy:
            return Unopened(name, A_COPY, is_there=False)
        values = await expanded(settings, name, self._home.vault)
        return values if isinstance(values, Unopened) else Wanted(values, policy_of(settings, name))

    async def _open(self, name: str, values: Wanted | Unopened, settings: Settings) -> None:
        self._tried[name] = values
        found = values if isinstance(values, Unopened) else self._start(name, values)
        if found is None:
            await self._forget_unopened(name)
            _log.info("the channel %s is open", name)
            return
        self._channels.unhook(name)
        if found.is_there or self._copy:
            self._channels.put_off(name)
        if found.is_there:
            found = replace(found, why=placed(settings, self._home.home, name, found.why))
        self.unopened[name] = found
        _log.warning("%s", found.sentence)

    def _start(self, name: str, wanted: Wanted) -> Unopened | None:
        """Unless it can be started, why."""
        if name in self._brought:
            return Unopened(name, f"channels.{name}: the program that runs here has opened one of this name itself")
        try:
            channel = opened(name, wanted.values, self._http(), self._home.state_of)
            hide = partial(without_secrets_of, wanted.values)
            self._channels.start(channel, self._admission(channel, wanted.policy), hide)
        except SettingsError as error:
            return Unopened(name, str(error))
        except Exception as error:  # the border to the channel, which is asked for its web hooks
            why = without_secrets_of(wanted.values, " ".join(f"{type(error).__name__}: {error}".split()))
            return Unopened(name, f"channels.{name} cannot be opened ({why})")
        self._values[name] = wanted
        return None

    async def _forget_unopened(self, name: str) -> None:
        self._tried.pop(name, None)
        if self.unopened.pop(name, None):
            try:
                await self._home.store.let_go(unopened_lease_of(name))
            except StoreError as error:
                _log.warning("the lease %s is left to run out: %s", unopened_lease_of(name), error)

    async def _tell_unopened(self) -> None:
        """Others are told for as long as it is so: by a lease, which nobody holds after a crash."""
        store = self._home.store
        for name, found in [*self.unopened.items()]:
            lease = unopened_lease_of(name)
            try:
                if await store.hold(lease, self._settings.store.lease_seconds, in_copy=True):
                    told = (await store.listening()).get(lease)
                    if told is None or (told.state, told.why) != ("wrong", found.why):
                        await store.keep_listening(lease, "wrong", found.why)
            except StoreError as error:
                self._complain(f"it cannot be kept which channels do not listen: {error}")

    def _complain(self, problem: str) -> None:
        """Once, however often it is found."""
        if problem != self._problem:
            _log.warning("%s", problem)
        self._problem = problem
