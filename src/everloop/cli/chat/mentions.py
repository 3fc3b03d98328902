"""Files that a message names with `@`: `@notes.md`, `@"my file.txt"`, `@~/photo.jpg`. They go along with it.

A path is looked for in the workspace, then from where everloop was started. What there is no file of stays as it is:
`me@example.com` and `@someone` are words.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_BEGUN = re.compile(r'(?<!\S)@(?:"[^"\n]*|[^\s"]\S*)?\Z')
_AFTER = ".,;:!?)"  # which ends a sentence more often than a name
MOST_PASTED = 4096  # letters of a path that was dragged here


def mentioned(text: str, folders: Sequence[Path]) -> tuple[str, list[Path]]:
    """The message as it is sent, with the paths alone, and the files that it names."""
    found: list[Path] = []

    def name(mention: re.Match[str]) -> str:
        typed = mention[1] or mention[2]
        for path in (typed, typed.rstrip(_AFTER)):
            if path and (file := _find(path, folders)):
                if file.is_file() and file not in found:
                    found.append(file)
                return f"{path}{typed[len(path) :]}"
        return mention[0]

    return _MENTION.sub(name, text), found


def begun(text: str) -> str:
    """The mention that a text ends with and that may go on, as it stands there; "" for none."""
    found = _BEGUN.search(text)
    return found[0] if found else ""


def dragged(text: str) -> str:
    """What stands for a paste that is the path of a file and nothing else, as terminals write one that is dragged onto
    them: a mention of it. "" for any other."""
    text = text.strip()
    if not text or "\n" in text or len(text) > MOST_PASTED:
        return ""
    try:
        words = shlex.split(text)
    except ValueError:
        return ""
    path = words[0] if len(words) == 1 else text
    path = unquote(path.removeprefix("file://")) if path.startswith("file://") else path
    return mention_of(path) if path.startswith(("/", "~/")) and _find(path, ()) else ""


def mention_of(path: str) -> str:
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def _find(path: str, folders: Sequence[Path]) -> Path | None:
    try:
        wanted = Path(path).expanduser()
        if wanted.is_absolute():
            return wanted if wanted.exists() else None
        for folder in folders:
            each = folder / wanted
            is_inside = ".." in wanted.parts or each.resolve().is_relative_to(folder.resolve())
            if is_inside and each.exists():  # else a link, which the agent may have made, would name any file
                return each
    except (OSError, RuntimeError, ValueError):  # no path at all, or of nobody's folder
        return None
    return None
