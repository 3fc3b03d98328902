"""Hosts that never end and answers without bound: what is said of each, after how long, and what it costs to say it.

.venv/bin/python -m bench.endless          answers may take 3 s here, and signs of life alone 2 s
"""

import asyncio
import time
import zlib
from contextlib import suppress
from itertools import repeat

from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript
from everloop.errors import ProviderError
from everloop.net.trusted import TrustedHttp
from everloop.providers.dialects import openai_chat
from everloop.providers.host import HostProvider

PROMPT = Prompt("m", "Be brief.", Transcript((Message("user", said("hi")),)))
OK = b"HTTP/1.1 200 OK\r\n"
HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"
PACKED = OK + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
WORD = b'data: {"choices":[{"delta":{"content":"on and "}}]}\n\n'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def bomb() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(b": " + b"0" * 2**20 + b"\n") for _ in range(500)) + packer.flush()


TRICKLED = {
    "a head": (OK + b"X: ", b"x"),
    "heads before the head": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "trailers": (HEAD + chunk(WORD) + b"0\r\n", b"X-More: y\r\n"),
    "comments": (HEAD, chunk(b": ping\n\n")),
    "words": (HEAD, chunk(WORD)),
    "a body that is no stream": (OK + b"Content-Length: 999999999\r\n\r\n{", b" "),
}


class Host:
    """Sends the first piece, and the other so many times, or slowly and for ever."""

    def __init__(self, first: bytes, again: bytes, times: int = 0) -> None:
        self._first, self._again, self._times = first, again, times
        self.asked = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            self.asked += 1
            writer.write(self._first)
            for piece in repeat(self._again, self._times) if self._times else repeat(self._again):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0 if self._times else 0.02)
        writer.close()


async def longest_pause(stop: asyncio.Event) -> float:
    """How much work others had to wait for; not how long, which would measure this machine's other work."""
    longest, before = 0.0, time.thread_time()
    while not stop.is_set():
        await asyncio.sleep(0)
        now = time.thread_time()
        longest, before = max(longest, now - before), now
    return longest


async def show(what: str, host: Host, seconds: float = 2.0, *, watch: bool = False) -> None:
    http, stop = TrustedHttp(), asyncio.Event()
    async with await asyncio.start_server(host, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        provider = HostProvider("host", http, url, "", openai_chat, seconds=seconds, answer_seconds=seconds * 1.5)
        pause = asyncio.create_task(longest_pause(stop)) if watch else None
        began, cpu = time.perf_counter(), time.process_time()
        try:
            await provider.reply(PROMPT, lambda delta: None)
            told = "an answer"
        except ProviderError as error:
            told = str(error)
        took, cost = time.perf_counter() - began, time.process_time() - cpu
        stop.set()
        waited = f", others waited for at most {1000 * await pause:.1f} ms of work" if pause else ""
        print(f"{what}: {took:.2f} s, {cost:.3f} s CPU with the host's, {host.asked} calls{waited}\n    {told}")
        await http.close()


async def main() -> None:
    for what, pieces in TRICKLED.items():
        await show(what, Host(*pieces))
    await show("a line of 80 MB", Host(HEAD + chunk(b"data: "), chunk(b"x" * 2**16), 1280))
    await show("0.5 MB that unpack to 500 MB", Host(PACKED, chunk(bomb()), 1), 60.0, watch=True)


if __name__ == "__main__":
    asyncio.run(main())
