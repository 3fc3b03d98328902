"""`everloop users export` and `everloop users erase`, as the owner types them."""

import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, is_one_plain_sentence
from tests.store.town import Town, canary

from everloop.app.records import open_records
from everloop.core.overrun import Account
from everloop.core.people import Role
from everloop.ports.budgets import Bound, Limit, Reservation, Spending
from everloop.ports.directory import Person as Known
from everloop.readings.filenames import safe_name


async def settled(person: Person, *names: str) -> None:
    """Without the words of a group, which would be the same for all."""
    await person.run("users")
    async with open_records(person.home) as records:
        await Town(records.store, person.home).settle(names)


def holding(home: Path, word: str) -> list[str]:
    found = [path for path in home.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]
    return sorted(str(path.relative_to(home)).split("/")[0] for path in found)


async def test_all_that_is_somebodys_is_written_and_nothing_of_others(person: Person, tmp_path: Path):
    await settled(person, "anna", "ben")
    ran = await person.run("users", "export", "Anna", str(tmp_path / "out"))
    zipped = await person.run("users", "export", "anna", str(tmp_path / "out.zip"))
    assert (ran.status, ran.err, zipped.status) == (0, "", 0)
    written = {str(path.relative_to(tmp_path / "out")): path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    with zipfile.ZipFile(tmp_path / "out.zip") as pack:
        packed = {name: pack.read(name) for name in pack.namelist()}
    assert {**written, "README.md": b""} == {**packed, "README.md": b""}  # which says when it was made
    title = next(name for name in written if name.endswith(".md") and name.startswith("conversations/"))
    assert canary("anna", "title") in title
    assert written.pop(title).decode().count(canary("anna", "message")) == 1
    assert canary("anna", "answer") in written.pop(title.replace(".md", ".jsonl")).decode()
    assert {name: data.decode() for name, data in written.items() if name.startswith(("files/", "workspace/"))} == {
        "files/notes.txt": canary("anna", "file"),
        "files/shared.txt": canary("anna", "groupfile"),
        "workspace/AGENTS.md": canary("anna", "agents"),
        "workspace/deep/work.txt": canary("anna", "work"),
    }
    [said] = [msgspec.json.decode(line) for line in written["in-groups.jsonl"].splitlines()]
    assert (said["place"], said["text"].split()[0]) == ("fake:room", canary("anna", "group"))
    tables = sorted(name for name in written if name.startswith("tables/"))
    assert " ".join(Path(name).stem for name in tables) == (
        "accounts grants jobs logins schedules sessions snapshots threads tokens usage users vault"
    )
    rows = written["tables/tokens.csv"].decode().splitlines()
    assert rows[1].startswith(f"{canary('anna', 'token')},read,20")
    assert written["tables/usage.csv"].decode().splitlines()[1].endswith("m,,10,5,0,0,0,0.25,0")
    everything = b"".join(packed.values())
    assert [word for word in (b"canaryben", b"hash of", canary("anna", "reply").encode()) if word in everything] == []
    assert (os.stat(tmp_path / "out.zip").st_mode & 0o777, os.stat(tmp_path / "out").st_mode & 0o777) == (0o600, 0o700)


async def test_an_export_is_dated_and_its_readme_counts_what_people_know(person: Person, tmp_path: Path):
    await settled(person, "anna")
    async with open_records(person.home) as records:
        anna = await records.members.find("anna")
        await records.store.reserve(_spent(anna.id))
    await person.run("users", "export", "Anna", str(tmp_path / "out.zip"))
    with zipfile.ZipFile(tmp_path / "out.zip") as pack:
        dates = {each.date_time[0] for each in pack.infolist()}
        readme = pack.read("README.md").decode()
        (row,) = pack.read("tables/spending.csv").decode().splitlines()[1:]
    assert min(dates) >= datetime.now(UTC).year - 1
    assert datetime.fromisoformat(row.rpartition(",")[2]).tzinfo is not None
    counts = readme.partition("How much it is:")[2].split("\n- ")[1:]
    told = {what: int(count) for what, _, count in (each.partition(": ") for each in counts)}
    known = {"conversations": 1, "files": 2, "files in the workspace": 2, "messages in groups": 1}
    assert {what: told[what] for what in known} == known
    assert told["messages"] > 0
    assert not {"letters", "answers in the outbox", "entries"} & set(told)


def _spent(owner: str) -> Reservation:
    account = Account(owner, "month")
    return Reservation("a call", owner, 5, 0, (Bound(account, Limit(10), Spending(account)),))


async def test_nobody_is_called_so_that_something_is_written_elsewhere(person: Person, tmp_path: Path):
    await person.run("users")
    async with open_records(person.home) as records:
        await records.store.introduce(Known("web:x", "../../x\\..\\y", Role.USER))
        workspace = person.home / "people" / "web%3Ax" / "workspace"
        workspace.mkdir(parents=True)
        (workspace / "..\\..\\up.txt").write_text("up")
        (workspace / "CON.txt").write_text("con")
        (workspace / os.fsdecode(b"\xff\n.txt")).write_text("odd")
    made = tmp_path / "x.zip"
    assert safe_name("../../x\\..\\y").startswith(".._.._x_.._y~")  # which the file is called where none is named
    assert (await person.run("users", "export", "web:x", str(made))).status == 0
    with zipfile.ZipFile(made) as pack:
        names = [name for name in pack.namelist() if name.startswith("workspace/")]
    assert [name for name in names if ".." in name.replace(".._.._up", "") or "\\" in name or "\n" in name] == []
    assert len(names) == 3
    again = await person.run("users", "export", "web:x", str(made))
    taken = await person.run("users", "export", "web:x", str(tmp_path))
    for refused in (again, taken, await person.run("users", "export", "nobody")):
        assert is_one_plain_sentence(refused.err)


async def test_somebody_is_erased_when_their_name_is_typed_and_what_went_is_listed(person: Person):
    await settled(person, "anna", "ben")
    assert set(holding(person.home, "canaryanna")) >= {"everloop.db", "files", "logs", "people"}
    refused = await person.run("users", "erase", "anna")
    assert is_one_plain_sentence(refused.err)
    assert refused.status == 2
    async with AtTerminal(person, "users", "erase", "anna") as terminal:
        await terminal.sees("There is no way back. Type Anna to erase them:")
        terminal.type("anna")
        await terminal.sees("Nobody was erased.")
        assert await terminal.process.wait() == 1
    assert "everloop.db" in holding(person.home, "canaryanna")
    async with AtTerminal(person, "users", "erase", "fake:anna") as terminal:
        await terminal.sees("conversations")
        await terminal.sees("Type Anna to erase them:")
        terminal.type("Anna")
        await terminal.sees("Anna is erased. What was removed:")
        assert await terminal.process.wait() == 0
    assert holding(person.home, "canaryanna") == []
    assert set(holding(person.home, "canaryben")) >= {"everloop.db", "files", "logs", "people"}
    ran = await person.run("users", "erase", "ben", "--yes")
    assert (ran.status, ran.out.splitlines()[0]) == (0, "Ben is erased. What was removed:")
    assert holding(person.home, "canary") == []
    for words in (("erase", "owner", "--yes"), ("erase", "anna", "--yes")):
        assert is_one_plain_sentence((await person.run("users", *words)).err)
