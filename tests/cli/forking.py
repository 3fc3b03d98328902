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
import signal
import socket
import subprocess
import sys
import threading
import traceback
from importlib import import_module
from pathlib import Path

# Loaded ahead, with all that is in them, but for what needs a library that not everyone has.
LOADED = ("everloop.cli", "everloop.app", "everloop.runtime", "everloop.net", "everloop.tools", "everloop.providers")
HEAVY = ("everloop.providers.embedded", "everloop.app.replay", "everloop.tools.sandbox")
# What Python looks at when it begins.
OF_PYTHON = ("PYTHON", "LC_", "LANG", "TZ", "LD_", "SSL_", "OMP_")
MOST_TYPED = 4096  # bytes, which a pipe holds whoever reads them


class Forked:
    """A command that was begun here."""

    def __init__(self, life: int, out: int, err: int) -> None:
        self._streams = [life, out, err]
        self.pid = 0

    async def ended(self) -> tuple[int, bytes, bytes]:
        """Its status, as `returncode` of a process, and what it has said."""
        life, out, err = [await _reader(fd) for fd in self._streams]
        self.pid = int(await life.readline())
        said, complained = await asyncio.gather(out.read(), err.read())
        status = int(await life.read())
        self.pid = 0
        return os.waitstatus_to_exitcode(status), said, complained

    def kill(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)


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
        self._process.wait()


_servers: list[ForkServer] = []


def fork_server() -> ForkServer:
    """That of this process."""
    if not _servers:
        _servers.append(ForkServer())
    return _servers[0]


def can_fork(environment: dict[str, str], typed: bytes) -> bool:
    return len(typed) <= MOST_TYPED and not any(name.startswith(OF_PYTHON) for name in environment)


async def _reader(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    pipe = os.fdopen(fd, "rb")
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


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
    os.write(life, b"%d\n" % pid)
    os.write(life, b"%d" % os.waitpid(pid, 0)[1])
    os._exit(0)


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
