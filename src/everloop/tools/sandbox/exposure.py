"""Whether what must stay hidden can be, from whoever sees some folders of this machine.

What lies in such a folder is hidden by putting something empty in its place there. That is enough if it can be seen in
that one place, and if nobody who may write in the workspace can put another folder at the path by which everloop will
find it the next time. Where that is not so, it is said, to be refused.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from ...errors import ToolError
from ..home import identity_of
from .port import CommandView
from .view import SYSTEM, python

OWN = ("files", "logs", "mcp", "models", "run", "spool")  # folders in the home in which everloop works
_LINKS = 40  # as the kernel
_NOTHING = (-1, -1)


class Step(NamedTuple):
    path: str
    is_link: bool


class Mount(NamedTuple):
    """What is mounted at `point`: the folder `root` of a file system on `device`."""

    point: str
    device: str
    root: str
    kind: str = ""  # of the file system


def is_within(path: str, folder: str) -> bool:
    """Of paths without links."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def way_to(path: Path) -> Iterator[Step]:
    """Every folder and link that one passes on the way to a path, by where it really lies; the last one included."""
    at, links, todo = "/", 0, str(path.absolute()).split("/")[::-1]
    while todo and links < _LINKS:
        name = todo.pop()
        if name == "..":
            at = os.path.dirname(at)
        if name in ("", ".", ".."):
            continue
        here = os.path.join(at, name)
        try:
            target = os.readlink(here)
        except OSError:  # no link, or nothing yet
            at = here
            yield Step(here, False)
            continue
        yield Step(here, True)
        links += 1
        at = "/" if target.startswith("/") else at
        todo += target.split("/")[::-1]


def passed_in(workspace: str, path: Path) -> list[Step]:
    """What one passes on the way to a path that lies in the workspace, so that a command could move it."""
    return [step for step in way_to(path) if step.path != workspace and is_within(step.path, workspace)]


def why_exposed(hidden: Path, workspace: Path, readable: Iterable[Path] = ()) -> str:
    """Why what is hidden could be reached by who writes in the workspace and reads the system's and these folders;
    empty if it could not."""
    real, inside = os.path.realpath(hidden), os.path.realpath(workspace)
    if link := next((step.path for step in passed_in(inside, hidden) if step.is_link), ""):
        return (
            f"everloop's home {hidden} is reached through the link {link} in the workspace, and a command could put "
            f"another in its place; set EVERLOOP_HOME to {real}, or choose another workspace"
        )
    seen = (inside, *_of_the_system(), *map(os.path.realpath, readable))
    if real in seen:
        return f"everloop's home {hidden} is a folder that commands see as a whole; set EVERLOOP_HOME elsewhere"
    mounts = mounts_of_this_machine()
    if place := next(_seen_elsewhere(real, seen, inside, mounts), ""):
        return (
            f"everloop's home {hidden}, or a part of it, is also mounted at {place}, where commands see it; "
            "unmount it there, or choose another workspace"
        )
    if folder := next(folders_above(real, [folder for folder in seen if not is_within(real, folder)]), ""):
        return (
            f"everloop's home {hidden} lies in {folder}, which its path spells in another way; spell both alike in "
            "EVERLOOP_HOME and workspace"
        )
    if proc := next((each.point for each in mounts if each.kind == "proc" and is_within(each.point, inside)), ""):
        return f"{proc}, which shows the processes of this machine, lies in the workspace; choose another workspace"
    return ""


def folders_above(path: str, folders: Iterable[str]) -> Iterator[str]:
    """Those in which a path lies, by what they are: to some file systems Apps and apps are one name."""
    above: set[tuple[int, int]] = set()
    while path != (path := os.path.dirname(path)):
        above.add(_identity(path))
    above.discard(_NOTHING)
    return (folder for folder in folders if _identity(folder) in above)


@cache
def _of_the_system() -> tuple[str, ...]:
    folders = (*SYSTEM, *map(str, python()[1]))
    return tuple({os.path.realpath(folder): None for folder in folders if os.path.isdir(folder)})


def refuse_exposed(view: CommandView) -> None:
    """Raises ToolError where what a view hides could be reached all the same."""
    for hidden in view.hidden:
        for folder in (view.workspace, *view.writable):
            if why := why_exposed(hidden, folder, view.readable):
                raise ToolError(why)


