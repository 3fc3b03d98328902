"""Packages of MCP servers: what `npx -y PACKAGE` and `uvx PACKAGE` would fetch anew at each start, installed once.

A person is asked before that. What was installed is written down with each package, its exact version and its hash; a
digest of this belongs to what is allowed of the server. From then on it runs from its folder, without a network.
"""

import os
import re
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from ...errors import McpDown, ToolError

LOCK = "everloop-lock.json"
_NPM = re.compile(r"((?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*)(?:@([A-Za-z0-9][A-Za-z0-9._+-]*))?")
_PYPI = re.compile(
    r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9._,-]+\])?)(?:(?:==|@)([A-Za-z0-9][A-Za-z0-9._+!-]*))?"
)
_NEWEST = ("", "latest")
_CONTAINERS = ("docker", "podman", "nerdctl")
_OTHER_FETCHERS = ("bunx", "pnpx", "pipx", "deno")
_YES = ("-y", "--yes", "-q", "--quiet", "--isolated", "--no-progress")


class Package(Struct, frozen=True, order=True):
    """A package as a registry has it; `hash` is that of the archive which was fetched."""

    name: str
    version: str
    hash: str


class Installation(Struct, frozen=True, kw_only=True):
    """What is to be fetched: the `version` of a package, "" for the newest, with all that it needs. `program` is the
    one of its programs to run, "" for its only one."""

    kind: Literal["npm", "pypi"]
    package: str
    version: str
    program: str
    args: tuple[str, ...]
    folder: Path

    @property
    def question(self) -> str:
        """What a person is asked before anything is fetched."""
        which = f"{self.package} {self.version}" if self.version else f"the newest {self.package}"
        registry = "the npm registry" if self.kind == "npm" else "the Python package index"
        return (
            f"Fetch {which} and what it needs from {registry} (as your {'npm' if self.kind == 'npm' else 'pip'} is set "
            f"up) into {self.folder / 'package'}? Nothing of it is run while it is installed."
        )


class Installed(Struct, frozen=True):
    """What lies there: `command` is the one that was given, with the exact version."""

    command: tuple[str, ...]
    digest: str
    packages: tuple[Package, ...] = ()


class Lock(Struct, frozen=True, kw_only=True):
    """What is written down of an installation. `run` is how it is run: what holds a `/` lies in its folder."""

    kind: Literal["npm", "pypi"]
    package: str
    version: str
    program: str
    run: tuple[str, ...]
    packages: tuple[Package, ...]

    @property
    def digest(self) -> str:
        return sha256(msgspec.json.encode(self)).hexdigest()


def plan(command: Sequence[str], folder: Path, sandbox: bool = True) -> Installation | None:
    """What a command would fetch, for a server with this folder; None if nothing. Raises ToolError for a command that
    fetches in a way of its own."""
    name, *words = command
    name = os.path.basename(name)
    if name == "npm" and words[:1] in (["exec"], ["x"]):
        name, words = "npx", words[1:]
    if name == "uv" and words[:2] == ["tool", "run"]:
        name, words = "uvx", words[2:]
    if name == "npx":
        return _planned(words, folder, "npm")
    if name == "uvx":
        return _planned(words, folder, "pypi")
    if sandbox:
        _refuse(name, words)
    return None


def _refuse(name: str, words: Sequence[str]) -> None:
    if name in _CONTAINERS:
        raise ToolError(
            f"{name} starts the server outside of everloop's sandbox. If that is what you want, set sandbox = false "
            "for this server: then it is run as you wrote it"
        )
    if name in _OTHER_FETCHERS or (name, *words[:1]) in (("uv", "run"), ("pnpm", "dlx"), ("yarn", "dlx")):
        raise ToolError(
            f"{name} would fetch packages whenever the server starts, and in the sandbox it has no network. Use npx -y "
            "PACKAGE or uvx PACKAGE, which are installed once, or name a program that is installed"
        )


