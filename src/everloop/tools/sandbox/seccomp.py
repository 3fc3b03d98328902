"""System calls that a sandboxed command has no business with, as a filter for the kernel.

A namespace hides what is outside, but leaves the whole kernel to play with; these calls are where most ways out of
one were found. `classic` is for use beside namespaces; `strict` must hold without them, where every process, socket
and file of the user is in reach of calls that Landlock does not know.
"""

import errno
import os
import struct
import sys

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _ANY_BIT, _GREATER, _MASK, _RETURN = 0x20, 0x15, 0x45, 0x25, 0x54, 0x06
_NUMBER, _ARCH = 0, 4
_X32 = 0x40000000
_ARCHES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

# New namespaces of any kind: time, mounts, cgroup, uts, ipc, user, pids, net.
_NEW = 0x00000080 | 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_UNIX, _INET, _INET6 = 1, 2, 10
_STREAM, _SEQPACKET, _KIND = 1, 5, 0xF
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_RESERVE = (0x40305828, 0x4030582A, 0x40305839)  # ioctls that do what fallocate does
_PUNCH_A_HOLE = 3
_SOL_SOCKET, _SNDBUF, _RCVBUF = 1, 7, 8
_SET_PIPE_SIZE, _PIPE = 1031, 65536  # bytes that a pipe holds if nobody asks for more
_SEGMENT, _SEMAPHORES = 16384, 32  # bytes and semaphores in one; PostgreSQL needs some, and the kernel grants thousands

_NUMBERS = {  # on x86-64, on arm64
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "move_mount": (429, 429),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "setns": (308, 268), "chroot": (161, 51),
    "bpf": (321, 280), "perf_event_open": (298, 241), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "userfaultfd": (323, 282), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "iopl": (172, None),
    "ioperm": (173, None), "open_by_handle_at": (304, 265), "lookup_dcookie": (212, 18), "syslog": (103, 116),
    "vhangup": (153, 58), "fanotify_init": (300, 262), "uselib": (134, None), "sethostname": (170, 161),
    "setdomainname": (171, 162), "clone": (56, 220), "clone3": (435, 435), "unshare": (272, 97), "socket": (41, 198),
    "socketpair": (53, 199), "ioctl": (16, 29), "connect": (42, 203), "chmod": (90, None), "fchmod": (91, 52),
    "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None), "lchown": (94, None), "fchown": (93, 55),
    "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None), "futimesat": (261, None),
    "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "file_setattr": (469, 469), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "pidfd_getfd": (438, 438), "kcmp": (312, 272), "prlimit64": (302, 261), "setpriority": (141, 140),
    "ioprio_set": (251, 30), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "vmsplice": (278, 75), "setsockopt": (54, 208), "fallocate": (285, 47),
    "fcntl": (72, 25),
}  # fmt: skip

_NEVER = (  # noqa: SIM905
    "mount umount2 pivot_root move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick mount_setattr setns "
    "chroot bpf perf_event_open io_uring_setup io_uring_enter io_uring_register keyctl add_key request_key userfaultfd "
    "kexec_load kexec_file_load init_module finit_module delete_module reboot swapon swapoff acct quotactl quotactl_fd "
    "settimeofday clock_settime clock_adjtime iopl ioperm open_by_handle_at lookup_dcookie syslog vhangup "
    "fanotify_init uselib sethostname setdomainname"
).split()

# Landlock knows nothing of a file's mode, owner, times and attributes, of other processes' memory and limits, of
# shared memory and queues, and of sockets that are files.
_NEVER_WITHOUT_NAMESPACES = (  # noqa: SIM905
    "connect chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat setxattr lsetxattr fsetxattr setxattrat "
    "removexattr lremovexattr fremovexattr removexattrat file_setattr ptrace process_vm_readv process_vm_writev "
    "process_madvise process_mrelease pidfd_getfd kcmp migrate_pages move_pages "
    "shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink"
).split()
# What holds memory where nobody can count it: memfds without a descriptor or a mapping, pages that only a pipe has.
# Programs take it for a kernel that has no such calls, and do without.
_UNCOUNTED = ("memfd_create", "memfd_secret", "vmsplice")
_TIMES = ("utime", "utimes", "futimesat", "utimensat")

# Calls that change another process when they name one; 0 is the caller.
_OF_A_PROCESS = {
    "prlimit64": 0, "setpriority": 1, "ioprio_set": 1, "sched_setaffinity": 0, "sched_setscheduler": 0,
    "sched_setparam": 0, "sched_setattr": 0,
}  # fmt: skip

Code = list[tuple[int, int, int, int]]


