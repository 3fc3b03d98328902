"""A batch of writes as one call to PostgreSQL: each item stands or falls alone, all share one commit.

It is a function of the connection, not of the database, so that two versions of everloop can share a database while
one replaces the other.

Every batch locks first, in one order: sessions by key, then threads by id. So two batches never wait for each other
in a ring, and what is read afterwards, each statement with a fresh snapshot, cannot change any more: a start
sees every stop that has committed, a release every letter. Letters are numbered under the lock of their thread,
hence in the order in which they become visible.
"""

import secrets
import struct
from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct

from ..core.conversation import ASIDE
from ..core.mail import Decision, Inbound
from ..core.rows import Commit, Lease, OutboxState, Untaint
from . import schema
from .bodies import bodies_of, body_of, fold_in, kind_of
from .wire import Statement, text_at, texts

_NOW = schema.DIALECTS["postgres"]["now"]

CREATE = f"""
CREATE FUNCTION pg_temp.everloop_write(
    me TEXT, ttl DOUBLE PRECISION, patience TEXT, keys TEXT[], owners TEXT[], fresh TEXT[], named TEXT[],
    posts JSON, commits JSON
) RETURNS TABLE(
    n BIGINT, ok BOOLEAN, number BIGINT, at_thread TEXT, answer TEXT,
    new_head BIGINT, new_epoch BIGINT, has_started BOOLEAN, has_released BOOLEAN, came BIGINT
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment DOUBLE PRECISION; known TEXT[]; held TEXT[]; item RECORD;
BEGIN
    IF patience IS NOT NULL THEN
        PERFORM set_config('lock_timeout', patience, true);
    END IF;
    IF cardinality(keys) > 0 THEN
        SELECT array_agg(s.key), array_agg(s.thread) INTO known, held
        FROM (SELECT key, thread FROM sessions WHERE key = ANY(keys) ORDER BY key FOR UPDATE) s;
        IF known IS NULL OR cardinality(known) < cardinality(keys) THEN
            WITH touched AS (
                INSERT INTO sessions AS s (key, owner, thread)
                SELECT u.key, u.owner, u.thread FROM unnest(keys, owners, fresh) AS u(key, owner, thread)
                WHERE known IS NULL OR u.key <> ALL (known) ORDER BY u.key
                ON CONFLICT (key) DO UPDATE SET owner = s.owner RETURNING s.key, s.owner, s.thread
            ), made AS (
                INSERT INTO threads(id, owner, session, created, archived)
                SELECT thread, owner, key, {_NOW}, CAST(starts_with(key, '{ASIDE}') AS INT)
                FROM touched WHERE thread = ANY(fresh)
            )
            SELECT held || array_agg(thread) INTO held FROM touched;
        END IF;
    END IF;
    PERFORM 1 FROM threads WHERE id = ANY(named || held) ORDER BY id FOR UPDATE;
    moment := {_NOW};
    IF posts IS NOT NULL THEN
        FOR item IN SELECT * FROM json_to_recordset(posts) AS i(
            n BIGINT, kind TEXT, key TEXT, channel TEXT, event TEXT, owner TEXT, letter TEXT, body TEXT, thread TEXT,
            id BIGINT, state TEXT, unsure BIGINT, receipt TEXT, again_in DOUBLE PRECISION
        ) LOOP
            n := item.n; ok := false; number := 0; at_thread := item.thread; answer := NULL;
            IF item.kind = 'settle' THEN
                UPDATE outbox o SET state = item.state, unsure = greatest(o.unsure, item.unsure),
                    receipt = item.receipt, due = moment + item.again_in
                WHERE o.id = item.id AND o.state = 'sending' AND o.holder = me;
                ok := FOUND;
            ELSE
                IF at_thread IS NULL THEN
                    SELECT s.thread INTO at_thread FROM sessions s WHERE s.key = item.key AND s.owner = item.owner;
                END IF;
                IF at_thread IS NULL THEN  -- the session is another's
                    RETURN NEXT;
                    CONTINUE;
                END IF;
                INSERT INTO inbox AS i (channel, event, thread, owner, kind, body, at)
                VALUES (item.channel, item.event, at_thread, item.owner, item.letter, item.body, moment)
                ON CONFLICT DO NOTHING RETURNING i.id INTO number;
                ok := FOUND;
                IF NOT ok THEN
                    SELECT i.id, i.thread, i.reply INTO number, at_thread, answer
                    FROM inbox i WHERE i.channel = item.channel AND i.event = item.event;
                END IF;
            END IF;
            RETURN NEXT;
        END LOOP;
    END IF;
    IF commits IS NULL THEN
        RETURN;
    END IF;
    -- All commits at once: a statement for each would cost more than what it does. Of two for one thread the first
    -- counts: it takes the lease, and with that the other is too late.
    RETURN QUERY
    WITH i AS MATERIALIZED (
        SELECT * FROM json_to_recordset(commits) AS i(
            n BIGINT, key TEXT, channel TEXT, event TEXT, owner TEXT, letter TEXT, body TEXT,
            thread TEXT, head BIGINT, epoch BIGINT, entries TEXT[], starts TEXT[], fold BIGINT,
            absorbed BIGINT[], ended_mail BIGINT[], ended_seq BIGINT[], outbox JSON, usage JSON, timers JSON,
            taints JSON, untaints JSON, release BOOLEAN, state TEXT, seen BIGINT)
    ), mail AS (
        SELECT i.n, max(x.id) AS newest, bool_or(x.kind = 'stop') AS stopped
        FROM i JOIN inbox x ON x.thread = i.thread AND x.ended = 0 AND x.taken = 0 AND x.id <> ALL (i.absorbed)
        GROUP BY i.n
    ), seen AS (
        SELECT i.*, t.owner AS whose, t.folded, t.epoch AS had, t.expires, t.head AS stands, t.holder,
            coalesce(m.newest, 0) AS newest, cardinality(i.starts) > 0 AND NOT coalesce(m.stopped, false) AS goes,
            i.release AND coalesce(m.newest, 0) <= i.seen AS rests
        FROM i JOIN threads t ON t.id = i.thread LEFT JOIN mail m ON m.n = i.n
    ), judged AS MATERIALIZED (
        SELECT s.*, s.stands = s.head AND s.n = min(s.n) OVER (PARTITION BY s.thread) AND CASE WHEN s.epoch > 0
            THEN s.had = s.epoch AND s.holder IS NOT DISTINCT FROM me AND (s.expires > moment OR NOT s.goes)
            ELSE s.holder IS NULL OR s.holder = me OR s.expires <= moment END
            -- Who moves a session away from a thread holds the lock of that thread, as we do now.
            AND (s.event IS NULL OR s.newest = 0
                AND EXISTS(SELECT 1 FROM sessions o WHERE o.key = s.key AND o.thread = s.thread
                    AND o.owner = s.owner)) AS fit
        FROM seen s
    ), letters AS (
        INSERT INTO inbox AS x (channel, event, thread, owner, kind, body, at, taken)
        SELECT j.channel, j.event, j.thread, j.owner, j.letter, j.body, moment, 1
        FROM judged j WHERE j.fit AND j.event IS NOT NULL ORDER BY j.n
        ON CONFLICT DO NOTHING RETURNING x.id, x.channel, x.event, x.thread
    ), final AS MATERIALIZED (
        SELECT j.*, l.id AS came, CASE WHEN j.goes THEN j.entries || j.starts ELSE j.entries END AS added
        FROM judged j
        LEFT JOIN letters l ON l.channel = j.channel AND l.event = j.event AND l.thread = j.thread
        WHERE j.fit AND (j.event IS NULL OR l.id IS NOT NULL)
    ), threads_ AS (
        UPDATE threads t SET
            head = f.stands + cardinality(f.added),
            folded = CASE WHEN f.fold > 0 THEN f.stands + f.fold ELSE f.folded END,
            state = f.state,
            holder = CASE WHEN f.rests THEN NULL ELSE me END,
            epoch = CASE WHEN f.epoch > 0 THEN f.had ELSE f.had + 1 END,
            expires = CASE WHEN f.epoch = 0 OR f.expires > moment THEN moment + ttl ELSE f.expires END
        FROM final f WHERE t.id = f.thread RETURNING t.id, t.head, t.epoch
    ), entries_ AS (
        INSERT INTO entries(thread, seq, owner, at, body)
        SELECT f.thread, f.stands + e.n, f.whose, moment,
            CASE WHEN e.n = 1 AND f.came IS NOT NULL THEN left(e.body, -1) || ',"mail":' || f.came || '}}'
            ELSE e.body END
        FROM final f, unnest(f.added) WITH ORDINALITY AS e(body, n)
    ), inbox_ AS (
        UPDATE inbox x SET
            taken = CASE WHEN u.taken THEN 1 ELSE x.taken END,
            ended = CASE WHEN u.ended IS NOT NULL THEN u.ended WHEN x.kind IN ('said', 'undo') THEN 0 ELSE -1 END
        FROM (
            SELECT m.id, bool_or(m.taken) AS taken, max(m.ended) AS ended FROM (
                SELECT a.id, true AS taken, NULL::BIGINT AS ended FROM final f, unnest(f.absorbed) AS a(id)
                UNION ALL
                SELECT e.id, false, e.ended FROM final f, unnest(f.ended_mail, f.ended_seq) AS e(id, ended)
            ) m GROUP BY m.id
        ) u WHERE x.id = u.id
    ), outbox_ AS (
        INSERT INTO outbox(key, thread, owner, channel, chat, body, at)
        SELECT o.key, f.thread, f.whose, o.channel, o.chat, o.body, moment
        FROM final f, json_to_recordset(f.outbox) AS o(key TEXT, channel TEXT, chat TEXT, body TEXT)
        ON CONFLICT DO NOTHING
    ), usage_ AS (
        INSERT INTO usage(thread, seq, owner, at, model, input, output, cache_read, cache_write, cost, reasoning)
        SELECT f.thread, u.seq, f.whose, moment, u.model, u.input, u.output, u.cache_read, u.cache_write, u.cost,
            u.reasoning
        FROM final f, json_to_recordset(f.usage) AS u(
            seq BIGINT, model TEXT, input BIGINT, output BIGINT, cache_read BIGINT, cache_write BIGINT,
            cost DOUBLE PRECISION, reasoning BIGINT)
    ), timers_ AS (
        INSERT INTO timers(key, thread, owner, due, body)
        SELECT c.key, f.thread, f.whose, moment + c.due, c.body
        FROM final f, json_to_recordset(f.timers) AS c(key TEXT, due DOUBLE PRECISION, body TEXT)
        ON CONFLICT DO NOTHING
    ), taints_ AS (
        INSERT INTO taints AS x (key, owner, place, began, ended, outside, command)
        SELECT c.key, f.whose, c.place, c.began, c.ended, c.outside, c.command
        FROM final f, json_to_recordset(f.taints) AS c(key TEXT, place TEXT, began DOUBLE PRECISION,
            ended DOUBLE PRECISION, outside BIGINT, command TEXT)
        WHERE f.goes OR cardinality(f.starts) = 0 OR c.ended IS NOT NULL OR c.command <> ''
        ON CONFLICT (key) DO UPDATE SET ended = excluded.ended, command = excluded.command,
            outside = greatest(x.outside, excluded.outside)
    ), untaints_ AS (
        UPDATE taints x SET ended = CASE WHEN u.command = '' THEN u.at END, command = u.command
        FROM final f, json_to_recordset(f.untaints) AS u(key TEXT, at DOUBLE PRECISION, command TEXT)
        WHERE x.key = u.key AND x.ended IS NULL AND (x.outside = 1 OR u.command <> '')
    ), forgotten_ AS (
        DELETE FROM taints x USING final f, json_to_recordset(f.untaints) AS u(key TEXT, command TEXT)
        WHERE x.key = u.key AND x.outside = 0 AND u.command = ''
    )
    SELECT i.n, f.n IS NOT NULL, coalesce(f.newest, 0), NULL::TEXT, NULL::TEXT, t.head, t.epoch,
        coalesce(f.goes, false), coalesce(f.rests, false), coalesce(f.came, 0)
    FROM i LEFT JOIN final f ON f.n = i.n LEFT JOIN threads_ t ON t.id = f.thread;
END $$
"""

