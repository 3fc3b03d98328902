"""A home with several people, each with a canary in everything that can be theirs, and a group in which all of them
speak. For what exporting and erasing one of them does."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

from everloop.app.home_folders import HomeFoldersOf
from everloop.core.log import Compacted, Entry, ModelCalled, ModelSaid, Standing, UserSaid
from everloop.core.mail import Address, Inbound, Outbound, ReplyTo, Said
from everloop.core.message import Media, Message, said
from everloop.core.people import Role, chat_of
from everloop.core.prompt import Usage
from everloop.files.folder import Folder
from everloop.files.inventory import FileInventory
from everloop.memory.forgetting import forget
from everloop.ports import HomeFile, Store
from everloop.ports.conversation import Conversation, Mark, Rename
from everloop.ports.directory import Person
from everloop.ports.jobs import Job
from everloop.ports.permission import Grant
from everloop.ports.rows import Commit, Lease, Spent
from everloop.ports.schedules import Schedule
from everloop.runtime.deletions import Deletions
from everloop.runtime.erasures import Erasures
from everloop.runtime.membership import Membership
from everloop.runtime.person_export import PersonExport
from everloop.runtime.sessions import Sessions

NAMES = ("anna", "ben", "cleo", "dora", "emil", "fay", "gus", "hana", "ivo", "june")
ROOM = Address("fake", "room")
GROUP = chat_of("fake", "room")
KINDS = (
    *("message", "answer", "title", "snapshot", "token", "file", "agents", "work", "job", "grant", "letter"),
    *("group", "reply", "groupfile", "log", "outbox", "replyto"),
)


class Town:
    """`forgotten` are the threads whose commands were."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder
        folder.mkdir(exist_ok=True)
        self.files, self.forgotten = Folder(folder / "files"), list[str]()
        shelves = FileInventory(folder / "files")
        self.folders = HomeFoldersOf(folder, folder / "workspace", self.files, shelves)
        self.members, self.sessions = Membership(store), Sessions(store)
        self.deletions = Deletions(store, shelves, self.forget)
        forgets = partial(forget, store)
        self.erasures = Erasures(store, self.folders, self.deletions, self.members, patience=2.0, forgets=forgets)
        self.export = PersonExport(store, self.sessions, self.folders, self.files)
        self.group = Lease("")

    async def forget(self, thread: str) -> None:
        self.forgotten.append(thread)

    async def settle(self, names: tuple[str, ...] = NAMES) -> None:
        receipt = await self.store.command(
            Inbound(ROOM, "new", Said(said("/new"), "owner", str(ROOM)), GROUP), "new", ""
        )
        self.group = Lease(receipt.thread)
        for name in names:
            await self.bring(name)
            await self.speak_in_group(name)
        await self.store.search(GROUP, "canary")

    async def bring(self, name: str) -> None:
        id, store, at = f"fake:{name}", self.store, Address("fake", name)
        await store.introduce(Person(id, name.title(), Role.USER, accounts=(id,)))
        ref = await self.files.put(id, canary(name, "file").encode(), "notes.txt")
        spoken = UserSaid((*said(canary(name, "message")), Media(ref, "text/plain", "notes.txt", id)), id, str(at))
        receipt = await store.receive(Inbound(at, f"{name}1", Said(spoken.parts, id, str(at)), id))
        answer = ModelSaid(canary(name, "answer"), model="m")
        commit = Commit(
            [spoken, ModelCalled("m"), answer],
            absorbed=[receipt.id],
            ended=[(receipt.id, 3)],
            outbox=[Outbound(f"reply:{receipt.thread}:3", at, canary(name, "outbox"))],
            usage=[Spent(3, "m", Usage(10, 5), 0.25)],
            release=True,
            state="resting",
        )
        await store.commit(Lease(receipt.thread), commit)
        await store.perform(id, str(at), Rename(receipt.thread, canary(name, "title")))
        await store.perform(id, str(at), Mark(canary(name, "snapshot"), receipt.thread, 2))
        await store.keep_token(id, canary(name, "token"), f"hash of {name}", ["read"])
        await store.keep_login(id, "password", f"hash of {name}'s")
        await store.keep_secret(id, "a key", canary(name, "box").encode())  # the audit keeps what a secret is called
        grant = Grant(f"g{name}", id, "owner", "exec", argv=(canary(name, "grant"),), until=1e12)
        await store.keep_grant(grant)
        letter = Inbound(at, "later", Said(said(canary(name, "job")), id, str(at)), id)
        await store.add_job(Job(f"job of {name}", "reminder", 1e12, id, letter=letter))
        planned = {"owner": id, "name": canary(name, "plan"), "does": "message", "session": str(at)}
        await store.add_schedule(Schedule(id=f"plan of {name}", text=canary(name, "plan"), **planned), 1e12, 9)
        waits = Said(said(canary(name, "letter")), id, str(at), reply_to=ReplyTo(canary(name, "replyto")))
        await store.receive(Inbound(at, f"{name}2", waits, id))
        await store.search(id, "canary")
        workspace = self.folder / "people" / f"fake%3A{name}" / "workspace"
        (workspace / "deep").mkdir(parents=True)
        (workspace / "AGENTS.md").write_text(canary(name, "agents"))
        (workspace / "deep" / "work.txt").write_text(canary(name, "work"))
        self.log(f'{{"message":"{canary(name, "log")}","session":"fake:{name}"}}\n')

    def log(self, line: str) -> None:
        (self.folder / "logs").mkdir(exist_ok=True)
        with open(self.folder / "logs" / "everloop.log", "a") as log:
            log.write(line)

    async def speak_in_group(self, name: str) -> None:
        id = f"fake:{name}"
        ref = await self.files.put(GROUP, canary(name, "groupfile").encode(), "shared.txt")
        parts = (*said(canary(name, "group")), Media(ref, "text/plain", "shared.txt", GROUP))
        inbound = Inbound(ROOM, f"group {name}", Said(parts, id, str(ROOM), principal=GROUP), GROUP)
        receipt = await self.store.receive(inbound)
        heard = UserSaid(parts, id, str(ROOM), receipt.id, principal=GROUP)
        entries = [heard, ModelCalled("m", tail=f"{name} speaks"), ModelSaid(canary(name, "reply"), model="m")]
        await self.write_in_group(*entries, mail=receipt.id, outbox=canary(name, "reply"))

    async def write_in_group(self, *entries: Entry, mail: int = 0, outbox: str = "") -> None:
        head = (await self.store.open(self.group.thread)).row.head
        end = head + len(entries)
        sent = [Outbound(f"reply:{self.group.thread}:{end}", ROOM, outbox, mails=(mail,))] if outbox else []
        absorbed, ended = ([mail], [(mail, end)]) if mail else ([], [])
        commit = Commit(list(entries), absorbed=absorbed, ended=ended, outbox=sent, release=True, state="resting")
        await self.store.commit(Lease(self.group.thread, head=head), commit)

    async def summarise_group(self, summary: str, *kept: Message) -> None:
        standing = Standing(requester="fake:ben", address=str(ROOM))
        facts = (f"user: {summary} fact",)
        await self.write_in_group(Compacted(summary, kept, standing, facts, (1, 3)))

    async def erase(self, name: str) -> dict[str, int]:
        return await self.erasures.erase(await self.erasures.find(name, Role.OWNER))

    async def exported(self, name: str) -> dict[str, bytes]:
        person = await self.members.find(name)
        return {file.path: await whole(file) async for file in self.export.files(person, 1e9)}

    async def conversations(self, name: str) -> list[Conversation]:
        return await self.store.conversations(f"fake:{name}", archived=True)

    def holding(self, word: str) -> list[str]:
        """Where in the home the bytes of a word lie, by the folder or file at its top."""
        return sorted({place.split("/")[0] for place, data in self.bytes().items() if word.encode() in data})

    def bytes(self) -> dict[str, bytes]:
        """All that lies in the home, each with its path."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        places = {path: str(path.relative_to(self.folder)) for path in files}
        return {place: place.encode() + path.read_bytes() for path, place in places.items()}


def canary(name: str, kind: str) -> str:
    """A word of which the index of words makes one."""
    return f"canary{name}{kind}canary"


async def whole(file: HomeFile) -> bytes:
    pieces: AsyncIterator[bytes] | None = file.pieces
    return b"".join([piece async for piece in pieces]) if pieces else b""


async def tables_holding(home: Any, word: str) -> list[str]:
    """The tables in which a word stands anywhere, on either database."""
    return sorted(table for table, text in (await dumped(home)).items() if word in text)


async def dumped(home: Any) -> dict[str, str]:
    """Every row of every table, as text."""
    tables = [table for table in await tables_of(home) if table != "audit"]  # which names people by ids, and stays
    if hasattr(home, "path"):
        return {table: str(await home.rows(f"SELECT * FROM {table}")) for table in tables}
    rows = await home.rows(
        " UNION ALL ".join(f"SELECT '{each}', row_to_json(t)::text FROM {each} t" for each in tables)
    )
    found = dict.fromkeys(tables, "")
    for table, text in rows:
        found[table] += text
    return found


async def tables_of(home: Any) -> list[str]:
    if hasattr(home, "path"):
        rows = await home.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    else:
        rows = await home.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()")
    return [name for (name,) in rows]
