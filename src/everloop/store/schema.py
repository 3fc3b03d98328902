"""The tables, once for both databases, as numbered migrations that only ever grow.

Times are seconds since 1970 by the database's clock (`now`), in whose place a simulated one may stand; leases and
claims are elapsed time, which none moves (`elapsed`). Every row that belongs to someone carries its owner.
What differs between the two databases is a word here and there, filled in from DIALECTS.

Every page that a turn touches is written to the disk, so there are few indexes. A letter is open (`ended` = 0) until
the turn that took it is over, or, when nobody waits for it, until it was taken: what has work to do is what has open
letters. `taken` is 1 when it is in the log, 2 when whoever sent it has been given what came of it, and 3 when they
wait for it no longer.
"""

from collections.abc import Sequence

Migrations = Sequence[Sequence[str]]

DIALECTS = {
    "sqlite": {
        "serial": "INTEGER PRIMARY KEY",
        "int": "INTEGER",
        "real": "REAL",
        "bytes": "BLOB",
        "now": "unixepoch('subsec')",
        "elapsed": "unixepoch('now', 'subsec')",
        "clustered": " WITHOUT ROWID",
        "lock": "",
        "skip": "",
        "least": "min",
        "greatest": "max",
        "each": "json_each",  # of a JSON array, a row with its `value`
        "json": "",
        "words": "",
        "channel": "substr(t.session, 1, instr(t.session, ':') - 1)",  # of a thread `t`
        "find": "instr",  # where in a text another begins, from 1; 0: nowhere
        "joined": "group_concat",
        "index_words": "CREATE VIRTUAL TABLE said_words USING fts5("
        "words, content='', contentless_delete=1, tokenize='ascii', detail='none')",
        "forget_words": "INSERT INTO said_words(said_words) VALUES('delete-all')",
        # everloop_hash is ours (sqlite_file.py), so that nobody adds a line but us.
        "chain_audit": """CREATE TRIGGER audit_chained AFTER INSERT ON audit BEGIN
            UPDATE audit SET previous = p.hash, hash = everloop_hash(
                NEW.id, NEW.at, NEW.actor, NEW.authority, NEW.deed, NEW.subject, NEW.detail, p.hash)
            FROM (SELECT coalesce(
                (SELECT hash FROM audit WHERE id < NEW.id ORDER BY id DESC LIMIT 1), '') AS hash) AS p
            WHERE id = NEW.id; END""",
        "keep_audit": """CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit WHEN OLD.hash <> ''
            BEGIN SELECT RAISE(ABORT, 'lines of the audit are only ever added'); END;
            CREATE TRIGGER audit_whole BEFORE DELETE ON audit
            BEGIN SELECT RAISE(ABORT, 'lines of the audit are only ever added'); END""",
    },
    "postgres": {
        "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "int": "BIGINT",
        "real": "DOUBLE PRECISION",
        "bytes": "BYTEA",
        "now": "extract(epoch from clock_timestamp())",
        "elapsed": "extract(epoch from pg_catalog.clock_timestamp())",
        "clustered": "",
        "lock": " FOR UPDATE",
        "skip": " FOR UPDATE SKIP LOCKED",
        "least": "least",
        "greatest": "greatest",
        "each": "json_array_elements_text",
        "json": "::JSON",
        "words": ", words TSVECTOR NOT NULL",
        "channel": "split_part(t.session, ':', 1)",
        "find": "strpos",
        "joined": "string_agg",
        "index_words": "CREATE INDEX said_words ON said USING gin(words)",
        "forget_words": "SELECT 1",
        "chain_audit": """CREATE FUNCTION everloop_chain_audit() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE
                measured TEXT := ''; field TEXT;
            BEGIN
                PERFORM pg_advisory_xact_lock(hashtext('everloop audit ' || TG_TABLE_SCHEMA));
                SELECT id, hash INTO NEW.id, NEW.previous FROM audit ORDER BY id DESC LIMIT 1;
                NEW.id := coalesce(NEW.id, 0) + 1;
                NEW.previous := coalesce(NEW.previous, '');
                FOREACH field IN ARRAY ARRAY[NEW.id::TEXT, NEW.at::TEXT, NEW.actor, NEW.authority, NEW.deed,
                    NEW.subject, NEW.detail, NEW.previous] LOOP
                    measured := measured || octet_length(convert_to(field, 'UTF8')) || ':' || field;
                END LOOP;
                NEW.hash := encode(sha256(convert_to(measured, 'UTF8')), 'hex');
                RETURN NEW;
            END $$;
            CREATE TRIGGER audit_chained BEFORE INSERT ON audit
            FOR EACH ROW EXECUTE FUNCTION everloop_chain_audit()""",
        "keep_audit": """CREATE FUNCTION everloop_keep_audit() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                RAISE EXCEPTION 'lines of the audit are only ever added';
            END $$;
            CREATE TRIGGER audit_unchanged BEFORE UPDATE OR DELETE ON audit
            FOR EACH ROW EXECUTE FUNCTION everloop_keep_audit()""",
    },
}