_CALL = (
    "SELECT ok, coalesce(number, 0), coalesce(new_head, 0), coalesce(new_epoch, 0), coalesce(has_started, false), "
    "coalesce(has_released, false), coalesce(came, 0), at_thread, answer "
    "FROM pg_temp.everloop_write($1, $2, $3, $4, $5, $6, $7, $8, $9) ORDER BY n"
)
# The columns of _CALL before the texts: none is null, so that each is where it always is, after its length.
_NUMBERS = struct.Struct("!7x 4x? 4xq 4xq 4xq 4x? 4x? 4xq")
_NO_TEXTS = b"\xff" * 8

_encode = msgspec.json.Encoder().encode

_Texts = Collection[str]
Question = tuple[int | None, _Texts, _Texts, _Texts, _Texts, bytes | None, bytes | None]  # arguments of the function


class Item(Struct):
    """One write as it travels, and the session or the thread that has to be locked for it."""

    json: bytes  # an object, but for its number in the batch
    commits: bool = False
    session: tuple[str, str] | None = None  # key and owner
    thread: str = ""


class Row(Struct):
    """What became of one write."""

    ok: bool
    number: int
    head: int
    epoch: int
    started: bool
    released: bool
    came: int
    thread: str | None = None
    answer: str | None = None


class _Receive(Struct, tag_field="kind", tag="receive"):
    key: str
    channel: str
    event: str
    owner: str
    letter: str
    body: str
    thread: str | None = None  # when the letter names it


