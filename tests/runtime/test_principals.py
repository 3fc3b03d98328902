"""Everybody has a workspace of their own: of the owner's, and of one another's, nobody else sees a byte."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everloop
from everloop import MailRefused, Role
from everloop.app.workspaces import principals_folder
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import chat_of, is_chat
from everloop.core.prompt import Terms
from everloop.ports import Deliver
from everloop.ports.channel import Incoming
from everloop.readings.keys import author_of
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Shown

CANARY = "CANARY-of-the-owner"
PEOPLE = {"web:anna": Role.USER, "web:bob": Role.USER, "web:ada": Role.ADMIN}
TRIES = [
    Call("read_file", {"path": "notes.txt"}),
    Call("read_file", {"path": "../../../workspace/notes.txt"}),
    Call("list_dir", {"path": "."}),
    Call("find_files", {"pattern": "**/*"}),
    Call("grep", {"pattern": "CANARY"}),
    Call("exec", {"command": "cat notes.txt ../../../workspace/notes.txt; ls -a . ../.. ../../..; env; pwd"}),
    Call("run_python", {"code": "import os; print(os.listdir('.')); print(open('notes.txt').read())"}),
    Call("message", {"session": "cli:direct", "text": "hi", "files": ["notes.txt"]}),
    Call("search_history", {"query": "CANARY"}),
]


class Trying:
    """A model that tries all it can, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Shown] = []

    def __call__(self, shown: Shown) -> Say | Call:
        self.shown.append(shown)
        return TRIES[shown.step] if shown.step < len(TRIES) else Say("done")

    def saw(self) -> str:
        return "\n".join(f"{each.system}\n{each.tail}\n{each.said}" for each in self.shown)


