"""`everloop sessions` and `/session …` as people use them."""

import asyncio
import re
from typing import Any

import msgspec
import pytest
from tests.cli.person import Person, Ran, asked_in, is_one_plain_sentence, said_in

import everloop
from everloop.testing import Call, Say, ScriptedModel
from everloop.testing.model_server import ModelServer


@pytest.fixture
def person(person: Person) -> Person:
    person.environment["TZ"] = "UTC"
    return person


async def listed(person: Person, *more: str) -> list[dict[str, Any]]:
    ran = await person.run("sessions", "list", "--json", *more)
    assert ran.status == 0
    found: list[dict[str, Any]] = msgspec.json.decode(ran.out)["conversations"]
    return found


async def say(person: Person, model: ModelServer, *texts: str) -> None:
    model.play([Say(f"answer to {text}") for text in texts])
    for text in texts:
        assert (await person.run("agent", "-m", text)).status == 0


async def test_where_nothing_was_said_it_says_so(person):
    assert await person.run("sessions") == Ran(0, "There is no conversation yet.\n", "")
    assert await person.run("sessions", "search", "x") == Ran(0, "Nobody has said that.\n", "")
    assert await person.run("sessions", "snapshots") == Ran(0, "There is no snapshot.\n", "")


async def test_conversations_are_listed_renamed_archived_and_found(person, model):
    await say(person, model, "what is a monad?")
    (found,) = await listed(person)
    id = found["id"]
    assert (found["title"], found["session"], found["messages"], found["current"]) == (
        *("what is a monad?", "cli:direct", 2, True),
    )
    assert re.fullmatch(
        r"ID +SESSION +LAST +MESSAGES +TITLE\n"
        + id[:8]
        + r"  cli:direct  20\d\d-\d\d-\d\d \d\d:\d\d +2  \* what is a monad\?\n",
        (await person.run("sessions")).out,
    )
    assert (
        await person.run("sessions", "rename", id[:5], "on", "monads")
    ).out == f"{id[:8]} is called “on monads” now.\n"
    assert [each["title"] for each in await listed(person)] == ["on monads"]
    assert (await person.run("sessions", "archive", id)).out == f"{id[:8]} is archived.\n"
    assert (await listed(person), len(await listed(person, "--all"))) == ([], 1)
    hits = msgspec.json.decode((await person.run("sessions", "search", "MONAD?", "--json")).out)["found"]
    assert {(hit["thread"], hit["seq"], hit["who"]) for hit in hits} == {(id, 1, "user"), (id, 3, "assistant")}
    assert (await person.run("sessions", "unarchive", id)).status == 0
    assert len(await listed(person)) == 1


async def test_one_goes_back_to_an_old_conversation(person, model):
    await say(person, model, "first")
    await person.run("agent", "-m", "/new")
    await say(person, model, "second")
    new, old = await listed(person)
    ran = await person.run("sessions", "resume", old["id"][:6])
    assert re.sub(r", 2\d{3}-.*", "", ran.out) == (
        f"cli:direct goes on with {old['id'][:8]} “first”.\n\n[1] owner\nfirst\n\n[3] assistant\nanswer to first\n"
    )
    assert ran.err == "\nTo go on: everloop\n"
    await say(person, model, "third")
    assert asked_in(model.prompts[-1]) == ["first", "third"]
    assert (await person.run("agent", "-m", f"/session resume {new['id'][:6]}")).out == (
        "Here we go on with “second” (2 messages).\n\nowner: second\n\nassistant: answer to second\n"
    )
    await say(person, model, "fourth")
    assert asked_in(model.prompts[-1]) == ["second", "fourth"]


async def test_one_goes_on_elsewhere_in_a_copy(person, model):
    await say(person, model, "first")
    (old,) = await listed(person)
    assert (await person.run("sessions", "resume", old["id"], "-s", "cli:other")).err == (
        "\nTo go on: everloop -s cli:other\n"
    )
    model.play([Say("there")])
    await person.run("agent", "-s", "cli:other", "-m", "second")
    assert asked_in(model.prompts[-1]) == ["first", "second"]
    assert [each["id"] for each in await listed(person) if each["session"] == "cli:direct"] == [old["id"]]