MIGRATIONS: Migrations = [
    [
        """CREATE TABLE users(
            id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, created {real} NOT NULL)""",
        "INSERT INTO users(id, name, role, created) VALUES('owner', 'owner', 'owner', {now})",
        """CREATE TABLE sessions(
            key TEXT PRIMARY KEY, owner TEXT NOT NULL, thread TEXT NOT NULL)""",
        """CREATE TABLE threads(
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, session TEXT NOT NULL, created {real} NOT NULL,
            head {int} NOT NULL DEFAULT 0, folded {int} NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT 'resting',
            holder TEXT, epoch {int} NOT NULL DEFAULT 0, expires {real} NOT NULL DEFAULT 0){clustered}""",
        """CREATE TABLE entries(
            thread TEXT NOT NULL, seq {int} NOT NULL, owner TEXT NOT NULL, at {real} NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY(thread, seq)){clustered}""",
        """CREATE TABLE inbox(
            id {serial}, channel TEXT NOT NULL, event TEXT NOT NULL, thread TEXT NOT NULL, owner TEXT NOT NULL,
            kind TEXT NOT NULL, body TEXT NOT NULL, at {real} NOT NULL, taken {int} NOT NULL DEFAULT 0,
            ended {int} NOT NULL DEFAULT 0, reply TEXT, UNIQUE(channel, event))""",
        "CREATE INDEX inbox_open ON inbox(thread) WHERE ended = 0",
        """CREATE TABLE outbox(
            id {serial}, key TEXT NOT NULL UNIQUE, thread TEXT NOT NULL, owner TEXT NOT NULL, channel TEXT NOT NULL,
            chat TEXT NOT NULL, body TEXT NOT NULL, at {real} NOT NULL, state TEXT NOT NULL DEFAULT 'pending',
            attempts {int} NOT NULL DEFAULT 0, unsure {int} NOT NULL DEFAULT 0, due {real} NOT NULL DEFAULT 0,
            holder TEXT, receipt TEXT NOT NULL DEFAULT '')""",
        "CREATE INDEX outbox_open ON outbox(channel, chat, id) WHERE state IN ('pending', 'sending')",
        """CREATE TABLE timers(
            key TEXT PRIMARY KEY, thread TEXT NOT NULL, owner TEXT NOT NULL, due {real} NOT NULL,
            body TEXT NOT NULL)""",
        "CREATE INDEX timers_due ON timers(due)",
        """CREATE TABLE usage(
            thread TEXT NOT NULL, seq {int} NOT NULL, owner TEXT NOT NULL, at {real} NOT NULL, model TEXT NOT NULL,
            input {int} NOT NULL, output {int} NOT NULL, cache_read {int} NOT NULL, cache_write {int} NOT NULL,
            cost {real}, PRIMARY KEY(thread, seq)){clustered}""",
    ],
    [
        """CREATE TABLE vault(
            owner TEXT NOT NULL, name TEXT NOT NULL, at {real} NOT NULL, box {bytes} NOT NULL,
            PRIMARY KEY(owner, name)){clustered}""",
        # In the order in which it comes: ordered by thread, each call would touch a page of its own.
        "ALTER TABLE usage RENAME TO usage_by_thread",
        """CREATE TABLE usage(
            id {serial}, thread TEXT NOT NULL, seq {int} NOT NULL, owner TEXT NOT NULL, at {real} NOT NULL,
            model TEXT NOT NULL, input {int} NOT NULL, output {int} NOT NULL, cache_read {int} NOT NULL,
            cache_write {int} NOT NULL, reasoning {int} NOT NULL DEFAULT 0, cost {real})""",
        """INSERT INTO usage(thread, seq, owner, at, model, input, output, cache_read, cache_write, reasoning, cost)
            SELECT thread, seq, owner, at, model, input, output, cache_read, cache_write, 0, cost
            FROM usage_by_thread ORDER BY at""",
        "DROP TABLE usage_by_thread",
    ],
    [
        """CREATE TABLE grants(
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, at {real} NOT NULL, until {real} NOT NULL, runs {int} NOT NULL,
            body TEXT NOT NULL)""",
        "CREATE INDEX threads_asking ON threads(created) WHERE state = 'waiting'",
    ],
    [
        "ALTER TABLE threads ADD COLUMN title TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE threads ADD COLUMN archived {int} NOT NULL DEFAULT 0",
        # A branch: it goes on after an entry of its parent, and holds entries of its own from `begins` on.
        "ALTER TABLE threads ADD COLUMN parent TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE threads ADD COLUMN parent_seq {int} NOT NULL DEFAULT 0",
        "ALTER TABLE threads ADD COLUMN begins {int} NOT NULL DEFAULT 1",
        "ALTER TABLE threads ADD COLUMN replaced TEXT NOT NULL DEFAULT ''",  # by the branch that stands for it now
        # Counted and indexed up to these entries; the rest when someone looks, so that a turn does not pay for it.
        "ALTER TABLE threads ADD COLUMN messages {int} NOT NULL DEFAULT 0",
        "ALTER TABLE threads ADD COLUMN counted {int} NOT NULL DEFAULT 0",
        "ALTER TABLE threads ADD COLUMN indexed {int} NOT NULL DEFAULT 0",
        "CREATE INDEX threads_owner ON threads(owner)",
        """CREATE TABLE snapshots(
            owner TEXT NOT NULL, name TEXT NOT NULL, thread TEXT NOT NULL, seq {int} NOT NULL, at {real} NOT NULL,
            PRIMARY KEY(owner, name)){clustered}""",
        """CREATE TABLE said(
            id {serial}, thread TEXT NOT NULL, seq {int} NOT NULL, owner TEXT NOT NULL, who TEXT NOT NULL{words})""",
        "{index_words}",
    ],
    [
        # Who may come in through the gateway. Of every secret only a hash is kept.
        """CREATE TABLE tokens(
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,
            scopes TEXT NOT NULL, at {real} NOT NULL, until {real} NOT NULL DEFAULT 0, UNIQUE(owner, name))""",
        """CREATE TABLE logins(
            owner TEXT NOT NULL, kind TEXT NOT NULL, hash TEXT NOT NULL, at {real} NOT NULL,
            until {real} NOT NULL DEFAULT 0, PRIMARY KEY(owner, kind)){clustered}""",
        """CREATE TABLE web_sessions(
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, page TEXT NOT NULL UNIQUE,
            at {real} NOT NULL, until {real} NOT NULL)""",
    ],
    [
        # Words are indexed anew, each entry with the mark of its thread.
        "{forget_words}",
        "DELETE FROM said",
        "UPDATE threads SET indexed = 0",
    ],
    [
        # While which calls could write in a workspace; without an index, for there are few.
        """CREATE TABLE taints(
            key TEXT PRIMARY KEY, owner TEXT NOT NULL, place TEXT NOT NULL, began {real} NOT NULL, ended {real},
            outside {int} NOT NULL, command TEXT NOT NULL DEFAULT ''){clustered}""",
        # What a person has accepted of the files that stand in prompts, and what is held back.
        """CREATE TABLE watched(
            place TEXT NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, version {int} NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY(place, name)){clustered}""",
        # Model calls of guests by day, counted before they are made: `=<guest>` for each, `all` for all together.
        """CREATE TABLE guest_calls(
            day {int} NOT NULL, who TEXT NOT NULL, calls {int} NOT NULL, PRIMARY KEY(day, who)){clustered}""",
        # A grant without a pattern was for anything of its tool, which nobody had said. They are asked again.
        "DELETE FROM grants",
    ],
    [
        # Channels: the receipts of the parts of an answer that have arrived, as JSON; since when it is tried again;
        "ALTER TABLE outbox ADD COLUMN parts TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE outbox ADD COLUMN since {real} NOT NULL DEFAULT 0",
        # where a channel goes on listening; what the last letter of a session said about answering it.
        "CREATE TABLE resumes(channel TEXT PRIMARY KEY, token TEXT NOT NULL, at {real} NOT NULL)",
        """CREATE TABLE reply_contexts(
            session TEXT PRIMARY KEY, owner TEXT NOT NULL, reply_to TEXT NOT NULL, at {real} NOT NULL)""",
        # What is to happen later: one with a session posts its body there, a letter; any other is work to be claimed.
        """CREATE TABLE jobs(
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, session TEXT NOT NULL, schedule TEXT NOT NULL,
            due {real} NOT NULL, body TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'waiting',
            attempts {int} NOT NULL DEFAULT 0, holder TEXT, epoch {int} NOT NULL DEFAULT 0,
            until {real} NOT NULL DEFAULT 0, result TEXT NOT NULL DEFAULT '')""",
        "CREATE INDEX jobs_due ON jobs(state, due)",
        # A timer is a job that is due once. The old table stays for processes of an older version that go on for a
        # while beside newer ones: they write it and fire from it themselves.
        """INSERT INTO jobs(id, owner, kind, session, schedule, due, body)
            SELECT key, owner, 'timer', 'timer:' || thread, '', due, body FROM timers""",
        "DELETE FROM timers",
        # Who alone does something for the whole house, such as firing jobs.
        "CREATE TABLE leases(name TEXT PRIMARY KEY, holder TEXT NOT NULL, epoch {int} NOT NULL, until {real} NOT NULL)",
        # The call that a child thread works for, as thread:answer:place.
        "ALTER TABLE threads ADD COLUMN spawned_by TEXT NOT NULL DEFAULT ''",
    ],
    [
        # The key by which whoever sends an answer, or works on a job, knows their claim again: see claims.py.
        "ALTER TABLE outbox ADD COLUMN claim TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE jobs ADD COLUMN claim TEXT NOT NULL DEFAULT ''",
    ],
    [
        # What a call was for, where that was no turn.
        "ALTER TABLE usage ADD COLUMN purpose TEXT NOT NULL DEFAULT ''",
    ],
    [
        # Which accounts belong to whom (`owner`), and what was said to whoever has to say it somewhere else.
        "ALTER TABLE users ADD COLUMN blocked {int} NOT NULL DEFAULT 0",
        "CREATE TABLE accounts(account TEXT PRIMARY KEY, owner TEXT NOT NULL, at {real} NOT NULL)",
        """CREATE TABLE codes(
            code TEXT PRIMARY KEY, kind TEXT NOT NULL, owner TEXT NOT NULL, session TEXT NOT NULL, event TEXT NOT NULL,
            at {real} NOT NULL, until {real} NOT NULL, UNIQUE(kind, owner))""",
    ],
    [
        # The audit. It is nobody's, and names people by id alone. `at` is in milliseconds, which both databases write
        # in the same way. Each line is bound to the one before it by its hash (ports/audit.py), and none is changed.
        """CREATE TABLE audit(
            id {int} PRIMARY KEY, at {int} NOT NULL, actor TEXT NOT NULL, authority TEXT NOT NULL, deed TEXT NOT NULL,
            subject TEXT NOT NULL, detail TEXT NOT NULL, previous TEXT NOT NULL DEFAULT '',
            hash TEXT NOT NULL DEFAULT '')""",
        "{chain_audit}",
        "{keep_audit}",
    ],
    [
        # What people have sent and were given, by name; the bytes lie in the folder of files, or in S3.
        """CREATE TABLE files(
            owner TEXT NOT NULL, ref TEXT NOT NULL, name TEXT NOT NULL, mime TEXT NOT NULL, size {int} NOT NULL,
            at {real} NOT NULL, PRIMARY KEY(owner, ref)){clustered}""",
        "CREATE INDEX files_ref ON files(ref)",
        "CREATE INDEX files_at ON files(owner, at)",
    ],
    [
        # Budgets: what was set, what was spent in the period that runs, and what calls under way hold of it by their
        # keys. Money is in billionths of a dollar. Whose call it was (`requester`; "": the owner's of the thread).
        """CREATE TABLE limits(
            owner TEXT NOT NULL, per TEXT NOT NULL, tokens {int}, money {int}, at {real} NOT NULL,
            PRIMARY KEY(owner, per)){clustered}""",
        """CREATE TABLE spending(
            owner TEXT NOT NULL, per TEXT NOT NULL, scope TEXT NOT NULL, tokens {int} NOT NULL, money {int} NOT NULL,
            held_tokens {int} NOT NULL, held_money {int} NOT NULL, resets {real} NOT NULL,
            warned {int} NOT NULL DEFAULT 0, PRIMARY KEY(owner, per, scope)){clustered}""",
        """CREATE TABLE reservations(
            key TEXT PRIMARY KEY, owner TEXT NOT NULL, tokens {int} NOT NULL, money {int} NOT NULL, at {real} NOT NULL,
            accounts TEXT NOT NULL){clustered}""",
        "ALTER TABLE usage ADD COLUMN requester TEXT NOT NULL DEFAULT ''",
    ],
    [
        # Calls of guests are counted in their budgets now.
        "DROP TABLE guest_calls",
    ],
    [
        # Whether a call was made with a key of their own, and so paid by themselves.
        "ALTER TABLE usage ADD COLUMN own {int} NOT NULL DEFAULT 0",
    ],
    [
        # The platforms that a token names, as they stand in keys. One that is older names those at which bots of its
        # owner have spoken before (those of anybody but the owner have places <person>%2F<platform>), and no other.
        "ALTER TABLE tokens ADD COLUMN platforms TEXT NOT NULL DEFAULT ''",
        """UPDATE tokens SET platforms = coalesce((SELECT {joined}(platform, ' ') FROM (SELECT DISTINCT
            CASE WHEN owner <> 'owner' AND {find}(name, '%2F') > 0 THEN substr(name, {find}(name, '%2F') + 3)
            ELSE name END AS platform FROM (SELECT owner, substr(key, 10, {find}(key, '/') - 10) AS name FROM sessions
            WHERE owner = tokens.owner AND key LIKE 'platform:%/%') AS places) AS spoken), '')
            WHERE ' ' || scopes || ' ' LIKE '% chat %'""",
        # Answers on platforms whose requests were gone, from when nobody could fetch them: people have asked again
        # since. Those of the last day are fetched by the first bot that comes.
        """UPDATE outbox SET state = 'dropped', receipt = 'nobody could fetch it then', due = {now}
            WHERE channel = 'platform' AND state IN ('pending', 'sending') AND at < {now} - 86400""",
    ],
    [
        # Which account speaks in a conversation of two; "": others read along, or nobody has spoken since.
        "ALTER TABLE reply_contexts ADD COLUMN account TEXT NOT NULL DEFAULT ''",
    ],
    [
        # How channels stand, by the lease of whoever says so; it is true for as long as they hold that.
        """CREATE TABLE listening(
            lease TEXT PRIMARY KEY, holder TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL,
            since {real} NOT NULL){clustered}""",
    ],
    [
        # What is remembered, by principal: see ports/memory.py. Each change is a version of the whole. Of a document
        # there is what it holds now, and for each version how to go back from it: in place of `length` characters at
        # `place`, `before`.
        "CREATE TABLE memories(owner TEXT PRIMARY KEY, version {int} NOT NULL){clustered}",
        """CREATE TABLE memory_changes(
            owner TEXT NOT NULL, version {int} NOT NULL, at {real} NOT NULL, author TEXT NOT NULL, why TEXT NOT NULL,
            PRIMARY KEY(owner, version)){clustered}""",
        """CREATE TABLE memory_documents(
            owner TEXT NOT NULL, name TEXT NOT NULL, version {int} NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY(owner, name)){clustered}""",
        """CREATE TABLE memory_edits(
            owner TEXT NOT NULL, name TEXT NOT NULL, version {int} NOT NULL, place {int} NOT NULL,
            length {int} NOT NULL, before TEXT NOT NULL, PRIMARY KEY(owner, name, version)){clustered}""",
        """CREATE TABLE facts(
            owner TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, topic TEXT NOT NULL, importance {int} NOT NULL,
            thread TEXT NOT NULL, seq {int} NOT NULL, person TEXT NOT NULL, said {real} NOT NULL, since {real} NOT NULL,
            until {real} NOT NULL, replaced_by TEXT NOT NULL, marked {int} NOT NULL, at {real} NOT NULL,
            version {int} NOT NULL, PRIMARY KEY(owner, id)){clustered}""",
        "CREATE INDEX facts_version ON facts(owner, version)",
        """CREATE TABLE fact_words(
            owner TEXT NOT NULL, word TEXT NOT NULL, fact TEXT NOT NULL, PRIMARY KEY(owner, word, fact)){clustered}""",
        """CREATE TABLE fact_vectors(
            owner TEXT NOT NULL, model TEXT NOT NULL, fact TEXT NOT NULL, vector {bytes} NOT NULL,
            PRIMARY KEY(owner, model, fact)){clustered}""",
        # Entries that nobody is to find any more, though the conversation is still there.
        """CREATE TABLE hidden_entries(
            thread TEXT NOT NULL, seq {int} NOT NULL, owner TEXT NOT NULL, PRIMARY KEY(thread, seq)){clustered}""",
        # Up to which entry a conversation is part of the memory. Those from before there was one are left alone: to
        # read them all would cost money that nobody has asked to be spent.
        "ALTER TABLE threads ADD COLUMN consolidated {int} NOT NULL DEFAULT 0",
        "UPDATE threads SET consolidated = head",
    ],
    [
        # What channels remember for all processes, in closed boxes: the keys of encrypted conversations.
        """CREATE TABLE channel_state(
            channel TEXT NOT NULL, key TEXT NOT NULL, version {int} NOT NULL, at {real} NOT NULL, box {bytes} NOT NULL,
            PRIMARY KEY(channel, key)){clustered}""",
    ],
    [
        # Files that stand in prompts are everybody's now; those of which a change waits for a person are found at once.
        "ALTER TABLE watched ADD COLUMN held {int} NOT NULL DEFAULT 0",
        """UPDATE watched SET held = 1 WHERE body LIKE '%"held":{{%'""",
    ],
    [
        # Of vectors, which change nothing that is remembered, a stamp of the last that were kept; up to which version
        # all facts have one, of which model; and the version with which facts were last forgotten.
        "ALTER TABLE memories ADD COLUMN stamp {int} NOT NULL DEFAULT 0",
        "ALTER TABLE memories ADD COLUMN embedded {int} NOT NULL DEFAULT 0",
        "ALTER TABLE memories ADD COLUMN embedder TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE memories ADD COLUMN removed {int} NOT NULL DEFAULT 0",
        "ALTER TABLE fact_vectors ADD COLUMN stamp {int} NOT NULL DEFAULT 0",
        "CREATE INDEX fact_vectors_stamp ON fact_vectors(owner, model, stamp)",
        # What goes with a fact is found by it: else each fact that is written would look through all the others'.
        "CREATE INDEX fact_vectors_fact ON fact_vectors(owner, fact)",
        "CREATE INDEX fact_words_fact ON fact_words(owner, fact)",
    ],
    [
        # Those that work for others are few among many.
        "CREATE INDEX threads_children ON threads(spawned_by) WHERE spawned_by <> ''",
    ],
    [
        # Schedules that people make, each beside its job, and their runs: see ports/schedules.py.
        """CREATE TABLE schedules(
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, session TEXT NOT NULL, body TEXT NOT NULL, made {real} NOT NULL,
            enabled {int} NOT NULL DEFAULT 1, fires {int} NOT NULL DEFAULT 0, last {real} NOT NULL DEFAULT 0,
            over TEXT NOT NULL DEFAULT '', over_at {real} NOT NULL DEFAULT 0){clustered}""",
        "CREATE INDEX schedules_owner ON schedules(owner)",
        """CREATE TABLE schedule_runs(
            schedule TEXT NOT NULL, event TEXT NOT NULL, owner TEXT NOT NULL, due {real} NOT NULL,
            begun {real} NOT NULL, state TEXT NOT NULL, result TEXT NOT NULL DEFAULT '',
            thread TEXT NOT NULL DEFAULT '', channel TEXT NOT NULL DEFAULT '', cost {real},
            ended {real} NOT NULL DEFAULT 0, attempts {int} NOT NULL DEFAULT 0,
            PRIMARY KEY(schedule, event)){clustered}""",
        # Those that are not over yet are few.
        "CREATE INDEX schedule_runs_open ON schedule_runs(channel, event) WHERE state = 'running'",
    ],
    [
        # What was seen at somebody's last heartbeat, beside its job: see ports/heartbeat.py.
        """CREATE TABLE heartbeats(
            owner TEXT PRIMARY KEY, version {int} NOT NULL, body TEXT NOT NULL, result TEXT NOT NULL DEFAULT '',
            cost {real}){clustered}""",
    ],
    [
        # Of a turn in the background: when it began, which is later than its conversation did.
        "ALTER TABLE threads ADD COLUMN since {real} NOT NULL DEFAULT 0",
    ],
    [
        # What people have allowed of MCP servers: see ports/mcp.py. A server that was `seen` is not allowed by itself
        # again; its row stays when it is forgotten, for the `changes` of all of them are only ever counted up.
        """CREATE TABLE mcp_pins(
            server TEXT NOT NULL, tool TEXT NOT NULL, body TEXT NOT NULL, effect TEXT NOT NULL, setup TEXT NOT NULL,
            author TEXT NOT NULL, at {real} NOT NULL, found TEXT NOT NULL DEFAULT '', used {int} NOT NULL DEFAULT 0,
            last_used {real} NOT NULL DEFAULT 0, PRIMARY KEY(server, tool)){clustered}""",
        """CREATE TABLE mcp_servers(
            name TEXT PRIMARY KEY, seen {int} NOT NULL DEFAULT 0, changes {int} NOT NULL DEFAULT 0){clustered}""",
    ],
    [
        # Which homes have run commands: one that is alone knows that nobody has begun what it has not.
        "CREATE TABLE command_homes(home TEXT PRIMARY KEY, at {real} NOT NULL){clustered}",
    ],
    [
        # What MCP servers ask people just now (ports/mcp_questions.py), as long as whoever asks is there.
        """CREATE TABLE mcp_questions(
            id TEXT PRIMARY KEY, owner TEXT NOT NULL, holder TEXT NOT NULL, until {real} NOT NULL, at {real} NOT NULL,
            body TEXT NOT NULL, answer TEXT NOT NULL DEFAULT ''){clustered}""",
    ],
]


def statements(dialect: str, migrations: Migrations) -> list[str]:
    """These migrations in the words of a database."""
    words = DIALECTS[dialect]
    return [statement.format_map(words) for migration in migrations for statement in migration]


def newer(where: str, version: int, known: int) -> str:
    return (
        f"{where} was written by a newer everloop (schema {version}, this one knows {known}). Install that one, or a "
        "newer; to stay with this one, restore what was kept of before the upgrade: a backup (everloop backup restore) "
        f"or with SQLite the copy everloop.db.before-{version}"
    )