class Listening(RecordingChannel):
    """A channel of which a test waits for the moment when it listens."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.listens = asyncio.Event()

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.set()


def furnished(home: Path) -> Path:
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    for name in ("AGENTS.md", "USER.md", "notes.txt"):
        (workspace / name).write_text(f"{CANARY} in {name}")
    return home


@pytest.mark.parametrize("person", PEOPLE)
async def test_nobody_but_the_owner_is_shown_anything_of_the_owners_workspace(tmp_path: Path, person: str):
    trying = Trying()
    async with everloop.open(furnished(tmp_path / "home"), provider=ScriptedModel(trying), roles=PEOPLE) as agent:
        answer = await agent.user(person).ask("look for it")
    assert (answer.content, len(trying.shown)) == ("done", len(TRIES) + 1)
    assert CANARY not in trying.saw()
    assert f"{principals_folder(person)}/workspace" in trying.shown[0].system


async def test_the_owner_is_and_so_the_test_above_would_see_it(tmp_path: Path):
    trying = Trying()
    async with everloop.open(furnished(tmp_path / "home"), provider=ScriptedModel(trying), roles=PEOPLE) as agent:
        await agent.ask("look for it")
    seen = [CANARY in text for role, text in trying.shown[-1].said if role == "tool"]
    assert CANARY in trying.shown[0].system
    assert seen == [True, False, False, False, True, True, True, False, True]


async def test_what_a_person_writes_is_theirs_and_stays_and_nobody_else_finds_it(tmp_path: Path):
    def plays(shown: Shown) -> Say | Call:
        if shown.step:
            return Say(shown.messages[-1].text)
        name, args = shown.asked.split(" ", 1)
        return Call(name, json.loads(args))

    home, model = tmp_path / "home", ScriptedModel(plays)
    write = 'write_file {"path": "diary.txt", "content": "dear diary"}'
    read = 'exec {"command": "cat diary.txt"}'
    async with everloop.open(home, provider=model, roles=PEOPLE) as agent:
        await agent.user("web:anna").ask(write)
        assert (await agent.user("web:anna").ask("/undo")).content.startswith("Taken back")
        await agent.user("web:anna").ask(write)
    async with everloop.open(home, provider=model, roles=PEOPLE) as agent:
        told = {person: (await agent.user(person).ask(read)).content for person in ("web:anna", "web:bob")}
        owners = (await agent.ask('read_file {"path": "diary.txt"}')).content
    assert "dear diary" in told["web:anna"]
    assert "dear diary" not in told["web:bob"] + owners
    assert (home / "people" / principals_folder("web:anna") / "workspace" / "diary.txt").read_text() == "dear diary"


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_two_people_share_a_folder_and_none_leads_elsewhere(one: str, other: str):
    names = {principals_folder(one), principals_folder(other)}
    assert len(names) == len({one, other})
    assert not any("/" in name or name in ("", ".", "..") for name in names)


def by_asking(shown: Shown) -> Say | Call:
    """Does what it is asked, `name {args}`, and says what came of it."""
    if shown.step:
        return Say(shown.messages[-1].text)
    name, args = shown.asked.splitlines()[-1].split(" ", 1)  # in a group, after who speaks
    return Call(name, json.loads(args))


async def test_a_group_has_a_workspace_of_its_own_whoever_speaks_in_it(house, tmp_path: Path):
    people = {"fake:anna": Role.USER, "fake:bob": Role.USER}
    channel = Listening("fake")

    async def said(event: str, account: str, chat: str, text: str, *, direct: bool = False) -> str:
        assert channel.deliver
        sent = len(channel.sends)
        await channel.deliver(Incoming(event=event, chat=chat, account=account, text=text, direct=direct))
        await channel.sent(sent + 1)
        return channel.sends[-1].text

    async with house(ScriptedModel(by_asking), channels=[channel], roles=people):
        await channel.listens.wait()
        await said("1", "anna", "room", 'write_file {"path": "plan.txt", "content": "CANARY of the room"}')
        read = 'read_file {"path": "plan.txt"}'
        told = {
            "another of the group": await said("2", "bob", "room", read),
            "another group": await said("3", "anna", "hall", read),
            "alone": await said("4", "anna", "anna", read, direct=True),
        }
    assert {who: "CANARY" in text for who, text in told.items()} == {
        "another of the group": True,
        "another group": False,
        "alone": False,
    }
    group = tmp_path / "home" / "chats" / principals_folder("chat:fake/room") / "workspace"
    assert (group / "plan.txt").read_text() == "CANARY of the room"


@given(st.text(min_size=1, max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_nobody_is_named_as_a_group_is(platform: str, account: str, chat: str):
    assert not is_chat(author_of(platform, account))
    assert not is_chat(author_of("chat", f"{platform}/{chat}"))
    assert is_chat(chat_of(platform, chat))


async def test_a_program_names_nobody_as_a_group_is(house):
    async with house(ScriptedModel([])) as agent:
        with pytest.raises(MailRefused, match="is a group"):
            agent.user("chat:fake/room")


async def test_a_conversation_can_have_fewer_steps_and_tools_than_others(house):
    asked: list[tuple[str, ...]] = []

    def plays(shown: Shown) -> Say | Call:
        asked.append(shown.tools)
        return Say("done") if not shown.tools or shown.step >= 4 else Call("list_dir", {"path": f"{shown.step}"})

    terms = Terms(steps=2, tools=("list_dir", "teleport"))
    async with house(ScriptedModel(plays)) as agent:
        for event, handed in (("1", terms), ("2", None)):  # it holds for what is said there later, too
            letter = Said(said("go"), "owner", "api:child", terms=handed)
            inbound = Inbound(Address.parse("api:child"), event, letter)
            await agent.answer(inbound)
        child, asked = asked, []
        await agent.ask("go", "api:parent")
    assert child == [("list_dir",), ("list_dir",), ()] * 2
    assert (len(asked), {"read_file", "exec"} < set(asked[0])) == (5, True)


async def test_terms_outlast_a_summary(house):
    asked: list[tuple[str, ...]] = []

    def plays(shown: Shown) -> Say:
        asked.append(shown.tools)
        return Say("word " * 3000)

    async with house(ScriptedModel(plays)) as agent:
        letter = Said(said("go"), "owner", "api:child", terms=Terms(tools=("list_dir",)))
        inbound = Inbound(Address.parse("api:child"), "1", letter)
        await agent.answer(inbound)
        for text in ("on", "on", "on", "/compact", "and now?"):
            await agent.ask(text, "api:child")
        row = await agent.store.session("api:child")
        kinds = [type(entry).__name__ for entry in await agent.store.read(row.id)]
    assert "Compacted" in kinds
    assert asked[-1] == ("list_dir",)
