"""The names of files as they come from elsewhere: whatever they hold, what is kept is one name on one line."""

LONGEST = 120  # characters
_ENDING = 16


def plain_name(name: str) -> str:
    """The last part of a path of any system, on one line; what cannot be printed, or turns letters around, is `_`."""
    name = name.encode("utf-8", "replace").decode()
    name = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    name = "".join(letter if letter.isprintable() else "_" for letter in name).strip()
    if not name.strip("."):
        return "file"
    return name if len(name) <= LONGEST else _shortened(name)


def _shortened(name: str) -> str:
    head, dot, ending = name.rpartition(".")
    if not dot or len(ending) > _ENDING:
        return name[:LONGEST]
    return f"{head[: LONGEST - len(ending) - 2]}….{ending}"