def why_not_there(home: Path, workspace: Path) -> str:
    """Why everloop cannot keep its home out of reach with this workspace; empty if it can."""
    real, inside = os.path.realpath(home), os.path.realpath(workspace)
    if _is_same(inside, real) or _is_own(inside, real):
        return f"workspace is {workspace}, where everloop keeps its own files; choose another folder"
    if is_within(real, "/etc") and (folder := _copied(real)):
        return f"everloop's home {home} lies in {folder}, of which commands get a copy; set EVERLOOP_HOME elsewhere"
    if entry := _led_into(real, inside, workspace):
        return (
            f"{entry} leads into the workspace, where commands could change what everloop reads there; put the file "
            "itself into the home, or choose another workspace"
        )
    return why_exposed(home, workspace)


def _copied(home: str) -> str:
    from .spool import ETC  # takes its time, and few have their home there

    return next((name for name in (f"/etc/{name}" for name in ETC) if is_within(home, os.path.realpath(name))), "")


def _is_same(path: str, other: str) -> bool:
    """Also where a mount shows it under another name."""
    return path == other or _identity(path) == _identity(other) != _NOTHING


def _identity(path: str) -> tuple[int, int]:
    try:
        return identity_of(os.stat(path))
    except OSError:
        return _NOTHING


def _is_own(workspace: str, home: str) -> bool:
    """Whether it lies in a folder in which everloop works, also where a mount shows that under another name."""
    own = [os.path.realpath(os.path.join(home, name)) for name in OWN]
    if any(is_within(workspace, folder) for folder in own):
        return True
    mounts = mounts_of_this_machine()
    here, there = _location(workspace, mounts), _location(home, mounts)
    if here is None or there is None or here.device != there.device:
        return False
    return any(is_within(here.root, os.path.join(there.root, name)) for name in OWN)


def _led_into(home: str, workspace: str, given: Path) -> str:
    """What lies in the home only as a link that leads through the workspace; but for the workspace's own."""
    try:
        links = [Path(entry.path) for entry in os.scandir(home) if entry.is_symlink()]
    except OSError:
        return ""
    own = os.path.join(os.path.realpath(os.path.dirname(given)), os.path.basename(given))
    return next((str(link) for link in links if str(link) != own and _passes(link, workspace)), "")


def _passes(link: Path, workspace: str) -> bool:
    return any(is_within(step.path, workspace) for step in way_to(link) if step.path != str(link))


def mounts_of_this_machine() -> tuple[Mount, ...]:
    """None where they cannot be had, as on macOS. They are asked for each time, and read when they have changed."""
    try:
        return _mounts_in(Path("/proc/self/mountinfo").read_bytes())
    except OSError:
        return ()


@lru_cache(maxsize=1)
def _mounts_in(told: bytes) -> tuple[Mount, ...]:
    found = []
    for line in filter(None, told.split(b"\n")):
        before, _, after = os.fsdecode(line).partition(" - ")
        device, root, point = before.split(" ")[2:5]
        found.append(Mount(_plain(point), device, _plain(root), after.split(" ")[0]))
    return tuple(found)


def _plain(text: str) -> str:
    return text if "\\" not in text else re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _seen_elsewhere(hidden: str, folders: Sequence[str], workspace: str, mounts: Sequence[Mount]) -> Iterator[str]:
    """Where in these folders something hidden can be seen beside its own path, as mounts can bring about."""
    where, allowed = _location(hidden, mounts), _location(workspace, mounts)
    if where is None or allowed is None:
        return
    alike = [mount for mount in mounts if mount.device == where.device and not is_within(mount.point, hidden)]
    for folder in folders:
        here = _location(folder, mounts)
        below = [mount for mount in alike if mount.point != folder and is_within(mount.point, folder)]
        for mount in (*([here] if here and here.device == where.device else ()), *below):
            if is_within(where.root, mount.root):
                place = os.path.normpath(os.path.join(mount.point, os.path.relpath(where.root, mount.root)))
                if place != hidden and _is_same(place, hidden):
                    yield place
            elif mount is not here and is_within(mount.root, where.root) and not is_within(mount.root, allowed.root):
                yield mount.point


def _location(path: str, mounts: Sequence[Mount]) -> Mount | None:
    """Where a path lies in its file system, whatever it is called here."""
    over = [mount for mount in mounts if is_within(path, mount.point)]
    if not over:
        return None
    longest = max(len(mount.point) for mount in over)
    mount = [each for each in over if len(each.point) == longest][-1]
    rest = path[len(mount.point) :].strip("/")
    return Mount(path, mount.device, os.path.join(mount.root, rest) if rest else mount.root)
