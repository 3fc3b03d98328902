"""`/undo`: the last turn is taken back, in the conversation and in the files, and what cannot be is named."""

import asyncio
import os
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec import structs

from everloop.core.log import Undoing
from everloop.core.thread import Thread
from everloop.core.tool import Effect, FileChange
from everloop.ports.tools import Shown
from everloop.testing import Call, Calls, Say, ScriptedModel
from everloop.tools.decorator import tool
from tests.runtime.conftest import letter


def write(path, content):
    return Call("write_file", {"path": path, "content": content})


@pytest.fixture
def workspace(tmp_path) -> Path:
    folder = tmp_path / "home" / "workspace"
    folder.mkdir(parents=True)
    return folder


def held(workspace: Path) -> dict[str, str]:
    return {str(path.relative_to(workspace)): path.read_text() for path in workspace.rglob("*") if path.is_file()}


async def thread_of(agent, session="api:default") -> str:
    return (await agent.store.session(session)).id


async def test_the_last_turn_is_taken_back_with_its_files(house, workspace):
    (workspace / "old.md").write_text("old")
    lines = [Say("hello"), Calls(write("old.md", "new"), write("fresh.md", "fresh")), Say("written"), Say("again")]
    model = ScriptedModel(lines)
    async with house(model) as agent:
        await agent.ask("hi")
        before = await thread_of(agent)
        await agent.ask("write")
        assert held(workspace) == {"old.md": "new", "fresh.md": "fresh"}
        answer = await agent.ask("/undo")
        assert answer.content == (
            "Taken back: “write”\nFiles that are again as they were: old.md\nFiles that were new and are gone: fresh.md"
        )
        assert held(workspace) == {"old.md": "old"}
        assert await thread_of(agent) != before
        assert len(await agent.store.read(before)) > 3  # the log of the old thread stays whole
        await agent.ask("once more")
    assert [text for _, text in model.prompts[-1].said] == ["hi", "hello", "once more"]


async def test_undo_twice_takes_back_two_turns(house, workspace):
    lines = [write("a.md", "1"), Say("one"), write("a.md", "2"), Say("two"), write("a.md", "3"), Say("three"), Say("x")]
    model = ScriptedModel(lines)
    async with house(model) as agent:
        for text in ("first", "second", "third"):
            await agent.ask(text)
        assert (await agent.ask("/undo")).content.startswith("Taken back: “third”")
        assert held(workspace) == {"a.md": "2"}
        assert (await agent.ask("/undo")).content.startswith("Taken back: “second”")
        assert held(workspace) == {"a.md": "1"}
        assert (await agent.ask("/undo")).content.startswith("Taken back: “first”")
        assert held(workspace) == {}
        assert (await agent.ask("/undo")).content == "Nothing has been said here that could be taken back."
        await agent.ask("anew")
    assert [text for _, text in model.prompts[-1].said] == ["anew"]


async def test_several_changes_of_one_file_are_taken_back_in_their_order(house, workspace):
    edit = Call("edit_file", {"path": "./a.md", "old_text": "one", "new_text": "two"})
    delete = Call("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: a.md\n*** End Patch"})
    (workspace / "a.md").write_text("zero")
    model = ScriptedModel([write("a.md", "one"), edit, delete, Say("done")])
    async with house(model) as agent:
        await agent.ask("work")
        assert held(workspace) == {}
        assert (await agent.ask("/undo")).content == (
            "Taken back: “work”\nFiles that are again as they were: a.md, ./a.md"
        )
    assert held(workspace) == {"a.md": "zero"}


async def test_a_file_that_somebody_has_changed_since_is_left_alone(house, workspace):
    model = ScriptedModel([Calls(write("mine.md", "by the agent"), write("other.md", "by the agent")), Say("done")])
    async with house(model) as agent:
        await agent.ask("work")
        (workspace / "mine.md").write_text("by me")
        assert (await agent.ask("/undo")).content == (
            "Taken back: “work”\n"
            "Files that were new and are gone: other.md\n"
            "mine.md was left as it is: somebody has changed it since"
        )
    assert held(workspace) == {"mine.md": "by me"}


async def test_a_file_that_is_already_as_it_was_is_as_it_was(house, workspace):
    (workspace / "a.md").write_text("old")
    model = ScriptedModel([write("a.md", "new"), Say("done")])
    async with house(model) as agent:
        await agent.ask("work")
        (workspace / "a.md").write_text("old")
        assert (await agent.ask("/undo")).content == "Taken back: “work”\nFiles that are again as they were: a.md"


