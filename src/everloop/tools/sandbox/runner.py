"""The process outside of the workers that runs their commands: one for each spool, and it outlives whoever started it.

A worker connects to its socket, is greeted, and sends orders as lines of JSON. What a command says goes into the spool;
the worker is only told that there is more. So when a worker dies nothing changes for the command, and the next worker
finds its output and its end, or waits for it. The runner leaves when nobody is connected and nothing runs.

    python -I -S -c "import sys; sys.path.insert(0, …); from everloop.tools.sandbox.runner import main; main(…)"
"""

import fcntl
import json
import os
import select
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import partial

from . import launch, portable, spool, usage
from .command import RunningCommand
from .duplex_jobs import DuplexJobs
from .launcher import Launcher

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

NAME = "runner-2"  # the number is that of the protocol: runners of two versions do not meet
_CHUNK = 1 << 16
_LONGEST_ORDER = 16 << 20
_WATCH = 0.1  # seconds between two looks at what commands use
_TELL = 0.03  # seconds between two hints that there is more output
_FIRST = 30.0  # seconds in which somebody should come
BUSY = 3


class WorkerConnection:
    """A worker. What it is told are hints but for the last line, so one that does not listen is hung up on."""

    def __init__(self, sock: socket.socket, limits: str) -> None:
        self.sock = sock
        self.heard = b""
        self.closed = False
        self.tell({"hello": NAME, "limits": limits, "duplex": True})

    def tell(self, line: "dict[str, Any]") -> None:
        try:
            self.sock.send(json.dumps(line).encode() + b"\n")
        except OSError:
            self.closed = True

    def hand_over(self, line: "dict[str, Any]", fds: list[int]) -> None:
        try:
            socket.send_fds(self.sock, [json.dumps(line).encode() + b"\n"], fds)
        except OSError:
            self.closed = True


