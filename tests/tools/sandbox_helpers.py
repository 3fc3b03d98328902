"""A small world to break out into: secrets, listeners and a process that belong to the user who runs the commands."""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import everloop
from everloop.core.people import Role
from everloop.ports.tools import CallContext
from everloop.tools.sandbox import landlock
from everloop.tools.sandbox.bwrap import Bubblewrap
from everloop.tools.sandbox.choose import Confinement, Landlock, Unconfined
from everloop.tools.sandbox.commands import SandboxedCommands
from everloop.tools.sandbox.door import Door
from everloop.tools.sandbox.outlet import Outlet
from everloop.tools.sandbox.port import CommandLimits, CommandSpec, CommandView, Outcome
from everloop.tools.sandbox.view import environment

NOBODY = 65534
TOKEN = f"canary-5b1e77-{os.getpid()}"  # which no other run has, as its processes are looked for
SYSTEM_PYTHON = "/usr/bin/python3"
_VICTIM = "import sys, time; kept = open(sys.argv[1]); print('ready', kept.fileno(), flush=True); time.sleep(600)"
_PACKAGES = ("__init__.py", "tools/__init__.py", "tools/sandbox")


def context(number: int = 1, thread: str = "t") -> CallContext:
    return CallContext(f"{thread}:{number}:0", thread, "cli:direct", "ann", role=Role.USER)


class World:
    """Folders and processes of one user. `uid` is that of the runner, and so of the commands."""

    def __init__(self, base: Path, uid: int, way: str) -> None:
        self.base, self.uid = base, uid
        self.workspace, self.outside, self.home = base / "home/workspace", base / "outside", base / "home"
        self.spool = base / "home/spool"
        for folder in ("home/workspace", "home/spool", "outside/folder", "bin", "package/everloop/tools"):
            (base / folder).mkdir(parents=True)
        self.secrets = [
            self.outside / "secret.txt",
            self.outside / "folder" / "id_key",
            self.home / "config.toml",
            self.home / "everloop.db",
            self.home / "vault.key",
            self.spool / "earlier",
        ]
        for secret in self.secrets:
            secret.write_text(f"{TOKEN} of {secret.name}\n")
            secret.chmod(0o600)
        self._way = way
        self.bwrap = base / "bin/bwrap"
        if found := shutil.which("bwrap"):
            shutil.copy(found, self.bwrap)
        for part in _PACKAGES:
            source, target = Path(everloop.__file__).parent / part, base / "package/everloop" / part
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        self.own(base)

    def own(self, folder: Path) -> None:
        if self.uid == os.geteuid():
            return
        for place, _, files in os.walk(folder):
            for path in (place, *(os.path.join(place, file) for file in files)):
                os.chown(path, self.uid, self.uid, follow_symlinks=False)

    def prefix(self) -> list[str]:
        if self.uid == os.geteuid():
            return []
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups"]

    def commands(
        self,
        way: str = "",
        spool: Path | None = None,
        outlet: Outlet | None = None,
        door: Door | None = None,
        confined: Confinement | None = None,
    ) -> SandboxedCommands:
        """The sandbox of this world, whose runner runs as its user."""
        python = [*self.prefix(), sys.executable if self.uid == os.geteuid() else SYSTEM_PYTHON]
        spool = spool or self.spool
        ways: dict[str, Confinement] = {
            "bwrap": Bubblewrap(str(self.bwrap)),
            "landlock": Landlock(),
            "none": Unconfined(),
        }

        async def choose() -> Confinement:
            return confined or ways[way or self._way]

        return SandboxedCommands(spool, choose, door=door or Door(spool, python, self.base / "package"), outlet=outlet)

    def job(self, *argv: str, limits: CommandLimits | None = None, network: tuple[str, ...] = ()) -> CommandSpec:
        view = CommandView(self.workspace, hidden=(self.home,), network=network)
        return CommandSpec(argv, view, self.workspace, environment({}), limits or CommandLimits())

    def snapshot(self) -> dict[str, tuple[object, ...]]:
        """Everything outside of the workspace and the spool, with its content, mode, owner and time."""
        found: dict[str, tuple[object, ...]] = {}
        for top in (self.outside, self.home, self.base / "bin"):
            for place, folders, files in os.walk(top):
                folders[:] = [name for name in folders if Path(place, name) not in (self.workspace, self.spool)]
                for name in (*folders, *files):
                    path = Path(place, name)
                    status = path.lstat()
                    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
                    times = status.st_mtime_ns if path.is_file() else 0
                    found[str(path)] = (status.st_mode, status.st_uid, times, content)
        earlier = self.spool / "earlier"
        return found | {"earlier": (earlier.read_text() if earlier.exists() else None,)}


