"""Tools whose effects can be counted from outside, however often the process that ran them was killed.

`counting_tool` makes a tool of any effect class; each run leaves one line in a file. The file plays the remote:
for a keyed tool it knows our keys, so that a second line with the same key is a repeat and not an effect.
"""

import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ..core.tool import Effect, ToolSpec
from ..ports.tools import CallContext, Tool
from . import outside


class Ran(Struct, frozen=True):
    """One run that reached the remote."""

    key: str
    name: str
    args: dict[str, Any]
    pid: int
    effect: Effect


def counting_tool(path: Path, name: str, effect: Effect, *, local: bool = False, guarded: bool = False) -> Tool:
    """A tool that takes any arguments, appends one line to `path` and answers `name: done`.

    A VERIFIABLE one has `verify`, which looks for the key in the file.
    """
    spec = ToolSpec(name, f"Counts as {effect}.", {"type": "object"}, effect, local, guarded)

    async def run(args: dict[str, Any], context: CallContext) -> str:
        outside.append(path, Ran(context.key, name, args, os.getpid(), effect))
        return f"{name}: done"

    async def verify(args: dict[str, Any], context: CallContext) -> str | None:
        return f"{name}: done" if any(ran.name == name and ran.key == context.key for ran in runs_in(path)) else None

    return Tool(spec, run, verify if effect is Effect.VERIFIABLE else None)


def runs_in(path: Path) -> list[Ran]:
    """Every run, in order, repeats among them."""
    return [msgspec.convert(record, Ran) for record in outside.records_in(path)]


def effects_in(path: Path) -> list[Ran]:
    """The runs that changed the world: all but a keyed tool's later runs with a key that the remote knows."""
    return outside.told_apart(runs_in(path), _known_by)[0]


def repeats_in(path: Path) -> list[Ran]:
    """The runs that the remote dropped because it knew their key."""
    return outside.told_apart(runs_in(path), _known_by)[1]


def _known_by(ran: Ran) -> tuple[str, str] | None:
    return (ran.name, ran.key) if ran.effect is Effect.KEYED else None
