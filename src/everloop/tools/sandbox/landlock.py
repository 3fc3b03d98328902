"""Confining a process by Landlock, for machines where no namespaces can be had.

Landlock closes files and folders, and (from its sixth version on, Linux 6.12) signals to processes outside. What it
does not know, the strict filter of system calls refuses. A process that has confined itself stays so, with all that it
starts.
"""

import ctypes
import os
import sys
from functools import cache

from . import seccomp

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_BENEATH = 1
NEEDED = 6

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_ALL = (1 << 16) - 1
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _ALL & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL)
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_TCP = 0b11
_SCOPES = 0b11  # abstract sockets, signals
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _DROP_BOUNDING = 38, 22, 2, 24
_CAPABILITIES_V3 = 0x20080522


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("access", ctypes.c_uint64), ("fd", ctypes.c_int32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """The version of Landlock that this kernel speaks; 0 if none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc().syscall(ctypes.c_long(_CREATE), None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def confine(readable: list[str], writable: list[str]) -> None:
    """Confine this process for good: these paths and no others, no capability, no dangerous call. Raises OSError."""
    _drop_capabilities()
    _checked(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    rules = _Ruleset(_ALL, _TCP, _SCOPES)
    ruleset = _checked(
        _libc().syscall(
            ctypes.c_long(_CREATE), ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), ctypes.c_uint32(0)
        )
    )
    for path in readable:
        _allow(ruleset, path, _READ)
    for path in writable:
        _allow(ruleset, path, _WRITE)
    for path in _DEVICES:
        _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
    _checked(_libc().syscall(ctypes.c_long(_RESTRICT), ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    os.close(ruleset)
    code = seccomp.strict()
    program = _Program(len(code) // 8, ctypes.cast(ctypes.c_char_p(code), ctypes.c_void_p))
    _checked(_libc().prctl(_SECCOMP, _FILTER, ctypes.byref(program), 0, 0))


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):  # what we may not open, a command may not either
        return
    try:
        rule = _Rule(access if os.path.isdir(path) else access & _OF_FILES, fd)
        kind, flags = ctypes.c_int(_BENEATH), ctypes.c_uint32(0)
        _checked(_libc().syscall(ctypes.c_long(_ADD), ctypes.c_int(ruleset), kind, ctypes.byref(rule), flags))
    finally:
        os.close(fd)


def _drop_capabilities() -> None:
    """Root without capabilities owns its files and nothing more."""
    if os.geteuid() == 0:
        for capability in range(64):
            if _libc().prctl(_DROP_BOUNDING, capability, 0, 0, 0):
                break  # that was the last one
    head = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    none = (ctypes.c_uint32 * 6)()
    _checked(_libc().capset(ctypes.byref(head), ctypes.byref(none)))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
