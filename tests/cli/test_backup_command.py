"""`everloop backup` and `everloop export`, as somebody types them; killed in the middle, and on a full disk."""

import csv
import json
import os
import resource
import signal
import stat
import sys
import tarfile
from asyncio import create_subprocess_exec
from collections.abc import AsyncIterator
from datetime import datetime
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path

import pytest
from tests.cli.person import Person, is_one_plain_sentence
from tests.effort import in_full
from tests.processes import kill

from everloop.app.home_folders import FOLDERS
from everloop.app.records import open_records
from everloop.cli import run
from everloop.core.people import Role
from everloop.core.prompt import Usage
from everloop.ports.directory import Person as Known
from everloop.ports.rows import Spent
from everloop.testing import Say
from everloop.testing.failpoints import names_in_source
from everloop.testing.model_server import ModelServer

SOURCE = Path(__file__).parents[2] / "src" / "everloop"
POINTS = [name for name in names_in_source(SOURCE) if name.startswith(("backup.", "restore."))]
KILLED = """
import sys
from everloop.app.home_folders import FOLDERS
from everloop.cli import run
from everloop.testing import failpoints
failpoints.arm(sys.argv[1])
run(sys.argv[2:])
"""
LIMITED = """
import resource, signal, sys
from everloop.app.home_folders import FOLDERS
from everloop.cli import run
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(run(sys.argv[2:]))
"""


@pytest.fixture
async def person(tmp_path: Path) -> AsyncIterator[Person]:
    async with ModelServer([Say("hello")]) as model:
        person = Person(tmp_path, model)
        person.home.mkdir(mode=0o700, exist_ok=True)
        (person.home / "config.toml").write_text("# mine\n[agents.defaults]\nmax_tokens = 1000\n")
        assert (await person.run("-m", "good morning")).out == "hello\n"
        (person.home / "workspace" / "notes.txt").write_text("milk")
        (person.home / "workspace" / "link").symlink_to("notes.txt")
        (person.home / "workspace" / "out").symlink_to("/etc/hostname")
        assert (await person.run("secrets", "set", "demo", typed=b"a-secret\n")).status == 0
        yield person
        await person.leave()


def elsewhere(person: Person, home: Path) -> Person:
    other = Person.__new__(Person)
    other.__dict__.update(person.__dict__)
    other.home, other.environment = home, {**person.environment, "EVERLOOP_HOME": str(home)}
    return other


async def run_script(person: Person, script: str, *words: str) -> tuple[int, str]:
    pipe = -1
    process = await create_subprocess_exec(
        *(sys.executable, "-c", script, *words), stderr=pipe, env={**person.environment, "EVERLOOP_TEST": "1"}
    )
    try:
        _, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, err.decode()
    finally:
        await kill(process)


def the_backup(person: Person) -> Path:
    [found] = [path for path in (person.home / "backups").iterdir() if path.name.startswith("everloop-")]
    return found


async def test_what_was_said_kept_and_written_is_there_again_elsewhere(person: Person, tmp_path: Path):
    made = await person.run("backup", "create")
    assert made.status == 0
    assert "vault.key) was left out" in made.err
    assert "1 things are not in it, such as workspace/out: a link that leads out of it" in made.err
    file = the_backup(person)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "is whole" in (await person.run("backup", "verify", file.name)).out
    ran = await person.run("backup", "restore", str(file), "--home", str(tmp_path / "new"))
    assert (ran.status, "everloop backup adopt" in ran.err) == (0, True)
    there = elsewhere(person, tmp_path / "new")
    assert "good morning" in (await there.run("sessions", "list")).out
    assert (there.home / "workspace" / "link").read_text() == "milk"
    assert (there.home / "config.toml").read_text() == (person.home / "config.toml").read_text()
    assert not (there.home / "vault.key").exists()
    assert not (there.home / "workspace" / "out").is_symlink()
    assert stat.S_IMODE((there.home / "everloop.db").stat().st_mode) == 0o600
    listed = json.loads((await there.run("audit", "--json")).out)
    assert "backup.restored" in json.dumps(listed)
    assert "goes on" in (await there.run("backup", "adopt")).out
    assert "nothing was changed" in (await there.run("backup", "adopt")).out


