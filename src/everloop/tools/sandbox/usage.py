"""What a command uses of the machine, with all that it has started.

What its processes have mapped stands in their status. Memory is also held where no process has it mapped: in files of
the sandbox's own /tmp, in shared memory that was filled and let go of, in pipes and sockets that nobody reads. These
are counted as well, at the most that they can be where nobody tells more. What cannot be counted from outside, such as
memfds and large System V segments, the filter of system calls refuses.
"""

import os
from contextlib import suppress

# What of a process nothing but its end sets free. RssFile is no part of it: that is a copy of what the disk holds,
# unless it is locked into memory.
_HELD = (b"RssAnon:", b"VmSwap:", b"VmPTE:", b"VmLck:", b"HugetlbPages:")
_OF_A_DESCRIPTOR = 8192  # two pages: what the kernel gives a pipe to a user who has very many
_OF_A_PIPE = 65536  # what it gives a pipe to all others; the filter of system calls refuses more
# As many descriptors as a process may have open may be on their way from one to another. Without a network of its own
# nobody can count the sockets among them, so there it is fewer.
DESCRIPTORS, DESCRIPTORS_WITHOUT_NAMESPACES = 16384, 1024
_OF_AN_INODE = 1024  # in a tmpfs, beside what is in the file
_OF_A_MESSAGE = 65536  # by which the last message may overshoot a buffer
_DATAGRAMS = 11  # messages that a datagram socket may hold, each from another sender
_FEW_SOCKETS = 32  # of which no closer look is taken
_DATAGRAM = b"0002"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TMPFS = ("tmp", "dev/shm")  # in bubblewrap


class Machine:
    """The machine in one moment: its memory, what of it is available, and what is in shared memory and tmpfs.

    All are 0 where there is no /proc.
    """

    def __init__(self) -> None:
        lines = _lines("/proc/meminfo")
        self.memory = _kilobytes(lines, (b"MemTotal:",))
        self.available = _kilobytes(lines, (b"MemAvailable:",))
        self.shared = _kilobytes(lines, (b"Shmem:",))


def tasks_and_memory(pid: int, first: int, limit: int, grown: int) -> tuple[int, int]:
    """How many processes and threads there are below this one, and how many bytes of memory they hold together.

    `first` is the first process in namespaces of their own, 0 if they have none. `grown` is by how much the shared
    memory of the machine has grown in their time; it counts as theirs if it matters for `limit` and they share any.
    """
    pids = descendants(pid)
    statuses = [_lines(f"/proc/{each}/status") for each in pids]
    held = sum(_kilobytes(lines, _HELD) for lines in statuses)
    shared = sum(_kilobytes(lines, (b"RssShmem:",)) for lines in statuses)
    if first:
        shared = max(shared, sum(_in_tmpfs(f"/proc/{first}/root", path) for path in _TMPFS))
    if grown > shared and held + grown > limit and any(map(_shares_memory, pids)):
        shared = grown
    room = limit - held - shared
    sockets = _in_sockets(first, room) if first else _in_pairs(pids, room)
    pipes = _in_pipes(pids, DESCRIPTORS if first else DESCRIPTORS_WITHOUT_NAMESPACES, room - sockets)
    return sum(_number(lines, b"Threads:") for lines in statuses), held + shared + sockets + pipes


def written_by(pid: int) -> float:
    """The most bytes that this process, those below it and those of them that have ended can have written."""
    try:
        all_lines = [_private_lines(each, "io") for each in (pid, *descendants(pid))]
    except PermissionError:  # one of them has hidden itself
        return float("inf")
    return float(sum(_number(lines, b"wchar:") + _number(lines, b"write_bytes:") for lines in all_lines))


def descendants(pid: int) -> list[int]:
    """All processes below this one, as far as they can be seen in this moment."""
    found: list[int] = []
    todo = [pid]
    while todo:
        above = todo.pop()
        for child in _children(above):
            found.append(child)
            todo.append(child)
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in _tasks(pid):
        with suppress(OSError), open(f"/proc/{pid}/task/{task}/children") as file:  # it may be gone, and others not
            children += map(int, file.read().split())
    return children


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:  # it is gone
        return []


def _in_tmpfs(root: str, path: str) -> int:
    """What its files take, also those that were deleted and are still open; 0 while it is still the machine's own."""
    folder = f"{root}/{path}"
    try:
        if os.path.exists(f"/{path}") and os.stat(folder).st_dev == os.stat(f"/{path}").st_dev:
            return 0
        stat = os.statvfs(folder)
    except OSError:  # it is gone
        return 0
    return (stat.f_blocks - stat.f_bfree) * stat.f_frsize + (stat.f_files - stat.f_ffree) * _OF_AN_INODE


def _shares_memory(pid: int) -> bool:
    """Whether it has shared memory without a name. How much nobody tells: it stays when it is unmapped in part."""
    try:
        return any(b" /dev/zero (deleted)" in line for line in _private_lines(pid, "maps"))
    except PermissionError:
        return True


def _descriptors(pid: int) -> int:
    path = f"/proc/{pid}/fd"
    try:
        return os.stat(path).st_size or len(os.listdir(path))  # before Linux 6.2 the size is always 0
    except OSError:  # it is gone, or hides them
        return 0


