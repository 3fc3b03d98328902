"""`everloop skills`, as the owner types it."""

from hashlib import sha256

import msgspec
from tests.cli.person import is_one_plain_sentence
from tests.memory.test_skill_install import TEXT, folder_with
from tests.memory.test_skill_unpack import tarred

from everloop.testing import Call, Say


async def test_skills_are_listed_reviewed_installed_used_and_removed(person, model, tmp_path):
    archive = tmp_path / "greet.tgz"
    archive.write_bytes(tarred(("greet-1.0/SKILL.md", TEXT), ("greet-1.0/notes.md", b"see https://a.example\n")))
    pin = sha256(archive.read_bytes()).hexdigest()
    model.play([])
    reviewed = await person.run("skills", "review", str(archive))
    unasked = await person.run("skills", "install", str(archive))
    other = await person.run("skills", "install", str(archive), "--sha256", "0" * 64, "--yes")
    installed = await person.run("skills", "install", str(archive), "--sha256", pin, "--yes")
    rows = msgspec.json.decode((await person.run("skills", "--json")).out)["skills"]
    shown = (await person.run("skills", "show", "greet")).out
    removed = await person.run("skills", "remove", "greet")
    again = await person.run("skills", "remove", "greet")
    size = len(TEXT) + 22
    what = f"greet: Say hello.\n2 file(s), {size} bytes, sha256:{pin}\nIt asks for:\n  addresses: https://a.example\n"
    assert (reviewed.status, reviewed.out) == (0, what)
    assert (unasked.status, is_one_plain_sentence(unasked.err)) == (2, True)
    assert (other.status, other.out) == (1, "")
    assert f"this is sha256:{pin}, and not {'0' * 64}: nothing was installed" in other.err
    assert installed.out == f"greet is installed, known by sha256:{pin}. New conversations know it.\n"
    assert installed.err == what
    assert [row for row in rows if row["name"] == "greet"] == [
        {
            "name": "greet", "description": "Say hello.", "source": "installed", "state": "available", "why": "",
            "always": False, "hides": "", "pin": f"sha256:{pin}", "origin": str(archive),
        }
    ]  # fmt: skip
    assert shown.startswith(f"greet: Say hello.\navailable, installed\nknown by sha256:{pin}, from {archive}\n")
    assert (removed.out, again.status) == ("greet is removed.\n", 1)
    assert is_one_plain_sentence(again.err)


async def test_what_cannot_be_installed_is_refused_in_a_sentence(person, tmp_path):
    folder_with(tmp_path / "broken", b"---\nname: broken\n")
    (tmp_path / "empty").mkdir()
    for source in (str(tmp_path / "broken"), str(tmp_path / "empty"), "/nosuch", "http://a.example/x", "ext::sh -c x"):
        ran = await person.run("skills", "install", source, "--yes")
        assert (source, ran.status, ran.out, is_one_plain_sentence(ran.err)) == (source, 1, "", True)


async def test_a_held_change_is_shown_and_accepted(person, model):
    write = "mkdir -p skills/own; printf 'Own words.\\n' > skills/own/SKILL.md"
    model.play([Call("exec", {"command": write}), Say("done"), Say("hello")])
    await person.run("agent", "-m", "write it")
    listed = (await person.run("skills")).out
    accepted = await person.run("skills", "accept", "own")
    assert "\nown: it was changed where strangers' words had been read or by a command: it waits for a person" in listed
    assert accepted.out == "skills/own/SKILL.md is accepted as it is now; models are told it in new conversations.\n"
    await person.run("agent", "-s", "cli:new", "-m", "hi")
    assert '<skill name="own">Own words.</skill>' in model.prompts[-1].system
