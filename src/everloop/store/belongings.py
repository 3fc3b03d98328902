"""Whose rows those of each table are, and what exporting and erasing a person make of them. A table that stands here in
no line breaks the build (tests/store/test_belongings.py): whoever adds one says here what it means for a person.

A row is somebody's by its column `key`, which holds their id, or a `place` of theirs. With `erase`:

- `delete`: their rows go. Where `names` is a column with a stored text, rows of others go as well that name them in it.
- `blank`: the same rows stay, and only their numbers, which nobody may be given again: letters, known by theirs.
- `unname`: the row stays, for it is only numbers that others need (what was spent), and names nobody any more.
- `keep`: it is nobody's, and says nothing of anybody.

`export` are the columns that a person is given, in a table of its own; never a secret or its hash. Without any,
`instead` says where an export has it, or why it has not. `told` is what the
rows are called when it is said what was removed; "" where it says nothing that other rows do not say.
"""

from typing import Literal

from msgspec import Struct


class Belonging(Struct, frozen=True, kw_only=True):
    table: str
    erase: Literal["delete", "blank", "unname", "keep"]
    key: str = "owner"
    export: tuple[str, ...] = ()
    instead: str = ""
    order: str = ""  # by which an export is read, row after row; "": the first of its columns
    told: str = ""
    names: str = ""
    prefix: str = ""  # before a person's id in `key`
    also: str = ""  # another column by which a row is theirs, to be unnamed there, too
    counts: str = ""  # of their rows, those that are told; "": all


_SPENT = ("at", "model", "purpose", "input", "output", "cache_read", "cache_write", "reasoning", "cost", "own")

