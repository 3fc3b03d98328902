"""A commit in SQLite: what a driver writes in one step, if the thread is still in its hands.

First a look, then the changes: nothing comes between them, for one alone writes. Changes that tell what they found cost
more, since SQLite makes a table of its own for every RETURNING.
"""

from functools import lru_cache

from ..core.mail import Inbound
from ..core.overrun import Account
from ..errors import Fenced
from ..ports.rows import Commit, Committed, Lease
from .audit import note
from .codec import bodies_of, body_of, fold_in, kind_of, numbered
from .database import run_at_once
from .holders import Holders
from .letters import MAKE_TURNS, post_if_theirs
from .sqlite_budgets import charge_now, reserve_now
from .sqlite_statements import ELAPSED, NOW, asking, queue
from .writer import Execute

# A row for each letter that waits, or one without a letter. The + keeps SQLite from planning anew for every value.
_LOOK = (
    f"SELECT {NOW}, {ELAPSED}, head, epoch, t.owner, holder, expires, i.id, i.kind, t.spawned_by FROM threads t "
    "LEFT JOIN inbox i ON i.thread = t.id AND ended = 0 AND taken = 0 WHERE t.id = +?"
)
# With OR FAIL SQLite keeps nothing to undo the statement alone: the writer takes back the whole step when one fails.
_LET_IN = (
    "INSERT OR FAIL INTO inbox(channel, event, thread, owner, kind, body, at, taken) "
    "SELECT ?, ?, thread, owner, ?, ?, ?, 1 FROM sessions WHERE key = ? AND thread = ? AND owner = ? "
    "ON CONFLICT DO NOTHING"
)
_ABSORB = f"UPDATE inbox SET taken = 1, ended = iif({MAKE_TURNS}, 0, -1) WHERE id = ?"
_MOVE = (
    "UPDATE threads SET head = ?, epoch = ?, holder = ?, expires = ?, state = ?, folded = max(folded, ?) WHERE id = ?"
)
_SPEND = (
    "INSERT INTO usage(thread, seq, owner, at, model, input, output, cache_read, cache_write, cost, reasoning, "
    "requester, own) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_TAINT = (
    "INSERT INTO taints(key, owner, place, began, ended, outside, command) VALUES(?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT(key) DO UPDATE SET ended = excluded.ended, command = excluded.command, "
    "outside = max(outside, excluded.outside)"
)
_TIME = (
    "INSERT INTO jobs(id, owner, kind, session, schedule, due, body) VALUES(?, ?, 'timer', ?, '', ?, ?) "
    "ON CONFLICT DO NOTHING"
)
_UNTAINT = "UPDATE taints SET ended = ?, command = ? WHERE key = ? AND ended IS NULL"


