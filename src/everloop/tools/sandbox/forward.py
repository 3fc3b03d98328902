"""Runs inside a sandbox that may reach some hosts, in front of its command: makes the way out look like a proxy.

Whoever connects to a port of the sandbox's own loopback is carried to a socket in a folder, behind which a worker
answers. It decides nothing: what may be reached is decided outside. The command takes the place of this process, and
what carries is a process beside it, that ends with the sandbox. Its text is handed to a Python in there, so it imports
the standard library alone. The command waits until the port is open, and so for what stands at the top of this file
to be loaded; the rest is loaded by the process beside it, meanwhile.
"""

# What `signal` and `socket` are made of, without the names for people, which take longer to load than all of this.
import _signal  # type: ignore[import-not-found]
import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import selectors
    import socket
    from typing import NoReturn

_READ, _WRITE = 1, 2  # as in selectors
_CHUNK = 1 << 16
_PATIENCE = 10.0
_NOBODY = (
    b"HTTP/1.1 503 everloop is not running, so nothing can be reached\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)


class CarriedEnd:
    """One end of a carried connection. `waiting` is what it is still to be sent."""

    def __init__(self, sock: "socket.socket") -> None:
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
        try:
            while self.waiting:
                self.waiting = self.waiting[self.sock.send(self.waiting) :]
        except BlockingIOError:
            return
        if self.other.is_over:
            self.sock.shutdown(_socket.SHUT_WR)

    @property
    def wants(self) -> int:
        hears = _READ if not self.is_over and not self.other.waiting else 0
        return hears | (_WRITE if self.waiting else 0)


class Carrier:
    def __init__(self, listener: "socket.socket", folder: str, selector: "selectors.BaseSelector") -> None:
        self._listener = listener
        self._folder = folder
        self._selector = selector
        self._selector.register(listener, _READ)

    def serve(self) -> "NoReturn":
        while True:
            for key, events in self._selector.select():
                if key.data is None:
                    self._welcome()
                elif key.data.sock.fileno() >= 0:  # not closed by what came before
                    self._carry(key.data, events)

    def _welcome(self) -> None:
        try:
            self._accept()
        except OSError:
            return  # whoever came has gone, or there are too many

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        out = connect(self._folder)
        if out is None:
            sock.send(_NOBODY)
            sock.close()
            return
        one, other = CarriedEnd(sock), CarriedEnd(out)
        one.other, other.other = other, one
        self._watch(one)
        self._watch(other)

    def _carry(self, end: CarriedEnd, events: int) -> None:
        try:
            if events & _READ:
                end.hear()
                end.other.say()
            if events & _WRITE:
                end.say()
        except OSError:
            end.is_over = end.other.is_over = True
            end.waiting = end.other.waiting = b""
        over = end.is_over and end.other.is_over and not end.waiting and not end.other.waiting
        for each in (end, end.other):
            self._watch(each, over)

    def _watch(self, end: CarriedEnd, over: bool = False) -> None:
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
    import socket

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


def carry(listener: int, folder: str) -> "NoReturn":
    import selectors
    import socket

    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(nothing, fd)
    Carrier(socket.socket(fileno=listener), folder, selectors.DefaultSelector()).serve()


def main(folder: str, port: str, *argv: str) -> "NoReturn":
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(128)
    first = os.fork()
    if not first:
        os.setsid()
        if os.fork():
            os._exit(0)  # so that the command has no child that it does not know
        carry(listener.detach(), folder)
    os.waitpid(first, 0)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # which Python ignores, and a command would inherit that
        _signal.signal(number, _signal.SIG_DFL)
    os.execv(argv[0], argv)


if __name__ == "__main__":
    main(*sys.argv[1:])
