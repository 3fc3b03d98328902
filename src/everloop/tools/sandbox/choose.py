"""Which way to confine commands works on this machine: found out by doing it."""

import asyncio
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Protocol

from ...errors import ToolError
from . import landlock
from .bwrap import Bubblewrap
from .exposure import is_within, refuse_exposed
from .port import SCRIPT, CommandSpec, CommandView
from .seatbelt import EXPERIMENTAL, PROGRAM, Seatbelt
from .spool import ETC
from .view import PATH, SYSTEM

_PATIENCE = 20.0
_log = logging.getLogger("everloop.sandbox")


class Confinement(Protocol):
    """How a command is confined."""

    name: str

    def order(self, job: CommandSpec, folder: Path) -> dict[str, Any]:
        """What the runner is to start; `folder` is the command's in the spool. Raises ToolError if it cannot be."""
        ...


class Landlock:
    """Confines commands by Landlock and a strict filter of system calls; they have no /proc and cannot use chmod."""

    name = "landlock"

    def order(self, job: CommandSpec, folder: Path) -> dict[str, Any]:
        refuse_exposed(job.view)
        writable = [os.path.realpath(folder) for folder in (job.view.workspace, *job.view.writable)]
        readable = [*SYSTEM, *(f"/etc/{name}" for name in ETC), *map(str, job.view.readable)]
        for seen in (*writable, *readable):
            real = os.path.realpath(seen)
            if inside := [path for path in job.view.hidden if is_within(os.path.realpath(path), real)]:
                raise ToolError(
                    f"{inside[0]} lies in {seen}, which commands see, and only bubblewrap can hide it there; install "
                    "bubblewrap, or choose another workspace or home"
                )
        if job.view.network:
            raise ToolError(
                "tools.exec.network names hosts that commands may reach, and only bubblewrap can hold them to these; "
                "install bubblewrap, or make the list empty"
            )
        temporary, script = str(folder / "tmp"), str(folder / "script.py")
        own = {"HOME": temporary, "TMPDIR": temporary}
        return {
            "way": "landlock",
            "argv": [script if word == SCRIPT else word for word in job.argv],
            "cwd": os.path.realpath(job.folder),
            "inode": job.inode,
            "env": {**job.env, **own},
            "readable": [*readable, script],
            "writable": [*writable, temporary],
            "make": [temporary],
        }


class Unconfined:
    """Commands run as the user who runs everloop, with the limits but without any wall. For owners who insist."""

    name = "nothing"

    def order(self, job: CommandSpec, folder: Path) -> dict[str, Any]:
        script = str(folder / "script.py")
        argv = [script if word == SCRIPT else word for word in job.argv]
        return {"way": "none", "argv": argv, "cwd": os.path.realpath(job.folder), "inode": job.inode}


async def choose_way(program: str | None = None, unsafe: bool = False, platform: str = sys.platform) -> Confinement:
    """The best way that works here. Raises ToolError that says what to install.

    With `unsafe`, commands run without any where none works. `program` is the path of the bubblewrap, or on macOS of
    the sandbox-exec, to use; by default that of the system.
    """
    way: Confinement | None = None
    if platform == "darwin":
        way = Seatbelt(program or PROGRAM)
    elif program := program or shutil.which("bwrap", path=f"{PATH}:{os.environ.get('PATH', '')}"):
        way = Bubblewrap(program)
    why = await _trouble_with(way) if way else "it is not installed"
    if way and not why:
        if isinstance(way, Seatbelt):
            _log.warning(EXPERIMENTAL)
        return way
    if platform == "linux" and landlock.version() >= landlock.NEEDED:
        return Landlock()
    if unsafe:
        return Unconfined()
    raise ToolError(refused(why, platform))


def refused(why: str, platform: str = "linux") -> str:
    """Why no command can be run, and what to do about it."""
    if platform == "darwin":
        return (
            f"commands cannot be run, because there is no sandbox on this machine: {PROGRAM} cannot be used ({why}). "
            "It is a part of macOS; run everloop on a macOS that has it, or on Linux."
        )
    return (
        f"commands cannot be run, because there is no sandbox on this machine: bubblewrap cannot be used ({why}), and "
        f"its kernel has no Landlock of version {landlock.NEEDED} (Linux 6.12). Install bubblewrap (Debian and "
        "Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap) and see that user namespaces are allowed."
    )


async def _trouble_with(way: Confinement) -> str:
    """Why a command cannot be confined in this way; empty if it can."""
    with tempfile.TemporaryDirectory() as folder:
        test = "test -r /proc/self/status || test ! -e /proc && echo works"
        job = CommandSpec(("/bin/sh", "-c", test), CommandView(Path(folder)), Path(folder))
        try:
            process = await asyncio.create_subprocess_exec(
                *way.order(job, Path(folder))["argv"],
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={"PATH": PATH},
            )
        except OSError as error:
            return str(error.strerror)
        try:
            async with asyncio.timeout(_PATIENCE):
                said, complaint = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return f"it did not answer within {_PATIENCE:g} s"
    return "" if said == b"works\n" else complaint.decode(errors="replace").strip()[:300] or "it failed silently"
