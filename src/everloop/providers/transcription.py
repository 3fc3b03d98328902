"""Speech as text, from hosts that speak OpenAI's way of asking for it: OpenAI, Groq, a server of one's own.

https://platform.openai.com/docs/api-reference/audio/createTranscription
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256

import msgspec
from msgspec import Struct

from ..core.prompt import Usage
from ..errors import HostFailed, ModelMissing, ProviderError
from ..ports import Http
from ..ports.voice import Speech
from ..readings.secrets import hide_secrets
from . import dialects
from .choose import Choice
from .dialects.decoder import UNREADABLE
from .host import checked, masked, name_host, wait_before_retry

_SECONDS = 60.0
_ATTEMPTS = 2
_PATIENCE = 10.0  # seconds that a host may ask to be left alone
_LIMIT = 2_000_000  # bytes
_WAYS = ("openai_chat", "openai_responses")
# By what a file begins with: hosts go by the ending of its name.
_ENDINGS = ((b"OggS", "ogg"), (b"RIFF", "wav"), (b"fLaC", "flac"), (b"\x1a\x45\xdf\xa3", "webm"), (b"ID3", "mp3"))


class SpeechPrice(Struct, frozen=True):
    """`of_tokens` is the price of what a host counts in tokens; `minute` are dollars, None where they are not known."""

    of_tokens: Callable[[Usage], float | None] = lambda usage: None
    minute: float | None = None

    def of(self, usage: Usage, seconds: float) -> float | None:
        if self.minute is not None:
            return self.minute * seconds / 60
        return self.of_tokens(usage) if usage.input or usage.output else None


class _SpeechUsage(Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class _SpeechAnswer(Struct):
    text: str
    duration: float | None = None
    usage: _SpeechUsage | None = None


_read = msgspec.json.Decoder(_SpeechAnswer).decode


class HostTranscriber:
    """The Transcriber port, for a model at a host."""

    def __init__(
        self,
        choice: Choice,
        http: Http,
        *,
        longest: float,
        language: str = "",
        price: SpeechPrice,
        login: Callable[[], Awaitable[Mapping[str, str]]] | None = None,
    ) -> None:
        """Raises ModelMissing where nobody transcribes."""
        if choice.host is None or choice.host.dialect not in _WAYS:
            whose = choice.host.name if choice.host else "the embedded model"
            raise ModelMissing(f"{whose} transcribes nothing: set voice.model to a model of openai, groq or your own")
        self.name = choice.name
        self.longest = longest
        self._host = choice.host
        self._choice = choice
        self._http = http
        self._language = language
        self._price = price
        self._login = login
        self._dialect = dialects.load(choice.host.dialect)

    def price(self, usage: Usage, seconds: float) -> float | None:
        return self._price.of(usage, seconds)

    async def transcribe(self, data: bytes, name: str) -> Speech:
        """What cannot be read is not asked for again: it has been paid for."""
        return self._decode(await self._insist(data, name))

    async def _insist(self, data: bytes, name: str) -> bytes:
        attempt = 1
        while True:
            try:
                return await self._ask(data, name)
            except ProviderError as error:
                wait = wait_before_retry(error, attempt, 0.5)
                if not error.retryable or attempt >= _ATTEMPTS or wait > _PATIENCE:
                    raise
            await asyncio.sleep(wait)
            attempt += 1

    async def _ask(self, data: bytes, name: str) -> bytes:
        choice, host = self._choice, self._host.name
        fields = {"model": choice.model, "response_format": "json", "language": self._language}
        boundary, body = multipart({key: value for key, value in fields.items() if value}, file_name(data, name), data)
        url = dialects.address(choice.base, "/audio/transcriptions")
        headers = await self._headers(boundary)
        try:
            async with self._http.request("POST", url, body=body, headers=headers, seconds=_SECONDS) as answer:
                said = masked(await answer.read(_LIMIT), choice.key)
                if answer.status != 200:
                    raise self._dialect.error_from(host, choice.model, answer.status, answer.headers, said)
                return said
        except ProviderError as error:
            hide_secrets(error, url, headers)
            name_host(error, host)
            raise

    async def _headers(self, boundary: str) -> dict[str, str]:
        headers = self._dialect.headers(self._choice.key.strip()) | dict(self._choice.headers)
        if self._login is not None:
            headers |= await self._login()
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return checked(self._host.name, {**headers, **kind})

    def _decode(self, body: bytes) -> Speech:
        try:
            told = _read(body)
        except UNREADABLE as error:
            start = body[:80].decode("utf-8", "replace").strip()
            raise HostFailed(
                f"{self._host.name} answered for {self._choice.model} with something that is no transcript ({start}). "
                "Check the model's name and the host's address."
            ) from error
        used = told.usage or _SpeechUsage()
        usage = Usage(max(0, used.input_tokens), max(0, used.output_tokens))
        return Speech(told.text.strip(), usage, max(0.0, used.seconds, told.duration or 0.0))


def file_name(data: bytes, name: str) -> str:
    """A name whose ending says what it is; nothing else of the sender's own is told to the host."""
    for head, ending in _ENDINGS:
        if data.startswith(head):
            return f"voice.{ending}"
    if data[4:8] == b"ftyp":
        return "voice.m4a"
    ending = name.rpartition(".")[2].lower()
    return f"voice.{ending}" if ending in ("mp3", "mp4", "mpeg", "mpga", "m4a", "aac", "amr") else "voice.mp3"


def multipart(fields: Mapping[str, str], name: str, data: bytes) -> tuple[str, bytes]:
    """The boundary and the body (RFC 7578). A hash of the data does not occur in it."""
    boundary = sha256(data).hexdigest()
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
        for key, value in fields.items()
    ]
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return boundary, b"".join([*parts, head.encode(), data, f"\r\n--{boundary}--\r\n".encode()])
