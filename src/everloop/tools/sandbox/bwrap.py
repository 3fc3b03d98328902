"""Bubblewrap: namespaces of one's own, in which nothing is there but what is put there.

/proc is made read-only, which bubblewrap leaves writable. It matters when everloop runs as root: a root without any
capability still owns /proc/sys, and could change the kernel's settings.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .exposure import is_within, passed_in, refuse_exposed
from .outlet import outlet_folder
from .port import SCRIPT, CommandSpec, CommandView
from .view import SYSTEM, own_code, python, shell_path

_TEMPORARY, _SHARED = 512 << 20, 64 << 20
_HOME = "/tmp/home"
_SCRIPT = "/tmp/home/script.py"
_OUTLET = "/run/everloop"
_PORT = 18128
_PROXY = f"http://127.0.0.1:{_PORT}"
_PROXIES = {
    **{name: _PROXY for scheme in ("http", "https", "all") for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper())},
    **dict.fromkeys(("no_proxy", "NO_PROXY"), "localhost,127.0.0.1,::1"),
}

# Between our look at a folder and bubblewrap's another may have taken its name; where a process is stays what it is.
_ON_ITS_GROUND = (
    'test "$(stat -c %d:%i .)" = "$0" || '
    '{ echo "not run: the folder is not the one that was allowed" >&2; exit 126; }; exec "$@"'
)


class Bubblewrap:
    """Confines commands by the program at `program`. `own` are folders that no command may change where it may all
    else: everloop's own code, by default."""

    name = "bubblewrap"

    def __init__(self, program: str, own: Sequence[str] | None = None) -> None:
        self._program = program
        self._own = own_code() if own is None else own

    def order(self, job: CommandSpec, folder: Path) -> dict[str, Any]:
        """What the runner is to start; `folder` is the command's in the spool. Raises ToolError if it cannot be."""
        refuse_exposed(job.view)
        script = ["--ro-bind", str(folder / "script.py"), _SCRIPT] if job.script is not None else []
        argv = [_SCRIPT if word == SCRIPT else word for word in job.argv]
        if job.inode:
            argv = [shell_path(), "-c", _ON_ITS_GROUND, job.inode, *argv]
        here = os.path.realpath(job.folder)
        # Bubblewrap takes its time over each thing that is put there, so the runner has made one folder for /etc.
        etc = ["--ro-bind-try", str(folder.parents[1] / "etc"), "/etc"]
        env = {**job.env, "HOME": _HOME, "TMPDIR": "/tmp"}
        way_out: list[str] = []
        if job.view.network:
            way_out = ["--ro-bind", str(outlet_folder(folder.parents[1], job.view.network)), _OUTLET]
            argv, env = [*_forwarder(), *argv], {**env, **_PROXIES}
        options = [*_world(job.view, self._own), *etc, *way_out, *script, "--remount-ro", "/", "--chdir", here]
        return {"way": "bwrap", "argv": [self._program, *options, "--", *argv], "env": env}


@cache
def _forwarder() -> tuple[str, ...]:
    """What stands before a command that may reach some hosts."""
    text = Path(__file__).with_name("forward.py").read_text()
    return (python()[0], "-I", "-S", "-c", text, _OUTLET, str(_PORT))


def _world(view: CommandView, own: Sequence[str]) -> Iterator[str]:
    yield from ("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox")
    for path in SYSTEM:
        if os.path.islink(path):
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.isdir(path):
            yield from _bound("--ro-bind", path)
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
    yield from ("--perms", "1777", "--size", str(_SHARED), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--perms", "1777", "--size", str(_TEMPORARY), "--tmpfs", "/tmp", "--dir", _HOME)
    yield from _folders(view, own)


def _folders(view: CommandView, own: Sequence[str]) -> Iterator[str]:
    """The folders of a view, with something empty over what is hidden in them or in the system's."""
    writable = [os.path.realpath(each) for each in (view.workspace, *view.writable)]
    hidden = [os.path.realpath(each) for each in view.hidden]
    readable = [os.path.realpath(each) for each in (*view.readable, *(python()[1] if view.network else ()))]
    binds = [*(("--ro-bind", folder) for folder in readable), *(("--bind", folder) for folder in writable)]
    inner = [bind for bind in binds if any(is_within(bind[1], each) for each in hidden)]
    for how, folder in binds:
        if (how, folder) not in inner:
            yield from _bound(how, folder)
    for folder in writable:
        if ("--bind", folder) not in inner:
            yield from _held(folder, view.hidden, own)
    covered = [place for each in hidden for place in _places(each, (*SYSTEM, *readable, *writable))]
    for place in covered:
        yield from ("--tmpfs", place) if os.path.isdir(place) else ("--ro-bind", "/dev/null", place)
    for how, folder in inner:
        yield from _bound(how, folder)
    for folder in writable:
        if ("--bind", folder) in inner:
            yield from _held(folder, (), own)
    for place in covered:
        if os.path.isdir(place):
            yield from ("--remount-ro", place)


def _held(workspace: str, hidden: Sequence[Path], own: Iterable[str]) -> Iterator[str]:
    """What of the workspace no command may change: everloop's own code, and the way there and to what is hidden.

    What is a mount point cannot be renamed, so nobody gets round it by renaming a folder above it."""
    own = [path for path in own if is_within(path, workspace) and path != workspace]
    last = {*map(os.path.realpath, hidden), *own}
    steps = (step.path for path in (*hidden, *map(Path, own)) for step in passed_in(workspace, path))
    for folder in sorted({*steps} - last):
        if os.path.isdir(folder):
            yield from _bound("--bind", folder)
    for path in own:
        yield from _bound("--ro-bind", path)


def _places(hidden: str, folders: Iterable[str]) -> list[str]:
    """Where something that is hidden would be seen, were it not."""
    found: dict[str, None] = {}
    for folder in folders:
        real = os.path.realpath(folder)
        if is_within(hidden, real) and os.path.exists(hidden) and not os.path.islink(folder):
            found[os.path.normpath(os.path.join(folder, os.path.relpath(hidden, real)))] = None
    return list(found)


def _bound(how: str, path: str) -> tuple[str, str, str]:
    return how, path, path