class _Settle(Struct, tag_field="kind", tag="settle"):
    id: int
    state: str
    unsure: int
    receipt: str
    again_in: float


class _Queued(Struct):
    key: str
    channel: str
    chat: str
    body: str


class _Used(Struct):
    seq: int
    model: str
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: float | None
    reasoning: int


class _Wound(Struct):
    key: str
    due: float
    body: str


class _Tainted(Struct):
    key: str
    place: str
    began: float
    ended: float | None
    outside: int
    command: str


class _Commit(Struct, omit_defaults=True):
    thread: str
    head: int
    epoch: int
    entries: list[str]
    starts: list[str]
    absorbed: Sequence[int]
    release: bool
    state: str
    seen: int
    fold: int
    ended_mail: list[int] | None = None
    ended_seq: list[int] | None = None
    outbox: list[_Queued] | None = None
    usage: list[_Used] | None = None
    timers: list[_Wound] | None = None
    taints: list[_Tainted] | None = None
    untaints: Sequence[Untaint] | None = None
    key: str | None = None  # and the following: a letter that comes in with it
    channel: str | None = None
    event: str | None = None
    owner: str | None = None
    letter: str | None = None
    body: str | None = None


def receive(inbound: Inbound) -> Item:
    thread = inbound.letter.thread if isinstance(inbound.letter, Decision) else ""
    item = _Receive(*_post(inbound), thread or None)
    return Item(_encode(item), session=(item.key, item.owner), thread=thread)