class Runner:
    def __init__(self, folder: str, listener: socket.socket) -> None:
        self._spool = folder
        self._launcher = Launcher(folder, NAME)
        self._selector = selectors.DefaultSelector()
        self._listener = listener
        self._connections: set[WorkerConnection] = set()
        self._commands: dict[str, RunningCommand] = {}
        self._servers = DuplexJobs(self._launcher, self._on, self._off)
        self._until = time.monotonic() + _FIRST
        self._watched = 0.0
        self._on(listener.fileno(), self._accept)

    def serve(self) -> None:
        while self._connections or self._commands or self._servers or time.monotonic() < self._until:
            self._turn(self._patience())
            self._look_after()
        self._launcher.close()
        self._listener.close()

    def _patience(self) -> float | None:
        if any(command.dirty for command in self._commands.values()):
            return _TELL
        if self._commands:
            return _WATCH
        if self._servers:
            return self._servers.PATIENCE
        return None if self._connections else max(0.0, self._until - time.monotonic())

    def _turn(self, patience: float | None) -> None:
        for key, _ in self._selector.select(patience):
            self._answer(key)

    def _answer(self, key: selectors.SelectorKey) -> None:
        if self._selector.get_map().get(key.fd) is key:  # not gone by what came before
            key.data()

    def _on(self, fd: int, do: "Callable[[], None]") -> None:
        self._selector.register(fd, selectors.EVENT_READ, do)

    def _off(self, fd: int) -> None:
        if fd >= 0 and fd in self._selector.get_map():
            self._selector.unregister(fd)

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        sock.setblocking(False)
        connection = WorkerConnection(sock, self._launcher.limits)
        self._connections.add(connection)
        self._until = 0.0
        self._on(sock.fileno(), lambda: self._hear(connection))

    def _hear(self, connection: WorkerConnection) -> None:
        try:
            data = connection.sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        connection.heard += data
        if not data or len(connection.heard) > _LONGEST_ORDER:
            self._hang_up(connection)
            return
        *lines, connection.heard = connection.heard.split(b"\n")
        for line in lines:
            self._obey(connection, json.loads(line))

    def _hang_up(self, connection: WorkerConnection) -> None:
        self._off(connection.sock.fileno())
        self._connections.discard(connection)
        for command in self._commands.values():
            command.listeners = [each for each in command.listeners if each is not connection]
        self._servers.end(connection)
        connection.sock.close()

    def _obey(self, connection: WorkerConnection, order: "dict[str, Any]") -> None:
        match order["do"]:
            case "start":
                self._start(connection, order)
            case "find":
                self._find(connection, order)
            case "input":
                self._input(connection, order)
            case "stop":
                self._stop(connection, order)
            case "duplex":
                self._servers.start(connection, order)
            case "end":
                self._servers.end(connection)

    def _start(self, connection: WorkerConnection, order: "dict[str, Any]") -> None:
        key = f"{order['thread']}/{order['name']}"
        try:
            folder = spool.make_folder(self._spool, order["thread"], order["name"])
        except FileExistsError:
            connection.tell({"failed": "this call has been made before"})
            return
        except OSError as error:
            connection.tell({"failed": f"the spool cannot be written ({error.strerror})"})
            return
        try:
            if order["script"] is not None:
                with open(os.path.join(folder, "script.py"), "w") as file:
                    file.write(order["script"])
                os.chmod(file.name, 0o400)
            for path in order.get("make", ()):
                os.mkdir(path)
            if order["way"] != "bwrap":  # which waits for us
                spool.make_sure(folder)
            started = self._started(order)
            spool.make_sure(folder)
            spool.forget_earlier(self._spool, order["thread"], order["answer"])
        except OSError as error:
            spool.write_end(folder, {"why": "failed", "code": 126, "seconds": 0.0, "size": 0})
            connection.tell({"failed": f"the sandbox could not be started ({error})"})
            return
        watched = [path for path in (folder, order.get("workspace", "")) if os.path.isdir(path)]
        command = self._commands[key] = RunningCommand(folder, order, started, watched)
        command.listeners.append(connection)
        for fd in (started.out, started.err):
            self._on(fd, partial(self._read, command, fd))
        if started.info >= 0:
            self._on(started.info, lambda: self._hear_of(command))
        for pidfd in started.pidfds:
            self._on(pidfd, lambda: self._gone(key, command))
        connection.tell({"began": True})

    def _started(self, order: "dict[str, Any]") -> launch.Started:
        if order["way"] == "seatbelt" or not hasattr(os, "pidfd_open"):
            return portable.start(order)
        return self._launcher.start(order)

    def _hear_of(self, command: RunningCommand) -> None:
        if command.started.hear():
            self._go(command)

    def _go(self, command: RunningCommand) -> None:
        self._off(command.started.info)
        if not command.started.go(command.limits):
            command.why = "failed"

    def _read(self, command: RunningCommand, fd: int) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._off(fd)
            return
        try:
            command.tape.write(data, error=fd == command.started.err)
        except OSError:
            command.end("disk")
        command.touched = time.monotonic()
        command.dirty = True

    def _gone(self, key: str, command: RunningCommand) -> None:
        """One of its processes has ended. When the outermost and the innermost have, all of it is gone."""
        started = command.started
        alive = [pidfd for pidfd in started.pidfds if not _is_gone(pidfd)]
        for pidfd in started.pidfds:
            if pidfd not in alive:
                self._off(pidfd)  # or we would be told again and again
            elif pidfd not in self._selector.get_map():
                self._on(pidfd, lambda: self._gone(key, command))
        if alive:
            return
        if started.info >= 0:
            self._go(command)
        for fd in (started.out, started.err):
            self._read_rest(command, fd)
        self._finish(key, command)

    def _read_rest(self, command: RunningCommand, fd: int) -> None:
        before = -1
        while fd in self._selector.get_map() and command.tape.size != before:
            before = command.tape.size
            self._read(command, fd)

    def _finish(self, key: str, command: RunningCommand) -> None:
        del self._commands[key]
        code = launch.exit_code(os.waitpid(command.started.pid, 0)[1])
        for fd in (command.started.out, command.started.err, command.started.info, *command.started.pidfds):
            self._off(fd)
        command.say_if_killed()
        self._launcher.finish(command.started)
        command.tape.close()
        end = {
            "why": command.why,
            "code": code,
            "seconds": time.monotonic() - command.begun,
            "size": command.tape.size,
            "errors": command.tape.errors,
        }
        with suppress(OSError):  # the disk is full: whoever listens is told, and later nobody can tell
            spool.write_end(command.folder, end)
        for connection in command.listeners:
            connection.tell({"end": end})

    def _find(self, connection: WorkerConnection, order: "dict[str, Any]") -> None:
        self._hear_all()
        key = f"{order['thread']}/{order['name']}"
        folder = os.path.join(self._spool, key)
        if command := self._commands.get(key):
            if not order.get("quiet"):
                command.touched = time.monotonic()
                command.listeners.append(connection)
            connection.tell({"began": True, "size": command.tape.size, "errors": command.tape.errors})
        elif not os.path.lexists(folder):
            connection.tell({"never": True})
        elif not os.path.isdir(folder):
            connection.tell({"swept": True})
        elif end := spool.read_end(folder):
            connection.tell({"end": end})
        else:
            connection.tell({"lost": True})

    def _hear_all(self) -> None:
        """Someone who is dead by now may have sent an order that we have not read yet: first that, then the answer."""
        while ready := self._at_the_door():
            for key in ready:
                self._answer(key)

    def _at_the_door(self) -> list[selectors.SelectorKey]:
        doors = {self._listener.fileno(), *(each.sock.fileno() for each in self._connections)}
        return [key for key, _ in self._selector.select(0) if key.fd in doors]

    def _input(self, connection: WorkerConnection, order: "dict[str, Any]") -> None:
        command = self._commands.get(f"{order['thread']}/{order['name']}")
        if command is None or command.started.into < 0:
            connection.tell({"failed": "it is not running, or takes no input"})
            return
        command.touched = time.monotonic()
        text = order["text"].encode()
        try:
            count = os.write(command.started.into, text)
        except (BlockingIOError, BrokenPipeError):
            count = 0
        if count < len(text):
            connection.tell({"failed": f"it does not read its input; {count} of {len(text)} bytes were taken"})
        else:
            connection.tell({"done": 1})

    def _stop(self, connection: WorkerConnection, order: "dict[str, Any]") -> None:
        self._hear_all()
        whose = f"{order['thread']}/"
        these = [
            command
            for key, command in self._commands.items()
            if key.startswith(whose) and order["name"] in ("", key.removeprefix(whose))
        ]
        connection.tell({"done": len(these)})
        for command in these:
            command.listeners.append(connection)
            command.end("stopped")

    def _look_after(self) -> None:
        now = time.monotonic()
        for connection in [each for each in self._connections if each.closed]:
            self._hang_up(connection)
        for command in self._commands.values():
            if command.dirty and now - command.told >= _TELL:
                command.dirty, command.told = False, now
                for connection in command.listeners:
                    connection.tell({"size": command.tape.size})
        self._servers.look_after(now)
        if self._commands and now - self._watched >= _WATCH:
            self._watched = now
            machine = usage.Machine()
            for command in self._commands.values():
                if why := command.overdue(now, machine):
                    command.end(why)
        if all(now - command.begun > _WATCH for command in self._commands.values()):
            self._launcher.prepare()  # not while one begins