async def test_what_cannot_be_undone_is_named(house, workspace):
    @tool(Effect.UNSAFE)
    async def send_mail(to: str) -> str:
        """Sends a mail."""
        return "sent"

    wrong = Call("edit_file", {"path": "none.md", "old_text": "a", "new_text": "b"})  # fails, and changes nothing
    model = ScriptedModel([Calls(Call("send_mail", {"to": "ann"}), wrong, Call("list_dir")), Say("done")])
    async with house(model, tools=[send_mail]) as agent:
        await agent.ask("write to ann")
        assert (await agent.ask("/undo")).content == (
            'Taken back: “write to ann”\nThis cannot be undone: send_mail {"to":"ann"}'
        )


async def test_a_change_that_was_not_kept_is_left(house, workspace):
    @tool(Effect.UNSAFE)
    async def grow() -> Shown:
        """Changes a file that is too large."""
        return Shown("grown", changes=(FileChange("big.bin", "not kept", sha256(b"x").hexdigest()[:12]),))

    async with house(ScriptedModel([Call("grow"), Say("done")]), tools=[grow]) as agent:
        await agent.ask("grow")
        assert (await agent.ask("/undo")).content == (
            "Taken back: “grow”\nbig.bin was left as it is: what it held before was too large to be kept"
        )


async def test_a_path_that_leads_out_is_left_alone(house, workspace, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("x")

    @tool(Effect.UNSAFE)
    async def lie() -> Shown:
        """Claims to have made files elsewhere."""
        sha = sha256(b"x").hexdigest()[:12]
        return Shown("lied", changes=(FileChange("../../outside.txt", "new", sha), FileChange("link", "new", sha)))

    os.symlink(outside, workspace / "link")
    async with house(ScriptedModel([Call("lie"), Say("done")]), tools=[lie]) as agent:
        await agent.ask("lie")
        told = (await agent.ask("/undo")).content
    assert told.count("was left as it is") == 2
    assert outside.read_text() == "x"


async def test_undo_while_a_turn_runs_is_refused(house, gated):
    wait = gated.make("wait", Effect.UNSAFE)
    async with house(ScriptedModel([Call("wait"), Say("done")]), tools=[wait]) as agent:
        running = asyncio.ensure_future(agent.ask("wait"))
        await gated.begun.wait()
        assert (await agent.ask("/undo")).content == "A turn is running here; stop it with /stop first."
        gated.gate.set()
        assert (await running).content == "done"


async def test_undo_while_something_waits_for_permission_is_refused(house):
    @tool(Effect.UNSAFE, guarded=True)
    async def risky() -> str:
        """Needs permission."""
        return "done"

    async with house(ScriptedModel([Call("risky"), Say("done")]), tools=[risky]) as agent:
        seen = asyncio.Event()

        async def watch():
            async for event in agent.stream("go", attended=True):
                if event.name == "approval_asked":
                    seen.set()

        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch())
            await seen.wait()
            assert (await agent.ask("/undo")).content.startswith("Something waits for permission here")
            (approval,) = await agent.approvals()
            await agent.decide(approval.id, True)
            await watching


async def test_undo_where_nothing_was_said_says_so(house):
    async with house(ScriptedModel([])) as agent:
        assert (await agent.ask("/undo")).content == "Nothing has been said here yet."
        assert (await agent.ask("/undo")).content == "Nothing has been said here that could be taken back."


async def test_the_same_event_undoes_once(house, workspace):
    model = ScriptedModel([write("a.md", "1"), Say("one"), write("a.md", "2"), Say("two")])
    async with house(model) as agent:
        await agent.ask("first")
        await agent.ask("second")
        first = await agent.ask("/undo", event="e")
        assert await agent.ask("/undo", event="e") == first
        receipt = await agent.tell(letter("/undo", "e"))
        assert not receipt.fresh
    assert held(workspace) == {"a.md": "1"}


async def test_a_stranger_cannot_take_back_what_someone_else_has_said(house):
    async with house(ScriptedModel([Say("hello"), Say("hi")])) as agent:
        await agent.ask("secret plans", author="ann")
        assert (await agent.ask("/undo", author="bob")).content == "This is for ann to take back, who has said it."
        assert (await agent.ask("/undo", author="ann")).content == "Taken back: “secret plans”"
        await agent.ask("hi", author="ann")
        assert (await agent.ask("/undo", author="owner")).content == "Taken back: “hi”"


def test_the_files_that_an_undo_puts_back_are_those_of_whose_turn_it_was():
    """Taints are noted for this workspace: in a group for the group's, whoever undoes."""
    undoing = Undoing("“go”", (FileChange("a.txt", "new", "0"),), whose="chat:fake/room", by="fake:ada")
    turn = Thread.of(undoing).turn
    assert (turn.requester, turn.principal) == ("fake:ada", "chat:fake/room")
    assert Thread.of(structs.replace(undoing, whose="")).turn.principal == "fake:ada"
