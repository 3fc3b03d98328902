"""What the kernel tells of processes, as far as we may see it. All of it is empty where there is no /proc."""

import os
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def command_of(pid: int) -> str:
    """Its command line in short; "?" where that is not told."""
    try:
        words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "?"
    return " ".join(word.decode(errors="replace") for word in words if word)[:80] or "?"


def is_stopped(pid: int) -> bool:
    """Frozen, by a signal or a debugger."""
    try:
        state = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in ("T", "t")


def runners_of(spool: Path) -> list[int]:
    """The processes that run commands for a spool."""
    found = []
    for each in PROC.iterdir() if PROC.is_dir() else ():
        with suppress(OSError):
            words = (each / "cmdline").read_bytes().split(b"\0") if each.name.isdigit() else []
            if os.fsencode(spool) in words and any(b"sandbox.runner" in word for word in words):
                found.append(int(each.name))
    return found


def listener_at(port: int) -> int:
    """The process that listens at a port of this machine; 0 where we may not see it."""
    inodes = _listening(port)
    for each in PROC.iterdir() if inodes else ():
        if each.name.isdigit() and _holds(each / "fd", inodes):
            return int(each.name)
    return 0


def _listening(port: int) -> set[str]:
    found = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                found.add(f"socket:[{fields[9]}]")
    return found


def _holds(folder: Path, inodes: set[str]) -> bool:
    try:
        return any(os.readlink(folder / name) in inodes for name in os.listdir(folder))
    except OSError:
        return False
