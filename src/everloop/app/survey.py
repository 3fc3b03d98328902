"""Which providers can be asked, and what their models can do and cost: found by asking them."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from ..errors import EverloopError, KeyRefused, ModelMissing, ProviderError, VaultLocked
from ..ports.voice import SpeechMaker, Transcriber
from ..providers import logins
from ..providers.catalog import HOSTS, Host
from ..providers.choose import Choice, host_of
from ..providers.discovery import ListedModel
from ..providers.keys import Keys, unknown_provider
from ..providers.model_limits import limits_of
from .models import ModelLibrary
from .presets import Presets

PATIENCE = 15.0  # seconds that a host has for its whole list
LOCAL_PATIENCE = 2.0  # where a server may be, but need not


class HostRow(Struct, frozen=True):
    """A provider as it was found: `key` is where its key is or how to come by one, never what it is."""

    name: str
    key: str
    state: str = "not asked"
    models: int | None = None
    why: str = ""  # a sentence, if it cannot be asked
    use: str = ""


class ModelRow(Struct, frozen=True):
    name: str
    window: int | None
    input: float | None  # dollars for a million tokens
    output: float | None
    sees: bool | None
    use: str = ""
    answer: int | None = None  # tokens that an answer can have
    tools: bool | None = None


class Use(Struct, frozen=True):
    """A model and what it is for: to answer by default, or when that cannot, small things, vectors, speech. `why` says
    what it lacks."""

    role: str
    model: str
    why: str = ""


async def find_uses(library: ModelLibrary) -> list[Use]:
    """The default first. The small model is named only where it is another, as those for embeddings,
    voice messages and reading aloud are."""
    presets = Presets(library.settings, library.models)
    asked = presets.asked("")
    spares = [await find_use(library, "fallback", presets.asked(name).model) for name in asked.fallbacks or ()]
    purposes = [("small", presets.small), ("embeddings", presets.embedding)]
    others = [await find_use(library, role, presets.asked(name).model) for role, name in purposes if name]
    heard, read = library.settings.voice.model, library.settings.speech.model
    spoken = [await _find_audio("voice", heard, presets.transcriber)] if heard else []
    aloud = [await _find_audio("speech", read, presets.speech_maker)] if read else []
    return [await find_use(library, "default", asked.model), *spares, *others, *spoken, *aloud]


async def _find_audio(role: str, name: str, find: Callable[[], Awaitable[Transcriber | SpeechMaker | None]]) -> Use:
    try:
        found = await find()
        return Use(role, found.name if found else name)
    except ModelMissing as error:
        return Use(role, name, str(error))


async def find_use(library: ModelLibrary, role: str, name: str) -> Use:
    try:
        if role == "embeddings":
            return Use(role, (await library.models.embedder(name)).name)
        return Use(role, (await library.models.look(name)).name)
    except ModelMissing as error:
        return Use(role, name, str(error))


async def find_hosts(library: ModelLibrary, uses: list[Use], everything: bool) -> list[HostRow]:
    kept = await library.vault.names()
    names = list(dict.fromkeys((*HOSTS, *library.keys.accounts)))
    rows = await asyncio.gather(*(_look_at(library, name, kept) for name in names))
    roles = {use.model.partition("/")[0]: use.role for use in reversed(uses)}
    return [replace(row, use=roles.get(row.name, "")) for row, shown in rows if shown or everything]


async def look_at_host(library: ModelLibrary, name: str, patience: float = PATIENCE) -> HostRow:
    """One provider, by a call that costs nothing."""
    return (await _look_at(library, name, await library.vault.names(), patience))[0]


async def _look_at(
    library: ModelLibrary, name: str, kept: Collection[str], most: float = PATIENCE
) -> tuple[HostRow, bool]:
    """A provider, and whether there is anything about it that the owner has configured or started."""
    host, configured = host_of(name, library.keys), name in library.keys.accounts
    if host is None:
        return HostRow(name, "none", "no address", why=f"providers.{name} has neither an address nor a key"), True
    try:
        where = where_key_is(host, library.keys, kept)
        if not where and (locked := library.keys.locked(host)):
            return HostRow(name, "vault", "vault locked", why=locked), True
        if not where:
            return HostRow(name, _how_to_get_in(host)), configured
        patience = LOCAL_PATIENCE if host.port and not configured else most
        async with asyncio.timeout(patience):
            models = await _listed(library, await _choice_at(library, host))
    except TimeoutError:
        return HostRow(name, where, "no answer", why=f"{name} has not answered in time."), configured or not host.port
    except (ProviderError, VaultLocked) as error:
        return HostRow(name, where, in_short(error), why=str(error)), configured or not host.port
    return HostRow(name, where, "reachable", len(models)), True


def where_key_is(host: Host, keys: Keys, kept: Collection[str]) -> str:
    """Nothing where a key is needed and there is none. A file that cannot be read is still the place."""
    if host.login:
        return "login" if logins.kept_as(host.name) in kept else ""
    try:
        found = keys.find(host)
    except ModelMissing:
        return "file"
    account = keys.accounts.get(host.name)
    without = "no key needed" if host.port or not host.key_variables else "none" if account and account.api_base else ""
    return found.where if found else without


def _how_to_get_in(host: Host) -> str:
    if host.login:
        return f"everloop models login {host.name}"
    return f"set {host.key_variable}" if host.base else f"set providers.{host.name}.api_base"


async def _choice_at(library: ModelLibrary, host: Host) -> Choice:
    """How this host is asked for its models. Raises ProviderError when something is missing for that."""
    choice = library.models.choice(f"{host.name}/*")
    if choice.host is None or choice.host.name != host.name:
        raise ModelMissing(f"{host.name} needs a key of its own: {_how_to_get_in(host)}")
    key = choice.key.strip()
    if not (key.isascii() and key.isprintable()):
        raise KeyRefused(f"The key of {host.name} contains characters that none can. Copy it again.")
    login = logins.load(host.name, library.http, library.vault).headers if host.login else None
    return replace(choice, key=key, headers={**choice.headers, **(await login() if login else {})})


async def _listed(library: ModelLibrary, choice: Choice) -> list[ListedModel]:
    try:
        return await library.models.discovery.models(choice)
    except ProviderError as error:
        if choice.key:  # a host may quote the request that it refuses
            error.args = (str(error).replace(choice.key, "…"),)
        raise


_IN_SHORT = {
    "key": "key refused",
    "credit": "no credit",
    "model": "lists no models",
    "rate": "asked too often",
    "request": "refused",
    "timeout": "no answer",
    "connection": "not reachable",
    "server": "failed",
    "cut": "broke off",
}


def in_short(error: EverloopError) -> str:
    match error:
        case ModelMissing():
            return "not set up"
        case ProviderError(kind=kind):
            return _IN_SHORT.get(kind, "failed")
    return "vault locked"


async def find_models(library: ModelLibrary, wanted: str, uses: list[Use]) -> list[ModelRow]:
    provider, _, pattern = wanted.partition("/")
    host = host_of(provider, library.keys)
    if host is None:
        raise unknown_provider(provider, library.settings.providers.accounts)
    presets = Presets(library.settings, library.models)
    choice = await _choice_at(library, host)
    models = await _described(library, choice)
    roles = {use.model: use.role for use in reversed(uses)}

    def row(model: ListedModel) -> ModelRow:
        name = f"{provider}/{model.name}"
        limits = limits_of(replace(choice, model=model.name), model)
        price = library.models.price(host, model.name)
        return ModelRow(
            name=name,
            window=presets.asked(name).context_window or limits.window,
            input=price.input if price else None,
            output=price.output if price else None,
            sees=model.sees,
            use=roles.get(name, ""),
            answer=limits.output,
            tools=model.tools,
        )

    fitting = [model for model in models if fnmatchcase(model.name.lower(), pattern.lower() or "*")]
    return sorted(map(row, fitting), key=lambda row: row.name)


async def _described(library: ModelLibrary, choice: Choice) -> list[ListedModel]:
    discovery, models = library.models.discovery, await _listed(library, choice)
    if not (choice.host and choice.host.port):
        return models
    # A server on this machine tells elsewhere with which window it has loaded a model.
    found = await asyncio.gather(*(discovery.find(replace(choice, model=model.name)) for model in models))
    return [better or model for better, model in zip(found, models, strict=True)]
