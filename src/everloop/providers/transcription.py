"""Speech as text, from hosts that speak OpenAI's way of asking for it: OpenAI, Groq, a server of one's own.

https://platform.openai.com/docs/api-reference/audio/createTranscription
"""

from collections.abc import Callable, Mapping
from hashlib import sha256

import msgspec
from msgspec import Struct

from ..core.prompt import Usage
from ..errors import HostFailed
from ..ports import Http
from ..ports.voice import Speech
from .audio_host import AudioHost, Login
from .choose import Choice
from .dialects.decoder import UNREADABLE

_LIMIT = 2_000_000  # bytes
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
        login: Login | None = None,
    ) -> None:
        """Raises ModelMissing where nobody transcribes."""
        lacks = "transcribes nothing: set voice.model to a model of openai, groq or your own"
        self._host = AudioHost(choice, http, login, lacks=lacks)
        self.name = choice.name
        self.longest = longest
        self._model = choice.model
        self._language = language
        self._price = price

    def price(self, usage: Usage, seconds: float) -> float | None:
        return self._price.of(usage, seconds)

    async def transcribe(self, data: bytes, name: str) -> Speech:
        """What cannot be read is not asked for again: it has been paid for."""
        fields = {"model": self._model, "response_format": "json", "language": self._language}
        boundary, body = multipart({key: value for key, value in fields.items() if value}, file_name(data, name), data)
        kind = f"multipart/form-data; boundary={boundary}"
        return self._decode((await self._host.insist("/audio/transcriptions", body, kind, _LIMIT))[1])

    def _decode(self, body: bytes) -> Speech:
        try:
            told = _read(body)
        except UNREADABLE as error:
            start = body[:80].decode("utf-8", "replace").strip()
            raise HostFailed(
                f"{self._host.name} answered for {self._model} with something that is no transcript ({start}). "
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