BELONGINGS: tuple[Belonging, ...] = (
    Belonging(table="users", erase="delete", key="id", export=("id", "name", "role", "created"), told="person"),
    Belonging(table="accounts", erase="delete", export=("account", "at"), told="accounts"),
    Belonging(table="codes", erase="delete", instead="a secret, for a day", told="codes"),
    Belonging(table="tokens", erase="delete", export=("name", "scopes", "at", "until"), told="tokens"),
    Belonging(table="logins", erase="delete", export=("kind", "at", "until"), told="ways to log in"),
    Belonging(table="web_sessions", erase="delete", export=("at", "until"), order="id", told="browsers logged in"),
    Belonging(table="vault", erase="delete", export=("name", "at"), told="secrets"),
    Belonging(table="files", erase="delete", export=("ref", "name", "mime", "size", "at")),  # which lie elsewhere
    # Conversations: runtime/erasures.py has deleted them by then, as deleting.py does; this is for what came meanwhile.
    Belonging(table="sessions", erase="delete", export=("key",)),
    Belonging(
        table="threads",
        erase="delete",
        export=("id", "session", "title", "created"),
        told="conversations",
        counts="head > 0",
    ),
    Belonging(table="entries", erase="delete", instead="conversations/", told="entries"),
    Belonging(table="said", erase="delete", instead="an index of conversations/", told="entries in the search index"),
    Belonging(table="said_words", erase="keep", instead="an index"),  # SQLite's index: it goes with the rows of `said`
    Belonging(table="snapshots", erase="delete", export=("name", "thread", "seq", "at"), told="snapshots"),
    Belonging(
        table="inbox",
        erase="blank",
        instead="conversations/, from the moment on that it is read",
        names="body",
        told="letters",
    ),
    Belonging(table="outbox", erase="delete", instead="conversations/", told="answers in the outbox"),
    Belonging(table="reply_contexts", erase="delete", instead="where an answer goes, while it does"),
    Belonging(table="timers", erase="delete", instead="of an older version: a timer is a job now", order="key"),
    Belonging(
        table="jobs",
        erase="delete",
        names="body",
        export=("kind", "session", "schedule", "due", "state", "body"),
        order="id",
        told="jobs",
    ),
    Belonging(
        table="schedules",
        erase="delete",
        export=("id", "session", "made", "enabled", "fires", "last", "over", "body"),
        names="body",
        told="schedules",
    ),
    Belonging(
        table="schedule_runs",
        erase="delete",
        export=("schedule", "due", "begun", "state", "result", "cost", "ended"),
    ),
    Belonging(table="heartbeats", erase="delete", export=("body", "result", "cost"), order="owner"),
    Belonging(table="grants", erase="delete", names="body", export=("at", "until", "runs", "body"), told="grants"),
    Belonging(table="taints", erase="delete", instead="which places strangers' words have reached"),
    Belonging(
        table="watched", erase="delete", instead="what was accepted of files in workspace/", key="place"
    ),  # by the folder of their workspace
    Belonging(table="usage", erase="unname", also="requester", export=_SPENT, order="id"),
    Belonging(table="limits", erase="delete", export=("per", "tokens", "money", "at")),
    Belonging(table="spending", erase="delete", export=("per", "scope", "tokens", "money", "resets")),
    Belonging(
        table="reservations", erase="unname", instead="what is spent is in tables/usage.csv"
    ),  # held also of what all may spend, until they are charged
    # What is remembered for them; of a group's memory, what they have said goes before (runtime/erasures.py).
    Belonging(table="memories", erase="delete", instead="versions, whose text is in memory/"),
    Belonging(
        table="memory_changes", erase="delete", export=("version", "at", "author", "why"), told="changes of the memory"
    ),
    Belonging(table="memory_documents", erase="delete", export=("name", "version", "body"), told="memory documents"),
    Belonging(
        table="memory_edits", erase="delete", instead="earlier versions: memory/ has the last"
    ),  # earlier versions of these
    Belonging(
        table="facts",
        erase="delete",
        export=("id", "text", "topic", "importance", "thread", "seq", "person", "said", "since", "until", "marked"),
        told="facts",
    ),
    Belonging(table="fact_words", erase="delete", instead="an index of memory/facts.jsonl"),
    Belonging(table="fact_vectors", erase="delete", instead="made anew from memory/facts.jsonl", told="vectors"),
    Belonging(table="hidden_entries", erase="delete", instead="which entries are told to nobody again"),
    Belonging(table="leases", erase="delete", instead="who does what at the moment", key="name", prefix="clock:"),
    # Who did what is only ever added to, each line bound to the one before; it names people by their ids alone.
    Belonging(table="audit", erase="keep", instead="audit.jsonl of the house"),
    Belonging(table="listening", erase="keep", instead="how a channel stands"),  # how a channel stands
    Belonging(table="channel_state", erase="keep", instead="secrets"),  # an account's keys, which are the agent's own
    # What was allowed of MCP servers, and by whom: the house's, which names nobody who is gone.
    Belonging(table="mcp_pins", erase="unname", key="author", export=("server", "tool", "effect", "at")),
    Belonging(
        table="mcp_servers", erase="keep", instead="settings.json of the house"
    ),  # which of them were seen before
    Belonging(
        table="mcp_questions", erase="delete", instead="open for minutes"
    ),  # open for minutes, with what they have answered
    Belonging(table="command_homes", erase="keep", instead="machines"),  # machines
    Belonging(table="resumes", erase="keep", instead="where a channel goes on"),  # where a channel goes on listening
    Belonging(table="everloop_schema", erase="keep", instead="a number"),  # PostgreSQL's version of the schema
    Belonging(table="simulated_time", erase="keep", instead="of tests"),  # of tests
)


def undeclared(tables: set[str]) -> str:
    """A sentence about tables that stand in no line, "" when there are none."""
    known = {each.table for each in BELONGINGS}
    found = sorted(table for table in tables - known if not table.startswith(("said_words_", "sqlite_")))
    if not found:
        return ""
    return (
        f"{', '.join(found)}: nobody has said whose rows these are. Add a line for each to BELONGINGS in "
        "store/belongings.py: by which column a row is somebody's (`key`), what they are given of it (`export`) or "
        "where else an export has it (`instead`), and what erasing does with it (`erase`: delete, blank, unname or "
        "keep)."
    )
