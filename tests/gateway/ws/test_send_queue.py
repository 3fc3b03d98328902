"""What waits for a client goes out together, in order, each message in a frame of its own."""

import asyncio
from collections.abc import Sequence

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from everloop.gateway.ws.send_queue import TOGETHER, SendQueue, head_of


def text_in(frame: bytes) -> dict[str, str]:
    read: dict[str, str] = msgspec.json.decode(frame[frame.index(b"{") :])
    return read


class Client:
    """One to whom all is sent; `writes` are the ids of the frames of each write."""

    def __init__(self) -> None:
        self.writes: list[list[str]] = []
        self.came = asyncio.Semaphore(0)

    async def send(self, frames: Sequence[bytes]) -> None:
        self.writes.append([text_in(frame)["id"] for frame in frames])
        self.came.release()

    def lose(self) -> None:
        raise AssertionError("it was too much")


def ack(id: str, text: str = "") -> dict[str, str]:
    return {"type": "ack", "id": id, "text": text}


async def until_sent(sending: SendQueue, client: Client, writes: int) -> list[list[str]]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sending.run())
        for _ in range(writes):
            await client.came.acquire()
        task.cancel()
    return client.writes


async def test_frames_that_wait_together_go_out_with_one_write():
    client = Client()
    sending = SendQueue(client.send, client.lose)
    sending.put(ack("a"), ack("b"))
    sending.put(ack("c"))
    assert await until_sent(sending, client, 1) == [["a", "b", "c"]]


async def test_a_write_ends_where_it_has_become_large():
    client = Client()
    sending = SendQueue(client.send, client.lose)
    sending.put(ack("a"), ack("b", "x" * TOGETHER), ack("c"))
    assert await until_sent(sending, client, 2) == [["a", "b"], ["c"]]


async def test_no_frame_waits_for_one_behind_it_that_has_to_be_looked_up():
    client, gate = Client(), asyncio.Event()

    async def look_up() -> dict[str, str]:
        await gate.wait()
        return ack("later")

    sending = SendQueue(client.send, client.lose)
    sending.put(ack("a"), look_up, ack("b"))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sending.run())
        await client.came.acquire()
        before = [*client.writes]
        gate.set()
        await client.came.acquire()
        await client.came.acquire()
        task.cancel()
    assert (before, client.writes) == ([["a"]], [["a"], ["later"], ["b"]])


async def test_each_text_is_a_message_of_its_own_whatever_its_length():
    texts = [b"", b"x", b"x" * 125, b"x" * 126, b"x" * 65_535, b"x" * 65_536, "é".encode(), b"{}"]

    async def serve(request: web.Request) -> web.WebSocketResponse:
        wire = web.WebSocketResponse(compress=False)
        await wire.prepare(request)
        assert request.transport is not None
        request.transport.write(b"".join(head_of(len(text)) + text for text in texts))
        await wire.close()
        return wire

    app = web.Application()
    app.add_routes([web.get("/ws", serve)])
    async with (
        TestServer(app) as server,
        aiohttp.ClientSession() as client,
        client.ws_connect(server.make_url("/ws")) as wire,
    ):
        came = [message.data async for message in wire]
    assert came == [text.decode() for text in texts]


@pytest.mark.parametrize("has_room", [True, False])
async def test_a_burst_goes_out_at_once_where_the_socket_has_room_and_else_by_the_task_that_waits(has_room):
    client, at_once, tried = Client(), [], asyncio.Event()

    def write(frames: Sequence[bytes]) -> bool:
        at_once.append([text_in(frame)["id"] for frame in frames])
        tried.set()
        return has_room

    sending = SendQueue(client.send, client.lose, write)
    sending.put(ack("first"))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sending.run())
        await client.came.acquire()  # it has nothing to send now
        sending.put(ack("a"))
        sending.put(ack("b"))
        await tried.wait()
        if not has_room:
            await client.came.acquire()
        task.cancel()
    assert (at_once, client.writes) == ([["a", "b"]], [["first"]] if has_room else [["first"], ["a", "b"]])
