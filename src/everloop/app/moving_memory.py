"""A memory of elsewhere beside ours: each line once, under the heading that it had."""


def joined(ours: str, theirs: str) -> str:
    """Ours with those of their lines that it has not; all of theirs where ours says nothing."""
    if not ours.strip():
        return f"{theirs.strip()}\n"
    lines = ours.rstrip("\n").split("\n")
    have = {line.strip() for line in lines}
    heading = ""
    for line in theirs.split("\n"):
        bare = line.strip()
        if bare.startswith("#"):
            heading = bare
        elif bare and bare not in have:
            have.add(bare)
            lines = _with(lines, heading, line.rstrip())
    return "\n".join(lines) + "\n"


def _with(lines: list[str], heading: str, line: str) -> list[str]:
    """At the end of what stands under the heading, which is made if there is none."""
    start = next((at for at, each in enumerate(lines) if each.strip() == heading), None) if heading else None
    if start is None:
        return [*lines, *(["", heading, ""] if heading else []), line]
    end = next((at for at in range(start + 1, len(lines)) if lines[at].startswith("#")), len(lines))
    while end > start + 1 and not lines[end - 1].strip():
        end -= 1
    space = [""] if end == start + 1 else []
    return [*lines[:end], *space, line, *lines[end:]]
