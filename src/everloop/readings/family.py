"""What a conversation has branched from, and what has branched from that."""

from collections.abc import Iterator, Sequence

from ..ports.conversation import Conversation


def family(one: Conversation, known: Sequence[Conversation]) -> list[tuple[int, Conversation]]:
    """Its first ancestor that is known, and all branches from there on, the oldest first, each with how deep it
    lies."""
    by_id = {each.id: each for each in (*known, one)}
    first, passed = one, {one.id}
    while (parent := by_id.get(first.parent)) and parent.id not in passed:
        first = parent
        passed.add(first.id)
    below: dict[str, list[Conversation]] = {}
    for each in sorted(by_id.values(), key=lambda each: each.created):
        below.setdefault(each.parent, []).append(each)
    return [*_beneath(first, below, 0)]


def _beneath(one: Conversation, below: dict[str, list[Conversation]], deep: int) -> Iterator[tuple[int, Conversation]]:
    waiting = [(deep, one)]
    while waiting:
        deep, each = waiting.pop()
        yield deep, each
        waiting += [(deep + 1, branch) for branch in reversed(below.pop(each.id, []))]
