"""What goes with commits on PostgreSQL of what calls use: functions of the connection, beside the batch function.

Where several accounts are needed they are locked first, in one order: two batches never wait for each other in a ring.
Mostly there is room for all that a batch reserves, which one look tells (HAS_ROOM); then what is reserved and charged
is written by the statement that writes the commits (CHARGE, RESERVE). Otherwise it is one after the other:
`everloop_reserve` says for which there is none, begins periods, and charges what a lost call held.
"""

from . import schema
from .budgets import take

_TAKE = take("a.owner", "a.per", "a.scope", "wanted_tokens", "wanted_money", "a.most_tokens", "a.most_money")
_ACCOUNT = "owner TEXT, per TEXT, scope TEXT"

_SUMS = "tokens BIGINT, money BIGINT"

# Whether there is room for all that is wanted, in periods that run, and no call was lost. The accounts are locked in
# their order, so that there still is when it is taken.
HAS_ROOM = f"""SELECT count(*) FILTER (WHERE has_room) = json_array_length(wanted)
        AND NOT EXISTS(SELECT 1 FROM reservations x WHERE x.key = ANY(calls))
    FROM (
        SELECT (s.resets > moment OR s.resets = 0) AND s.tokens + s.held_tokens + a.tokens <= a.most_tokens
            AND s.money + s.held_money + a.money <= a.most_money AS has_room
        FROM json_to_recordset(wanted) AS a({_ACCOUNT}, {_SUMS}, most_tokens BIGINT, most_money BIGINT)
        JOIN spending s ON s.owner = a.owner AND s.per = a.per AND s.scope = a.scope
        ORDER BY s.owner, s.per, s.scope FOR UPDATE OF s
    ) r"""

_GONE = """
    ), gone AS (
        DELETE FROM reservations x
        USING final f, json_to_recordset(f.charges) AS c(key TEXT, tokens BIGINT, money BIGINT)
        WHERE x.key = c.key
        RETURNING x.tokens, x.money, x.accounts, coalesce(c.tokens, x.tokens) AS used_tokens,
            coalesce(c.money, x.money) AS used_money"""
_OF_GONE = f"""
                SELECT a.*, g.used_tokens AS tokens, g.used_money AS money, -g.tokens AS held_tokens,
                    -g.money AS held_money
                FROM gone g, json_to_recordset(g.accounts::JSON) AS a({_ACCOUNT})"""

_RESERVED = f"""
    ), reserved AS MATERIALIZED (
        SELECT r.* FROM final f, json_to_record(f.reserve)
            AS r(key TEXT, owner TEXT, {_SUMS}, bounds JSON, accounts TEXT)
        WHERE f.goes AND f.reserve IS NOT NULL
    ), reservations_ AS (
        INSERT INTO reservations(key, owner, tokens, money, at, accounts)
        SELECT r.key, r.owner, r.tokens, r.money, moment, r.accounts FROM reserved r"""
_OF_RESERVED = f"""
                SELECT a.*, 0, 0, r.tokens, r.money FROM reserved r, json_to_recordset(r.bounds) AS a({_ACCOUNT})"""


def _spent(changes: str) -> str:
    """What changes in the accounts, each of them once."""
    return f"""
    ), spending_ AS (
        UPDATE spending s SET tokens = s.tokens + m.tokens, money = s.money + m.money,
            held_tokens = s.held_tokens + m.held_tokens, held_money = s.held_money + m.held_money
        FROM (
            SELECT m.owner, m.per, m.scope, sum(m.tokens)::BIGINT AS tokens, sum(m.money)::BIGINT AS money,
                sum(m.held_tokens)::BIGINT AS held_tokens, sum(m.held_money)::BIGINT AS held_money
            FROM ({changes}
            ) m GROUP BY m.owner, m.per, m.scope
        ) m
        WHERE s.owner = m.owner AND s.per = m.per AND s.scope = m.scope"""


# What the commits charge; and with it what those reserve that start something, for which there is room.
CHARGE = f"{_GONE}{_spent(_OF_GONE)}"
RESERVE = f"{_GONE}{_RESERVED}{_spent(f'{_OF_GONE} UNION ALL {_OF_RESERVED}')}"

