"""Runs inside a sandbox that may reach some hosts, in front of its command: makes the way out look like a proxy.

Whoever connects to a port of the sandbox's own loopback is carried to a socket in a folder, behind which a worker
answers. It decides nothing: what may be reached is decided outside. The command takes the place of this process, and
what carries is a process beside it, that ends with the sandbox. Its text is handed to a Python in there, so it imports
the standard library alone.
"""

import os
import selectors
import signal
import socket
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_CHUNK = 1 << 16
_PATIENCE = 10.0
_NOBODY = (
    b"HTTP/1.1 503 everloop is not running, so nothing can be reached\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


class End:
    """One end of a carried connection. `waiting` is what it is still to be sent."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.other = self
        self.waiting = b""
        self.is_over = False  # it says no more

    def hear(self) -> None:
        try:
            data = self.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        self.is_over = not data
        self.other.waiting += data

    def say(self) -> None:
        with suppress(BlockingIOError):
            while self.waiting:
                self.waiting = self.waiting[self.sock.send(self.waiting) :]
        if self.other.is_over and not self.waiting:
            self.sock.shutdown(socket.SHUT_WR)

    @property
    def wants(self) -> int:
        hears = selectors.EVENT_READ if not self.is_over and not self.other.waiting else 0
        return hears | (selectors.EVENT_WRITE if self.waiting else 0)


class Carrier:
    def __init__(self, listener: socket.socket, folder: str) -> None:
        self._listener = listener
        self._folder = folder
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)

    def serve(self) -> "NoReturn":
        while True:
            for key, events in self._selector.select():
                if key.data is None:
                    self._accept()
                elif key.data.sock.fileno() >= 0:  # not closed by what came before
                    self._carry(key.data, events)

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        out = connect(self._folder)
        if out is None:
            with suppress(OSError):
                sock.send(_NOBODY)
            sock.close()
            return
        one, other = End(sock), End(out)
        one.other, other.other = other, one
        self._watch(one)
        self._watch(other)

    def _carry(self, end: End, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                end.hear()
                end.other.say()
            if events & selectors.EVENT_WRITE:
                end.say()
        except OSError:
            end.is_over = end.other.is_over = True
            end.waiting = end.other.waiting = b""
        over = end.is_over and end.other.is_over and not end.waiting and not end.other.waiting
        for each in (end, end.other):
            self._watch(each, over)

    def _watch(self, end: End, over: bool = False) -> None:
        known = end.sock in self._selector.get_map()
        if known and (over or not end.wants):
            self._selector.unregister(end.sock)
        elif known:
            self._selector.modify(end.sock, end.wants, end)
        elif end.wants and not over:
            self._selector.register(end.sock, end.wants, end)
        if over:
            end.sock.close()


def connect(folder: str) -> "socket.socket | None":
    """A connection to whichever worker answers."""
    for name in os.listdir(folder):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(_PATIENCE)
        try:
            sock.connect(os.path.join(folder, name))
        except OSError:
            sock.close()
        else:
            return sock
    return None


def main(folder: str, port: str, *argv: str) -> "NoReturn":
    listener = socket.create_server(("127.0.0.1", int(port)))
    first = os.fork()
    if not first:
        os.setsid()
        if os.fork():
            os._exit(0)  # so that the command has no child that it does not know
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(nothing, fd)
        Carrier(listener, folder).serve()
    os.waitpid(first, 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a command would inherit that
        signal.signal(number, signal.SIG_DFL)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main(*sys.argv[1:])