@contextmanager
def world(way: str, uid: int) -> Iterator[World]:
    """Skips when this machine or this user cannot have it."""
    if way == "bwrap" and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    if way == "landlock" and landlock.version() < landlock.NEEDED:
        pytest.skip("this kernel's Landlock is too old")
    if uid != os.geteuid() and (os.geteuid() != 0 or not shutil.which("setpriv") or not Path(SYSTEM_PYTHON).exists()):
        pytest.skip("only root can run commands as another user, with setpriv and the system's Python")
    base = Path(tempfile.mkdtemp(prefix="everloop-sandbox-"))
    base.chmod(0o755)
    try:
        yield World(base, uid, way)
    finally:
        shutil.rmtree(base, ignore_errors=True)


class Victim:
    """A process of the user outside, with a secret in its arguments, its environment and its memory, and open."""

    def __init__(self, world: World) -> None:
        self.process = subprocess.Popen(
            [*world.prefix(), SYSTEM_PYTHON, "-c", _VICTIM, str(world.secrets[0]), f"argv-{TOKEN}"],
            stdout=subprocess.PIPE,
            env={"SECRET": f"environ-{TOKEN}", "PATH": os.defpath},
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.fd = int(self.process.stdout.readline().split()[1])
        self.pid = self.process.pid
        self._before = self._state()

    def _state(self) -> tuple[str, ...]:
        status = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        kept = [line for line in status if line.startswith(("TracerPid", "Cpus_allowed:")) or "stop" in line]
        limits = Path(f"/proc/{self.pid}/limits").read_text()
        nice = str(os.getpriority(os.PRIO_PROCESS, self.pid))
        return (*kept, limits, nice)

    def is_unharmed(self) -> bool:
        return self.process.poll() is None and self._state() == self._before

    def end(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


class Listeners:
    """Sockets of the machine on loopback and in the file system, which should never hear anything."""

    def __init__(self, folder: Path) -> None:
        self.abstract = f"\0everloop-{os.getpid()}-{id(self)}"
        self.sockets = {
            "tcp": _bound(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            "tcp6": _bound(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
            "udp": _bound(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            "unix": _bound(socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "stream.sock")),
            "unixgram": _bound(socket.AF_UNIX, socket.SOCK_DGRAM, str(folder / "gram.sock")),
            "abstract": _bound(socket.AF_UNIX, socket.SOCK_STREAM, self.abstract),
        }
        for name in ("stream.sock", "gram.sock"):
            (folder / name).chmod(0o777)

    def port(self, name: str) -> int:
        port: int = self.sockets[name].getsockname()[1]
        return port

    def heard(self) -> list[str]:
        """The names of those to whom someone spoke."""
        return [name for name, sock in self.sockets.items() if _hears(sock)]

    def close(self) -> None:
        for sock in self.sockets.values():
            sock.close()


def _bound(family: int, kind: int, address: object) -> socket.socket:
    sock = socket.socket(family, kind)
    sock.bind(address)  # type: ignore[arg-type]
    if kind == socket.SOCK_STREAM:
        sock.listen(64)
    sock.setblocking(False)
    return sock


def _hears(sock: socket.socket) -> bool:
    heard = False
    with suppress(BlockingIOError):
        while True:
            if sock.type == socket.SOCK_STREAM:
                sock.accept()[0].close()
            else:
                sock.recv(100)
            heard = True
    return heard


def processes_with(mark: str) -> list[str]:
    """The command lines of living processes that hold a mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if mark in words and int(pid) != os.getpid():
                found.append(words)
    return found


async def run_once(commands: SandboxedCommands, job: CommandSpec, number: int = 1) -> Outcome:
    outcome = await commands.run(context(number), job)
    await commands.close()
    return outcome
