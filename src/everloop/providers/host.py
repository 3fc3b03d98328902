"""A provider that speaks with one host, in the host's dialect."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping

from ..core.prompt import Prompt
from ..errors import AnswerOversized, HostHungUp, HostTimeout, KeyRefused, ProviderError, RateLimited, StreamCut
from ..ports import Http, HttpAnswer
from ..ports.provider import Delta, Reply
from ..readings.secrets import SHORTEST, hide_secrets
from .dialects import Decoder, Dialect, address
from .dialects.quirks import Quirks
from .limits import ANSWER_SECONDS, MOST_BYTES, AnswerLimits, Pulse

_PLAIN = Quirks()
_ALWAYS = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
_NONE: Mapping[str, str] = {}
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0
_WORTH_TELLING = 1.5  # seconds


class HostProvider:
    """The Provider port. `base` is the host's address without the dialect's path; `headers` are sent beside ours, and
    so are those of a `login`, asked for anew with each request because they run out. `patience` is the longest wait
    between two attempts, in seconds; after so many `seconds` a silent host is given up, and after `answer_seconds` one
    whose answer does not end, whatever it sends.

    `sleep`, `chance` (a number from 0 to 1) and `now` are parameters, so that tests need neither time nor luck.
    """

    def __init__(
        self,
        name: str,
        http: Http,
        base: str,
        key: str,
        dialect: Dialect,
        quirks: Quirks = _PLAIN,
        *,
        headers: Mapping[str, str] = _NONE,
        login: Callable[[], Awaitable[Mapping[str, str]]] | None = None,
        attempts: int = 3,
        patience: float = _LONGEST_WAIT,
        seconds: float = 120.0,
        answer_seconds: float = ANSWER_SECONDS,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._http = http
        self._base = base.rstrip("/")
        self._key = key.strip()
        self._dialect = dialect
        self._quirks = quirks
        self._headers = _ALWAYS | dialect.headers(self._key) | dict(headers)
        self._sendable = False  # the headers, as far as we know
        self._login = login
        self._urls: dict[str, str] = {}
        self._attempts = attempts
        self._patience = patience
        self._limits = AnswerLimits(name, answer_seconds, seconds)
        self._sleep = sleep
        self._chance = chance
        self._now = now

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        """As the port promises. A host that asks for more patience than we have is not waited for."""
        body = self._dialect.encode(prompt, self._quirks, self.name)
        if not self._sendable:
            self._headers, self._sendable = checked(self.name, self._headers), True
        audience = _Audience(show)
        deadline = asyncio.get_running_loop().time() + self._limits.seconds
        attempt = 1
        while True:
            try:
                return await self._ask(prompt.model, body, self._headers, audience, deadline)
            except ProviderError as error:
                if audience.has_seen and error.retryable and not isinstance(error, StreamCut):
                    raise StreamCut(str(error)) from error  # whatever it was, an answer has broken off
                wait = wait_before_retry(error, attempt, self._chance())
                if not error.retryable or audience.has_seen or attempt >= self._attempts or wait > self._patience:
                    raise
            if wait >= _WORTH_TELLING:
                show(Delta(progress=f"asking {self.name} again in {wait:.0f} s …"))
            await self._sleep(wait)
            attempt += 1

    async def close(self) -> None:
        """Nothing to close: the connections belong to the Http that was handed over."""

    async def _ask(
        self, model: str, body: bytes, headers: dict[str, str], audience: "_Audience", deadline: float
    ) -> Reply:
        if self._login is not None:
            headers = headers | dict(await self._login())
        url = self._urls.get(model) or self._urls.setdefault(model, address(self._base, self._dialect.path(model)))
        try:
            async with self._http.request(
                "POST", url, body=body, headers=headers, seconds=self._limits.silence, deadline=deadline
            ) as answer:
                if answer.status != 200:
                    raise await self._explain(model, answer)
                decoder = self._dialect.decoder(self.name, model)
                await self._listen(answer, decoder, audience)
                return decoder.reply()
        except ProviderError as error:
            self._limits.explain(error)
            hide_secrets(error, url, headers)
            name_host(error, self.name)
            raise

    async def _listen(self, answer: HttpAnswer, decoder: Decoder, audience: "_Audience") -> None:
        left, show = MOST_BYTES, audience.tell
        pulse: Pulse | None = None
        try:
            async for data in answer.chunks():
                left -= len(data)
                delta = decoder.feed(data)
                if delta is not None:
                    audience.has_seen = True
                    show(delta)
                else:
                    pulse = pulse or Pulse(self._limits, self._now)
                    pulse.feel(decoder.heard, decoder.complete)
                if decoder.done:
                    break
                if left < 0:
                    raise AnswerOversized(f"an answer of more than {MOST_BYTES >> 20} MiB")
        except (StreamCut, HostTimeout):
            # Some hosts end a complete answer by hanging up, or by not hanging up.
            if not decoder.complete:
                raise
        if last := decoder.feed(b""):
            audience.has_seen = True
            show(last)

    async def _explain(self, model: str, answer: HttpAnswer) -> ProviderError:
        body = masked(await answer.read(100_000), self._key)
        return self._dialect.error_from(self.name, model, answer.status, answer.headers, body)


def checked(host: str, headers: dict[str, str]) -> dict[str, str]:
    """The headers, if they can be sent as they are. Raises KeyRefused."""
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise KeyRefused(f"The key or a header for {host} has characters that cannot be sent. Copy it again.")
    return headers


def name_host(error: ProviderError, host: str) -> None:
    """The network knows addresses, people know providers."""
    if host not in str(error):
        error.args = (f"{host}: {error}",)


def masked(body: bytes, key: str) -> bytes:
    """What a host says, without the key that some repeat. A short one is a word for a server that wants none ("x"),
    and would be taken out of the names of what the server tells."""
    secret = key.strip()
    return body.replace(secret.encode(), b"***") if len(secret) >= SHORTEST else body


class _Audience:
    """Who is shown an answer, and whether anything was shown."""

    __slots__ = ("has_seen", "tell")

    def __init__(self, tell: Callable[[Delta], None]) -> None:
        self.tell = tell
        self.has_seen = False


def wait_before_retry(error: ProviderError, attempt: int, chance: float) -> float:
    """Seconds, after so many attempts; `chance` is a number from 0 to 1, so that not all come back at once."""
    if isinstance(error, RateLimited) and error.retry_after is not None:
        return error.retry_after
    if isinstance(error, HostHungUp) and attempt == 1:
        return 0.0  # it has closed a connection that it had promised to keep: a new one is likely to do
    return _FIRST_WAIT * 2.0 ** (attempt - 1) * (0.5 + chance)