async def test_a_conversation_is_forked_at_an_entry_and_the_old_one_stays(person, model):
    await say(person, model, "first", "second")
    (old,) = await listed(person)
    assert (await person.run("sessions", "fork", old["id"], "--at", "3")).status == 0
    await say(person, model, "third")
    assert asked_in(model.prompts[-1]) == ["first", "third"]
    copy = next(each for each in await listed(person) if each["current"])
    assert (copy["parent"], copy["parent_seq"], copy["messages"]) == (old["id"], 3, 4)
    shown = msgspec.json.decode((await person.run("sessions", "show", old["id"], "--json")).out)
    assert [(each["seq"], each["text"]) for each in shown["said"]] == [
        *[(1, "first"), (3, "answer to first"), (4, "second"), (6, "answer to second")],
    ]
    ran = await person.run("sessions", "fork", old["id"], "--at", "7")
    assert (ran.status, ran.err) == (1, f"everloop: conversation {old['id']} has entries 1 to 6, not 7\n")


async def test_a_snapshot_is_come_back_to(person, model):
    await say(person, model, "first")
    (old,) = await listed(person)
    assert (await person.run("sessions", "snapshot", old["id"], "good")).status == 0
    await say(person, model, "second")
    assert (await person.run("sessions", "restore", "good")).status == 0
    await say(person, model, "third")
    assert asked_in(model.prompts[-1]) == ["first", "third"]
    ran = await person.run("sessions", "restore", "bad")
    assert (ran.status, ran.err) == (1, "everloop: there is no snapshot 'bad'; there are: good\n")


