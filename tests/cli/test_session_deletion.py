"""`everloop sessions delete` as people use it: asked twice, and gone from the home."""

from pathlib import Path

from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, Ran, is_one_plain_sentence
from tests.cli.test_sessions_command import listed, say

from everloop.testing import Call, Calls, Say
from everloop.testing.model_server import ModelServer

WORD = "canaryword"


def holding(home: Path) -> list[str]:
    found = [path for path in home.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()]
    return sorted(str(path.relative_to(home)).split("/")[0] for path in found)


async def test_what_was_said_done_and_kept_is_nowhere_in_the_home(person: Person, model: ModelServer):
    await say(person, model, "something else")
    await person.run("agent", "-m", "/new")
    (person.home / "workspace" / "notes.txt").write_text(f"{WORD} in a file\n" * 2000)
    calls = Calls(
        Call("exec", {"command": f"echo {WORD}"}),
        Call("write_file", {"path": "notes.txt", "content": "what it held is kept for an undo"}),
    )
    model.play([calls, Say(f"I have read {WORD}")])
    assert (await person.run("agent", "-m", f"read {WORD}")).out == f"I have read {WORD}\n"
    await person.run("sessions", "search", WORD)
    assert set(holding(person.home)) == {"everloop.db", "files", "spool"}
    found, _ = await listed(person)

    ran = await person.run("sessions", "delete", found["id"][:6], "--yes")

    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith(f"{found['id'][:8]} “read {WORD}” is deleted (")
    assert ran.out.endswith("removed.\n")
    assert holding(person.home) == []
    assert [each["title"] for each in await listed(person, "--all")] == ["something else"]
    await say(person, model, "a new beginning")  # in the same session
    assert len(await listed(person)) == 2


async def test_it_is_asked_twice_and_only_its_id_is_a_yes(person: Person, model: ModelServer):
    await say(person, model, "hello")
    (found,) = await listed(person)
    name = found["id"][:8]
    for answers in (["n"], [""], ["y", "no"], ["y", ""]):
        async with AtTerminal(person, "sessions", "delete", "cli:direct") as terminal:
            await terminal.sees("Delete it? [y/N]")
            terminal.type(answers[0])
            if len(answers) > 1:
                await terminal.sees(f"There is no way back. Type {name} to delete:")
                terminal.type(answers[1])
            await terminal.sees("Nothing was deleted.")
            assert await terminal.process.wait() == 1
    assert len(await listed(person)) == 1
    async with AtTerminal(person, "sessions", "delete", "cli:direct") as terminal:
        await terminal.sees("Delete it? [y/N]")
        terminal.type("y")
        await terminal.sees(f"Type {name} to delete:")
        terminal.type(name)
        await terminal.sees("is deleted (")
        assert await terminal.process.wait() == 0
    assert await listed(person, "--all") == []


async def test_several_go_at_once_and_a_wrong_one_keeps_all(person: Person, model: ModelServer):
    await say(person, model, "one")
    await person.run("agent", "-m", "/new")
    await say(person, model, "two")
    two, one = await listed(person)
    wrong = await person.run("sessions", "delete", one["id"], "nosuch", "--yes")
    assert (wrong.status, is_one_plain_sentence(wrong.err), len(await listed(person))) == (1, True, 2)
    ran = await person.run("sessions", "delete", one["id"], two["id"], one["id"], "--yes")
    assert (ran.status, ran.out.count("is deleted"), await listed(person)) == (0, 2, [])
    again = await person.run("sessions", "delete", one["id"], "--yes")
    assert again == Ran(1, "", f"everloop: no conversation has an id that begins with {one['id']!r}\n")


async def test_a_script_has_to_say_yes(person: Person, model: ModelServer):
    await say(person, model, "hello")
    ran = await person.run("sessions", "delete", "cli:direct", typed=b"y\n")
    assert (ran.status, ran.out, is_one_plain_sentence(ran.err)) == (2, "", True)
    assert "--yes" in ran.err
    assert len(await listed(person)) == 1


async def test_a_copy_from_before_an_upgrade_is_named(person: Person, model: ModelServer):
    await say(person, model, "hello")
    (person.home / "everloop.db.before-9").write_bytes(b"")
    ran = await person.run("sessions", "delete", "cli:direct", "--yes")
    assert "everloop.db.before-9" in ran.err
