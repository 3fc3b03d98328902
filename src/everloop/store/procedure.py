"""A batch of writes as one call to PostgreSQL: each item stands or falls alone, all share one commit.

It is a function of the connection, not of the database, so that two versions of everloop can share a database while
one replaces the other.

Every batch locks first, in one order: sessions by key, then threads by id. So two batches never wait for each other
in a ring, and what is read afterwards, each statement with a fresh snapshot, cannot change any more: a start
sees every stop that has committed, a release every letter. Letters are numbered under the lock of their thread,
hence in the order in which they become visible.
"""

import msgspec
from msgspec import Struct

from ..core.mail import Decision, Inbound
from ..core.ports import Commit, Lease, OutboxState
from . import schema
from .bodies import bodies_of, body_of, fold_in, kind_of

_NOW = schema.DIALECTS["postgres"]["now"]

CREATE = f"""
CREATE FUNCTION pg_temp.everloop_write(
    me TEXT, ttl DOUBLE PRECISION, keys TEXT[], owners TEXT[], fresh TEXT[], named TEXT[], batch JSON
) RETURNS TABLE(
    ok BOOLEAN, number BIGINT, at_thread TEXT, answer TEXT,
    new_head BIGINT, new_epoch BIGINT, has_started BOOLEAN, has_released BOOLEAN, came BIGINT
) LANGUAGE plpgsql AS $$
DECLARE
    now DOUBLE PRECISION; known TEXT[]; held TEXT[]; item RECORD; t threads%ROWTYPE; stopped BOOLEAN; added TEXT[];
BEGIN
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
                INSERT INTO threads(id, owner, session, created)
                SELECT thread, owner, key, {_NOW} FROM touched WHERE thread = ANY(fresh)
            )
            SELECT held || array_agg(thread) INTO held FROM touched;
        END IF;
    END IF;
    PERFORM 1 FROM threads WHERE id = ANY(named || held) ORDER BY id FOR UPDATE;
    now := {_NOW};
    FOR item IN SELECT * FROM json_to_recordset(batch) AS i(
        kind TEXT, key TEXT, channel TEXT, event TEXT, owner TEXT, letter TEXT, body TEXT,
        thread TEXT, head BIGINT, epoch BIGINT, entries TEXT[], starts TEXT[], fold BIGINT,
        absorbed BIGINT[], ended_mail BIGINT[], ended_seq BIGINT[], outbox JSON, usage JSON, timers JSON,
        release BOOLEAN, state TEXT, seen BIGINT,
        id BIGINT, unsure BIGINT, receipt TEXT, again_in DOUBLE PRECISION
    ) LOOP
        ok := false; number := 0; at_thread := item.thread; answer := NULL;
        new_head := 0; new_epoch := 0; has_started := false; has_released := false; came := 0;
        CASE item.kind
        WHEN 'receive' THEN
            IF at_thread IS NULL THEN
                SELECT s.thread INTO at_thread FROM sessions s WHERE s.key = item.key;
            END IF;
            INSERT INTO inbox AS i (channel, event, thread, owner, kind, body, at)
            VALUES (item.channel, item.event, at_thread, item.owner, item.letter, item.body, now)
            ON CONFLICT DO NOTHING RETURNING i.id INTO number;
            ok := FOUND;
            IF NOT ok THEN
                SELECT i.id, i.thread, i.reply INTO number, at_thread, answer
                FROM inbox i WHERE i.channel = item.channel AND i.event = item.event;
            END IF;
        WHEN 'settle' THEN
            UPDATE outbox o SET state = item.state, unsure = greatest(o.unsure, item.unsure), receipt = item.receipt,
                due = now + item.again_in
            WHERE o.id = item.id AND o.state = 'sending' AND o.holder = me;
            ok := FOUND;
        WHEN 'commit' THEN
            SELECT * INTO t FROM threads WHERE threads.id = item.thread;
            ok := FOUND;
            SELECT coalesce(max(i.id), 0), coalesce(bool_or(i.kind = 'stop'), false) INTO number, stopped
            FROM inbox i WHERE i.thread = item.thread AND i.ended = 0 AND i.taken = 0 AND i.id <> ALL (item.absorbed);
            has_started := cardinality(item.starts) > 0 AND NOT stopped;
            has_released := item.release AND number <= item.seen;
            IF item.epoch > 0 THEN
                ok := ok AND t.epoch = item.epoch AND t.holder IS NOT DISTINCT FROM me
                    AND (t.expires > now OR NOT has_started);
            ELSE
                ok := ok AND (t.holder IS NULL OR t.holder = me OR t.expires <= now);
            END IF;
            ok := ok AND t.head = item.head;
            added := CASE WHEN has_started THEN item.entries || item.starts ELSE item.entries END;
            IF ok AND item.event IS NOT NULL THEN
                -- Who moves a session away from a thread holds the lock of that thread, as we do now.
                ok := number = 0 AND EXISTS(SELECT 1 FROM sessions s WHERE s.key = item.key AND s.thread = item.thread);
                IF ok THEN
                    INSERT INTO inbox AS i (channel, event, thread, owner, kind, body, at, taken)
                    VALUES (item.channel, item.event, item.thread, item.owner, item.letter, item.body, now, 1)
                    ON CONFLICT DO NOTHING RETURNING i.id INTO came;
                    ok := FOUND;
                    added[1] := left(added[1], -1) || ',"mail":' || came || '}}';
                END IF;
            END IF;
            IF NOT ok THEN
                RETURN NEXT;
                CONTINUE;
            END IF;
            UPDATE threads SET
                head = t.head + cardinality(added),
                folded = CASE WHEN item.fold > 0 THEN t.head + item.fold ELSE t.folded END,
                state = item.state,
                holder = CASE WHEN has_released THEN NULL ELSE me END,
                epoch = CASE WHEN item.epoch > 0 THEN t.epoch ELSE t.epoch + 1 END,
                expires = CASE WHEN item.epoch = 0 OR t.expires > now THEN now + ttl ELSE t.expires END
            WHERE threads.id = t.id RETURNING threads.head, threads.epoch INTO new_head, new_epoch;
            INSERT INTO entries(thread, seq, owner, at, body)
            SELECT t.id, t.head + e.n, t.owner, now, e.body FROM unnest(added) WITH ORDINALITY AS e(body, n);
            IF cardinality(item.absorbed) > 0 THEN
                UPDATE inbox SET taken = 1, ended = CASE WHEN inbox.kind = 'said' THEN 0 ELSE -1 END
                WHERE inbox.id = ANY(item.absorbed);
            END IF;
            IF cardinality(item.ended_mail) > 0 THEN
                UPDATE inbox SET ended = e.seq FROM unnest(item.ended_mail, item.ended_seq) AS e(mail, seq)
                WHERE inbox.id = e.mail;
            END IF;
            IF item.outbox IS NOT NULL THEN
                INSERT INTO outbox(key, thread, owner, channel, chat, body, at)
                SELECT o.key, t.id, t.owner, o.channel, o.chat, o.body, now
                FROM json_to_recordset(item.outbox) AS o(key TEXT, channel TEXT, chat TEXT, body TEXT)
                ON CONFLICT DO NOTHING;
            END IF;
            IF item.usage IS NOT NULL THEN
                INSERT INTO usage(
                    thread, seq, owner, at, model, input, output, cache_read, cache_write, cost, reasoning)
                SELECT t.id, u.seq, t.owner, now, u.model, u.input, u.output, u.cache_read, u.cache_write, u.cost,
                    u.reasoning
                FROM json_to_recordset(item.usage) AS u(
                    seq BIGINT, model TEXT, input BIGINT, output BIGINT, cache_read BIGINT, cache_write BIGINT,
                    cost DOUBLE PRECISION, reasoning BIGINT);
            END IF;
            IF item.timers IS NOT NULL THEN
                INSERT INTO timers(key, thread, owner, due, body)
                SELECT c.key, t.id, t.owner, now + c.due, c.body
                FROM json_to_recordset(item.timers) AS c(key TEXT, due DOUBLE PRECISION, body TEXT)
                ON CONFLICT DO NOTHING;
            END IF;
        END CASE;
        RETURN NEXT;
    END LOOP;
END $$
"""