def settle(row: int, state: OutboxState, receipt: str, again_in: float) -> Item:
    unsure = state == "unsure"
    return Item(_encode(_Settle(row, "pending" if unsure else state, int(unsure), receipt, again_in)))


def commit(lease: Lease, commit: Commit) -> Item:
    item = _Commit(
        lease.thread,
        lease.head,
        lease.epoch,
        bodies_of(commit.entries),
        bodies_of(commit.starts),
        commit.absorbed,
        commit.release,
        commit.state,
        commit.seen,
        fold_in(commit.entries),
    )
    if commit.ended:
        item.ended_mail, item.ended_seq = [mail for mail, _ in commit.ended], [seq for _, seq in commit.ended]
    if commit.outbox:
        item.outbox = [_Queued(o.key, o.address.channel, str(o.address), body_of(o)) for o in commit.outbox]
    if commit.usage:
        item.usage = [
            _Used(s.seq, s.model, u.input, u.output, u.cache_read, u.cache_write, s.cost, u.reasoning)
            for s in commit.usage
            for u in (s.usage,)
        ]
    if commit.timers:
        item.timers = [_Wound(timer.key, timer.due, body_of(timer.inbound)) for timer in commit.timers]
    if commit.taints:
        item.taints = [_Tainted(t.key, t.place, t.began, t.ended, int(t.outside), t.command) for t in commit.taints]
    if commit.untaints:
        item.untaints = commit.untaints
    if commit.letter:
        item.key, item.channel, item.event, item.owner, item.letter, item.body = _post(commit.letter)
    return Item(_encode(item), commits=True, thread=lease.thread)