async def test_with_a_passphrase_the_vault_comes_along_and_without_it_nothing_can_be_read(
    person: Person, tmp_path: Path
):
    (tmp_path / "word").write_text("correct horse\n")
    assert (await person.run("backup", "create", "--passphrase-file", str(tmp_path / "word"))).err.count("vault") == 0
    file = the_backup(person)
    assert file.name.endswith(".tar.gz.enc")
    assert b"good morning" not in file.read_bytes()
    missing = await person.run("backup", "verify", str(file))
    assert (missing.status, is_one_plain_sentence(missing.err)) == (1, True)
    (tmp_path / "other").write_text("wrong\n")
    wrong = await person.run(
        "backup", "restore", str(file), "--home", str(tmp_path / "x"), "--passphrase-file", str(tmp_path / "other")
    )
    assert (wrong.status, "the passphrase is another one" in wrong.err) == (1, True)
    person.environment["EVERLOOP_BACKUP_PASSPHRASE"] = "correct horse"
    assert (await person.run("backup", "restore", str(file), "--home", str(tmp_path / "new"))).status == 0
    assert (tmp_path / "new" / "vault.key").read_bytes() == (person.home / "vault.key").read_bytes()
    assert "demo" in (await elsewhere(person, tmp_path / "new").run("secrets", "list")).out


async def test_a_home_that_is_used_is_not_restored_over(person: Person, tmp_path: Path):
    await person.run("backup", "create", "--folder", str(tmp_path / "safe"))
    [file] = (tmp_path / "safe").iterdir()
    refused = await person.run("backup", "restore", str(file))
    assert (refused.status, "is not empty" in refused.err) == (1, True)
    (person.home / "workspace" / "notes.txt").write_text("spoilt")
    replaced = await person.run("backup", "restore", str(file), "--replace", "--same-place")
    assert replaced.status == 0, replaced.err
    assert (person.home / "workspace" / "notes.txt").read_text() == "milk"
    aside = Path(replaced.err.partition("lies in ")[2].partition(".\n")[0])
    assert (aside / "workspace" / "notes.txt").read_text() == "spoilt"
    assert "goes on as after a crash" in replaced.err


@pytest.mark.parametrize("word", ["create", "verify x", "restore x", "schedule daily"])
def test_a_passphrase_on_the_command_line_is_refused_and_said_nowhere(word: str, capsys: pytest.CaptureFixture[str]):
    assert run(["backup", *word.split(), "--passphrase", "hunter2"]) == 2
    told = capsys.readouterr().err
    assert ("hunter2" in told, "${vault:NAME}" in told, "see what stands" in told) == (
        False,
        word == "schedule daily",
        word != "schedule daily",
    )


def moved_aside(folder: Path) -> list[str]:
    return [path.read_text() for path in folder.glob("new.before-*/workspace/before.txt")]


@pytest.mark.shortened
@pytest.mark.parametrize("point", POINTS[:: in_full(1, 3)])
async def test_killed_at_any_point_there_is_no_half_of_anything(person: Person, point: str, tmp_path: Path):
    new = elsewhere(person, tmp_path / "new")
    if point.startswith("backup."):
        assert (await run_script(person, KILLED, point, "backup", "create"))[0] == -signal.SIGKILL
        assert "There is no backup" in (await person.run("backup", "list")).out
    assert (await person.run("backup", "create")).status == 0
    file = the_backup(person)
    assert [path.name for path in (person.home / "backups").iterdir()] == [file.name]
    if point.startswith("restore."):
        (new.home / "workspace").mkdir(parents=True)
        (new.home / "workspace" / "before.txt").write_text("mine")
        script = (KILLED, point, "backup", "restore", str(file), "--replace")
        assert (await run_script(new, *script))[0] == -signal.SIGKILL
        half = await new.run("sessions", "list")
        assert (half.status, "half restored" in half.err, "lies in " in half.err) == (1, True, True)
    assert (await new.run("backup", "restore", str(file))).status == 0
    assert moved_aside(tmp_path) == ["mine"] * point.startswith("restore.")
    assert "good morning" in (await new.run("sessions", "list")).out


