"""Text as speech, from hosts that speak OpenAI's way of asking for it: OpenAI, Groq, a server of one's own.

https://platform.openai.com/docs/api-reference/audio/createSpeech
"""

from collections.abc import Callable, Mapping

import msgspec

from ..core.prompt import Usage
from ..errors import HostFailed
from ..ports import Http
from ..ports.voice import Sound
from .audio_host import AudioHost, Login
from .choose import Choice

_LIMIT = 25_000_000  # bytes: four minutes, uncompressed
_MIMES: Mapping[str, str] = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
}


class HostSpeechMaker:
    """The SpeechMaker port, for a model at a host. `cost` is what tokens cost, `million` dollars for a million
    characters, which holds where it is known."""

    def __init__(
        self,
        choice: Choice,
        http: Http,
        *,
        voice: str,
        format: str,
        longest: int,
        cost: Callable[[Usage], float | None] = lambda usage: None,
        million: float | None = None,
        login: Login | None = None,
    ) -> None:
        """Raises ModelMissing where nobody speaks."""
        lacks = "reads nothing aloud: set speech.model to a model of openai, groq or your own"
        self._host = AudioHost(choice, http, login, lacks=lacks)
        self.name = choice.name
        self.longest = longest
        self.voice = f"{voice}.{format}"
        self._asked = {"model": choice.model, "voice": voice, "response_format": format}
        self._mime = _MIMES[format]
        self._cost = cost
        self._million = million

    def price(self, usage: Usage, characters: int) -> float | None:
        return self._cost(usage) if self._million is None else self._million * characters / 1_000_000

    async def speak(self, text: str) -> Sound:
        """What is no sound is not asked for again: it may have been paid for."""
        body = msgspec.json.encode({"input": text, **self._asked})
        kind, data = await self._host.insist("/audio/speech", body, "application/json", _LIMIT)
        if not data or kind.startswith(("text/", "application/json")):
            start = data[:80].decode("utf-8", "replace").strip() or "nothing"
            raise HostFailed(
                f"{self._host.name} answered for {self._asked['model']} with something that is no sound ({start}). "
                "Check the model's name and the host's address."
            )
        return Sound(data, self._mime)
