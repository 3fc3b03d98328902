"""Opening a path so that it cannot leave a folder, whatever links are put in its way and whenever.

This is the guard against path traversal. Checking a path and then opening it leaves a moment in which a part of it can
become a link to somewhere else (TOCTOU). So the kernel checks while it opens: `openat2` with RESOLVE_BENEATH follows
links that stay inside and refuses all others. Where the kernel does not have it we open one part after the other and
follow no link at all.
"""

import errno
import os
from collections.abc import Callable
from functools import cache

Opener = Callable[[int, str, int, int], int]
"""Open a relative path beneath a folder's descriptor, with flags and mode. Raises OSError."""

_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08
_ATTEMPTS = 100


@cache
def opener() -> Opener:
    """The best way to open beneath a folder that this kernel has."""
    kernel = _kernel_opener()
    if kernel is None:
        return open_in_steps
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(kernel(root, ".", os.O_RDONLY | os.O_DIRECTORY, 0))
    except OSError:  # too old, or a seccomp filter that does not know the call
        return open_in_steps
    finally:
        os.close(root)
    return kernel


def open_in_steps(folder: int, path: str, flags: int, mode: int = 0) -> int:
    """Walk down one part after the other, following no link."""
    *above, name = path.split("/")
    at = os.dup(folder)
    try:
        for part in above:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            os.close(at)
            at = below
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=at)
    finally:
        os.close(at)


def _kernel_opener() -> Opener | None:
    try:
        import ctypes  # only a file tool needs it, and not before its first use
    except ImportError:
        return None

    class OpenHow(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    size = ctypes.c_size_t(ctypes.sizeof(OpenHow))

    def open_beneath(folder: int, path: str, flags: int, mode: int = 0) -> int:
        how = OpenHow(flags | os.O_CLOEXEC, mode, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
        name = ctypes.c_char_p(os.fsencode(path))
        for _ in range(_ATTEMPTS):
            fd: int = syscall(ctypes.c_long(_OPENAT2), ctypes.c_int(folder), name, ctypes.byref(how), size)
            if fd >= 0:
                return fd
            problem = ctypes.get_errno()
            # EAGAIN: something was renamed while the kernel walked up through `..` in a link.
            if problem not in (errno.EAGAIN, errno.EINTR):
                break
        raise OSError(problem, os.strerror(problem), path)

    return open_beneath
