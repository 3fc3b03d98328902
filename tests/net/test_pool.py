"""A connection is kept as long as its host keeps it, and what was closed meanwhile is not asked."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from everloop.net.trusted import TrustedHttp


class Host:
    """Answers each request with these headers; in a thread, so that it does something while the event loop stands."""

    def __init__(self, headers: str = "") -> None:
        self.answer = f"HTTP/1.1 200 OK\r\n{headers}Content-Length: 2\r\n\r\nok".encode()
        self.door = socket.create_server(("127.0.0.1", 0))
        self.met: list[socket.socket] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.door.getsockname()[1]}/"

    def serve(self) -> None:
        while True:
            try:
                guest, _ = self.door.accept()
            except OSError:
                return
            self.met.append(guest)
            threading.Thread(target=self.talk, args=(guest,), daemon=True).start()

    def talk(self, guest: socket.socket) -> None:
        try:
            while guest.recv(2**16):
                guest.sendall(self.answer)
        except OSError:
            return


@contextmanager
def hosting(host: Host) -> Iterator[Host]:
    thread = threading.Thread(target=host.serve)
    thread.start()
    try:
        yield host
    finally:
        host.door.shutdown(socket.SHUT_RDWR)
        host.door.close()
        thread.join()
        for guest in host.met:
            guest.close()


async def ask(http: TrustedHttp, host: Host) -> tuple[int, bytes]:
    async with http.request("POST", host.url, body=b"once", seconds=30) as answer:
        return answer.status, await answer.read()


def hang_up(guest: socket.socket) -> None:
    guest.shutdown(socket.SHUT_RDWR)


def say_more(guest: socket.socket) -> None:
    guest.sendall(b"HTTP/1.1 408 Too late\r\n\r\n")


def say_nothing(guest: socket.socket) -> None:
    pass


@pytest.mark.parametrize("then, connections", [(hang_up, 2), (say_more, 2), (say_nothing, 1)])
async def test_what_was_closed_while_the_loop_stood_still_is_not_asked(
    then: Callable[[socket.socket], None], connections: int
):
    """Nobody would know whether a host has done what it was asked to do before it closed."""
    http = TrustedHttp()
    with hosting(Host()) as host:
        assert await ask(http, host) == (200, b"ok")
        then(host.met[0])
        assert await ask(http, host) == (200, b"ok")
        assert len(host.met) == connections
        await http.close()


@pytest.mark.parametrize(
    "said, kept, connections",
    [
        ("", 60, 1),
        ("", 0, 2),
        ("Keep-Alive: timeout=30\r\n", 0, 1),
        ("keep-alive: max=100, Timeout = 30\r\n", 0, 1),
        ("Keep-Alive: timeout=999999999\r\n", 0, 1),
        ("Keep-Alive: timeout=1\r\n", 60, 2),  # it may close while a request is on its way
        ("Keep-Alive: timeout=0\r\n", 60, 2),
        ("Keep-Alive: max=100\r\n", 60, 1),
        ("Keep-Alive: max=100\r\n", 0, 2),
        ("Keep-Alive: timeout=-5\r\n", 60, 1),
        ("Keep-Alive: timeout=soon\r\n", 0, 2),
    ],
)
async def test_a_connection_is_kept_as_long_as_its_host_says(said: str, kept: float, connections: int):
    http = TrustedHttp(kept=kept)
    with hosting(Host(said)) as host:
        assert [await ask(http, host) for _ in range(2)] == [(200, b"ok")] * 2
        assert len(host.met) == connections
        await http.close()
