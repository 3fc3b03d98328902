"""Names: looked up once for all who ask, kept a short while, and never at the cost of other work."""

import asyncio
import inspect
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.ports import free_port
from tests.strays import without_strays
from yarl import URL

from everloop.errors import HostUnreachable
from everloop.net.connection import HttpConnection
from everloop.net.dialing import dial
from everloop.net.open import OpenHttp
from everloop.net.proxy import Proxy
from everloop.net.resolver import Resolver, resolve


class Book:
    """A name server that answers when it is let, with what stands in it."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.asked: list[tuple[str, int]] = []
        self.threads: set[str] = set()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.time = 0.0
        self.resolver = Resolver(self.look, now=lambda: self.time)

    def look(self, host: str, port: int) -> list[Any]:
        self.asked.append((host, port))
        self.threads.add(threading.current_thread().name)
        self.may_answer.wait()
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "nobody")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in self.addresses]


@pytest.fixture
def book():
    book = Book("127.0.0.1")
    yield book
    book.may_answer.set()
    book.resolver.close()


async def find(book: Book, host: str = "model.example") -> list[str]:
    return [each[4][0] for each in await book.resolver.find(host, 443)]


async def test_many_who_ask_at_once_are_one_lookup_and_later_ones_none(book: Book):
    assert await asyncio.gather(*(find(book) for _ in range(500))) == [["127.0.0.1"]] * 500
    await find(book)
    assert book.asked == [("model.example", 443)]


async def test_a_name_is_kept_for_half_a_minute(book: Book):
    for time, lookups in ((0.0, 1), (29.9, 1), (30.0, 2), (59.9, 2), (60.0, 3)):
        book.time = time
        await find(book)
        assert len(book.asked) == lookups


async def test_what_was_not_found_is_told_to_all_who_asked_and_not_kept(book: Book):
    book.addresses = []
    told = await asyncio.gather(*(find(book) for _ in range(5)), return_exceptions=True)
    assert ([type(error) for error in told], len(book.asked)) == ([socket.gaierror] * 5, 1)
    book.addresses = ["127.0.0.1"]
    assert await find(book) == ["127.0.0.1"]


async def test_who_stops_waiting_does_so_alone(book: Book):
    book.may_answer.clear()
    waiting = [asyncio.create_task(find(book)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    book.may_answer.set()
    assert await asyncio.gather(*waiting[1:], find(book)) == [["127.0.0.1"]] * 3
    assert (waiting[0].cancelled(), len(book.asked)) == (True, 1)


async def test_when_all_have_stopped_waiting_for_what_is_not_found_nothing_is_left(book: Book, caplog):
    book.addresses = []
    book.may_answer.clear()
    waiting = asyncio.create_task(find(book))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    sought = list(book.resolver._sought.values())
    book.may_answer.set()
    await asyncio.wait(sought)
    await asyncio.sleep(0)
    assert (len(sought), book.resolver._sought, book.resolver._found) == (1, {}, {})
    assert without_strays(caplog.records) == []


async def test_so_many_names_are_kept_and_no_more(book: Book):
    for number in range(300):
        await find(book, f"{number}.example")
    assert len(book.resolver._found) == 256
    await find(book, "299.example")
    await find(book, "0.example")
    assert book.asked[300:] == [("0.example", 443)]


async def test_the_threads_of_files_and_passwords_are_not_used(book: Book):
    """Not even when a name server is silent: the one thread of this loop is free."""
    loop, files = asyncio.get_running_loop(), ThreadPoolExecutor(1, thread_name_prefix="files")
    loop.set_default_executor(files)
    book.may_answer.clear()
    waiting = [asyncio.create_task(find(book, f"{number}.example")) for number in range(20)]
    await asyncio.sleep(0)
    assert await asyncio.to_thread(lambda: threading.current_thread().name) == "files_0"
    book.may_answer.set()
    await asyncio.gather(*waiting)
    assert (len(book.asked), {name[:8] for name in book.threads}) == (20, {"resolver"})
    assert await loop.run_in_executor(None, book.look, "x", 1)  # which is seen if it is done
    assert "files_0" in book.threads


async def test_names_that_strangers_may_aim_have_threads_of_their_own_and_are_never_kept(book: Book):
    assert inspect.signature(OpenHttp).parameters["lookup"].default is resolve
    assert inspect.signature(Proxy).parameters["lookup"].default is resolve
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="files"))
    book.may_answer.clear()
    waiting = [asyncio.create_task(find(book, f"{number}.example")) for number in range(20)]
    assert "127.0.0.1" in await resolve("localhost", 80)
    assert not any(thread.name.startswith("files") for thread in threading.enumerate())
    book.may_answer.set()
    await asyncio.gather(*waiting)


async def serving(address: str, port: int = 0) -> asyncio.Server:
    async def host(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    return await asyncio.start_server(host, address, port)


async def dialled(port: int, book: Book) -> HttpConnection:
    return await dial(URL(f"http://model.example:{port}/"), None, None, 5.0, book.resolver)


async def test_many_connections_to_a_host_are_one_lookup(book: Book):
    async with await serving("127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        for connection in await asyncio.gather(*(dialled(port, book) for _ in range(50))):
            connection.close()
    assert book.asked == [("model.example", port)]


async def test_a_host_that_has_moved_is_looked_for_anew(book: Book):
    port = free_port()  # at which nobody else listens where the host was
    async with await serving("127.0.0.2", port):
        with pytest.raises(HostUnreachable):
            await dialled(port, book)
        book.addresses = ["127.0.0.2"]
        (await dialled(port, book)).close()
    assert len(book.asked) == 2
