"""A batch of writes as one call to PostgreSQL: each item stands or falls alone, all share one commit.

It is a function of the connection, not of the database, so that two versions of everloop can share a database while
one replaces the other.

Every batch locks first, in one order: sessions by key, then threads by id. So two batches never wait for each other
in a ring, and what is read afterwards, each statement with a fresh snapshot, cannot change any more: a start
sees every stop that has committed, a release every letter. Letters are numbered under the lock of their thread,
hence in the order in which they become visible.
"""

from . import schema

_NOW = schema.DIALECTS["postgres"]["now"]

CREATE = f"""
CREATE FUNCTION pg_temp.everloop_write(
    me TEXT, ttl DOUBLE PRECISION, keys TEXT[], owners TEXT[], fresh TEXT[], named TEXT[], batch JSON
) RETURNS TABLE(
    ok BOOLEAN, number BIGINT, at_thread TEXT, answer TEXT,
    new_head BIGINT, new_epoch BIGINT, has_started BOOLEAN, has_released BOOLEAN
) LANGUAGE plpgsql AS $$
DECLARE
    now DOUBLE PRECISION; found_threads TEXT[]; item RECORD; t threads%ROWTYPE; stopped BOOLEAN; added TEXT[];
BEGIN
    IF cardinality(keys) > 0 THEN
        WITH touched AS (
            INSERT INTO sessions AS s (key, owner, thread, active)
            SELECT u.key, u.owner, u.thread, {_NOW} FROM unnest(keys, owners, fresh) AS u(key, owner, thread)
            ON CONFLICT (key) DO UPDATE SET active = excluded.active RETURNING s.key, s.owner, s.thread
        ), made AS (
            INSERT INTO threads(id, owner, session, created)
            SELECT thread, owner, key, {_NOW} FROM touched WHERE thread = ANY(fresh)
        )
        SELECT array_agg(thread) INTO found_threads FROM touched;
    END IF;
    PERFORM 1 FROM threads WHERE id = ANY(named || found_threads) ORDER BY id FOR UPDATE;
    now := {_NOW};
    FOR item IN SELECT * FROM json_to_recordset(batch) AS i(
        kind TEXT, key TEXT, channel TEXT, event TEXT, owner TEXT, letter TEXT, body TEXT,
        thread TEXT, head BIGINT, epoch BIGINT, entries TEXT[], starts TEXT[], fold BIGINT,
        absorbed BIGINT[], ended_mail BIGINT[], ended_seq BIGINT[], outbox JSON, usage JSON, timers JSON,
        release BOOLEAN, state TEXT, seen BIGINT,
        id BIGINT, unsure BIGINT, receipt TEXT, again_in DOUBLE PRECISION
    ) LOOP
        ok := false; number := 0; at_thread := item.thread; answer := NULL;
        new_head := 0; new_epoch := 0; has_started := false; has_released := false;
        CASE item.kind
        WHEN 'receive' THEN
            SELECT s.thread INTO at_thread FROM sessions s WHERE s.key = item.key;
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
            FROM inbox i WHERE i.thread = item.thread AND i.taken = 0 AND i.id <> ALL (item.absorbed);
            has_started := cardinality(item.starts) > 0 AND NOT stopped;
            has_released := item.release AND number <= item.seen;
            IF item.epoch > 0 THEN
                ok := ok AND t.epoch = item.epoch AND t.holder IS NOT DISTINCT FROM me
                    AND (t.expires > now OR NOT has_started);
            ELSE
                ok := ok AND (t.holder IS NULL OR t.holder = me OR t.expires <= now);
            END IF;
            ok := ok AND t.head = item.head;
            IF NOT ok THEN
                RETURN NEXT;
                CONTINUE;
            END IF;
            added := CASE WHEN has_started THEN item.entries || item.starts ELSE item.entries END;
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
                UPDATE inbox SET taken = 1 WHERE inbox.id = ANY(item.absorbed);
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
                INSERT INTO usage(thread, seq, owner, at, model, input, output, cache_read, cache_write, cost)
                SELECT t.id, u.seq, t.owner, now, u.model, u.input, u.output, u.cache_read, u.cache_write, u.cost
                FROM json_to_recordset(item.usage) AS u(
                    seq BIGINT, model TEXT, input BIGINT, output BIGINT, cache_read BIGINT, cache_write BIGINT,
                    cost DOUBLE PRECISION);
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