async def test_a_full_disk_leaves_nothing_half_and_says_so(person: Person, tmp_path: Path):
    (person.home / "workspace" / "large").write_bytes(os.urandom(2_000_000))
    status, err = await run_script(person, LIMITED, "1000000", "backup", "create")
    assert (status, is_one_plain_sentence(err)) == (1, True), err
    assert list((person.home / "backups").iterdir()) == []
    status, err = await run_script(person, LIMITED, "1000000", "export", str(tmp_path / "all"))
    assert (status, is_one_plain_sentence(err), [*(tmp_path / "all").iterdir()]) == (1, True, []), err
    assert (await person.run("backup", "create")).status == 0
    file = the_backup(person)
    new = elsewhere(person, tmp_path / "new")
    status, err = await run_script(new, LIMITED, "1000000", "backup", "restore", str(file))
    assert (status, is_one_plain_sentence(err)) == (1, True), err
    assert not (new.home / "everloop.db").exists()
    assert (await new.run("backup", "restore", str(file))).status == 0
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1_000_000


async def test_the_gateway_makes_them_as_often_as_it_is_told_and_keeps_the_newest(person: Person, tmp_path: Path):
    told = await person.run("backup", "schedule", "daily", "--keep", "2", "--folder", str(tmp_path / "kept"))
    assert told.out.startswith("One is made daily where the gateway runs, into")
    text = (person.home / "config.toml").read_text()
    assert text.startswith("# mine\n")
    assert 'every = "daily"' in text
    assert "--keep is at least 1" in (await person.run("backup", "schedule", "daily", "--keep", "0")).err
    assert (await person.run("backup", "schedule", "off")).out.startswith("No backup is made by itself.")


