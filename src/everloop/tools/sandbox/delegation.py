"""Where control groups for commands can be made, if anywhere.

Version 1 of cgroups has a hierarchy of folders for each controller. There a group is made below the one that we are in,
so that whatever holds us holds commands too. In version 2 a group has either processes, or groups with a memory of
their own, never both ("no internal processes"). So there a group is made

- below ours if that is the root of the machine, which may have both; or if ours was given to us (`Delegate=` of
  systemd): then its processes, which are everloop's, go into a group of their own in it;
- else beside ours if we may, unless ours has a limit that commands would get out of.
"""

import os
from contextlib import suppress

from .cgroup import CONTROLLERS, Cgroup, Groups, enter, read, words, write

_OURS = "everloop"  # the group of everloop itself, where its own was given to it
_ROUNDS = 3
_DELEGATED = ("user.delegate", "trusted.delegate")  # set by systemd


def find_groups(proc: str = "/proc/self") -> Groups | None:
    """Where groups can be made; None if nowhere."""
    try:
        version, bases = find_places(proc)
        groups = Groups(version, bases)
        if "memory" not in bases or not _works(groups):
            return None
        groups.sweep()
    except OSError:
        return None
    return groups


def find_places(proc: str = "/proc/self") -> tuple[int, dict[str, str]]:
    """The version, and the folders in which groups can be made, by controller. Raises OSError."""
    bases = _version_2(proc)
    return (2, bases) if bases else (1, _version_1(proc))


def _works(groups: Groups) -> bool:
    """Whether a process can be put into a group, and limited: found out by doing it. Raises OSError."""
    group = groups.make()
    try:
        group.limit({"memory": 64 << 20, "processes": 8})
        pid = os.fork()
        if not pid:
            _enter_and_leave(group)
        return os.waitpid(pid, 0)[1] == 0 and not group.exceeded()
    finally:
        groups.remove(group)


def _enter_and_leave(group: Cgroup) -> None:
    code = 1
    try:
        enter(group.doors)
        code = 0
    finally:
        os._exit(code)


def _version_1(proc: str) -> dict[str, str]:
    """The folders of our own groups, by controller, if they may be written."""
    own = [line.split(":", 2) for line in read(f"{proc}/cgroup").splitlines()]
    found: dict[str, str] = {}
    for root, place, kind, options in _mounts(proc):
        for _, names, path in own:
            for controller in set(names.split(",")) & set(CONTROLLERS):
                folder = _beneath(place, root, path)
                if kind == "cgroup" and controller in options and _is_our_own(folder) and _may_make_groups(folder):
                    found[controller] = folder
    if "memory" in found and "oom_kill " not in read(f"{found['memory']}/memory.oom_control"):
        return {}  # before Linux 4.13 the kernel does not tell
    return {controller: found[controller] for controller in CONTROLLERS if controller in found}


def _version_2(proc: str) -> dict[str, str]:
    own = [line.split(":", 2)[2] for line in read(f"{proc}/cgroup").splitlines() if line.startswith("0::")]
    places = [
        _beneath(place, root, path) for root, place, kind, _ in _mounts(proc) if kind == "cgroup2" for path in own
    ]
    for folder in filter(_is_our_own, places):
        if "memory" in words(f"{folder}/cgroup.controllers") and (base := _base(folder)):
            shared = words(f"{base}/cgroup.subtree_control")
            return {controller: base for controller in CONTROLLERS if controller in shared}
    return {}


def _base(own: str) -> str:
    """The folder in which groups can be made, by those who are in this one; empty if there is none."""
    above = os.path.dirname(own)
    if not os.path.exists(f"{own}/cgroup.type"):  # only the root of the machine has none
        return own if _shares_memory(own) else ""
    if _is_delegated(own):
        _move_into(own, f"{own}/{_OURS}")
        return own if _shares_memory(own) else ""
    if not _may_make_groups(above):
        return ""
    if _is_delegated(above):  # by `DelegateSubgroup=`, or by us
        return above if _shares_memory(above) else ""
    limits = [read(f"{own}/{name}").strip() for name in ("memory.max", "memory.high")]
    return above if limits == ["max", "max"] and "memory" in words(f"{above}/cgroup.subtree_control") else ""


def _shares_memory(folder: str) -> bool:
    """Lets the groups in a folder have memory of their own, and a number of processes."""
    for controller in CONTROLLERS:
        if controller not in words(f"{folder}/cgroup.subtree_control"):
            with suppress(OSError):
                write(f"{folder}/cgroup.subtree_control", f"+{controller}")
    return "memory" in words(f"{folder}/cgroup.subtree_control")


def _move_into(own: str, inner: str) -> None:
    """Empty a group that was given to us into one below it. Raises OSError."""
    os.makedirs(inner, exist_ok=True)
    for _ in range(_ROUNDS):  # while we move them, they start others
        for pid in words(f"{own}/cgroup.procs"):
            with suppress(ProcessLookupError):
                write(f"{inner}/cgroup.procs", pid)


def _is_delegated(folder: str) -> bool:
    for name in _DELEGATED:
        with suppress(OSError):
            return os.getxattr(folder, name) == b"1"
    return False


def _is_our_own(folder: str) -> bool:
    """Whether this is the group that we are in. In a container its name may be that of another, or of none."""
    try:
        return str(os.getpid()) in words(f"{folder}/cgroup.procs")
    except OSError:
        return False


def _may_make_groups(folder: str) -> bool:
    return os.access(folder, os.W_OK) and os.access(f"{folder}/cgroup.procs", os.W_OK)


def _mounts(proc: str) -> list[tuple[str, str, str, list[str]]]:
    """What of a file system is mounted, where, its kind and its options."""
    found = []
    for line in read(f"{proc}/mountinfo").splitlines():
        words = line.split()
        kind, _, options = words[words.index("-") + 1 :][:3]
        found.append((words[3], words[4], kind, options.split(",")))
    return found


def _beneath(place: str, root: str, path: str) -> str:
    """Where a group is seen of a hierarchy that is mounted from `root` on."""
    inner = path.removeprefix(root) if root != "/" and path.startswith(root) else path
    return f"{place}/{inner.strip('/')}".rstrip("/")