def _planned(words: Sequence[str], folder: Path, kind: Literal["npm", "pypi"]) -> Installation:
    spec, program, rest = "", "", [*words]
    options = ("-p", "--package") if kind == "npm" else ("--from",)
    while rest and rest[0].startswith("-"):
        option, equals, value = rest.pop(0).partition("=")
        if option == "--":
            break
        if option in options and (equals or rest):
            spec = value if equals else rest.pop(0)
        elif option not in _YES:
            raise ToolError(_UNDERSTOOD[kind].format(option))
    if not rest:
        raise ToolError(_UNDERSTOOD[kind].format("no package"))
    first = rest.pop(0)
    if spec:
        program = first
    package, version = _read(spec or first, kind)
    return Installation(kind=kind, package=package, version=version, program=program, args=tuple(rest), folder=folder)


_UNDERSTOOD: dict[str, str] = {
    "npm": "{} is not understood here; write npx -y PACKAGE ARGUMENTS or npx -y --package PACKAGE PROGRAM ARGUMENTS",
    "pypi": "{} is not understood here; write uvx PACKAGE ARGUMENTS or uvx --from PACKAGE PROGRAM ARGUMENTS",
}


def _read(spec: str, kind: Literal["npm", "pypi"]) -> tuple[str, str]:
    """The name and the version. Raises ToolError for anything but a name in a registry."""
    found = (_NPM if kind == "npm" else _PYPI).fullmatch(spec)
    if not found:
        raise ToolError(
            f"{spec} is no package of a registry, and only these are installed: a name, and with @ a version; not a "
            "folder, an address or a range"
        )
    version = found[2] or ""
    return found[1], "" if version in _NEWEST else version


def exact_command(planned: Installation, version: str) -> tuple[str, ...]:
    at = f"{planned.package}@{version}" if planned.kind == "npm" else f"{planned.package}=={version}"
    start, option = (("npx", "-y"), "--package") if planned.kind == "npm" else (("uvx",), "--from")
    return (*start, *((option, at, planned.program) if planned.program else (at,)), *planned.args)


def installed(command: Sequence[str], folder: Path) -> Installed | None:
    """What is installed of a command in a server's folder; None if nothing, or another package or version."""
    planned = plan(command, folder, sandbox=False)
    lock = _read_lock(folder) if planned else None
    if not planned or not lock or not _fits(lock, planned):
        return None
    return Installed(exact_command(planned, lock.version), lock.digest, lock.packages)


def offline_command(command: Sequence[str], folder: Path, digest: str, sandbox: bool) -> tuple[str, ...]:
    """What runs a command from its server's folder; the command itself if it needs none. `digest` is that of what was
    allowed. Raises McpDown."""
    try:
        planned = plan(command, folder, sandbox)
    except ToolError as error:
        raise McpDown(str(error)) from error
    if not planned:
        return tuple(command)
    lock = _read_lock(folder)
    if not lock or not _fits(lock, planned):
        which = f"{planned.package} {planned.version}".strip()
        raise McpDown(f"{which} is not installed; install it with `everloop mcp install {folder.name}`")
    if digest and lock.digest != digest:
        raise McpDown(
            f"{planned.package} is installed in another way than was allowed; look at it, and install it again with "
            f"`everloop mcp install {folder.name}`"
        )
    own = folder / "package"
    return (*(str(own / word) if "/" in word else word for word in lock.run), *planned.args)


def remove(folder: Path) -> None:
    """Remove all that there is of a server. Raises OSError."""
    if folder.exists():
        shutil.rmtree(folder)


def _fits(lock: Lock, planned: Installation) -> bool:
    same = (lock.kind, lock.package) == (planned.kind, planned.package) and planned.version in ("", lock.version)
    return same and lock.program == planned.program


def _read_lock(folder: Path) -> Lock | None:
    try:
        return msgspec.json.decode((folder / "package" / LOCK).read_bytes(), type=Lock)
    except (OSError, msgspec.MsgspecError):
        return None
