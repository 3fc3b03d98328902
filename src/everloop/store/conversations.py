"""What is done with whole conversations, written once for both databases."""

from collections.abc import Sequence

from ..ports.conversation import (
    ArchiveThread,
    Branch,
    GiveTitle,
    Mark,
    PinThread,
    Rename,
    ResumeThread,
)
from ..ports.tasks import in_background
from ..readings.spoken import COUNTED
from .codec import bodies_of, fold_in
from .database import Ask
from .spent import note_spent

ROWS = 500  # in one statement

PAID = "paid"  # what came of a job that has asked a model for a title
TITLES = "titles"  # what that was for
PINNED = -1  # in the column `archived`, where 0 is in the list and 1 out of it

# Where the entries of a thread lie: its own from `first` on, what stands before in its parents.
LINE = """WITH RECURSIVE line(id, parent, first, last) AS (
    SELECT id, parent, begins, 9223372036854775807 FROM threads WHERE id = $1
    UNION ALL
    SELECT t.id, t.parent, {least}(t.begins, l.first), l.first - 1
    FROM line l JOIN threads t ON t.id = l.parent WHERE l.first > 1)"""


def is_kind(kind: str) -> str:
    """Of an entry `e`. A brace would be a word of the dialect's here."""
    begins = f'"kind":"{kind}"'
    return f"substr(e.body, 2, {len(begins)}) = '{begins}'"


def _has_text(kind: str) -> str:
    """Where the text is the first field after the kind."""
    empty = ',"text":""'
    after = len(f'{{"kind":"{kind}"') + 1
    return f"substr(e.body, {after}, {len(empty)}) <> '{empty}'"


_MESSAGES = [is_kind(kind) for kind, when in COUNTED.items() if when == "always"]
_MESSAGES += [f"{is_kind(kind)} AND {_has_text(kind)}" for kind, when in COUNTED.items() if when == "with text"]
IS_MESSAGE = f"({' OR '.join(_MESSAGES)})"
# What a branch has of its parent is the parent's to remember, unless it stands for it; what comes from elsewhere is
# remembered there.
_REMEMBERED = """UPDATE threads SET consolidated = CASE WHEN CAST($2 AS TEXT) = '' THEN head
    WHEN CAST($4 AS {int}) = 0 THEN CAST($3 AS {int})
    ELSE coalesce((SELECT {least}(p.consolidated, CAST($3 AS {int})) FROM threads p WHERE p.id = $2), 0) END
    WHERE id = $1"""


PlainDeed = Branch | ResumeThread | Rename | GiveTitle | ArchiveThread | PinThread | Mark


async def perform(ask: Ask, owner: str, session: str, deed: PlainDeed) -> bool:
    match deed:
        case Branch():
            return await _branch(ask, owner, session, deed)
        case ResumeThread(thread=thread):
            return await _resume(ask, owner, session, thread)
        case Rename(thread=thread, title=title):
            found = await ask(
                "UPDATE threads SET title = $3 WHERE id = $1 AND owner = $2 RETURNING id", thread, owner, title
            )
        case GiveTitle():
            return await _give_title(ask, owner, deed)
        case ArchiveThread(thread=thread, archived=archived):
            found = await ask(
                "UPDATE threads SET archived = $3 WHERE id = $1 AND owner = $2 RETURNING id",
                thread,
                owner,
                int(archived),
            )
        case PinThread(thread=thread, pinned=pinned):
            found = await ask(
                "UPDATE threads SET archived = $3 WHERE id = $1 AND owner = $2 RETURNING id",
                thread,
                owner,
                PINNED if pinned else 0,
            )
        case Mark(name=name, thread=thread, seq=seq):
            found = await ask(
                "INSERT INTO snapshots(owner, name, thread, seq, at) "
                "SELECT owner, CAST($3 AS TEXT), id, CAST($4 AS {int}), {now} FROM threads "
                "WHERE id = $1 AND owner = $2 AND head >= $4 "
                "ON CONFLICT(owner, name) DO UPDATE SET thread = excluded.thread, seq = excluded.seq, at = excluded.at "
                "RETURNING name",
                thread,
                owner,
                name,
                seq,
            )
    return bool(found)


async def _give_title(ask: Ask, owner: str, deed: GiveTitle) -> bool:
    jobs = await ask("SELECT result FROM jobs WHERE id = $1{lock}", deed.job)
    if jobs and jobs[0][0] == PAID:
        return False
    await ask("UPDATE jobs SET result = $2 WHERE id = $1", deed.job, PAID)
    await note_spent(ask, owner, deed.thread, deed.spent, TITLES)
    found = await ask(
        "UPDATE threads SET title = $3 WHERE id = $1 AND owner = $2 AND title = '' RETURNING id",
        deed.thread,
        owner,
        deed.title,
    )
    return bool(found and deed.title)


async def carry_over(ask: Ask, left: str, thread: str) -> None:
    """What is in the background of a chat stays there when the session moves on from one thread to another."""
    front, behind = in_background(left, 0)[:-1], in_background(thread, 0)[:-1]
    await ask(
        "UPDATE threads SET spawned_by = CAST($2 AS TEXT) || substr(spawned_by, length(CAST($1 AS TEXT)) + 1) "
        "WHERE spawned_by <> '' AND substr(spawned_by, 1, length(CAST($1 AS TEXT))) = $1 AND id <> $3",
        front,
        behind,
        thread,
    )


