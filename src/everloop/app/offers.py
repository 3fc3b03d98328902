"""Which models can be chosen here, and what is known of each: presets, and whatever the connected hosts list.

A host is asked by whoever opens the list, one at a time for all of them; what it said is good for five minutes
(`Discovery`), and that it did not answer for half a minute. Each has a few seconds, and holds up no other.
"""

import asyncio
import time
from collections.abc import Callable

from msgspec import Struct

from ..errors import EverloopError, ModelMissing
from ..providers.catalog import HOSTS, Host
from ..providers.choose import host_of
from ..providers.discovery import talks
from .live import LiveHouse
from .models import ModelLibrary
from .survey import LOCAL_PATIENCE, ModelRow, find_models, in_short, where_key_is

PATIENCE = 8.0  # seconds that a host has, while somebody looks at the list
AGAIN = 30.0  # seconds after which one that did not answer is asked again


class ModelFacts(Struct, frozen=True):
    """None is not known. Prices are dollars for a million tokens; what is `local` runs here and costs nothing."""

    window: int | None = None
    answer: int | None = None
    input: float | None = None
    output: float | None = None
    local: bool = False


class OfferedHost(Struct, frozen=True):
    """`configured` says that somebody has said so; a server of this machine may also just be there, or not."""

    name: str
    configured: bool


class HostOffer(Struct, frozen=True):
    """The models of a host; else in two or three words why there are none, and `why` in a sentence."""

    models: tuple[ModelRow, ...] = ()
    state: str = ""
    why: str = ""


class ModelOffers:
    def __init__(self, live: LiveHouse, now: Callable[[], float] = time.monotonic) -> None:
        self._live = live
        self._now = now
        self._asking: dict[str, asyncio.Lock] = {}
        self._failed: dict[str, tuple[float, ModelLibrary, HostOffer]] = {}  # until when, and of which settings

    def facts(self, name: str) -> ModelFacts:
        """What is known of a model or preset without asking anyone."""
        library, presets = self._live.now.library, self._live.now.presets
        if library is None or presets is None:
            return ModelFacts()
        asked = presets.asked(name)
        try:
            limits, price, local = library.models.facts(asked.model)
        except ModelMissing:
            return ModelFacts(asked.context_window)
        window = asked.context_window or limits.window
        if price is None:
            return ModelFacts(window, limits.output, local=local)
        return ModelFacts(window, limits.output, price.input, price.output, local)

    def hosts(self) -> list[OfferedHost]:
        """Those that can be asked for their models."""
        library = self._live.now.library
        if library is None:
            return []
        names, accounts = dict.fromkeys((*HOSTS, *library.keys.accounts)), library.keys.accounts
        found = [(name, _connected(library, name)) for name in names]
        return [OfferedHost(name, name in accounts or not host.port) for name, host in found if host]

    async def of(self, name: str) -> HostOffer | None:
        """What this host offers; None if there is no such host here."""
        library = self._live.now.library
        host = _connected(library, name) if library else None
        if library is None or host is None:
            return None
        async with self._asking.setdefault(name, asyncio.Lock()):  # whoever comes meanwhile finds what was learned
            until, of, failed = self._failed.get(name, (0.0, library, HostOffer()))
            if of is library and self._now() < until:
                return failed
            offer = await _ask(library, host, name in library.keys.accounts)
            if offer.state:
                self._failed[name] = (self._now() + AGAIN, library, offer)
            return offer


def _connected(library: ModelLibrary, name: str) -> Host | None:
    host = host_of(name, library.keys)
    if host is None or not (host.base or (name in library.keys.accounts and library.keys.accounts[name].api_base)):
        return None
    return host if where_key_is(host, library.keys, library.kept) else None


async def _ask(library: ModelLibrary, host: Host, configured: bool) -> HostOffer:
    patience = LOCAL_PATIENCE if host.port and not configured else PATIENCE
    try:
        async with asyncio.timeout(patience):
            rows = await find_models(library, host.name, [])
    except TimeoutError:
        return HostOffer((), "no answer", f"{host.name} has not answered in {patience:g} s.")
    except EverloopError as error:
        return HostOffer((), in_short(error), str(error))
    return HostOffer(tuple(row for row in rows if talks(row.name)))
