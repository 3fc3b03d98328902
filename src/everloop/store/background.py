"""Turns in the background of a chat, written once for both databases. Which thread a session is at, and what works
behind it, change in one transaction, so that each turn knows where it is to be told. The session is locked before its
threads, as whoever reports there does."""

from msgspec import structs

from ..ports.conversation import (
    BackgroundDeed,
    BeginInBackground,
    BringToFront,
    Deed,
    ResumeThread,
    RunningTurn,
    SendToBackground,
)
from ..ports.tasks import background_number, in_background
from ..readings.task_lines import numbered
from .codec import body_of, kind_of
from .conversations import PINNED, carry_over, make_branch
from .conversations import perform as perform_plain
from .database import Ask
from .letters import POST
from .tasks import lock_family, tasks_under

_RUNS = "SELECT 1 FROM inbox WHERE id = $1 AND thread = $2 AND ended = 0"
_BEHIND = "UPDATE threads SET spawned_by = $2, title = $3, since = $4, archived = 1 WHERE id = $1"
_NOW = "SELECT {now}"
# What was said before is remembered by what is in front; what is behind is remembered once it is back.
_REMEMBERED = "UPDATE threads SET consolidated = {greatest}(consolidated, CAST($2 AS {int})) WHERE id = $1"


async def perform(ask: Ask, owner: str, session: str, deed: Deed) -> int:
    """Whether it could be done; of what is in the background then, its number."""
    if not isinstance(deed, BackgroundDeed):
        return await perform_plain(ask, owner, session, deed)
    await lock_family(ask, session)
    rows = await ask("SELECT thread, owner FROM sessions WHERE key = $1", session)
    if not rows or rows[0][1] != owner:
        return 0
    current: str = rows[0][0]
    match deed:
        case SendToBackground():
            return await _send(ask, owner, session, deed, current)
        case BeginInBackground():
            return await _begin(ask, owner, session, deed, current)
        case BringToFront():
            return await _bring(ask, owner, session, deed, current)


async def _send(ask: Ask, owner: str, session: str, deed: SendToBackground, current: str) -> int:
    turn, front = deed.turn, deed.front
    if current != turn.thread or not await ask(_RUNS, turn.mail, current):
        return 0
    number = await _next_number(ask, current)
    await make_branch(ask, owner, session, structs.replace(front, replaces=True))  # also for what is to be remembered
    await ask(_REMEMBERED, current, front.at)
    await ask(  # it stands where that stood
        "UPDATE threads SET archived = $2 WHERE id = $1 "
        "AND EXISTS(SELECT 1 FROM threads p WHERE p.id = $3 AND p.archived = $2)",
        front.id,
        PINNED,
        current,
    )
    await ask("UPDATE sessions SET thread = $1 WHERE key = $2", front.id, session)
    await carry_over(ask, current, front.id)
    await _put_behind(ask, front.id, turn, number)
    return number


async def _begin(ask: Ask, owner: str, session: str, deed: BeginInBackground, current: str) -> int:
    branch, letter = deed.branch, deed.branch.letter
    assert letter is not None
    number, [[now]] = await _next_number(ask, current), await ask(_NOW)
    await make_branch(ask, owner, session, branch)
    await ask(_BEHIND, branch.id, in_background(current, number), branch.title, now)
    channel, kind = session.partition(":")[0], kind_of(letter)
    await ask(POST, channel, deed.event, branch.id, owner, kind, body_of(letter), 0, 0)
    return number


async def _bring(ask: Ask, owner: str, session: str, deed: BringToFront, current: str) -> int:
    rows = await ask(
        "SELECT spawned_by FROM threads WHERE id = $1 AND owner = $2 AND session = $3", deed.thread, owner, session
    )
    if current == deed.thread or not rows or not (number := background_number(rows[0][0])):
        return 0
    left = deed.left if deed.left and deed.left.thread == current else None
    runs = left is not None and await ask(_RUNS, left.mail, current)
    free = await _next_number(ask, current) if runs else 0
    if not await perform_plain(ask, owner, session, ResumeThread(deed.thread)):
        return 0
    if left is not None and runs:
        await _put_behind(ask, deed.thread, left, free)
    return number


async def _put_behind(ask: Ask, front: str, turn: RunningTurn, number: int) -> None:
    await ask(_BEHIND, turn.thread, in_background(front, number), turn.title, turn.since)


async def _next_number(ask: Ask, thread: str) -> int:
    return max(numbered(await tasks_under(ask, thread)), default=0) + 1
