"""Texts as vectors, from hosts that speak OpenAI's way of asking for them or Gemini's. Anthropic has none."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

import msgspec
from msgspec import Struct

from ..core.prompt import Usage
from ..errors import HostFailed, ModelMissing, ProviderError
from ..ports import Embeddings, Http
from ..readings.secrets import hide_secrets
from . import dialects
from .choose import Choice
from .dialects.decoder import UNREADABLE
from .host import checked, masked, name_host, wait_before_retry

_SECONDS = 60.0
_ATTEMPTS = 3
_PATIENCE = 60.0  # seconds that a host may ask to be left alone
_LIMIT = 64_000_000  # bytes
Vectors = list[list[float]]


class _EmbeddingRow(Struct):
    embedding: list[float]
    index: int = 0


class _EmbeddingUsage(Struct):
    prompt_tokens: int | None = None


class _Rows(Struct):
    data: list[_EmbeddingRow]
    usage: _EmbeddingUsage | None = None


class _Values(Struct):
    values: list[float]


class _GeminiEmbeddingUsage(Struct, rename="camel"):
    prompt_token_count: int | None = None


class _Embeddings(Struct, rename="camel"):
    embeddings: list[_Values]
    usage_metadata: _GeminiEmbeddingUsage | None = None


_read_rows = msgspec.json.Decoder(_Rows).decode
_read_embeddings = msgspec.json.Decoder(_Embeddings).decode


class _Way(Protocol):
    def path(self, model: str) -> str: ...

    def encode(self, model: str, texts: Sequence[str]) -> dict[str, Any]: ...

    def decode(self, body: bytes) -> tuple[Vectors, int | None]:
        """The vectors, and how many tokens were read if the host says it. Raises one of UNREADABLE."""
        ...


class _OpenAI:
    """https://platform.openai.com/docs/api-reference/embeddings, which most hosts have taken over."""

    def path(self, model: str) -> str:
        return "/embeddings"

    def encode(self, model: str, texts: Sequence[str]) -> dict[str, Any]:
        return {"model": model, "input": list(texts)}

    def decode(self, body: bytes) -> tuple[Vectors, int | None]:
        rows = _read_rows(body)
        rows.data.sort(key=lambda row: row.index)
        return [row.embedding for row in rows.data], (rows.usage or _EmbeddingUsage()).prompt_tokens


class _Gemini:
    """https://ai.google.dev/api/embeddings"""

    def path(self, model: str) -> str:
        return f"/v1beta/models/{quote(model.removeprefix('models/'), safe='')}:batchEmbedContents"

    def encode(self, model: str, texts: Sequence[str]) -> dict[str, Any]:
        name = f"models/{model.removeprefix('models/')}"
        return {"requests": [{"model": name, "content": {"parts": [{"text": text}]}} for text in texts]}

    def decode(self, body: bytes) -> tuple[Vectors, int | None]:
        found = _read_embeddings(body)
        counts = found.usage_metadata or _GeminiEmbeddingUsage()
        return [each.values for each in found.embeddings], counts.prompt_token_count


_WAYS: dict[str, _Way] = {"openai_chat": _OpenAI(), "openai_responses": _OpenAI(), "gemini": _Gemini()}


class HostEmbedder:
    """The Embedder port, for a model at a host. `cost` tells the price of so much usage.

    `sleep` and `chance` (a number from 0 to 1) are parameters, so that tests need neither time nor luck.
    """

    def __init__(
        self,
        choice: Choice,
        http: Http,
        *,
        cost: Callable[[Usage], float | None] = lambda usage: None,
        login: Callable[[], Awaitable[Mapping[str, str]]] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Raises ModelMissing where there are no embeddings to be had."""
        self.name = choice.name
        if choice.host is None or choice.host.dialect not in _WAYS:
            whose = choice.host.name if choice.host else "the embedded model"
            raise ModelMissing(
                f"{whose} offers no embeddings: set agents.defaults.embedding_model to a model that does"
            )
        self._host = choice.host
        self._choice = choice
        self._http = http
        self._dialect = dialects.load(choice.host.dialect)
        self._way = _WAYS[choice.host.dialect]
        self._cost = cost
        self._login = login
        self._sleep = sleep
        self._chance = chance

    def price(self, usage: Usage) -> float | None:
        return self._cost(usage)

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """As the port promises, with as many requests as the host's own limit makes necessary."""
        vectors: Vectors = []
        counts: list[int | None] = []
        for start in range(0, len(texts), self._host.batch):
            some, tokens = await self._insist([text or " " for text in texts[start : start + self._host.batch]])
            vectors += some
            counts.append(tokens)
        usage = Usage(input=sum(count or 0 for count in counts))
        return Embeddings(vectors, self.name, usage, None if None in counts else self._cost(usage))

    async def _insist(self, texts: Sequence[str]) -> tuple[Vectors, int | None]:
        attempt = 1
        while True:
            try:
                return await self._ask(texts)
            except ProviderError as error:
                wait = wait_before_retry(error, attempt, self._chance())
                if not error.retryable or attempt >= _ATTEMPTS or wait > _PATIENCE:
                    raise
            await self._sleep(wait)
            attempt += 1

    async def _ask(self, texts: Sequence[str]) -> tuple[Vectors, int | None]:
        choice, host = self._choice, self._host.name
        url = dialects.address(choice.base, self._way.path(choice.model))
        body = msgspec.json.encode(self._way.encode(choice.model, texts))
        headers = await self._headers()
        try:
            async with self._http.request("POST", url, body=body, headers=headers, seconds=_SECONDS) as answer:
                said = masked(await answer.read(_LIMIT), choice.key)
                if answer.status != 200:
                    raise self._dialect.error_from(host, choice.model, answer.status, answer.headers, said)
                return self._read(said, len(texts))
        except ProviderError as error:
            hide_secrets(error, url, headers)
            name_host(error, host)
            raise

    async def _headers(self) -> dict[str, str]:
        headers = self._dialect.headers(self._choice.key.strip()) | dict(self._choice.headers)
        if self._login is not None:
            headers |= await self._login()
        return checked(self._host.name, {"Content-Type": "application/json", **headers})

    def _read(self, body: bytes, count: int) -> tuple[Vectors, int | None]:
        try:
            vectors, tokens = self._way.decode(body)
        except UNREADABLE as error:
            raise self._explain(f"something that is no list of vectors ({_excerpt(body)})") from error
        if len(vectors) != count or len({len(vector) for vector in vectors}) != 1:
            raise self._explain(f"{len(vectors)} vectors for {count} texts, or some of another length")
        return vectors, tokens

    def _explain(self, what: str) -> HostFailed:
        host, model = self._host.name, self._choice.model
        return HostFailed(f"{host} answered for {model} with {what}. Check the model's name and the host's address.")


def _excerpt(body: bytes) -> str:
    return body[:80].decode("utf-8", "replace").strip()
