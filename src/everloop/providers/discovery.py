"""Asking hosts which models they have, and how much each can read. Hosts tell it in many shapes; all are read here.

What was learned is good for five minutes, and for longer when the host cannot be asked again.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import HostFailed, HostTimeout, ProviderError
from ..ports import Http
from ..readings.secrets import hide_secrets
from . import dialects
from .catalog import HOSTS
from .choose import Choice
from .host import checked, masked

_FRESH = 300.0  # seconds
_SECONDS = 10.0
Headers = Callable[[], Awaitable[Mapping[str, str]]]
_NO_LOGINS: Mapping[str, Headers] = {}
_LIMIT = 20_000_000  # bytes: OpenRouter's list is long
_T = TypeVar("_T")


# Where servers on this machine tell with which window a model is loaded.
_LOADED = {"ollama": "/api/ps", "lmstudio": "/api/v0/models", "llamacpp": "/props"}
_SPEECHLESS = re.compile(
    r"embed|whisper|tts|moderation|dall-e|rerank|transcri|(?:^|[/-])(?:image|sora|veo|imagen)\b", re.IGNORECASE
)
_NUM_CTX = re.compile(r"^num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)


class ListedModel(Struct, frozen=True):
    """A model as its host describes it. None means that the host does not say."""

    name: str
    window: int | None = None
    sees: bool | None = None
    output: int | None = None  # tokens of an answer
    tools: bool | None = None


def talks(name: str) -> bool:
    """Whether a model of this name does, as far as the name tells: hosts also list what makes vectors and pictures."""
    return not _SPEECHLESS.search(name)


class _ShownModel(Struct):
    """What Ollama says of one model: its parameters are lines of a name and a value."""

    parameters: str = ""


class Discovery:
    """`logins` give the headers of hosts that are logged in to."""

    def __init__(
        self, http: Http, now: Callable[[], float] = time.monotonic, logins: Mapping[str, Headers] = _NO_LOGINS
    ) -> None:
        self._http = http
        self._now = now
        self._logins = logins
        self._known: dict[tuple[str, str], tuple[float, list[ListedModel]]] = {}  # by address and key

    async def models(self, choice: Choice, seconds: float = _SECONDS) -> list[ListedModel]:
        """The models of the choice's host. Raises ProviderError when it cannot be asked and never could."""
        known = self._known.get((choice.base, choice.key))
        if known and self._now() - known[0] < _FRESH:
            return known[1]
        try:
            models = await _within(seconds, choice, self._ask(choice))
        except ProviderError:
            if known:
                return known[1]
            raise
        self._known[choice.base, choice.key] = (self._now(), models)
        return models

    async def find(self, choice: Choice, seconds: float = _SECONDS) -> ListedModel | None:
        """What the host says of this model; None when it says nothing. Raises ProviderError when it may later."""
        try:
            models = await self.models(choice, seconds)
        except ProviderError as error:
            if error.retryable:
                raise
            return None
        found = next((model for model in models if model.name == choice.model), None)
        if (found is None or not found.window) and (servers := _servers_at(choice)):
            loaded = await _within(seconds, choice, self._loaded_at(choice, servers))
            return replace(found or ListedModel(choice.model), window=loaded) if loaded or found else None
        return found

    async def _loaded_at(self, choice: Choice, servers: Sequence[str]) -> int | None:
        """As the first of these servers says that it is."""
        said = await asyncio.gather(*(self._loaded(choice, _LOADED[name]) for name in servers))
        told = next((window for window in said if window), None)
        return told if told or "ollama" not in servers else await self._shown(choice)

    async def _shown(self, choice: Choice) -> int | None:
        """With which window Ollama will load a model, where the model itself says that."""
        url, body = choice.base.removesuffix("/v1") + "/api/show", msgspec.json.encode({"model": choice.model})
        headers = {**await self._headers(choice), "Content-Type": "application/json"}
        try:
            async with self._http.request("POST", url, body=body, headers=headers, seconds=_SECONDS) as answer:
                told = msgspec.json.decode(await answer.read(), type=_ShownModel)
        except (ProviderError, msgspec.DecodeError):
            return None
        found = _NUM_CTX.search(told.parameters)
        return int(found[1]) if found else None

    async def _loaded(self, choice: Choice, path: str) -> int | None:
        """The window with which a local server has loaded a model, which may be far less than the model could."""
        url = choice.base.removesuffix("/v1") + path
        try:
            headers = await self._headers(choice)
            async with self._http.request("GET", url, headers=headers, seconds=_SECONDS) as answer:
                body = await answer.read()
            models = list(read_models(choice.name, body))
        except ProviderError:
            return None
        return next((model.window for model in models if model.name in (choice.model, "")), None)

    async def _ask(self, choice: Choice) -> list[ListedModel]:
        assert choice.host is not None, "the embedded model is not discovered"
        dialect = dialects.load(choice.host.dialect)
        url = dialects.address(choice.base, dialect.LISTING)
        headers = await self._headers(choice)
        async with self._http.request("GET", url, headers=headers, seconds=_SECONDS) as answer:
            body = masked(await answer.read(_LIMIT), choice.key)
            if answer.status != 200:
                error = dialect.error_from(choice.host.name, "its list of models", answer.status, answer.headers, body)
                hide_secrets(error, url, headers)
                raise error
        return list(read_models(choice.host.name, body))

    async def _headers(self, choice: Choice) -> dict[str, str]:
        assert choice.host is not None
        headers = dialects.load(choice.host.dialect).headers(choice.key.strip()) | dict(choice.headers)
        if login := self._logins.get(choice.host.name):
            headers |= await login()
        return checked(choice.host.name, headers)


