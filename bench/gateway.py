"""The gateway beside a bare server: many WebSocket clients that stream at once, and one after the other through each
door. Called by run.py.

    python bench/gateway.py floor BASE                    a bare aiohttp server; prints `ready URL`
    python bench/gateway.py clients URL TOKEN COUNT [N]   the clients, N rounds; prints a JSON object
    python bench/gateway.py one URL TOKEN DOOR COUNT      one client, /v1 or /ws, turn after turn; prints the same

The floor does what any server has to do that passes a model's answer on: it reads the stream, and sends each piece as
the frame that everloop sends. It knows nobody, stores nothing, and cannot resume.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web

ROUNDS = 2
CHUNK = ('{"type": "stream_chunk"', '{"type":"stream_chunk"')
RESPONSE = ('{"type": "response"', '{"type":"response"')


class Relay:
    """One model behind a WebSocket."""

    def __init__(self, base: str) -> None:
        self._url = f"{base}/chat/completions"
        self._model: aiohttp.ClientSession

    async def open(self, app: web.Application) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as self._model:
            yield

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        wire = web.WebSocketResponse(compress=False)
        await wire.prepare(request)
        history: list[dict[str, str]] = [{"role": "system", "content": "You are helpful."}]
        async for message in wire:
            await self._answer(wire, json.loads(message.data), history)
        return wire

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """The same over /v1/chat/completions: what comes is passed on as it is."""
        asked = await request.json()
        told = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await told.prepare(request)
        body = {"model": "m", "stream": True, "messages": asked["messages"]}
        async with self._model.post(self._url, json=body) as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    await told.write(line + b"\n")
        return told

    async def _answer(self, wire: web.WebSocketResponse, asked: Any, history: list[dict[str, str]]) -> None:
        thread = {"session": asked["session"], "thread": "0123456789abcdef0123456789abcdef", "seq": len(history)}
        mine = {"id": asked["id"], "msg": f"{thread['thread']}:{len(history)}"}
        history.append({"role": "user", "content": asked["content"]})
        await wire.send_str(json.dumps({"type": "ack", **thread, "id": asked["id"]}))
        await wire.send_str(json.dumps({"type": "stream_start", **thread, **mine}))
        text, n = "", 0
        async with self._model.post(self._url, json={"model": "m", "stream": True, "messages": history}) as response:
            async for line in response.content:
                if not line.startswith(b"data: {"):
                    continue
                for choice in json.loads(line[6:])["choices"]:
                    if piece := choice["delta"].get("content"):
                        text, n = text + piece, n + 1
                        told = {**thread, **mine, "n": n, "delta": piece, "reasoning": ""}
                        await wire.send_str(json.dumps({"type": "stream_chunk", **told}))
        history.append({"role": "assistant", "content": text})
        await wire.send_str(json.dumps({"type": "stream_end", **thread, **mine, "kept": True}))
        await wire.send_str(json.dumps({"type": "response", **thread, "id": asked["id"], "content": text, "files": []}))


async def floor(base: str) -> None:
    relay = Relay(base)
    app = web.Application()
    app.cleanup_ctx.append(relay.open)
    app.add_routes([web.get("/ws", relay.serve), web.post("/v1/chat/completions", relay.complete)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(f"ready http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


class Crowd:
    """Clients that all speak at once, once a round; what they count is what came to them."""

    def __init__(self, url: str, token: str, count: int, rounds: int = ROUNDS) -> None:
        self._url, self._count, self._rounds = url, count, rounds
        self._headers = {"Authorization": f"Bearer {token}"}
        self._wires: list[aiohttp.ClientWebSocketResponse] = []
        self.times: list[float] = []
        self.chunks = 0

    async def run(self) -> dict[str, float]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(headers=self._headers, connector=connector) as client:
            for _ in range(self._count):
                self._wires.append(await client.ws_connect(f"{self._url}/ws"))
            await self._round("warm")
            self.times.clear()
            self.chunks = 0
            print("begin", flush=True)  # whoever measures looks at the clocks now
            sys.stdin.readline()
            began = time.perf_counter()
            for n in range(self._rounds):
                await self._round(str(n))
            wall = time.perf_counter() - began
            print("end", flush=True)
            sys.stdin.readline()
        self.times.sort()
        turns = len(self.times)
        told = {"turns": turns, "turns_per_second": turns / wall, "chunks": self.chunks / turns}
        return told | {"p50": self.times[turns // 2], "p99": self.times[int(turns * 0.99)]}

    async def _round(self, name: str) -> None:
        await asyncio.gather(*(self._say(wire, n, name) for n, wire in enumerate(self._wires)))

    async def _say(self, wire: aiohttp.ClientWebSocketResponse, n: int, name: str) -> None:
        began = time.perf_counter()
        said = {"type": "message", "id": name, "session": f"api:b{n}", "content": "Tell me something."}
        await wire.send_str(json.dumps(said))
        while True:
            text = await wire.receive_str(timeout=120)
            if text.startswith(CHUNK):
                self.chunks += 1
            elif text.startswith(RESPONSE):
                break
            elif text.startswith('{"type":"error"'):
                raise SystemExit(text)
        self.times.append(time.perf_counter() - began)


class Alone:
    """One client that says one thing after the other, through one door, in conversations of ten turns."""

    def __init__(self, url: str, token: str, door: str, count: int) -> None:
        self._url, self._door, self._count = url, door, count
        self._headers = {"Authorization": f"Bearer {token}"}

    async def run(self) -> dict[str, float]:
        async with aiohttp.ClientSession(headers=self._headers) as client:
            speak = self._complete if self._door == "v1" else self._say
            async with client.ws_connect(f"{self._url}/ws") as wire:
                for n in range(-20, self._count):
                    if n == 0:
                        print("begin", flush=True)
                        sys.stdin.readline()
                    await speak(client, wire, n)
            print("end", flush=True)
            sys.stdin.readline()
        return {"turns": self._count}

    async def _complete(self, client: aiohttp.ClientSession, wire: Any, n: int) -> None:
        asked = {"model": "everloop", "stream": True, "messages": [{"role": "user", "content": f"Tell me {n}."}]}
        headers = {"X-Everloop-Session": f"api:alone{n // 10}"}
        async with client.post(f"{self._url}/v1/chat/completions", json=asked, headers=headers) as response:
            told = (await response.read()).decode()
        assert response.status == 200, told
        assert told.endswith("data: [DONE]\n\n"), told

    async def _say(self, client: Any, wire: aiohttp.ClientWebSocketResponse, n: int) -> None:
        said = {"type": "message", "id": str(n), "session": f"api:alone{n // 10}", "content": f"Tell me {n}."}
        await wire.send_str(json.dumps(said))
        while not (text := await wire.receive_str(timeout=120)).startswith(RESPONSE):
            assert not text.startswith('{"type":"error"'), text


async def main() -> None:
    match sys.argv[1:]:
        case ["floor", base]:
            await floor(base)
        case ["clients", url, token, count, *rounds]:
            print(json.dumps(await Crowd(url, token, int(count), *map(int, rounds)).run()), flush=True)
        case ["one", url, token, door, count]:
            print(json.dumps(await Alone(url, token, door, int(count)).run()), flush=True)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    asyncio.run(main())
