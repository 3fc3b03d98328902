"""The program of an MCP server, and what of the machine it has to see in a sandbox to run.

What the system has is seen there anyway. A program that lies elsewhere brings along the virtual environment, the
`node_modules` or the project that it belongs to, to read; a folder that is named as an argument it does not.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from ...errors import McpDown
from ..sandbox.view import PATH, SYSTEM

_OWN = ("pyvenv.cfg", "package.json", "pyproject.toml", "setup.py")
_HINTS = {
    **dict.fromkeys(("node", "npm", "npx"), "Install Node.js 22 or newer (https://nodejs.org)"),
    **dict.fromkeys(("uv", "uvx"), "Install uv (https://docs.astral.sh/uv)"),
    **dict.fromkeys(("python", "python3"), "Install Python"),
    **dict.fromkeys(("docker", "podman"), "Install it, and set sandbox = false for this server"),
}
_ADDRESS = re.compile(r"(?:localhost|[\w-]+(?:\.[\w-]+)+)(?::\d+|(?::\d+)?/.*)")
_SHEBANG = 256


class Program(Struct, frozen=True):
    """A command line whose program is there. `readable` is what it needs beside the system, `path` where it finds
    further programs."""

    argv: tuple[str, ...]
    readable: tuple[Path, ...] = ()
    path: str = PATH


def find_program(command: Sequence[str], search: str, confined: bool = True) -> Program:
    """The program of a command, looked for in `search` as a shell does; one that is `confined` has to run where nothing
    else of its owner's is. Raises McpDown."""
    name, *args = command
    found = located(name, search, confined)
    chain = [found, *_interpreters(found, search, confined)]
    scripts = [word for word in args if os.path.isabs(word) and os.path.isfile(word)][:1]
    readable = dict.fromkeys(folder for path in (*chain, *scripts) for folder in _needed_by(path))
    folders = dict.fromkeys(os.path.dirname(path) for path in chain if not _of_the_system(path))
    return Program((found, *args), tuple(readable), ":".join((*folders, PATH)))


def located(name: str, search: str, confined: bool = False) -> str:
    """The path of a program. Raises McpDown."""
    found = shutil.which(name, path=f"{search}:{PATH}")
    if not found:
        raise McpDown(f"command not found: {name}. {_hint(name)}.")
    found = os.path.abspath(found)
    if confined and (manager := _version_manager(found)):
        raise McpDown(
            f"{found} only stands in for a program, and cannot find it in the sandbox. Write the path that `{manager} "
            f"which {os.path.basename(name)}` tells, or put its folder first in PATH."
        )
    return found if _of_the_system(found) else _plain(found)


def _hint(name: str) -> str:
    if " " in name:
        return "Write its words apart, and not in one pair of quotes"
    if _ADDRESS.fullmatch(name):
        return "If it is an address, it begins with https:// or http://"
    if os.path.isfile(name):
        return "It is a file that cannot be run: chmod +x makes it a program"
    return _HINTS.get(name, "Install it, or write its whole path")


def _version_manager(path: str) -> str:
    """Whose stand-in (shim) this is: pyenv, nodenv, asdf, mise, volta; "" if it is a program."""
    folder = Path(path).parent
    if folder.name == "shims":
        return folder.parent.name.lstrip(".")
    return "volta" if os.path.basename(os.path.realpath(path)) == "volta-shim" else ""


def _plain(path: str) -> str:
    """Without links, but for that of a virtual environment to its Python, by which it is known."""
    while True:
        folder, name = os.path.split(path)
        path = os.path.join(os.path.realpath(folder), name)
        if _environment_of(path) or not os.path.islink(path):
            return path
        path = os.path.join(os.path.dirname(path), os.readlink(path))


def _interpreters(path: str, search: str, confined: bool) -> Iterator[str]:
    """What runs a script, by its first line."""
    with open(path, "rb") as file:
        line = file.read(_SHEBANG).split(b"\n")[0]
    if not line.startswith(b"#!"):
        return
    words = [word for word in os.fsdecode(line[2:]).split() if not word.startswith("-")]
    if words and os.path.basename(words[0]) == "env":
        words = words[1:]
    if words:
        yield located(words[0], search, confined)


def _needed_by(path: str) -> Iterator[Path]:
    """What of the machine a program or script needs, itself included; nothing if it is the system's."""
    if _of_the_system(path):
        return
    if environment := _environment_of(path):
        yield environment
        base = Path(os.path.realpath(environment / "bin" / "python")).parents[1]
        if not _of_the_system(str(base)):
            yield base
        return
    real = Path(os.path.realpath(path))
    if "node_modules" in real.parts:
        yield Path(*real.parts[: real.parts.index("node_modules") + 1])
        return
    yield next((folder for folder in real.parents if _is_whole(folder)), real)


def _environment_of(path: str) -> Path | None:
    folder = Path(path).parents[1] if len(Path(path).parents) > 1 else None
    return folder if folder and (folder / "pyvenv.cfg").is_file() else None


def _is_whole(folder: Path) -> bool:
    """Whether a folder is a program's own: an environment, which may lie in a project, or a project. That of a person
    is not, whatever lies there."""
    return folder != Path.home() and any((folder / name).is_file() for name in _OWN)


def _of_the_system(path: str) -> bool:
    """Also by what it leads to, for in a sandbox a link is only as good as that."""
    paths = (Path(path), Path(os.path.realpath(path)))
    return all(any(each.is_relative_to(folder) for folder in SYSTEM) for each in paths)