def plant(home: Path) -> None:
    """What lies in a home that has everything, beside what a conversation has left."""
    kept = sha256(b"x").hexdigest()
    for name in ("personas/brief/SOUL.md", "skills/greet/SKILL.md", f"files/owner/{kept[:2]}/{kept}"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")


async def test_everything_is_exported_as_files_that_people_can_read(person: Person, tmp_path: Path):
    plant(person.home)
    assert (await person.run("cron", "add", "every 1d", "Look")).status == 0
    assert (await person.run("users", "budget", "owner", "--money", "2.50")).status == 0
    assert (await person.run("users", "budget", "house", "--money", "40")).status == 0
    async with open_records(person.home) as records:
        await records.store.introduce(Known("web:anna", "Anna", Role.USER))
        await records.store.add_spent("owner", "", Spent(0, "m", Usage(), requester="web:anna"), "")
    told = await person.run("export", str(tmp_path / "all"))
    assert told.status == 0, told.err
    files = {path.relative_to(tmp_path / "all").as_posix() for path in (tmp_path / "all").rglob("*") if path.is_file()}
    assert {"README.md", "users.csv", "usage.csv", "settings.json", "people/owner/workspace/notes.txt"} <= files
    missing = [
        each.name
        for each in FOLDERS
        if not each.export.startswith("(") and not any(fnmatchcase(file, each.export) for file in files)
    ]
    assert missing == []
    audited = [json.loads(line)["deed"] for line in (tmp_path / "all" / "audit.jsonl").read_text().splitlines()]
    assert "house.exported" in audited
    paths = sorted((tmp_path / "all").rglob("*.csv"))  # those of the house come after those of people
    tables = {path.name: list(csv.DictReader(path.open())) for path in paths}
    for name, columns in (("usage.csv", ["at"]), ("schedules.csv", ["made", "last"]), ("limits.csv", ["at"])):
        for row in tables[name]:
            assert all(not row[key] or datetime.fromisoformat(row[key]).tzinfo for key in columns), row
    assert tables["limits.csv"][0]["money"] == "2.5"
    assert [(row["who"], row["money"]) for row in tables["budgets.csv"]] == [("house", "40.0")]
    assert [row["who"] for row in tables["usage.csv"] if row["model"] == "m"] == ["web:anna"]
    [markdown] = (tmp_path / "all").rglob("conversations/*.md")
    assert "good morning" in markdown.read_text()
    everything = b"".join(path.read_bytes() for path in (tmp_path / "all").rglob("*") if path.is_file())
    assert b"a-secret" not in everything
    assert b"sk-canary" not in everything


async def test_a_plain_backup_can_be_looked_at_with_tar(person: Person):
    await person.run("backup", "create", "--plain")
    with tarfile.open(the_backup(person)) as tar:
        names = tar.getnames()
    assert (names[0], names[1], names[-1]) == ("about.json", "everloop.db", "manifest.jsonl")
    assert "workspace/notes.txt" in names


async def test_a_plain_file_in_the_place_of_an_encrypted_one_is_refused(person: Person, tmp_path: Path):
    (tmp_path / "word").write_text("a long passphrase")
    await person.run("agent", "-m", "hi")
    plain = await person.run("backup", "create", "--plain", "--folder", str(tmp_path / "plain"))
    assert plain.status == 0, plain
    (file,) = (tmp_path / "plain").iterdir()
    swapped = tmp_path / "everloop-20260101-000000.tar.gz.enc"
    swapped.write_bytes(file.read_bytes())
    with_word = ("--passphrase-file", str(tmp_path / "word"))
    tries = [
        ("verify", str(swapped)),
        ("verify", str(file), *with_word),
        ("restore", str(swapped), "--home", str(tmp_path / "x")),
    ]
    ran = [await person.run("backup", *words) for words in tries]
    assert [(each.status, "is not encrypted, and was to be" in each.err) for each in ran] == [(1, True)] * 3
    assert (await person.run("backup", "verify", str(file))).status == 0
    assert not (tmp_path / "x").exists()


async def test_a_workspace_around_the_home_brings_neither_its_key_nor_older_backups(person: Person, tmp_path: Path):
    """As of somebody whose workspace is their own folder."""
    person.environment["EVERLOOP_WORKSPACE"] = str(tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "safe").mkdir()
    (tmp_path / "safe" / "list.txt").write_text("of backups")
    key = (person.home / "vault.key").read_bytes()
    person.environment["EVERLOOP_BACKUP__FOLDER"] = str(tmp_path / "safe")
    for folder in ("safe", "once"):
        made = await person.run("backup", "create", "--json", "--folder", str(tmp_path / folder))
        assert made.status == 0, made.err
    with tarfile.open(json.loads(made.out)["path"]) as tar:
        held = {each.name: file.read() for each in tar if (file := tar.extractfile(each))}
    assert not [name for name, data in held.items() if data == key or name.endswith((".gz", ".part"))]
    assert not [name for name in held if name.startswith("workspace/home")]
    assert (held["workspace/mine.txt"], held["workspace/safe/list.txt"]) == (b"mine", b"of backups")


async def test_what_lies_in_the_home_and_is_not_taken_along_is_told_as_left_out(person: Person, tmp_path: Path):
    (person.home / "diary.txt").write_text("of somebody who keeps it there")
    (person.home / "service.env").write_text("EVERLOOP_STORE__URL=postgresql:///the-original")
    (person.home / "lost+found").mkdir()  # as in a volume of its own
    person.environment["EVERLOOP_WORKSPACE"] = str(tmp_path / "elsewhere")
    made = await person.run("backup", "create", "--json")
    assert "3 things are not in it, such as diary.txt: it lies in the home" in made.out
    with tarfile.open(the_backup(person)) as tar:
        manifest = tar.extractfile("manifest.jsonl")
        assert manifest is not None
        told = json.loads(manifest.read().splitlines()[-1])["left_out"]
    assert [each.partition(":")[0] for each in told] == ["diary.txt", "service.env", "workspace of the home"]


async def test_an_export_is_not_written_where_it_would_be_read_again(person: Person, tmp_path: Path):
    for target in ("workspace/all.zip", "workspace/all", "people/all.zip"):
        refused = await person.run("export", str(person.home / target))
        assert (refused.status, "name a place elsewhere" in refused.err) == (1, True), refused
        assert not (person.home / target).exists()
    assert (await person.run("users", "export", "owner", str(person.home / "workspace" / "me.zip"))).status == 1
    assert (await person.run("export", str(tmp_path / "all.zip"))).status == 0