def statement(holder: str, lease_seconds: float) -> Statement[Question, Row]:
    """What is asked over and over, each time about the `values_of` some items."""
    same = holder, lease_seconds
    packed = holder.encode(), struct.pack("!d", lease_seconds)
    return Statement("everloop_write", _CALL, 9, same, packed, _pack, _plain, _read_row, Row)


def values_of(items: Sequence[Item], patience: int | None = None) -> Question:
    """With how many milliseconds to wait for each lock, if it is not as long as the session says."""
    sessions: dict[str, str] = {}
    threads: set[str] = set()
    posts: list[bytes] = []
    commits: list[bytes] = []
    for number, item in enumerate(items):
        if item.session:
            key, owner = item.session
            sessions[key] = owner
        if item.thread:
            threads.add(item.thread)
        (commits if item.commits else posts).append(b'{"n":%d,' % number + item.json[1:])
    fresh = [secrets.token_hex(8) for _ in sessions] if sessions else ()
    return patience, sessions, sessions.values(), fresh, threads, _array_of(posts), _array_of(commits)


def _pack(question: Question) -> Sequence[bytes | None]:
    patience, keys, owners, fresh, threads, posts, commits = question
    waits = None if patience is None else b"%d" % patience
    return waits, texts(keys), texts(owners), texts(fresh), texts(threads), posts, commits


def _plain(question: Question) -> Sequence[object]:
    patience, *names, posts, commits = question
    waits = None if patience is None else str(patience)
    return waits, *(list(texts) or None for texts in names), *(json and json.decode() for json in (posts, commits))


def _read_row(data: bytes, at: int) -> Row:
    ok, number, head, epoch, started, released, came = _NUMBERS.unpack_from(data, at)
    at += _NUMBERS.size
    if data.startswith(_NO_TEXTS, at):  # as for each commit
        return Row(ok, number, head, epoch, started, released, came)
    thread, at = text_at(data, at)
    answer, _ = text_at(data, at)
    return Row(ok, number, head, epoch, started, released, came, thread, answer)


def _array_of(objects: list[bytes]) -> bytes | None:
    return b"[" + b",".join(objects) + b"]" if objects else None


def _post(inbound: Inbound) -> tuple[str, str, str, str, str, str]:
    letter = inbound.letter
    return (
        *(str(inbound.address), inbound.address.channel, inbound.event, inbound.owner),
        *(kind_of(letter), body_of(letter)),
    )
