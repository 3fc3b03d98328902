"""A batch of writes as one call to a function in PostgreSQL: each item stands or falls alone, all share one commit.

It is a function of the connection, not of the database, so that two versions of everloop can share a database while
one replaces the other.

Every batch locks first, in one order: sessions by key, then threads by id. So two batches never wait for each other
in a ring, and what is read afterwards, each statement with a fresh snapshot, cannot change any more: a start
sees every stop that has committed, a release every letter. Letters are numbered under the lock of their thread,
hence in the order in which they become visible. Accounts of budgets are locked last.
"""

from ..ports.channel import ASIDE
from . import budget_functions, schema
from .letters import MAKE_TURNS

_NOW, _ELAPSED = schema.DIALECTS["postgres"]["now"], schema.DIALECTS["postgres"]["elapsed"]

_ITEM = """n BIGINT, key TEXT, channel TEXT, event TEXT, owner TEXT, letter TEXT, body TEXT,
            thread TEXT, head BIGINT, epoch BIGINT, entries TEXT[], starts TEXT[], fold BIGINT,
            absorbed BIGINT[], ended_mail BIGINT[], ended_seq BIGINT[], outbox JSON, usage JSON, timers JSON,
            posts JSON, taints JSON, untaints JSON, audit JSON, audit_starts JSON, release BOOLEAN, state TEXT,
            seen BIGINT, charges JSON, reserve JSON, works_for TEXT"""

# Which of the commits can be written: none that is too late, and of what starts nothing after a stop.
_JUDGED = f"""WITH i AS MATERIALIZED (
        SELECT * FROM json_to_recordset(commits) AS i(
            {_ITEM})
    ), mail AS (
        SELECT i.n, max(x.id) AS newest, bool_or(x.kind = 'stop') AS stopped
        FROM i JOIN inbox x ON x.thread = i.thread AND x.ended = 0 AND x.taken = 0 AND x.id <> ALL (i.absorbed)
        GROUP BY i.n
    ), seen AS (
        SELECT i.*, t.owner AS whose, t.folded, t.epoch AS had, t.expires, t.head AS stands, t.holder,
            coalesce(m.newest, 0) AS newest,
            cardinality(i.starts) > 0 AND NOT coalesce(m.stopped, false) AS goes,
            i.release AND coalesce(m.newest, 0) <= i.seen AS rests
        FROM i JOIN threads t ON t.id = i.thread AND (i.works_for IS NULL OR i.works_for = t.spawned_by)
        LEFT JOIN mail m ON m.n = i.n
    ), judged AS MATERIALIZED (
        SELECT s.*, s.stands = s.head AND s.n = min(s.n) OVER (PARTITION BY s.thread) AND CASE WHEN s.epoch > 0
            THEN s.had = s.epoch AND s.holder IS NOT DISTINCT FROM me AND (s.expires > elapsed OR NOT s.goes)
            ELSE s.holder IS NULL OR s.holder = me OR s.expires <= elapsed END
            -- Who moves a session away from a thread holds the lock of that thread, as we do now.
            AND (s.event IS NULL OR s.newest = 0
                AND EXISTS(SELECT 1 FROM sessions o WHERE o.key = s.key AND o.thread = s.thread
                    AND o.owner = s.owner)) AS fit
        FROM seen s
""".strip()

# The same, of what was judged before.
_JUDGED_BEFORE = """WITH i AS (
        SELECT * FROM json_to_recordset(commits) AS i(n BIGINT)
    ), judged AS MATERIALIZED (
        SELECT * FROM unnest(kept)
"""

