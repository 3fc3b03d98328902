"""`everloop files` as people use it: what a conversation names stays, what was left behind goes."""

import os
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from tests.cli.person import Person, Ran, ended

import everloop
from everloop.testing import Call, Say, ScriptedModel, Wait

LEFT = b"nobody names this"


def name_of(content: bytes) -> str:
    return f"file:{sha256(content).hexdigest()}"


def leave_behind(person: Person, content: bytes = LEFT, days: float = 40) -> Path:
    """What a process leaves that is killed between keeping a file and naming it, so many days ago."""
    digest = name_of(content).removeprefix("file:")
    path = person.home / "files" / "owner" / digest[:2] / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    make_old(path, days)
    return path


def make_old(path: Path, days: float) -> None:
    then = path.stat().st_mtime - days * 86_400
    os.utime(path, (then, then))


def age_all(person: Person) -> list[Path]:
    kept = sorted(path for path in (person.home / "files").rglob("*") if path.is_file())
    for path in kept:
        make_old(path, 400)
    return kept


async def told(person: Person, *arguments: str) -> dict[str, object]:
    ran = await person.run("files", *arguments, "--json")
    assert (ran.status, ran.err) == (0, "")
    found: dict[str, object] = msgspec.json.decode(ran.out)
    return found


async def test_where_nothing_is_kept_it_says_so(person):
    assert await person.run("files") == Ran(0, "No file is kept.\n", "")
    assert await person.run("files", "clean") == Ran(0, "0 files were removed (0 B).\n", "")


async def test_what_a_conversation_names_is_never_removed(person, model):
    """A file that came with a message, what a file held before and after it was changed: of a conversation that is
    summed up, branched and archived."""
    (person.home / "workspace").mkdir(parents=True)
    (person.home / "workspace" / "a.txt").write_text("before")
    (person.home / "note.txt").write_text("a note\n" * 9000)
    model.play(
        [
            Call("write_file", {"path": "a.txt", "content": "after"}),
            Say("done"),
            *(Say(f"again {n}") for n in range(20)),
        ]
    )
    asked = await person.run("agent", "-m", "look at it", "-f", str(person.home / "note.txt"))
    assert asked.out == "done\n"
    kept = age_all(person)
    assert len(kept) == 3
    for n in range(4):
        await person.run("agent", "-m", f"and {n}?")
    await person.run("agent", "-m", "/compact")
    await person.run("agent", "-m", "and now?")
    assert "summary" in (await person.run("context")).out
    (listed,) = msgspec.json.decode((await person.run("sessions", "list", "--json")).out)["conversations"]
    assert (await person.run("sessions", "fork", listed["id"])).status == 0
    assert (await person.run("sessions", "archive", listed["id"])).status == 0
    left = leave_behind(person)
    assert await person.run("files", "clean") == Ran(0, "1 file was removed (17 B).\n", "")
    assert (left.exists(), [path for path in kept if not path.exists()]) == (False, [])
    found = await told(person)
    assert (found["unused"], found["count"]) == (0, len(kept))


async def test_what_is_left_behind_is_listed_and_shown_before_it_goes(person):
    old, young = leave_behind(person), leave_behind(person, LEFT * 1000, days=3)
    rows = (await person.run("files", "--unused", "-n", "1")).out.splitlines()
    assert rows[0].split() == ["FILE", "SIZE", "KEPT", "OWNER", "NAMED"]
    assert (rows[1].split()[0], rows[1].split()[-1]) == (name_of(LEFT * 1000)[:17], "no")
    assert rows[2:] == ["2 files, 17.0 kB; 2 of them (17.0 kB) named nowhere."]
    shown = (await person.run("files", "clean", "--dry-run")).out.splitlines()
    assert (shown[1].split()[0], shown[-1]) == (name_of(LEFT)[:17], "1 file would be removed (17 B).")
    assert (old.exists(), young.exists()) == (True, True)
    assert (await told(person, "clean"))["bytes"] == len(LEFT)
    assert (old.exists(), young.exists()) == (False, True)
    assert (await told(person, "clean", "--older-than", "2d"))["bytes"] == 1000 * len(LEFT)
    assert young.exists() is False