CREATE = f"""
CREATE FUNCTION pg_temp.everloop_charge(named TEXT, used_tokens BIGINT, used_money BIGINT) RETURNS VOID
LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM reservations x WHERE x.key = named RETURNING x.tokens, x.money, x.accounts
    )
    UPDATE spending s SET held_tokens = s.held_tokens - g.tokens, held_money = s.held_money - g.money,
        tokens = s.tokens + coalesce(used_tokens, g.tokens), money = s.money + coalesce(used_money, g.money)
    FROM gone g, json_to_recordset(g.accounts::JSON) AS a({_ACCOUNT})
    WHERE s.owner = a.owner AND s.per = a.per AND s.scope = a.scope;
END $$;

CREATE FUNCTION pg_temp.everloop_reserve(reserve JSON, moment DOUBLE PRECISION) RETURNS TEXT LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wanted RECORD; a RECORD; wanted_tokens BIGINT; wanted_money BIGINT; taken INT := 0; missing TEXT;
BEGIN
    SELECT * FROM json_to_record(reserve)
        AS r(key TEXT, owner TEXT, tokens BIGINT, money BIGINT, bounds JSON, accounts TEXT) INTO wanted;
    wanted_tokens := wanted.tokens;
    wanted_money := wanted.money;
    LOOP
        INSERT INTO reservations(key, owner, tokens, money, at, accounts)
        VALUES (wanted.key, wanted.owner, wanted_tokens, wanted_money, moment, wanted.accounts)
        ON CONFLICT DO NOTHING;
        EXIT WHEN FOUND;
        PERFORM pg_temp.everloop_charge(wanted.key, NULL, NULL);  -- of a call that was lost
    END LOOP;
    FOR a IN SELECT * FROM json_to_recordset(wanted.bounds)
        AS b({_ACCOUNT}, most_tokens BIGINT, most_money BIGINT)
    LOOP
        UPDATE spending s SET held_tokens = s.held_tokens + wanted_tokens, held_money = s.held_money + wanted_money
        WHERE s.owner = a.owner AND s.per = a.per AND s.scope = a.scope AND (s.resets > moment OR s.resets = 0)
            AND s.tokens + s.held_tokens + wanted_tokens <= a.most_tokens
            AND s.money + s.held_money + wanted_money <= a.most_money;
        IF NOT FOUND THEN  -- perhaps a period begins
            {_TAKE.replace("RETURNING owner", "").format_map(schema.DIALECTS["postgres"])};
        END IF;
        IF NOT FOUND THEN
            missing := json_build_object('owner', a.owner, 'per', a.per, 'scope', a.scope)::TEXT;
            EXIT;
        END IF;
        taken := taken + 1;
    END LOOP;
    IF missing IS NOT NULL THEN
        DELETE FROM reservations x WHERE x.key = wanted.key;
        UPDATE spending s SET held_tokens = s.held_tokens - wanted_tokens, held_money = s.held_money - wanted_money
        FROM (SELECT * FROM json_to_recordset(wanted.bounds) AS b({_ACCOUNT}) LIMIT taken) AS x
        WHERE s.owner = x.owner AND s.per = x.per AND s.scope = x.scope;
    END IF;
    RETURN missing;
END $$;

CREATE FUNCTION pg_temp.everloop_lock_accounts(commits JSON) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM spending s WHERE (s.owner, s.per, s.scope) IN (
        SELECT a.owner, a.per, a.scope FROM json_to_recordset(commits) AS i(reserve JSON),
            json_to_recordset(i.reserve -> 'bounds') AS a({_ACCOUNT})
        UNION ALL
        SELECT a.owner, a.per, a.scope FROM json_to_recordset(commits) AS i(charges JSON),
            json_to_recordset(i.charges) AS c(key TEXT) JOIN reservations r ON r.key = c.key,
            json_to_recordset(r.accounts::JSON) AS a({_ACCOUNT}))
    ORDER BY s.owner, s.per, s.scope FOR UPDATE;
END $$;
"""
