"""A download of an embedded model that goes as far as a test lets it: from a Hugging Face of our own, behind a gate."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from everloop.core.prompt import Prompt, Usage
from everloop.errors import HostUnreachable
from everloop.ports.provider import Delta, Reply
from everloop.providers.embedded import Download, Weights
from everloop.providers.embedded.engine import Show
from everloop.providers.models import ResolvedModel, in_process

WHOLE = bytes(range(256)) * 4_000  # about a megabyte
HALF = len(WHOLE) // 2
SMALL = Weights(
    "embedded", "Tiny", "tiny.gguf", len(WHOLE), hashlib.sha256(WHOLE).hexdigest(), 4096, "o/r/tiny.gguf", parts=()
)


class GatedAnswer:
    def __init__(self, status: int, body: bytes, hub: "GatedHub") -> None:
        self.status, self.headers = status, dict[str, str]()
        self._body, self._hub = body, hub

    async def chunks(self) -> AsyncIterator[bytes]:
        """Half of the whole at once, the rest when the gate is open."""
        first = max(0, len(self._body) - HALF)
        if first:
            yield self._body[:first]
        self._hub.waiting.set()
        await self._hub.gate.wait()
        yield self._body[first:]

    async def read(self, limit: int = 1_000_000) -> bytes:
        return self._body[:limit]


class GatedHub:
    """Knows ranges; `asked` has where each request began. While it is `down` nobody reaches it."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.waiting = asyncio.Event()  # the gate is reached
        self.asked: list[int] = []
        self.down = False

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = {},
        seconds: float = 0.0,
        deadline: float | None = None,
    ) -> AsyncIterator[GatedAnswer]:
        if self.down:
            raise HostUnreachable("huggingface.co cannot be found: check its name and the network.")
        start = int(headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        self.asked.append(start)
        yield GatedAnswer(206 if start else 200, WHOLE[start:], self)

    async def close(self) -> None: ...


class TinyModel:
    """The Provider of a model that has to be fetched first, and then says what it was asked."""

    name = "embedded"

    def __init__(self, download: Download) -> None:
        self.download = download

    async def reply(self, prompt: Prompt, show: Show) -> Reply:
        await self.download.join(lambda state: show(Delta(progress=f"Tiny: {state.words}")))
        text = f"You said: {prompt.transcript.messages[-1].text}"
        show(Delta(text=text))
        return Reply(text, (), Usage(), finish="stop", model=self.name)

    async def warm(self) -> None: ...

    async def close(self) -> None:
        await self.download.leave()


def tiny(folder: Path, hub: GatedHub) -> ResolvedModel:
    model = TinyModel(Download(SMALL, folder, hub))
    return in_process(model, SMALL.window, "It is small.", model.warm, model.download)