@pytest.mark.parametrize("given", ["59m", "0d", "x", "3"])
async def test_what_has_just_been_kept_cannot_be_meant(person, given: str):
    ran = await person.run("files", "clean", "--older-than", given)
    assert (ran.status, ran.out) == (2, "")


async def test_while_a_turn_is_cut_off_nothing_is_removed(person, model):
    """It may have kept what it names only when it goes on."""
    model.play([[Say("half"), Wait(model.gates["go"])]])
    process = await person.start("agent", "-m", "hi")
    await model.called(1)
    process.kill()
    await ended(process)
    left = leave_behind(person)
    refused = await person.run("files", "clean")
    assert (refused.status, refused.err.startswith("everloop: a turn was cut off")) == (1, True)
    assert left.exists()


async def test_a_file_of_a_person_is_shown_fetched_and_removed(person, model, tmp_path: Path):
    (tmp_path / "song.mp3").write_bytes(b"ID3\4\0\xff")
    model.play([Say("heard")])
    assert (await person.run("agent", "-m", "listen", "-f", str(tmp_path / "song.mp3"))).status == 0
    name, out = name_of(b"ID3\4\0\xff"), tmp_path / "out.mp3"
    listed = await told(person, "list", "--of", "owner")
    assert isinstance(listed["files"], list)
    assert (listed["used"], listed["quota"]) == (4096, None)
    assert [(each["file"], each["name"], each["mime"], each["bytes"]) for each in listed["files"]] == [
        (name, "song.mp3", "audio/mpeg", 6)
    ]
    shown = await person.run("files", "show", name[:17])
    assert shown.out.startswith(f"song.mp3: audio/mpeg, 6 bytes\n{name}\nof owner, ")
    thread = msgspec.json.decode((await person.run("sessions", "list", "--json")).out)["conversations"][0]["id"]
    assert shown.out.endswith(f"\ntold of in {thread}\n")
    assert await person.run("files", "get", name, str(out)) == Ran(0, f"song.mp3 is in {out} (6 bytes).\n", "")
    assert out.read_bytes() == b"ID3\4\0\xff"
    again = await person.run("files", "get", name, str(out))
    assert again == Ran(1, "", f"everloop: {out} cannot be written (File exists)\n")
    assert (await person.run("files", "remove", name, "--of", "ann")).err == (
        "everloop: there is nobody 'ann'; see: everloop users list\n"
    )
    removed = await person.run("files", "remove", name)
    assert removed == Ran(0, f"song.mp3 ({name[:17]}) of owner is removed.\n", "")
    assert (await person.run("files", "show", name)).status == 1
    assert (await person.run("files", "show", "file:x")).err.startswith("everloop: file:x: a reference is file:")


async def test_the_files_of_a_person_are_found_by_what_they_are_called(person: Person, tmp_path: Path):
    await person.run("users", "add", "Anna", "--account", "web:1")
    async with everloop.open(person.home, provider=ScriptedModel([Say("ok"), Say("ok")])) as agent:
        for who, name in (("web:1", "a.bin"), ("web:ben", "b.bin")):
            (tmp_path / name).write_bytes(b"\0" + name.encode())
            await agent.user(who).ask("keep it", files=[tmp_path / name])
    listed = [await told(person, "list", "--of", who) for who in ("anna", "web:1", "web:ben")]
    assert [[each["name"] for each in found["files"]] for found in listed] == [["a.bin"], ["a.bin"], ["b.bin"]]
    assert [found["quota"] for found in listed] == [5_000_000_000, 5_000_000_000, 100_000_000]
    table = await person.run("files", "list", "--of", "anna")
    assert table.out.endswith("web:1 has 4.1 kB of files in all, of 5.0 GB.\n")
    out = await person.run("files", "get", name_of(b"\0a.bin"), str(tmp_path / "out"), "--of", "Anna")
    done = [await person.run("files", word, name_of(b"\0a.bin"), "--of", "Anna") for word in ("show", "remove")]
    assert [each.status for each in (out, *done)] == [0, 0, 0]
    nobody = await person.run("files", "list", "--of", "carla")
    assert nobody == Ran(1, "", "everloop: there is nobody 'carla'; see: everloop users list\n")