def _is_gone(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def main(folder: str) -> "NoReturn":
    """Run as the runner of this spool. Returns control to whoever started it when it can be connected to."""
    os.closerange(3, 1 << 16)  # whatever a worker had open, and the pipe on which it waits for us
    launch.leave_no_core()
    os.umask(0o077)
    os.makedirs(folder, exist_ok=True)
    folder = os.path.realpath(folder)
    lock = os.open(os.path.join(folder, f"{NAME}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(BUSY)
    listener = listen(folder)
    if os.fork():
        os._exit(0)
    os.setsid()
    os.truncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())  # for people who look
    os.chdir("/")
    nothing = os.open(os.devnull, os.O_RDWR)
    log = os.open(os.path.join(folder, f"{NAME}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    for source, target in ((nothing, 0), (nothing, 1), (log, 2)):
        os.dup2(source, target)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    spool.sweep(folder)
    os.umask(0o022)
    for line in spool.copy_etc(folder):
        os.write(2, f"commands do not see {line}\n".encode("utf-8", "replace"))
    os.umask(0o077)
    Runner(folder, listener).serve()
    sys.exit(0)


def listen(folder: str) -> socket.socket:
    """A socket in this folder. Its address goes through a descriptor, for a path may be too long for a socket."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if os.path.lexists(os.path.join(folder, f"{NAME}.sock")):
            os.unlink(os.path.join(folder, f"{NAME}.sock"))
        listener.bind(spool.socket_path(folder, fd, f"{NAME}.sock"))
    finally:
        os.close(fd)
    listener.listen(128)
    listener.setblocking(False)
    return listener