def _in_sockets(first: int, room: int) -> int:
    """What can wait in the sockets of a network of its own, also in those to which no descriptor leads."""
    net = f"/proc/{first}/net"
    counts = _lines(f"{net}/sockstat")
    waiting = 0
    if (used := _number(counts, b"sockets: used")) > _FEW_SOCKETS:
        kinds = [line.split()[4] for line in _lines(f"{net}/unix")[1:]]
        messages = len(kinds) + (_DATAGRAMS - 1) * kinds.count(_DATAGRAM)
        waiting = messages * _buffer("wmem") + (used - len(kinds)) * _buffer("rmem")
    if _of_all_connections(counts) > room - waiting:  # else it cannot matter how much of that is theirs
        waiting += sum(_queued(_lines(f"{net}/{name}")) for name in ("tcp", "tcp6"))
    return waiting


def _of_all_connections(counts: list[bytes]) -> int:
    """The memory of all TCP connections of the machine."""
    return sum(int(line.split()[-1]) * _PAGE for line in counts if line.startswith(b"TCP:"))


def _queued(lines: list[bytes]) -> int:
    """The bytes that wait in connections. Each may take twice its place."""
    queues = [line.split()[4].split(b":") for line in lines[1:]]
    return 2 * sum(int(sent, 16) + int(received, 16) for sent, received in queues)


def _in_pairs(pids: list[int], room: int) -> int:
    """What can wait in pairs of sockets; 0 if it is less than `room` even if all descriptors are such sockets."""
    buffer = _buffer("wmem")
    if buffer * sum(map(_descriptors, pids)) < room:
        return 0
    return buffer * len({link for pid in pids for link in _links(pid) if link.startswith("socket:")})


def _in_pipes(pids: list[int], passed: int, room: int) -> int:
    """What can wait in pipes, with what any descriptor takes.

    Which are pipes, and how many are on their way from process to process, of at most `passed`, is looked up only if it
    can matter."""
    count = sum(map(_descriptors, pids))
    if _OF_A_DESCRIPTOR * (count + passed) + _of_large_pipes(count + passed) <= room:
        return _OF_A_DESCRIPTOR * count
    pipes = {link for pid in pids for link in _links(pid) if link.startswith("pipe:")}
    passed = sum(map(_on_their_way, pids))
    return _OF_A_DESCRIPTOR * (count + passed) + _of_large_pipes(len(pipes) + passed)


def _of_large_pipes(count: int) -> int:
    """By how much so many pipes can be larger than the least, which they are when their user has too many."""
    larger = (_OF_A_PIPE - _OF_A_DESCRIPTOR) * count
    together = int(_lines("/proc/sys/fs/pipe-user-pages-soft")[0]) * _PAGE
    return min(larger, together) if together else larger


def _on_their_way(pid: int) -> int:
    """How many descriptors wait in its sockets to be taken out."""
    try:
        sockets = [name for name, link in _named_links(pid) if link.startswith("socket:")]
        return sum(_number(_lines(f"/proc/{pid}/fdinfo/{name}"), b"scm_fds:") for name in sockets)
    except PermissionError:
        return 0


def _links(pid: int) -> list[str]:
    """Where its descriptors lead; all to different sockets and pipes if it hides that."""
    try:
        return [link for _, link in _named_links(pid)]
    except PermissionError:
        if _is_ending(pid):
            return []
        return [f"{kind}:{pid}/{number}" for kind in ("socket", "pipe") for number in range(_descriptors(pid))]


def _named_links(pid: int) -> list[tuple[str, str]]:
    path = f"/proc/{pid}/fd"
    found: list[tuple[str, str]] = []
    try:
        for name in os.listdir(path):
            with suppress(FileNotFoundError):  # it has just closed that one
                found.append((name, os.readlink(f"{path}/{name}")))
    except (FileNotFoundError, ProcessLookupError):  # it is gone
        pass
    return found


def _buffer(kind: str) -> int:
    return int(_lines(f"/proc/sys/net/core/{kind}_default")[0]) + _OF_A_MESSAGE


def _lines(path: str) -> list[bytes]:
    """The lines of a file of /proc; none if it is gone. Raises PermissionError."""
    try:
        with open(path, "rb") as file:
            return file.read().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _private_lines(pid: int, name: str) -> list[bytes]:
    """The lines of a file of /proc that a process can hide. Raises PermissionError if it does that."""
    try:
        return _lines(f"/proc/{pid}/{name}")
    except PermissionError:
        if _is_ending(pid):
            return []
        raise


def _is_ending(pid: int) -> bool:
    """Whether it has no memory any more: it is about to end, or nobody has asked yet how it did. Then it seems to hide
    what it does not."""
    return not any(line.startswith(b"VmSize:") for line in _lines(f"/proc/{pid}/status"))


def _number(lines: list[bytes], name: bytes) -> int:
    return next((int(line[len(name) :].split()[0]) for line in lines if line.startswith(name)), 0)


def _kilobytes(lines: list[bytes], names: tuple[bytes, ...]) -> int:
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(names))
