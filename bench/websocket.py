"""A message over our WebSocket client beside one over `websockets`' own, interleaved in one run:

    python bench/websocket.py [--rounds N]

Both talk to one server of `websockets` in a process of its own, on asyncio and on uvloop. CPU is that of the client's
process, for each message.
"""

import argparse
import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvloop
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from everloop.net.trusted import TrustedHttp
from everloop.ports import SocketTerms

EVENT = '{"op":0,"t":"MESSAGE_CREATE","s":42,"d":{"id":"1","content":"' + "words " * 40 + '"}}'
AWAITED, BURST, CHEWED = 3000, 20_000, 2000
LARGE = b"x" * 100_000


async def serve_all() -> None:
    async def speak(peer: ServerConnection) -> None:
        async for message in peer:
            if isinstance(message, str) and message.isdigit():
                for _ in range(int(message)):
                    await peer.send(EVENT)
            else:
                await peer.send(message)

    async with serve(speak, "127.0.0.1", 0, max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.wait_closed()


@asynccontextmanager
async def theirs(url: str, compress: bool) -> AsyncIterator[Any]:
    async with connect(url, compression="deflate" if compress else None, proxy=None) as wire:
        wire.receive = wire.recv  # type: ignore[attr-defined]
        yield wire


@asynccontextmanager
async def ours(url: str, compress: bool) -> AsyncIterator[Any]:
    http = TrustedHttp()
    async with http.websocket(url, terms=SocketTerms(compress=compress)) as wire:
        yield wire
    await http.close()


async def awaited(wire: Any) -> int:
    for _ in range(AWAITED):
        await wire.send(EVENT)
        await wire.receive()
    return AWAITED


async def burst(wire: Any) -> int:
    await wire.send(str(BURST))
    for _ in range(BURST):
        await wire.receive()
    return BURST


async def large(wire: Any) -> int:
    for _ in range(CHEWED):
        await wire.send(LARGE)
        await wire.receive()
    return CHEWED


MEASURES = {
    "sent and answered, one after the other": (awaited, False),
    "the same, packed": (awaited, True),
    "heard in a burst": (burst, False),
    "the same burst, packed": (burst, True),
    "100 kB, sent and answered": (large, False),
}


async def cpu(client: Any, url: str, measure: Any, compress: bool) -> float:
    async with client(url, compress) as wire:
        await wire.send(EVENT)
        await wire.receive()
        began = time.process_time()
        count = await measure(wire)
        return (time.process_time() - began) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        uvloop.run(serve_all())
        return
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    url = f"ws://127.0.0.1:{server.stdout.readline().strip()}/"
    print("| a message | loop | × | detail |\n|---|---|---|---|", flush=True)
    try:
        for name, (measure, compress) in MEASURES.items():
            for loop, run in (("asyncio", asyncio.run), ("uvloop", uvloop.run)):
                rounds = [
                    [run(cpu(client, url, measure, compress)) for client in (theirs, ours)]
                    for _ in range(chosen.rounds)
                ]
                floor, us = (statistics.median(each) * 1e6 for each in zip(*rounds, strict=True))
                print(f"| {name} | {loop} | {us / floor:.2f} | {us:.1f} µs against {floor:.1f} µs |", flush=True)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
