"""macOS: a profile for `sandbox-exec`, which closes everything but what it names. Experimental.

Written after Apple's own profiles and those of other agents, and never yet run on a Mac by us: the tests compare its
text, and what starts and ends commands there is tried on Linux.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ...errors import ToolError
from .exposure import is_within, passed_in, refuse_exposed
from .port import SCRIPT, CommandSpec, CommandView

PROGRAM = "/usr/bin/sandbox-exec"
EXPERIMENTAL = (
    "the sandbox for commands on macOS is experimental: nobody has tried on a Mac yet whether it holds; see "
    "docs/sandbox.md"
)

_SYSTEM = (
    "/bin", "/sbin", "/usr", "/opt/homebrew", "/System", "/Library/Developer", "/Library/Frameworks",
    "/Applications/Xcode.app", "/private/var/db/dyld", "/private/var/db/timezone", "/private/var/select",
    "/private/etc/ssl", "/private/etc/passwd", "/private/etc/group", "/private/etc/hosts", "/private/etc/localtime",
    "/private/etc/services", "/private/etc/protocols", "/private/etc/shells",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SERVICES = ("com.apple.system.opendirectoryd.libinfo", "com.apple.system.notification_center")

# A later rule counts more than an earlier one. What may not be read may still be looked up, which is how a path is
# followed to what may; that tells whether a file exists, and how large it is.
_FIXED = """\
(version 1)
(deny default)
(allow process-fork process-exec)
(allow process-info* signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow file-read-metadata)
(allow file-read-data (literal "/"))
"""


class Seatbelt:
    """Confines commands by macOS's own sandbox. Experimental."""

    name = "sandbox-exec"

    def __init__(self, program: str = PROGRAM) -> None:
        self._program = program

    def order(self, job: CommandSpec, folder: Path) -> dict[str, Any]:
        if job.view.network:
            raise ToolError(
                "tools.exec.network names hosts that commands may reach, and on macOS they cannot be held to these; "
                "make the list empty"
            )
        refuse_exposed(job.view)
        temporary, script = str(folder / "tmp"), str(folder / "script.py")
        argv = [script if word == SCRIPT else word for word in job.argv]
        return {
            "way": "seatbelt",
            "argv": [self._program, "-p", profile(job.view, temporary, script), *argv],
            "cwd": os.path.realpath(job.folder),
            "inode": job.inode,
            "env": {**job.env, "HOME": temporary, "TMPDIR": temporary},
            "make": [temporary],
        }


def profile(view: CommandView, temporary: str, script: str) -> str:
    """The rules for a command: these paths and no others, and no network."""
    writable, readable = [*map(_real, (view.workspace, *view.writable))], [*map(_real, view.readable)]
    seen = (*_SYSTEM, *readable, *writable)
    hidden = [path for path in map(_real, view.hidden) if any(path != each and is_within(path, each) for each in seen)]
    return "\n".join([
        _FIXED.rstrip(),
        f"(allow mach-lookup {_filters('global-name', _SERVICES)})",
        f"(allow file-read* {_filters('subpath', (*_SYSTEM, *readable, _real(script)))})",
        f"(allow file-read* file-write-data file-ioctl {_filters('literal', _DEVICES)})",
        f"(allow file-read* file-write* {_filters('subpath', (*writable, _real(temporary)))})",
        *_without(hidden, readable, (*writable, _real(temporary)), _real(script)),
        *_held([step.path for folder in writable for path in view.hidden for step in passed_in(folder, path)]),
        "(deny network*)",
        "",
    ])  # fmt: skip


def _without(hidden: list[str], readable: list[str], writable: tuple[str, ...], script: str) -> Iterator[str]:
    """Rules that hide these folders, but for what a command is to see in them."""
    if not hidden:
        return
    yield f"(deny file-read* file-write* {_filters('subpath', hidden)})"
    inner = [path for path in (*readable, script) if any(is_within(path, each) for each in hidden)]
    if inner:
        yield f"(allow file-read* {_filters('subpath', inner)})"
    inner = [path for path in writable if any(is_within(path, each) for each in hidden)]
    if inner:
        yield f"(allow file-read* file-write* {_filters('subpath', inner)})"


def _held(folders: list[str]) -> Iterator[str]:
    """Rules by which these folders are neither renamed nor removed, so that nobody gets round what is hidden below."""
    if folders:
        yield f"(deny file-write-unlink {_filters('literal', folders)})"


def _real(path: str | Path) -> str:
    return os.path.realpath(path)


def _filters(kind: str, names: Iterable[str]) -> str:
    return " ".join(f"({kind} {_quoted(name)})" for name in names)


def _quoted(text: str) -> str:
    """A text in the language of profiles. Raises ToolError for one that could end it early."""
    if any(ord(letter) < 32 or letter == "\x7f" for letter in text):
        raise ToolError(f"commands cannot be run where a path holds a control character, as {text!r} does")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