CALL = "SELECT * FROM pg_temp.everloop_write($1, $2, $3, $4, $5, $6, $7)"

_encode = msgspec.json.Encoder().encode


class Item(Struct):
    """One write as it travels, and the session or the thread that has to be locked for it."""

    json: bytes
    session: tuple[str, str] | None = None  # key and owner
    thread: str = ""


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


class _Commit(Struct, tag_field="kind", tag="commit", omit_defaults=True):
    thread: str
    head: int
    epoch: int
    entries: list[str]
    starts: list[str]
    absorbed: list[int]
    release: bool
    state: str
    seen: int
    fold: int
    ended_mail: list[int] | None = None
    ended_seq: list[int] | None = None
    outbox: list[_Queued] | None = None
    usage: list[_Used] | None = None
    timers: list[_Wound] | None = None
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
        *(lease.thread, lease.head, lease.epoch, bodies_of(commit.entries), bodies_of(commit.starts)),
        *(list(commit.absorbed), commit.release, commit.state, commit.seen, fold_in(commit.entries)),
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
    if commit.letter:
        item.key, item.channel, item.event, item.owner, item.letter, item.body = _post(commit.letter)
    return Item(_encode(item), thread=lease.thread)


def _post(inbound: Inbound) -> tuple[str, str, str, str, str, str]:
    letter = inbound.letter
    return (
        *(str(inbound.address), inbound.address.channel, inbound.event, inbound.owner),
        *(kind_of(letter), body_of(letter)),
    )
