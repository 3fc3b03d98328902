"""`everloop tasks`: what was handed on is listed, read and ended from the terminal."""

import json

import everloop
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.ports.rows import Commit, Lease, Posting
from everloop.store.sqlite import SqliteStore
from everloop.testing import Call, Say, ScriptedModel


async def hand_on(home) -> None:
    def plays(shown):
        if shown.said[0][1] == "dig":
            return Say("gold")
        return Call("spawn", {"task": "dig", "wait": True}) if shown.step == 0 else Say("done")

    async with everloop.open(home=home, provider=ScriptedModel(plays)) as agent:
        await agent.ask("go")


async def leave_waiting(home) -> str:
    """One that nobody has begun with."""
    store = await SqliteStore.connect(home)
    parent = await store.receive(Inbound(Address("cli", "x"), "e", Said(said("hi"), "owner", "cli:x")))
    letter = Inbound(Address.parse(f"child:{parent.thread}:1:0"), "t", Said(said("sleep"), "owner", "cli:x"))
    await store.commit(Lease(parent.thread), Commit(posts=[Posting(letter, "", f"{parent.thread}:1:0", "sleep")]))
    (task,) = await store.tasks(under=parent.thread)
    await store.close()
    return task.thread


async def test_what_was_handed_on_is_listed_and_can_be_read(person):
    empty = await person.run("tasks")
    await hand_on(person.home)
    listed = await person.run("tasks", "list")
    told = json.loads((await person.run("tasks", "list", "--json")).out)["tasks"]
    shown = await person.run("tasks", "show", told[0]["thread"][:8])
    assert (empty.status, empty.out) == (
        0,
        "Nobody works at a task; what the agent hands on with `spawn` is listed here.\n",
    )
    head, row = listed.out.splitlines()
    assert head.split() == ["ID", "TASK", "STATE", "STEPS", "COST", "SINCE", "TOOK", "WHOSE"]
    assert row.split()[1:4] == ["dig", "done", "1"]
    assert [(each["title"], each["stage"], each["owner"]) for each in told] == [("dig", "done", "owner")]
    assert shown.out == "task: dig\nsub-agent: gold\n"


async def test_one_that_is_open_is_ended_once(person):
    thread = await leave_waiting(person.home)
    opened = json.loads((await person.run("tasks", "list", "--open", "--json")).out)["tasks"]
    ran = [await person.run("tasks", "stop", thread[:8])]
    store = await SqliteStore.connect(person.home)
    mail = [type(each.letter).__name__ for each in await store.mail(thread)]
    await store.close()
    assert ([each["stage"] for each in opened], ran[0].out, mail) == (["queued"], "It is stopped.\n", ["Said", "Stop"])


async def test_an_id_that_there_is_not_is_said_to_be_none(person):
    await hand_on(person.home)
    ran = await person.run("tasks", "stop", "zzz")
    assert (ran.status, ran.err) == (
        1,
        "everloop: no task has an id that begins with 'zzz'; see: everloop tasks list\n",
    )