def classic(machine: str = "") -> bytes:
    """The filter for a command in namespaces of its own. Raises OSError on a machine that it does not know."""
    rules = {
        **dict.fromkeys(_NEVER, _refuse(errno.EPERM)),
        **_namespaces(),
        **_counted(),
        "socket": _only(0, (_UNIX, _INET, _INET6), errno.EAFNOSUPPORT),  # a vsock leads out of any namespace
        "ioctl": _never(1, (_TIOCSTI, _TIOCLINUX, *_RESERVE), errno.EPERM),
        "shmget": [*_small(1), *_refuse(errno.EINVAL), *_at_most(1, _SEGMENT, errno.EINVAL)],
        "semget": _at_most(1, _SEMAPHORES, errno.EINVAL),
        "msgget": _refuse(errno.ENOSYS),
    }
    return _compiled(rules, machine)


def strict(machine: str = "") -> bytes:
    """The filter for a command that nothing but Landlock holds. Raises OSError on a machine that it does not know."""
    rules = {
        **dict.fromkeys((*_NEVER, *_NEVER_WITHOUT_NAMESPACES), _refuse(errno.EPERM)),
        **dict.fromkeys(_TIMES, _refuse(0)),  # said to be done: tar and cp want it, and nobody misses it
        **{name: _only(place, (0,), errno.EPERM) for name, place in _OF_A_PROCESS.items()},
        **_namespaces(),
        **_counted(),
        "socket": _refuse(errno.EACCES),
        # A pair of datagram sockets could still be sent elsewhere, one by one.
        "socketpair": _only(1, (_STREAM, _SEQPACKET), errno.EPERM, mask=_KIND),
        "ioctl": _never(1, (_TIOCSTI, _TIOCLINUX, *_RESERVE), errno.EPERM),
    }
    return _compiled(rules, machine)


def _namespaces() -> dict[str, Code]:
    return {
        "clone": [_load(0), (_ANY_BIT, 0, 1, _NEW), *_refuse(errno.EPERM), *_pass()],
        "unshare": [_load(0), (_ANY_BIT, 0, 1, _NEW), *_refuse(errno.EPERM), *_pass()],
        "clone3": _refuse(errno.ENOSYS),  # its flags lie in memory, out of sight; every libc then falls back to clone
    }


def _counted() -> dict[str, Code]:
    """So that what a command takes can be counted: see `usage` and `disk`."""
    buffers = [_load(2), (_EQUAL, 1, 0, _SNDBUF), (_EQUAL, 0, 1, _RCVBUF), *_refuse(0), *_pass()]
    return {
        **dict.fromkeys(_UNCOUNTED, _refuse(errno.ENOSYS)),
        # Said to be done: the kernel too takes the size of a buffer for a wish.
        "setsockopt": [_load(1), (_EQUAL, 1, 0, _SOL_SOCKET), *_pass(), *buffers],
        # Its answer to those who have too many large pipes already.
        "fcntl": [_load(1), (_EQUAL, 1, 0, _SET_PIPE_SIZE), *_pass(), *_at_most(2, _PIPE, errno.EPERM)],
        # It takes place on the disk in which nothing is written; libc then writes.
        "fallocate": _only(1, (_PUNCH_A_HOLE,), errno.EOPNOTSUPP),
    }


def _load(place: int) -> tuple[int, int, int, int]:
    return (_LOAD, 0, 0, 16 + 8 * place + (0 if sys.byteorder == "little" else 4))


def _pass() -> Code:
    return [(_RETURN, 0, 0, _ALLOW)]


def _refuse(number: int) -> Code:
    return [(_RETURN, 0, 0, _ERRNO | number)]


def _only(place: int, values: tuple[int, ...], number: int, mask: int = 0) -> Code:
    code = [_load(place), *([(_MASK, 0, 0, mask)] if mask else [])]
    code += [(_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)]
    return [*code, *_refuse(number), *_pass()]


def _at_most(place: int, most: int, number: int) -> Code:
    return [_load(place), (_GREATER, 0, 1, most), *_refuse(number), *_pass()]


def _small(place: int) -> Code:
    """Skips the next line for a number of 64 bits that needs no more than 32."""
    return [(_LOAD, 0, 0, 16 + 8 * place + (4 if sys.byteorder == "little" else 0)), (_EQUAL, 1, 0, 0)]


def _never(place: int, values: tuple[int, ...], number: int) -> Code:
    code = [_load(place), *((_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values))]
    return [*code, *_pass(), *_refuse(number)]


def _compiled(rules: dict[str, Code], machine: str) -> bytes:
    machine = machine or os.uname().machine
    if machine not in _ARCHES:
        raise OSError(errno.ENOSYS, f"there is no filter of system calls for {machine}")
    column, arch = _ARCHES[machine]
    code: Code = [(_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    if machine == "x86_64":
        code += [(_GREATER, 0, 1, _X32 - 1), *_refuse(errno.ENOSYS)]
    for name, body in rules.items():
        number = _NUMBERS[name][column]
        if number is not None:
            code += [(_EQUAL, 0, len(body), number), *body]
    code += _pass()
    return b"".join(struct.pack("HBBI", *line) for line in code)