_WRITE = f"""
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
            expires = CASE WHEN f.epoch = 0 OR f.expires > elapsed THEN elapsed + ttl ELSE f.expires END
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
            ended = CASE WHEN u.ended IS NOT NULL THEN u.ended WHEN x.{MAKE_TURNS} THEN 0 ELSE -1 END
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
        INSERT INTO usage(thread, seq, owner, at, model, input, output, cache_read, cache_write, cost, reasoning,
            requester, own)
        SELECT f.thread, u.seq, f.whose, moment, u.model, u.input, u.output, u.cache_read, u.cache_write, u.cost,
            u.reasoning, u.requester, u.own
        FROM final f, json_to_recordset(f.usage) AS u(
            seq BIGINT, model TEXT, input BIGINT, output BIGINT, cache_read BIGINT, cache_write BIGINT,
            cost DOUBLE PRECISION, reasoning BIGINT, requester TEXT, own BIGINT)
    ), timers_ AS (
        INSERT INTO jobs(id, owner, kind, session, schedule, due, body)
        SELECT c.key, f.whose, 'timer', c.session, '', moment + c.due, c.body
        FROM final f, json_to_recordset(f.timers) AS c(key TEXT, session TEXT, due DOUBLE PRECISION, body TEXT)
        ON CONFLICT DO NOTHING
    ), posts_ AS (
        INSERT INTO inbox(channel, event, thread, owner, kind, body, at)
        SELECT p.channel, p.event, t.id, p.owner, p.letter, p.body, moment
        FROM final f, json_to_recordset(f.posts) AS p(key TEXT, channel TEXT, event TEXT, owner TEXT, letter TEXT,
            body TEXT, thread TEXT, spawned_by TEXT)
        LEFT JOIN sessions s ON s.key = p.key AND s.owner = p.owner
        JOIN threads t ON t.id = coalesce(p.thread, s.thread) AND t.owner = p.owner
        WHERE p.spawned_by = '' OR f.goes OR cardinality(f.starts) = 0
        ON CONFLICT DO NOTHING
    ), children_ AS (  -- of a session that was just made, or in which nothing has been said
        UPDATE threads t SET spawned_by = p.spawned_by, title = p.title, archived = 1
        FROM final f, json_to_recordset(f.posts) AS p(key TEXT, owner TEXT, thread TEXT, spawned_by TEXT, title TEXT),
            sessions s
        WHERE p.spawned_by <> '' AND p.thread IS NULL AND s.key = p.key AND s.owner = p.owner AND t.id = s.thread
            AND t.owner = p.owner AND t.head = 0 AND t.spawned_by = '' AND (f.goes OR cardinality(f.starts) = 0)
            AND NOT EXISTS(SELECT 1 FROM inbox x WHERE x.thread = t.id AND x.ended = 0)
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
    ), audit_ AS (  -- others who note something wait from here until this is committed
        INSERT INTO audit(at, actor, authority, deed, subject, detail)
        SELECT CAST(moment * 1000 AS BIGINT), a.actor, a.authority, a.deed, a.subject, a.detail
        FROM (
            SELECT f.n, 0 AS place, a.* FROM final f, json_to_recordset(f.audit) AS a(
                actor TEXT, authority TEXT, deed TEXT, subject TEXT, detail TEXT)
            UNION ALL
            SELECT f.n, 1, a.* FROM final f, json_to_recordset(f.audit_starts) AS a(
                actor TEXT, authority TEXT, deed TEXT, subject TEXT, detail TEXT) WHERE f.goes
        ) a ORDER BY a.n, a.place"""

_TELL = """
    )
    SELECT i.n, f.n IS NOT NULL, coalesce(f.newest, 0), NULL::TEXT, fulls[array_position(refused, i.n)],
        t.head, t.epoch, coalesce(f.goes, false), coalesce(f.rests, false), coalesce(f.came, 0)
    FROM i LEFT JOIN final f ON f.n = i.n LEFT JOIN threads_ t ON t.id = f.thread;"""