async def test_what_was_exported_is_imported_and_gone_on_with(person, model, tmp_path):
    model.play([Call("list_dir"), Say("empty")])
    await person.run("agent", "-m", "what is there?")
    (old,) = await listed(person)
    file = tmp_path / "out.jsonl"
    assert (await person.run("sessions", "export", old["id"], str(file))).out == (
        f"{old['id'][:8]} “what is there?” is in {file} (2 messages).\n"
    )
    assert file.stat().st_mode & 0o777 == 0o600
    metadata, *messages = [msgspec.json.decode(line) for line in file.read_bytes().splitlines()]
    assert {key: metadata[key] for key in ("_type", "last_consolidated", "key", "title")} == {
        "_type": "metadata",
        "last_consolidated": 0,
        "key": "cli:direct",
        "title": "what is there?",
    }
    assert [each["role"] for each in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[-1]["tools_used"] == ["list_dir"]
    assert is_one_plain_sentence((await person.run("sessions", "export", old["id"], str(file))).err)
    ran = await person.run("sessions", "import", str(file), "-s", "cli:copy")
    assert (ran.status, ran.out[:20]) == (0, "“what is there?” is ")
    copy = next(each for each in await listed(person) if each["session"] == "cli:copy")
    assert (await person.run("sessions", "resume", copy["id"])).status == 0
    again = (await person.run("sessions", "export", copy["id"])).out.splitlines()
    assert [msgspec.json.decode(line) for line in again][1:] == messages
    model.play([Say("still")])
    assert (await person.run("agent", "-s", "cli:copy", "-m", "and now?")).out == "still\n"
    assert asked_in(model.prompts[-1]) == ["what is there?", "and now?"]


async def test_a_question_that_waits_is_exported_and_imported_withdrawn_and_can_be_asked_again(person, model, tmp_path):
    risky = Call("exec", {"command": "su --version"})
    model.play([risky])
    waiting = await person.start("agent", "--approvals", "ask", "-m", "who?")
    async with asyncio.timeout(60):
        while "exec" not in (await person.run("approvals")).out:
            pass
    file = tmp_path / "out.jsonl"
    ran = await person.run("sessions", "export", "cli:direct", str(file))
    assert ran.err == "A call waits for your permission there. The file says so; an import of it runs nothing.\n"
    waiting.kill()
    await waiting.communicate()
    assert (await person.run("sessions", "import", str(file), "-s", "cli:copy")).status == 0
    copy = next(each for each in await listed(person) if each["session"] == "cli:copy")
    assert copy["state"] == "resting"
    again = (await person.run("sessions", "export", copy["id"])).out.splitlines()
    assert again[1:] == file.read_text().splitlines()[1:]
    await person.run("sessions", "resume", copy["id"])
    model.play([risky, Say("done")])
    ran = await person.run("agent", "-s", "cli:copy", "--approvals", "allow", "-m", "go on")
    assert (ran.status, ran.out) == (0, "done\n")
    assert "waited for permission when the conversation was exported" in str(said_in(model.prompts[-2]))


async def test_a_file_that_is_wrong_is_refused_with_its_line_and_nothing_is_imported(person, tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text('{"_type":"metadata"}\n{"role":"user","content":"hi"}\n{"role":"robot","content":"x"}\n')
    ran = await person.run("sessions", "import", str(file))
    assert (ran.status, ran.err) == (
        1,
        "everloop: line 3: the role is 'robot', and only user, assistant and tool are taken; nothing was imported\n",
    )
    assert await listed(person) == []
    assert is_one_plain_sentence((await person.run("sessions", "import", str(tmp_path / "none"))).err)


@pytest.mark.parametrize("word", ["show", "resume", "archive", "export", "fork"])
async def test_an_id_that_nothing_has_is_one_sentence(person, word):
    ran = await person.run("sessions", word, "abc")
    assert (ran.status, ran.err) == (1, "everloop: no conversation has an id that begins with 'abc'\n")


async def test_a_session_stands_for_the_conversation_that_it_is_at(person, model):
    await say(person, model, "first")
    await person.run("agent", "-m", "/new")
    await say(person, model, "second")
    new = next(each for each in await listed(person) if each["current"])
    by_id, by_key = [await person.run("sessions", "show", name) for name in (new["id"], "cli:direct")]
    assert (by_key.status, by_key.out) == (0, by_id.out)
    others = [await person.run("sessions", "show", "cli:direct", "--user", "web:anna")]
    others += [await person.run("sessions", "show", "cli:none")]
    assert [each.status for each in others] == [1, 1]
    assert others[1].err == "everloop: nothing has been said in the session 'cli:none'; see: everloop sessions\n"


async def test_a_session_key_that_is_none_is_one_sentence(person, model):
    await say(person, model, "first")
    (old,) = await listed(person)
    assert is_one_plain_sentence((await person.run("sessions", "resume", old["id"], "-s", "nonsense")).err)


async def test_undo_at_the_command_line_waits_for_the_files(person, model):
    model.play([Call("write_file", {"path": "a.md", "content": "x"}), Say("written")])
    await person.run("agent", "-m", "write")
    file = person.home / "workspace" / "a.md"
    assert file.exists()
    assert (await person.run("agent", "-m", "/undo")).out == (
        "Taken back: “write”\nFiles that were new and are gone: a.md\n"
    )
    assert not file.exists()


async def test_what_users_of_a_program_have_said_is_found_under_their_names_and_nowhere_else(person, model):
    async with everloop.open(person.home, provider=ScriptedModel([Say("hello")])) as agent:
        await agent.user("web:anna").ask("my pin is 4711")
    assert await listed(person) == []
    (found,) = await listed(person, "--user", "web:anna")
    assert found["session"] == "web:anna"
    assert (await person.run("sessions", "search", "4711")).out == "Nobody has said that.\n"
    assert "4711" in (await person.run("sessions", "search", "4711", "--user", "web:anna")).out
    assert "4711" in (await person.run("sessions", "show", found["id"], "--user", "web:anna")).out
    assert (await person.run("sessions", "show", found["id"])).status == 1


async def test_the_conversations_of_a_person_are_found_by_what_they_are_called(person):
    await person.run("users", "add", "Anna", "--account", "web:1")
    async with everloop.open(person.home, provider=ScriptedModel([Say("hello")])) as agent:
        await agent.user("web:1").ask("my pin is 4711")
    (by_name,), (by_id,) = await listed(person, "--user", "anna"), await listed(person, "--user", "web:1")
    assert by_name == by_id
    assert "4711" in (await person.run("sessions", "search", "4711", "--user", "Anna")).out
    assert "4711" in (await person.run("sessions", "show", by_name["id"], "--user", "Anna")).out
    nobody = await person.run("sessions", "list", "--user", "carla")
    assert (nobody.status, nobody.err) == (1, "everloop: there is nobody 'carla'; see: everloop users list\n")
    deleted = await person.run("sessions", "delete", by_name["id"], "--user", "anna", "--yes")
    assert (deleted.status, await listed(person, "--user", "anna")) == (0, [])
