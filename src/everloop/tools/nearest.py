"""Where a text is most like the one that was not found, to be shown to a model that remembers it a little wrong."""

from collections import Counter
from difflib import SequenceMatcher, get_close_matches

_LINES = 20_000  # of the file that are looked at
_COMPARED = 4000  # lines that are compared letter by letter, which is slow
_SHOWN = 12
_LONGEST = 200


def nearest(text: str, wanted: str) -> str:
    """The lines that are most like `wanted`, with their numbers, and in what they differ; "" if none is."""
    lines = text.replace("\r\n", "\n").split("\n")[:_LINES]
    sought = wanted.replace("\r\n", "\n").split("\n")
    while sought and not sought[0].strip():
        sought.pop(0)
    while sought and not sought[-1].strip():
        sought.pop()
    if not sought or not lines:
        return ""
    start = _best_window(lines, sought)
    if start is None:
        return ""
    window = lines[start : start + len(sought)]
    first, last = start + 1, start + len(window)
    where = f"line {first} is" if first == last else f"lines {first}-{last} are"
    what = f"{where} the nearest:"
    if [line.split() for line in window] == [line.split() for line in sought]:
        what = f"{where} the same but for white space:"
    return "\n".join((what, *_numbered(window, first)))


def _best_window(lines: list[str], sought: list[str]) -> int | None:
    """Where as many lines as are sought have the most of them in common, or one that is like the most telling one."""
    bare = [line.split() for line in lines]
    common = Counter(" ".join(line.split()) for line in sought if line.strip())
    points = [bool(line) and " ".join(line) in common for line in bare]
    size = min(len(sought), len(lines))
    scores = [sum(points[:size])]
    for start in range(1, len(lines) - size + 1):
        scores.append(scores[-1] + points[start + size - 1] - points[start - 1])
    best = max(scores)
    if best:
        starts = [start for start, score in enumerate(scores) if score == best][:20]
        return max(starts, key=lambda start: _alike(lines[start : start + size], sought))
    return _by_one_line(lines, sought)


def _alike(window: list[str], sought: list[str]) -> float:
    one, other = "\n".join(window)[:_COMPARED], "\n".join(sought)[:_COMPARED]
    return SequenceMatcher(None, one, other, autojunk=False).quick_ratio()


def _by_one_line(lines: list[str], sought: list[str]) -> int | None:
    telling = max(sought, key=lambda line: len(line.strip()))[:_LONGEST]
    candidates = dict.fromkeys(line[:_LONGEST] for line in lines[:_COMPARED])
    found = get_close_matches(telling, candidates, 1)
    if not found:
        return None
    place = next(number for number, line in enumerate(lines) if line[:_LONGEST] == found[0])
    offset = next(number for number, line in enumerate(sought) if line[:_LONGEST] == telling)
    return max(0, place - offset)


def _numbered(window: list[str], first: int) -> list[str]:
    shown = [f"{number}: {line[:_LONGEST]}{'…' * (len(line) > _LONGEST)}" for number, line in enumerate(window, first)]
    return shown if len(shown) <= _SHOWN else [*shown[:_SHOWN], "…"]
