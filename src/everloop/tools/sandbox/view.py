"""What a confined command sees of this machine: programs and what they need, and an environment of its own."""

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_FROM_OUTSIDE = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ")


def environment(outside: Mapping[str, str], allowed: Iterable[str] = ()) -> dict[str, str]:
    """The environment of a command: what it needs, and of the one outside only what was allowed by name.

    A way of confining puts its own HOME and TMPDIR in the place of these.
    """
    known = {name: outside[name] for name in (*_FROM_OUTSIDE, *allowed) if name in outside}
    own = {"PATH": PATH, "HOME": "/tmp", "TMPDIR": "/tmp", "TERM": "dumb", "PAGER": "cat"}
    return {"LANG": "C.UTF-8", **known, **own}


def shell_path() -> str:
    """bash, or any shell."""
    return _found("bash") or "/bin/sh"


def has_program(name: str) -> bool:
    """Whether commands find a program of this name."""
    return bool(_found(name))


def _found(name: str) -> str:
    """As shutil.which, which loads three ways to compress files that nobody needs here."""
    paths = (f"{folder}/{name}" for folder in PATH.split(":"))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), "")


def python() -> tuple[str, tuple[Path, ...]]:
    """A Python for a confined command, and what it must be able to read for that: the system's, or else our own."""
    found = _found("python3")
    if found and any(Path(os.path.realpath(found)).is_relative_to(folder) for folder in SYSTEM):
        return found, ()
    return os.path.realpath(sys.executable), (Path(sys.base_prefix),)


@cache
def own_code() -> list[str]:
    """What runs outside of the sandbox at the next start: everloop itself, and the environment that it is in."""
    package, around = os.path.realpath(Path(__file__).parents[2]), os.path.realpath(sys.prefix)
    return [around] if package.startswith(f"{around}/") else [around, package]