def _servers_at(choice: Choice) -> Sequence[str]:
    """Which servers may answer there that tell apart from their list how much they can read: any of them, where the
    address is the owner's own and nothing says whose program listens."""
    host = choice.host
    if host is None or host.name in _LOADED:
        return [host.name] if host else []
    return list(_LOADED) if not host.family and (host.name == "custom" or host.name not in HOSTS) else []


async def _within(seconds: float, choice: Choice, asking: Coroutine[Any, Any, _T]) -> _T:
    """A host may also answer byte by byte: this is how long it is listened to in all."""
    try:
        async with asyncio.timeout(seconds):
            return await asking
    except TimeoutError as error:
        raise HostTimeout(f"{choice.name}: its host does not say in {seconds:g} s what models it has.") from error


def read_models(host: str, body: bytes) -> Iterator[ListedModel]:
    """Raises HostFailed when the body is no list of models in any known shape."""
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise HostFailed(f"{host} answers with something that is no list of models.") from error
    match found:
        case {"data": rows} | {"models": rows}:
            pass
        case {"default_generation_settings": settings}:  # llama.cpp has one model, without a name
            rows = [{**settings, "id": ""}]  # its own id is the number of a slot
        case _:
            rows = found
    if not isinstance(rows, list):
        raise HostFailed(f"{host} answers with something that is no list of models.")
    for row in rows:
        name = (
            next((row[key] for key in ("id", "model", "name") if key in row), None) if isinstance(row, dict) else None
        )
        if isinstance(name, str):
            yield ListedModel(name.removeprefix("models/"), _window(row), _sees(row), _output(row), _tools(row))


_WINDOWS = (
    "loaded_context_length", "context_length", "context_window", "max_context_length", "max_model_len",
    "inputTokenLimit", "max_input_tokens", "context_size", "n_ctx",
)  # fmt: skip


# Anthropic calls it max_tokens, as a request does.
_OUTPUTS = ("max_completion_tokens", "outputTokenLimit", "max_output_tokens", "max_output_length", "max_tokens")


def _window(row: dict[str, Any]) -> int | None:
    return _size(row, _WINDOWS)


def _output(row: dict[str, Any]) -> int | None:
    return _size(row, _OUTPUTS)


def _size(row: dict[str, Any], names: Sequence[str]) -> int | None:
    """What it is called differs, and so does where it stands: beside the name, or a level below."""
    capabilities = row.get("capabilities")
    limits = capabilities.get("limits") if isinstance(capabilities, dict) else None
    places: list[Any] = [row, row.get("meta"), row.get("limits"), row.get("top_provider"), limits]
    sizes: Iterator[Any] = (place.get(key) for place in places if isinstance(place, dict) for key in names)
    return next((int(size) for size in sizes if _is_size(size)), None)


def _is_size(said: Any) -> bool:
    """Some say 0 or -1 for what they do not know, and JSON has numbers that no host can mean."""
    return isinstance(said, int | float) and not isinstance(said, bool) and 1 <= said <= 2**40


def _sees(row: dict[str, Any]) -> bool | None:
    match row:
        case {"architecture": {"input_modalities": list(kinds)}} | {"input_modalities": list(kinds)}:
            return "image" in kinds
        case {"capabilities": {"vision": bool(sees)}}:
            return sees
        case {"capabilities": list(abilities)}:
            return "vision" in abilities or "image" in abilities
    return None


def _tools(row: dict[str, Any]) -> bool | None:
    match row:
        case {"supported_parameters": list(parameters)}:
            return "tools" in parameters
        case {"capabilities": {"function_calling": bool(calls)}} | {
            "capabilities": {"supports": {"tool_calls": bool(calls)}}
        }:
            return calls
        case {"capabilities": list(abilities)}:
            return "tools" in abilities or "tool_use" in abilities
    return None
