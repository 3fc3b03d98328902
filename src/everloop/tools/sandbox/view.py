"""What a confined command sees of this machine: programs and what they need, and an environment of its own."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
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


def shell() -> str:
    """bash, or any shell."""
    return shutil.which("bash", path=PATH) or "/bin/sh"


def python() -> tuple[str, tuple[Path, ...]]:
    """A Python for a confined command, and what it must be able to read for that: the system's, or else our own."""
    found = shutil.which("python3", path=PATH)
    if found and any(Path(os.path.realpath(found)).is_relative_to(folder) for folder in SYSTEM):
        return found, ()
    return os.path.realpath(sys.executable), (Path(sys.base_prefix),)
