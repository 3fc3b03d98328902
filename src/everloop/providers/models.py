"""Every model that this house can ask, made ready when it is first wanted."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ..core.prompt import Usage
from ..errors import ModelMissing
from ..ports import Embedder, Http, Provider
from ..ports.provider import ModelLimits, Reply
from ..ports.voice import SpeechMaker, Transcriber
from . import dialects
from .catalog import HOSTS, Host
from .choose import Choice, LookNeeded, choose, explain_missing, local_hosts
from .discovery import Discovery, Headers
from .host import HostProvider
from .keys import Keys
from .limits import ANSWER_SECONDS
from .local import find_local
from .model_limits import UNKNOWN_WINDOW, limits_of
from .prices import Price, Prices
from .router import Candidate, Router

if TYPE_CHECKING:
    from .embedded import Download

_FREE = Price(0.0, 0.0)


class ResolvedModel(Struct, frozen=True):
    """A model or a chain of them that can be asked."""

    name: str  # provider/model of the first choice
    model: str  # what its host calls it
    provider: Provider
    limits: ModelLimits
    measure: Callable[[], Awaitable[ModelLimits]] | None = None  # asks the host
    local: bool = False  # a server of this machine, which may have loaded the model with a window of any size
    compact: bool = False  # a small model in this process: no tail, short results
    notice: str = ""
    warm: Callable[[], Coroutine[Any, Any, None]] | None = None  # makes it ready, which takes a while
    download: "Download | None" = None  # how its weights come to this machine
    asks: Price | None = None  # where a program has brought it along

    def price(self, usage: Usage) -> float | None:
        """What a call of this usage costs at most; None: nobody knows."""
        if isinstance(self.provider, Candidate | Router):
            return self.provider.most(usage)
        return self.asks.cost(usage) if self.asks else None

    @property
    def window(self) -> int:
        return self.limits.window or UNKNOWN_WINDOW


def given(provider: Provider, prices: Prices | None = None) -> ResolvedModel:
    """A provider that a program has brought along: how much it can read is its own affair, and what it costs is what
    the settings say."""
    asks = prices.override(provider.name, provider.name) if prices else None
    return ResolvedModel(provider.name, provider.name, provider, ModelLimits(128_000), asks=asks)


def in_process(
    provider: Provider,
    window: int,
    notice: str,
    warm: Callable[[], Coroutine[Any, Any, None]],
    download: "Download | None" = None,
) -> ResolvedModel:
    """The embedded model, which costs nothing and sees nothing."""
    candidate = Candidate(provider.name, provider.name, provider, cost=lambda reply: 0.0, sees=False)
    return ResolvedModel(
        provider.name,
        provider.name,
        candidate,
        ModelLimits(window),
        compact=True,
        notice=notice,
        warm=warm,
        download=download,
    )


class ModelResolver:
    """`embedded` makes the model that runs in this process; `logins` give the headers of hosts that are logged in to.

    `find` tells the model of a name at once; `look` may ask the servers of this machine first.
    """

    def __init__(
        self,
        http: Http,
        keys: Keys,
        prices: Prices,
        embedded: Callable[[str], ResolvedModel],
        logins: Mapping[str, Headers] = {},
        patience: float = 5.0,
    ) -> None:
        """`patience` is how many seconds a turn waits for a host to tell how much it can read."""
        self._http = http
        self._keys = keys
        self._prices = prices
        self._embedded = embedded
        self._logins = logins
        self._patience = patience
        self._choices: dict[str, Choice] = {}  # what was found on this machine
        self._resolved: dict[tuple[str, bool], ResolvedModel] = {}
        self._limits: dict[str, ModelLimits] = {}  # as far as they are known by now
        self.discovery = Discovery(http, logins=logins)

    async def look(self, name: str) -> Choice:
        """Where this model is, so that `find` knows it under this name too. Raises ModelMissing."""
        choice = self._choices.get(name) or choose(name, self._keys)
        if isinstance(choice, LookNeeded):
            found = await find_local(self._http, choice.model, local_hosts(self._keys))
            if found is None and choice.model:
                raise explain_missing(name, self._keys)
            choice = found or Choice(None, "")
        self._choices[name] = self._choices[choice.name] = choice
        return choice

    def find(self, name: str, fallbacks: Sequence[str] = ()) -> ResolvedModel:
        """Raises ModelMissing. A fallback that cannot be had is left out: it is there for bad times, not for these."""
        names = self._chain(name, fallbacks)
        models = [self._resolve(each, last=each == names[-1]) for each in names]
        candidates = [each.provider for each in models if isinstance(each.provider, Candidate)]
        return models[0] if len(candidates) < 2 else replace(models[0], provider=Router(candidates))

    async def embedder(self, name: str) -> Embedder:
        """The model of this name, for vectors. Raises ModelMissing."""
        choice = await self.look(name)

        def cost(usage: Usage) -> float | None:
            assert choice.host is not None
            return self._cost(choice.host, choice.model, usage)

        from .embeddings import HostEmbedder

        return HostEmbedder(choice, self._http, cost=cost, login=self._login_of(choice))

    async def transcriber(
        self, name: str, base: str = "", *, longest: float, language: str = "", minute_price: float | None = None
    ) -> Transcriber:
        """The model of this name, for speech; at `base`, if it is given, without a key. Raises ModelMissing."""
        from .transcription import HostTranscriber, SpeechPrice

        choice, login = await self._audio(name, base)
        price = SpeechPrice(partial(self._cost_at, choice), minute_price)
        return HostTranscriber(choice, self._http, longest=longest, language=language, price=price, login=login)

    async def speech_maker(
        self, name: str, base: str = "", *, voice: str, format: str, longest: int, million_price: float | None = None
    ) -> SpeechMaker:
        """The model of this name, to read aloud; at `base`, if it is given, without a key. Raises ModelMissing."""
        from .speech import HostSpeechMaker

        choice, login = await self._audio(name, base)
        return HostSpeechMaker(
            choice,
            self._http,
            voice=voice,
            format=format,
            longest=longest,
            cost=partial(self._cost_at, choice),
            million=million_price,
            login=login,
        )

    async def _audio(self, name: str, base: str) -> tuple[Choice, Headers | None]:
        """Where it is asked, and as whom."""
        if base:
            return Choice(HOSTS["custom"], name, base), None
        choice = await self.look(name)
        return choice, self._login_of(choice)

    def _cost_at(self, choice: Choice, usage: Usage) -> float | None:
        return self._cost(choice.host, choice.model, usage) if choice.host else None

    async def close(self) -> None:
        """Close what was made."""
        for model in self._resolved.values():
            await model.provider.close()

    def choice(self, name: str) -> Choice:
        """Where this model is asked. Raises ModelMissing."""
        choice = self._choices.get(name) or choose(name, self._keys)
        if isinstance(choice, LookNeeded):
            raise explain_missing(name, self._keys)
        return choice

    def with_key(self, choice: Choice, key: str) -> Provider:
        """The same model at the same host, asked with somebody's own key. What else the owner has set to be sent there
        is not: it may say who pays. It is nobody else's, and whoever asks for it keeps it."""
        return self._at(replace(choice, key=key, headers={}), last=True).provider

    def price(self, host: Host, model: str) -> Price | None:
        """What the host asks for the model, if that is known; a server of this machine asks nothing."""
        known = self._prices.of(host.name, model)
        if not known and host.family:
            known = self._prices.of(host.family, model)
        return known or (_FREE if host.port else None)

    def facts(self, name: str) -> tuple[ModelLimits, Price | None, bool]:
        """What is known of a model by now without asking anyone: its limits, its price, and whether it runs on this
        machine. Raises ModelMissing."""
        choice = self.choice(name)
        if choice.host is None:
            return self._resolve(name).limits, _FREE, True
        limits = self._limits.get(choice.name) or limits_of(choice)
        return limits, self.price(choice.host, choice.model), bool(choice.host.port)

    def _chain(self, name: str, fallbacks: Sequence[str]) -> list[str]:
        """The names of those that can be had; a model that has two of them is there once."""
        chain = {self._resolve(name).name: name}
        for fallback in fallbacks:
            with suppress(ModelMissing):
                chain.setdefault(self._resolve(fallback).name, fallback)
        return list(chain.values())

    def _resolve(self, name: str, last: bool = True) -> ResolvedModel:
        choice = self.choice(name)
        key = (choice.name, last or choice.host is None)  # what runs in this process is loaded once
        if key not in self._resolved:
            self._resolved[key] = self._embedded(choice.model) if choice.host is None else self._at(choice, last)
        return self._resolved[key]

    def _at(self, choice: Choice, last: bool) -> ResolvedModel:
        """The last of a chain is patient with its host; the others leave it to the next."""
        host = choice.host
        assert host is not None
        account = self._keys.accounts.get(host.name)
        provider = HostProvider(
            name=host.name,
            http=self._http,
            base=choice.base,
            key=choice.key,
            dialect=dialects.load(host.dialect),
            quirks=host.quirks,
            headers=choice.headers,
            login=self._login_of(choice),
            attempts=3 if last else 2,
            patience=60.0 if last else 2.0,
            answer_seconds=account.answer_seconds if account else ANSWER_SECONDS,
        )

        def cost(reply: Reply) -> float | None:
            return self._cost(host, choice.model, reply.usage, reply.model)

        async def measure() -> ModelLimits:
            found = await self.discovery.find(choice, self._patience)
            self._limits[choice.name] = limits_of(choice, found)
            return self._limits[choice.name]

        limits = self._limits.setdefault(choice.name, limits_of(choice))
        known = partial(self._limits.__getitem__, choice.name)
        candidate = Candidate(choice.name, choice.model, provider, cost=cost, limits=known)
        return ResolvedModel(choice.name, choice.model, candidate, limits, measure, local=bool(host.port))

    def _login_of(self, choice: Choice) -> Headers | None:
        """Raises ModelMissing where nobody is logged in and has to be."""
        host = choice.host
        if host and host.login and host.name not in self._logins:
            raise ModelMissing(f"{choice.name} needs a login: everloop models login {host.name}")
        return self._logins.get(host.name) if host else None

    def _cost(self, host: Host, model: str, usage: Usage, told: str = "") -> float | None:
        """`told` is the model that has answered: what was asked for may only say who is to choose."""
        price = self.price(host, model)
        if not price and told not in ("", model):
            price = self._prices.of(host.family or host.name, told)
        return price.cost(usage) if price else None