async def _resume(ask: Ask, owner: str, session: str, thread: str) -> bool:
    held = await ask("SELECT thread FROM sessions WHERE key = $1 AND owner = $2{lock}", session, owner)
    found = await ask(
        "UPDATE sessions SET thread = $1 WHERE key = $2 AND owner = $3 "
        "AND EXISTS(SELECT 1 FROM threads WHERE id = $1 AND owner = $3 AND session = $2) RETURNING key",
        thread,
        session,
        owner,
    )
    if found:
        await ask(
            "UPDATE threads SET archived = 0, replaced = '', spawned_by = '', since = 0 "
            "WHERE id = $1 AND (archived = 1 OR spawned_by <> '')",
            thread,
        )
        await carry_over(ask, held[0][0], thread)
        return True
    # Nobody has spoken in this session yet: its thread came from elsewhere.
    made = await ask(
        "INSERT INTO sessions(key, owner, thread) SELECT session, owner, id FROM threads "
        "WHERE id = $1 AND session = $2 AND owner = $3 ON CONFLICT DO NOTHING RETURNING key",
        thread,
        session,
        owner,
    )
    return bool(made)


async def _branch(ask: Ask, owner: str, session: str, branch: Branch) -> bool:
    held = await ask("SELECT thread, owner FROM sessions WHERE key = $1{lock}", session)
    if held and held[0][1] != owner:
        return False
    left = held[0][0] if held and not branch.stay else ""
    for thread in sorted({branch.parent, left} - {""}):
        if not await _rests(ask, owner, thread, branch.head if thread == branch.parent else 0):
            return False
    await make_branch(ask, owner, session, branch)
    if branch.replaces:
        await ask(  # what stands for it stands where it stood
            "UPDATE threads SET archived = $2 WHERE id = $1 "
            "AND EXISTS(SELECT 1 FROM threads p WHERE p.id = $3 AND p.archived = $2)",
            branch.id,
            PINNED,
            branch.parent,
        )
        await ask("UPDATE threads SET archived = 1, replaced = $2 WHERE id = $1", branch.parent, branch.id)
    if not branch.stay:
        await ask(
            "INSERT INTO sessions(key, owner, thread) VALUES($1, $2, $3) "
            "ON CONFLICT(key) DO UPDATE SET thread = excluded.thread",
            session,
            owner,
            branch.id,
        )
    if left:
        await carry_over(ask, left, branch.id)
    return True


async def _rests(ask: Ask, owner: str, thread: str, head: int) -> bool:
    rows = await ask("SELECT owner, head, state FROM threads WHERE id = $1{lock}", thread)
    if not rows or rows[0][0] != owner or rows[0][2] != "resting" or (head and rows[0][1] != head):
        return False
    return not await ask("SELECT 1 FROM inbox WHERE thread = $1 AND ended = 0 LIMIT 1", thread)


async def make_branch(ask: Ask, owner: str, session: str, branch: Branch) -> None:
    bodies, before = bodies_of(branch.entries), branch.first - 1
    fold = fold_in(branch.entries)
    counted = await _count_before(ask, branch) if branch.parent and before else 0
    await ask(
        "INSERT INTO threads(id, owner, session, created, head, folded, title, parent, parent_seq, begins, messages, "
        "counted, indexed) VALUES($1, $2, $3, CASE WHEN CAST($4 AS {real}) > 0 THEN CAST($4 AS {real}) ELSE {now} END, "
        "$5, $6, $7, $8, $9, $10, $11, $12, $13)",
        branch.id,
        owner,
        session,
        branch.created,
        before + len(bodies),
        before + fold if fold else 0,
        branch.title,
        branch.parent,
        branch.at,
        branch.first,
        counted,
        before,
        branch.at if branch.parent else 0,
    )
    await ask(_REMEMBERED, branch.id, branch.parent, branch.at, int(branch.replaces))
    for start in range(0, len(bodies), ROWS):
        await _append(ask, owner, branch, before + start + 1, bodies[start : start + ROWS], branch.times[start:])


async def _append(
    ask: Ask, owner: str, branch: Branch, seq: int, bodies: Sequence[str], times: Sequence[float]
) -> None:
    rows: list[str] = []
    values: list[object] = [branch.id, owner]
    for n, body in enumerate(bodies):
        at = f"${len(values) + 3}" if n < len(times) else "{now}"
        rows.append(f"($1, ${len(values) + 1}, $2, {at}, ${len(values) + 2})")
        values += [seq + n, body, *times[n : n + 1]]
    await ask(f"INSERT INTO entries(thread, seq, owner, at, body) VALUES {', '.join(rows)}", *values)


async def _count_before(ask: Ask, branch: Branch) -> int:
    rows = await ask(
        f"{LINE} SELECT count(*) FROM line l JOIN entries e ON e.thread = l.id AND e.seq BETWEEN l.first AND l.last "
        f"WHERE e.seq < $2 AND {IS_MESSAGE}",
        branch.parent,
        branch.first,
    )
    return int(rows[0][0])
