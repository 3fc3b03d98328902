"""Going through the files beneath a folder, by name, following no link: so that it cannot lead out.

Only the standard library is used here, since `grep` does this in a process that has nothing else.
"""

import os
import re
import time
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache"})

STRANGE = "\x1e"  # begins the line by which a search names a stranger's file
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 64
_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")

State = frozenset[tuple[int, int]]


class Glob:
    """A pattern for paths: `*` and `?` stay within a name, `**` is any number of folders, `{a,b}` is either.

    A pattern without a slash is looked for in every folder. Reading a path takes one step for each name in it, and
    the pattern's length bounds each step, so that no pattern is slow. Raises ValueError.
    """

    def __init__(self, pattern: str) -> None:
        alternatives = _alternatives(pattern)
        self._patterns = [tuple(each.split("/")) for each in alternatives]
        self._patterns = [each if len(each) > 1 else ("**", *each) for each in self._patterns]
        self.start = self._with_empty({(each, 0) for each in range(len(self._patterns))})

    def step(self, state: State, name: str) -> State:
        """Where the pattern stands after one more name; empty when nothing below can fit."""
        after = set()
        for each, place in state:
            if place == len(self._patterns[each]):
                continue
            wanted = self._patterns[each][place]
            if wanted == "**":
                after.add((each, place))
                if place == len(self._patterns[each]) - 1:  # at the end it stands for at least one name
                    after.add((each, place + 1))
            elif _fits(wanted, name):
                after.add((each, place + 1))
        return self._with_empty(after)

    def accepts(self, state: State) -> bool:
        return any(place == len(self._patterns[each]) for each, place in state)

    def names(self, folder: str) -> bool:
        """Whether the pattern itself names this folder."""
        return any(folder in each for each in self._patterns)

    def _with_empty(self, state: set[tuple[int, int]]) -> State:
        """`**` also stands for no folder at all."""
        todo = list(state)
        for each, place in todo:
            pattern = self._patterns[each]
            if place < len(pattern) - 1 and pattern[place] == "**":
                todo.append((each, place + 1))
        return frozenset(todo)


def _alternatives(pattern: str) -> list[str]:
    done, todo = [], [pattern]
    while todo:
        each = todo.pop(0)
        if braces := _BRACES.search(each):
            todo += [each[: braces.start()] + one + each[braces.end() :] for one in braces[1].split(",")]
        else:
            done.append(each)
        if len(done) + len(todo) > _ALTERNATIVES:
            raise ValueError(f"the pattern has more than {_ALTERNATIVES} alternatives in braces")
    return done


def _fits(pattern: str, name: str) -> bool:
    return _compiled(pattern).match(name) is not None


@lru_cache(256)
def _compiled(pattern: str) -> "re.Pattern[str]":
    return re.compile(translate(pattern))


class WalkedFile(NamedTuple):
    path: str  # from the folder where the walk began
    entry: "os.DirEntry[str]"
    folder: int  # the descriptor of the folder it lies in; open until the next one is asked for


class Walk:
    """The files and links beneath a folder that fit a pattern, in the order of their names.

    `most` is how many names are looked at. Afterwards `skipped` names the folders that were passed by, and `cut` says
    why it ended too early.
    """

    def __init__(self, glob: Glob, seconds: float, most: int = 300_000, hidden: tuple[int, int] | None = None) -> None:
        """`hidden` is the device and the number of a folder that is passed by unsaid."""
        self._glob = glob
        self._hidden = hidden
        self._until = time.monotonic() + seconds
        self._seconds = seconds
        self._left = self._most = most
        self.skipped: set[str] = set()
        self.cut = ""

    def beneath(self, folder: int) -> Iterator[WalkedFile]:
        return self._below(folder, "", self._glob.start, 0)

    def _below(self, folder: int, above: str, state: State, depth: int) -> Iterator[WalkedFile]:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            if self._is_over():
                return
            after = self._glob.step(state, entry.name)
            if not after:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._into(folder, entry.name, above, after, depth)
            elif self._glob.accepts(after):
                yield WalkedFile(above + entry.name, entry, folder)

    def _into(self, folder: int, name: str, above: str, state: State, depth: int) -> Iterator[WalkedFile]:
        if name in SKIPPED and not self._glob.names(name):
            self.skipped.add(name)
            return
        if depth >= _DEEPEST:
            self.cut = f"folders more than {_DEEPEST} deep were not looked into"
            return
        try:
            below = os.open(name, _FOLDER, dir_fd=folder)
        except OSError:
            return  # gone, not ours to read, or a link by now
        try:
            if self._hidden and self._hidden == ((status := os.fstat(below)).st_dev, status.st_ino):
                return
            yield from self._below(below, f"{above}{name}/", state, depth + 1)
        finally:
            os.close(below)

    def _is_over(self) -> bool:
        self._left -= 1
        if self._left < 0:
            self.cut = f"only the first {self._most:,} names were looked at"
        elif time.monotonic() > self._until:
            self.cut = f"it was ended after {self._seconds:g} s"
        else:
            return False
        return True


def printable(path: str) -> str:
    """A path for one line: a name may hold anything but a slash, and must not look like two lines."""
    return path if path.isprintable() else ascii(path)
