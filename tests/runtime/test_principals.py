"""Everybody has a workspace of their own: of the owner's, and of one another's, nobody else sees a byte."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import everloop
from everloop import Role
from everloop.app.tools import folder_of
from everloop.testing import Call, Say, ScriptedModel, Shown

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
    assert f"{folder_of(person)}/workspace" in trying.shown[0].system


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
    assert (home / "people" / folder_of("web:anna") / "workspace" / "diary.txt").read_text() == "dear diary"


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_two_people_share_a_folder_and_none_leads_elsewhere(one: str, other: str):
    names = {folder_of(one), folder_of(other)}
    assert len(names) == len({one, other})
    assert not any("/" in name or name in ("", ".", "..") for name in names)
