"""What goes with commits on PostgreSQL of what calls use: functions of the connection, beside the batch function.

The accounts are locked first, in one order: two batches never wait for each other in a ring.
"""

from . import schema
from .budgets import take

_TAKE = take("a.owner", "a.per", "a.scope", "wanted_tokens", "wanted_money", "a.most_tokens", "a.most_money")
_ACCOUNT = "owner TEXT, per TEXT, scope TEXT"

CREATE = f"""
CREATE FUNCTION pg_temp.everloop_charge(named TEXT, used_tokens BIGINT, used_money BIGINT) RETURNS VOID
LANGUAGE plpgsql AS $$
DECLARE r RECORD;
BEGIN
    DELETE FROM reservations x WHERE x.key = named RETURNING x.tokens, x.money, x.accounts INTO r;
    IF FOUND THEN
        UPDATE spending s SET held_tokens = s.held_tokens - r.tokens, held_money = s.held_money - r.money,
            tokens = s.tokens + coalesce(used_tokens, r.tokens), money = s.money + coalesce(used_money, r.money)
        FROM json_to_recordset(r.accounts::JSON) AS a({_ACCOUNT})
        WHERE s.owner = a.owner AND s.per = a.per AND s.scope = a.scope;
    END IF;
END $$;

CREATE FUNCTION pg_temp.everloop_reserve(named TEXT, who TEXT, wanted_tokens BIGINT, wanted_money BIGINT, bounds JSON)
RETURNS TEXT LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE a RECORD; places TEXT; taken INT := 0; missing TEXT;
BEGIN
    PERFORM pg_temp.everloop_charge(named, NULL, NULL);  -- of a call that was lost
    FOR a IN SELECT * FROM json_to_recordset(bounds) AS b({_ACCOUNT}, most_tokens BIGINT, most_money BIGINT) LOOP
        {_TAKE.replace("RETURNING owner", "").format_map(schema.DIALECTS["postgres"])};
        IF NOT FOUND THEN
            missing := json_build_object('owner', a.owner, 'per', a.per, 'scope', a.scope)::TEXT;
            EXIT;
        END IF;
        taken := taken + 1;
    END LOOP;
    IF missing IS NOT NULL THEN
        UPDATE spending s SET held_tokens = s.held_tokens - wanted_tokens, held_money = s.held_money - wanted_money
        FROM (SELECT * FROM json_to_recordset(bounds) AS b({_ACCOUNT}) LIMIT taken) AS x
        WHERE s.owner = x.owner AND s.per = x.per AND s.scope = x.scope;
        RETURN missing;
    END IF;
    SELECT json_agg(json_build_object('owner', b.owner, 'per', b.per, 'scope', b.scope))::TEXT INTO places
    FROM json_to_recordset(bounds) AS b({_ACCOUNT});
    INSERT INTO reservations(key, owner, tokens, money, at, accounts)
    VALUES (named, who, wanted_tokens, wanted_money, {schema.DIALECTS["postgres"]["now"]}, places);
    RETURN NULL;
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
