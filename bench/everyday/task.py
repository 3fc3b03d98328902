"""A task: what lies in the workspace, what is said, and what must be true afterwards."""

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

Folder = Mapping[str, str]
"""What files hold, by their paths."""


class Outcome(Struct, frozen=True):
    answers: tuple[str, ...]
    before: Folder
    after: Folder

    @property
    def answer(self) -> str:
        return self.answers[-1]


Check = Callable[[Outcome], str]
"""What is wrong; "" if nothing is."""


class Task(Struct, frozen=True):
    name: str
    kind: str
    says: tuple[str, ...]
    checks: tuple[Check, ...]
    files: Folder = {}
    tool: bool = True  # it cannot be answered, or done, without one


def says(*words: str) -> Check:
    """The last answer holds one of these, whatever the case."""
    return lambda it: "" if any(word.lower() in it.answer.lower() for word in words) else f"none of {words} is said"


def says_all(*words: str) -> Check:
    return lambda it: ", ".join(f"{word!r} is not said" for word in words if word.lower() not in it.answer.lower())


def says_not(*words: str) -> Check:
    return lambda it: ", ".join(f"{word!r} is said" for word in words if word.lower() in it.answer.lower())


def number(value: float) -> Check:
    """The last answer names this number, however it is written."""

    def check(it: Outcome) -> str:
        plain = re.sub(r"(?<=\d)[, ](?=\d{3}\b)", "", it.answer)
        said = [float(found) for found in re.findall(r"-?\d+(?:\.\d+)?", plain)]
        return "" if any(abs(one - value) < 0.006 for one in said) else f"{value} is not said"

    return check


def unchanged(it: Outcome) -> str:
    """Nothing was written, moved or deleted."""
    paths = sorted(path for path in {*it.before, *it.after} if it.before.get(path) != it.after.get(path))
    return f"changed: {', '.join(paths)}" if paths else ""


def only(*paths: str) -> Check:
    """Nothing but these was changed."""

    def check(it: Outcome) -> str:
        changed = {path for path in {*it.before, *it.after} if it.before.get(path) != it.after.get(path)}
        return f"changed: {', '.join(sorted(changed - {*paths}))}" if changed - {*paths} else ""

    return check


def holds(path: str, *pieces: str) -> Check:
    def check(it: Outcome) -> str:
        if path not in it.after:
            return f"there is no {path}"
        return ", ".join(f"{path} lacks {piece!r}" for piece in pieces if piece not in it.after[path])

    return check


def lacks(path: str, *pieces: str) -> Check:
    return lambda it: ", ".join(f"{path} has {piece!r}" for piece in pieces if piece in it.after.get(path, ""))


def is_now(path: str, content: str) -> Check:
    """But for blank space at the end."""

    def check(it: Outcome) -> str:
        found = it.after.get(path)
        return "" if found is not None and found.rstrip() == content.rstrip() else f"{path} is {found!r}"

    return check


def kept(path: str) -> Check:
    return lambda it: "" if it.after.get(path) == it.before[path] else f"{path} was changed"


def gone(path: str) -> Check:
    return lambda it: f"{path} is still there" if path in it.after else ""


def prints(path: str, *words: str) -> Check:
    """The script, run in a copy of the workspace, prints these."""

    def check(it: Outcome) -> str:
        if path not in it.after:
            return f"there is no {path}"
        with tempfile.TemporaryDirectory() as folder:
            for name, content in it.after.items():
                Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, name).write_text(content)
            try:
                done = subprocess.run(
                    [sys.executable, path], cwd=folder, capture_output=True, text=True, timeout=10, check=False
                )
            except subprocess.TimeoutExpired:
                return f"{path} does not end"
        return ", ".join(f"{path} does not print {word!r}" for word in words if word not in done.stdout)

    return check