def write_commit(holders: Holders, ttl: float, lease: Lease, commit: Commit, execute: Execute) -> Committed:
    """What `Store.commit` promises, as a transaction. Raises Fenced."""
    thread, rows = lease.thread, execute(_LOOK, (lease.thread,)).fetchall()
    if not rows:
        raise Fenced(f"there is no thread {thread}")
    now, elapsed, head, epoch, owner, holder, expires, waits, _, works_for = rows[0]
    left = {row[7]: row[8] for row in rows if row[7] not in commit.absorbed} if waits else {}
    newest = max(left) if left else 0
    started = bool(commit.starts) and "stop" not in left.values()
    released = commit.release and newest <= commit.seen
    fresh = expires > elapsed
    if lease.epoch:
        ours = holder == holders.me and epoch == lease.epoch and (fresh or not started)
    else:
        ours = holder is None or holder == holders.me or not fresh or not holders.alive(holder)
        epoch, fresh = epoch + 1, True
    if commit.works_for is not None and commit.works_for != works_for:
        raise Fenced(f"thread {thread} has gone to the background, or is back from there")
    if head != lease.head or not ours:
        raise Fenced(f"thread {thread} is in other hands")
    full = _settle_budgets(execute, commit, started, now) if commit.charges or commit.reserve else None
    if full:
        started = False
    bodies, came = bodies_of((*commit.entries, *commit.starts) if started else commit.entries), 0
    if commit.letter is not None:
        came = 0 if waits else _let_in(execute, commit.letter, thread, now)
        if not came:
            raise Fenced(f"the letter for thread {thread} has to go through the inbox")
        bodies[0] = numbered(bodies[0], came)
    fold, new_head = fold_in(commit.entries), head + len(bodies)
    lent = (None if released else holders.me, elapsed + ttl if fresh else expires)
    execute(_MOVE, (new_head, epoch, *lent, commit.state, fold and head + fold, thread))
    if bodies:
        values = [value for n, body in enumerate(bodies, head + 1) for value in (thread, n, owner, now, body)]
        execute(_insert_of(len(bodies)), values)
    if commit.absorbed or commit.ended:
        _settle_mail(execute, commit)
    if commit.outbox or commit.usage or commit.timers:
        _keep_beside(execute, commit, thread, owner, now)
    for each in commit.posts:
        if started or not (each.spawned_by and commit.starts):
            run_at_once(post_if_theirs(asking(execute), each.inbound, each.thread, each.spawned_by, each.title))
    if commit.untaints or commit.taints:
        _note_taints(execute, commit, owner, started)
    if commit.audit or commit.audit_starts:
        run_at_once(note(asking(execute), *commit.audit, *(commit.audit_starts if started else ())))
    return Committed(new_head, epoch, started, released, newest, came, full)


def _let_in(execute: Execute, inbound: Inbound, thread: str, now: float) -> int:
    """The number of a letter that its thread takes at once; 0 if the session has left it or the event is known."""
    letter, address = inbound.letter, inbound.address
    values = (address.channel, inbound.event, kind_of(letter), body_of(letter), now, str(address), thread)
    database = execute(_LET_IN, (*values, inbound.owner)).connection
    return int(database.last_insert_rowid()) if database.changes() else 0


@lru_cache(maxsize=32)
def _insert_of(entries: int) -> str:
    return "INSERT OR FAIL INTO entries VALUES " + ", ".join(["(?, ?, ?, ?, ?)"] * entries)


def _settle_budgets(execute: Execute, commit: Commit, starting: bool, now: float) -> Account | None:
    """The account that keeps the starts from starting, if there is one."""
    for charge in commit.charges:
        charge_now(execute, charge)
    return reserve_now(execute, commit.reserve, now) if commit.reserve and starting else None


def _settle_mail(execute: Execute, commit: Commit) -> None:
    for id in commit.absorbed:
        execute(_ABSORB, (id,))
    for id, ended in commit.ended:
        execute("UPDATE inbox SET ended = ? WHERE id = ?", (ended, id))


def _note_taints(execute: Execute, commit: Commit, owner: str, started: bool) -> None:
    for over in commit.untaints:
        execute(_UNTAINT, (None if over.command else over.at, over.command, over.key))
        execute("DELETE FROM taints WHERE key = ? AND outside = 0 AND ended IS NOT NULL", (over.key,))
    for taint in commit.taints:
        if started or not commit.starts or taint.happened:
            times = (taint.began, taint.ended)
            execute(_TAINT, (taint.key, owner, taint.place, *times, int(taint.outside), taint.command))


def _keep_beside(execute: Execute, commit: Commit, thread: str, owner: str, now: float) -> None:
    """What goes with the entries: answers to be sent, what was spent, what is to come back."""
    for outbound in commit.outbox:
        queue(execute, thread, owner, outbound)
    for spent in commit.usage:
        u = spent.usage
        counts = (u.input, u.output, u.cache_read, u.cache_write, spent.cost, u.reasoning, spent.requester)
        execute(_SPEND, (thread, spent.seq, owner, now, spent.model, *counts, int(spent.own)))
    for timer in commit.timers:
        session = str(timer.inbound.address)
        execute(_TIME, (timer.key, owner, session, now + timer.due, body_of(timer.inbound)))
