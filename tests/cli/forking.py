"""Commands in processes of their own, without the third of a second in which Python loads what all of them load.

A process of this file has everloop loaded and forks for each command: its arguments, its environment and its three
streams are those that it is given, as they would be after `python -m everloop`. Whatever depends on how Python itself
begins, or on signals, is begun as by anybody: `Person.start`.
"""

import asyncio
import atexit
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

# Loaded ahead, with all that is in them, but for what needs a library that not everyone has.
LOADED = ("everloop.cli", "everloop.app", "everloop.runtime", "everloop.net", "everloop.tools", "everloop.providers")
HEAVY = ("everloop.providers.embedded", "everloop.app.replay", "everloop.tools.sandbox", "everloop.tools.mcp")
# What Python looks at when it begins.
OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "SSL_", "OMP_")
MOST_TYPED = 4096  # bytes, which a pipe holds whoever reads them


class Forked:
    """A command that was begun here. It is killed when nobody waits for its end any more."""

    def __init__(self, life: int, out: int, err: int) -> None:
        self._streams = [os.fdopen(fd, "rb") for fd in (life, out, err)]
        self._open: list[asyncio.BaseTransport] = []

    async def ended(self) -> tuple[int, bytes, bytes]:
        """Its status, as `returncode` of a process, and what it has said."""
        life, out, err = [await self._read(stream) for stream in self._streams]
        said, complained = await asyncio.gather(out.read(), err.read())
        status = await life.read()
        assert status, "whoever attended to the command has died"
        return os.waitstatus_to_exitcode(int(status)), said, complained

    def leave(self) -> None:
        for each in self._open or self._streams:
            each.close()

    async def _read(self, pipe: BinaryIO) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._open.append(transport)
        return reader


class ForkServer:
    """Begins commands. It ends when whoever has it ends."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        root = Path(__file__).parents[2]
        command = [sys.executable, "-m", __name__, str(theirs.fileno())]
        bare = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
        self._process = subprocess.Popen(
            command, cwd=root, env=bare, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        atexit.register(self.close)

    def begin(self, arguments: tuple[str, ...], environment: dict[str, str], typed: bytes) -> Forked:
        (stdin, put), (life, told), (out, said), (err, complained) = [os.pipe() for _ in range(4)]
        os.write(put, typed)
        order = json.dumps([arguments, environment, os.getcwd()]).encode()
        socket.send_fds(self._ours, [order], [stdin, said, complained, told])
        for fd in (put, stdin, said, complained, told):
            os.close(fd)
        return Forked(life, out, err)

    def close(self) -> None:
        self._ours.close()
        self._process.kill()  # a child that was forked here may hold the other end of that
        self._process.wait()


_servers: list[ForkServer] = []


def fork_server() -> ForkServer:
    """That of this process."""
    if not _servers:
        _servers.append(ForkServer())
    return _servers[0]


def can_fork(environment: dict[str, str], typed: bytes) -> bool:
    return len(typed) <= MOST_TYPED and not any(name.startswith(OF_PYTHON) for name in environment)


def serve(orders: socket.socket) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever attends to a command tells how it ended
    while True:
        order, fds, *_ = socket.recv_fds(orders, 1 << 20, 4)
        if not order:
            return
        if os.fork() == 0:
            orders.close()
            attend(order, fds)
        for fd in fds:
            os.close(fd)


def attend(order: bytes, fds: list[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, life = fds
    if (pid := os.fork()) == 0:
        become(order, streams)
    for fd in streams:
        os.close(fd)
    threading.Thread(target=_kill_unless_awaited, args=(pid, life), daemon=True).start()
    status = os.waitpid(pid, 0)[1]
    with suppress(BrokenPipeError):
        os.write(life, b"%d" % status)
    os._exit(0)


def _kill_unless_awaited(pid: int, life: int) -> None:
    """The number is its own for as long as whoever attends to it has not seen it off."""
    poll = select.poll()
    poll.register(life, 0)  # nobody reads any more: an error, of which one is told unasked
    poll.poll()
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def become(order: bytes, streams: list[int]) -> None:
    """The command."""
    arguments, environment, folder = json.loads(order)
    for place, fd in enumerate(streams):
        os.dup2(fd, place)
    os.closerange(3, 1024)
    os.chdir(folder)
    coerced = {name: os.environ[name] for name in ("LC_CTYPE",) if name in os.environ}  # by Python, as it began
    os.environ.clear()
    os.environ.update(coerced | environment)
    time.tzset()
    plain = {"encoding": "utf-8", "errors": sys.stdin.errors, "closefd": False}
    sys.stdin, sys.stdout = os.fdopen(0, **plain), os.fdopen(1, "w", **plain)
    sys.stderr = os.fdopen(2, "w", 1, **plain | {"errors": "backslashreplace"})
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    sys.argv = ["everloop", *arguments]
    os._exit(_status())


def _status() -> int:
    from everloop.__main__ import main

    try:
        status = main()
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
        if isinstance(left.code, str):
            sys.stderr.write(f"{left.code}\n")
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return status or 120
    return status


def load() -> None:
    for name in LOADED:
        for found in pkgutil.walk_packages(import_module(name).__path__, f"{name}."):
            if not found.name.startswith(HEAVY):
                import_module(found.name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    serve(socket.socket(fileno=int(sys.argv[1])))
