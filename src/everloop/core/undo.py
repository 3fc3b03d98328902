"""What is said when a turn is taken back."""

from collections.abc import Mapping

from .log import TakenBack, Undoing


def describe(undoing: Undoing, undone: Mapping[int, TakenBack]) -> str:
    """What was taken back and what was not, for the person who wanted it."""
    left: dict[str, str] = {}
    removed: dict[str, bool] = {}
    for place, change in enumerate(undoing.changes):
        removed[change.path] = change.before == "new"  # the earliest decides
        if why := undone[place].left:
            left.setdefault(change.path, why)
    lines = [f"Taken back: {undoing.said}"]
    if restored := [path for path, new in removed.items() if not new and path not in left]:
        lines.append(f"Files that are again as they were: {', '.join(restored)}")
    if gone := [path for path, new in removed.items() if new and path not in left]:
        lines.append(f"Files that were new and are gone: {', '.join(gone)}")
    lines += [f"{path} was left as it is: {why}" for path, why in left.items()]
    lines += [f"This cannot be undone: {each}" for each in undoing.lasting]
    return "\n".join(lines)