CREATE = f"""
CREATE TYPE pg_temp.everloop_judged AS (
    {_ITEM}, whose TEXT, folded BIGINT, had BIGINT, expires DOUBLE PRECISION, stands BIGINT,
    holder TEXT, newest BIGINT, goes BOOLEAN, rests BOOLEAN, fit BOOLEAN);

CREATE FUNCTION pg_temp.everloop_write(
    me TEXT, ttl DOUBLE PRECISION, patience TEXT, keys TEXT[], owners TEXT[], fresh TEXT[], named TEXT[],
    posts JSON, commits JSON,
    several BOOLEAN,  -- accounts of budgets are needed; NULL: nothing is reserved or charged
    wanted JSON, calls TEXT[]  -- what is reserved of each account, and by which keys
) RETURNS TABLE(
    n BIGINT, ok BOOLEAN, number BIGINT, at_thread TEXT, answer TEXT,
    new_head BIGINT, new_epoch BIGINT, has_started BOOLEAN, has_released BOOLEAN, came BIGINT
) LANGUAGE plpgsql
-- Else the server plans the large statements anew for each commit that reserves or charges, since it takes such plans
-- for a little better: to make them takes it longer than to do what they say.
SET plan_cache_mode TO force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    moment DOUBLE PRECISION; elapsed DOUBLE PRECISION; known TEXT[]; held TEXT[]; item RECORD;
    kept pg_temp.everloop_judged[]; one pg_temp.everloop_judged; place INT; has_room BOOLEAN := true;
    full_ TEXT; refused BIGINT[] := '{{}}'; fulls TEXT[] := '{{}}';
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
    elapsed := {_ELAPSED};
    IF posts IS NOT NULL THEN
        FOR item IN SELECT * FROM json_to_recordset(posts) AS i(
            n BIGINT, kind TEXT, key TEXT, channel TEXT, event TEXT, owner TEXT, letter TEXT, body TEXT, thread TEXT,
            id BIGINT, state TEXT, unsure BIGINT, receipt TEXT, again_in DOUBLE PRECISION
        ) LOOP
            n := item.n; ok := false; number := 0; at_thread := item.thread; answer := NULL;
            IF item.kind = 'settle' THEN
                UPDATE outbox o SET state = item.state, unsure = o.unsure + item.unsure,
                    receipt = item.receipt, due = moment + item.again_in
                WHERE o.id = item.id AND o.state = 'sending' AND o.holder = me;
                ok := FOUND;
            ELSE
                IF at_thread IS NULL THEN
                    SELECT s.thread INTO at_thread FROM sessions s WHERE s.key = item.key AND s.owner = item.owner;
                END IF;
                IF item.thread IS NOT NULL AND NOT EXISTS(SELECT 1 FROM threads t WHERE t.id = item.thread) THEN
                    at_thread := NULL;
                END IF;
                IF at_thread IS NULL THEN  -- the session is another's, or the thread was deleted
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
    IF several THEN
        PERFORM pg_temp.everloop_lock_accounts(commits);
    END IF;
    IF wanted IS NOT NULL THEN
        {budget_functions.HAS_ROOM} INTO has_room;
    END IF;
    IF NOT has_room THEN
        {_JUDGED}
        ) SELECT array_agg(ROW(j.*)::pg_temp.everloop_judged ORDER BY j.n) INTO kept FROM judged j;
        FOR place IN 1..coalesce(cardinality(kept), 0) LOOP
            one := kept[place];
            CONTINUE WHEN NOT one.fit OR (one.charges IS NULL AND one.reserve IS NULL);
            IF one.event IS NOT NULL THEN
                CONTINUE WHEN EXISTS(SELECT 1 FROM inbox x WHERE x.channel = one.channel AND x.event = one.event);
            END IF;
            IF one.charges IS NOT NULL THEN
                PERFORM pg_temp.everloop_charge(c.key, c.tokens, c.money)
                FROM json_to_recordset(one.charges) AS c(key TEXT, tokens BIGINT, money BIGINT);
            END IF;
            IF one.goes AND one.reserve IS NOT NULL THEN
                full_ := pg_temp.everloop_reserve(one.reserve, moment);
                IF full_ IS NOT NULL THEN
                    refused := refused || one.n;
                    fulls := fulls || full_;
                    one.goes := false;
                    kept[place] := one;
                END IF;
            END IF;
        END LOOP;
    END IF;
    -- All commits at once: a statement for each would cost more than what it does. Of two for one thread the first
    -- counts: it takes the lease, and with that the other is too late.
    IF several IS NULL THEN
        RETURN QUERY {_JUDGED}{_WRITE}{_TELL}
    ELSIF NOT has_room THEN
        RETURN QUERY {_JUDGED_BEFORE}{_WRITE}{_TELL}
    ELSIF wanted IS NULL THEN
        RETURN QUERY {_JUDGED}{_WRITE}{budget_functions.CHARGE}{_TELL}
    ELSE
        RETURN QUERY {_JUDGED}{_WRITE}{budget_functions.RESERVE}{_TELL}
    END IF;
END $$;
{budget_functions.CREATE}"""

NAME, VALUES = "everloop_write", 12
CALL = (
    "SELECT ok, coalesce(number, 0), coalesce(new_head, 0), coalesce(new_epoch, 0), coalesce(has_started, false), "
    "coalesce(has_released, false), coalesce(came, 0), at_thread, answer "
    "FROM pg_temp.everloop_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ORDER BY n"
)
