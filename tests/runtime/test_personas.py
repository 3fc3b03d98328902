"""Personas end to end: what the model is told and may call, who answers and how long, and who chooses."""

import asyncio
import os
from pathlib import Path

import pytest

import everloop
from everloop import Role
from everloop.core import log
from everloop.errors import SettingsError
from everloop.ports import Deliver
from everloop.ports.channel import Incoming
from everloop.readings.sections import BETWEEN, changed_parts
from everloop.replay import cut, replay, turns_in
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Shown
from everloop.testing.model_server import ModelServer
from tests.runtime.test_turns import entries

PIRATE = {"prompt": "You are a pirate.", "tools": ["list_dir", "web_f*"], "places": ["channel:api"]}
PEOPLE = {"web:anna": Role.USER, "web:ada": Role.ADMIN}


def personas(**named: dict[str, object]) -> dict[str, object]:
    return {"personas": named}


def answering() -> ScriptedModel:
    return ScriptedModel(lambda shown: Say("done"))


def section(shown: Shown, name: str) -> str:
    return next((text for text in shown.system.split(BETWEEN) if text.startswith(name)), "")


async def test_a_persona_is_told_after_the_identity_and_has_the_tools_that_it_names(house):
    model = answering()
    async with house(model, settings=personas(pirate=PIRATE)) as agent:
        await agent.ask("hi", "api:one")
        await agent.ask("hi", "cli:direct")
    there, elsewhere = model.prompts
    assert there.system.split(BETWEEN)[1] == "You are a pirate."
    assert there.tools == ("list_dir", "web_fetch")
    assert there.system.split(BETWEEN)[0].endswith("Your tools: list_dir, web_fetch.")
    assert "pirate" not in elsewhere.system
    assert set(there.tools) < set(elsewhere.tools)


async def test_where_no_persona_answers_the_prompt_is_the_same_to_the_byte(tmp_path: Path):
    told, prefixes = [], []
    for settings in ({}, personas(pirate=PIRATE)):
        model = answering()
        async with everloop.open(tmp_path / "home", settings=settings, provider=model) as agent:
            await agent.ask("hi", "cli:direct")
            called = [each for each in await entries(agent, "cli:direct") if isinstance(each, log.ModelCalled)]
            prefixes.append(called[0].prefix)
        told.append((model.prompts[0].system, model.prompts[0].tools))
    assert (told[0], prefixes[0]) == (told[1], prefixes[1])


async def test_a_tool_that_a_persona_has_not_is_not_run_when_it_is_called_all_the_same(house, tmp_path: Path):
    model = ScriptedModel(by_conversation=[Call("write_file", {"path": "x", "content": "y"}), Say("done")])
    async with house(model, settings=personas(pirate=PIRATE)) as agent:
        await agent.ask("write it", "api:one")
        [returned] = [each for each in await entries(agent, "api:one") if isinstance(each, log.CallReturned)]
    assert returned.text == "Error: there is no tool 'write_file'. The tools are: list_dir, web_fetch."
    assert not (tmp_path / "home" / "workspace" / "x").exists()


async def test_without_the_persona_it_is_run_and_so_the_test_above_would_see_it(house, tmp_path: Path):
    model = ScriptedModel(by_conversation=[Call("write_file", {"path": "x", "content": "y"}), Say("done")])
    async with house(model, settings=personas(pirate={**PIRATE, "places": []})) as agent:
        await agent.ask("write it", "api:one")
    assert (tmp_path / "home" / "workspace" / "x").read_text() == "y"


@pytest.mark.parametrize("person", [*PEOPLE, "web:guest"])
async def test_a_persona_never_gives_anybody_a_tool_that_their_role_does_not(house, person: str):
    plain, widened = answering(), answering()
    everything = {"prompt": "Do all.", "tools": ["*"], "places": ["default"]}
    async with house(plain, roles=PEOPLE) as agent:
        await agent.user(person).ask("hi")
    async with house(widened, roles=PEOPLE, settings=personas(all=everything)) as agent:
        await agent.user(person).ask("hi")
    assert widened.prompts[0].tools == plain.prompts[0].tools
    assert section(widened.prompts[0], "Do all.") == "Do all."


async def test_the_model_and_the_cap_of_a_persona_are_those_of_the_request(tmp_path: Path):
    async with ModelServer(lambda shown: Say("hello"), models=("a", "b")) as server:
        settings = {
            "agents": {"defaults": {"model": "custom/a", "max_tokens": 500}},
            "providers": {"custom": {"api_base": server.url, "api_key": "sk-x"}},
            "models": {"fast": {"model": "custom/b", "max_tokens": 400}},
            **personas(
                brief={"model": "fast", "max_tokens": 30, "places": ["channel:api"]},
                long={"max_tokens": 9000, "open_to": "user"},
            ),
        }
        async with everloop.open(tmp_path / "home", settings) as agent:
            await agent.ask("one", "cli:direct")
            await agent.ask("two", "api:x")
            shown = (await agent.ask("/model", "api:x")).content.splitlines()[0]
            await agent.ask("/model custom/a", "api:x")  # who is chosen in the conversation comes first
            await agent.ask("three", "api:x")
            await agent.ask("/persona long", "api:x")
            await agent.ask("four", "api:x")
        asked = [(each.body["model"], each.body["max_tokens"]) for each in server.requests]
    assert shown == "fast (custom/b) answers in this conversation."
    assert asked == [("a", 500), ("b", 30), ("a", 30), ("a", 500)]  # a cap never lengthens


async def test_files_of_a_persona_are_told_where_it_answers_and_nowhere_else(house, tmp_path: Path):
    home, model = tmp_path / "home", answering()
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "SOUL.md").write_text("the owner's soul")
    (home / "workspace" / "USER.md").write_text("about the owner")
    folder = home / "personas" / "pirate"
    folder.mkdir(parents=True)
    (folder / "SOUL.md").write_text("a pirate's soul")
    (tmp_path / "elsewhere").write_text("what lies elsewhere")
    (folder / "AGENTS.md").symlink_to(tmp_path / "elsewhere")
    os.link(tmp_path / "elsewhere", folder / "TOOLS.md")
    settings = personas(pirate={**PIRATE, "places": ["channel:api", "channel:web"]}, other={"places": ["channel:page"]})
    async with house(model, settings=settings, roles=PEOPLE) as agent:
        for session in ("api:x", "page:x"):
            await agent.ask("hi", session)
        await agent.user("web:anna").ask("hi")
        (folder / "IDENTITY.md").write_text("Jack")
        await agent.ask("hi", "api:x")
    told = [each.system.split(BETWEEN)[1:] for each in model.prompts]
    owner, other, anna, later = [[part for part in each if not part.startswith("# Skills")] for each in told]
    souls = "## SOUL.md\n\na pirate's soul", "## SOUL.md\n\nthe owner's soul"
    assert owner == ["You are a pirate.", souls[0], "## USER.md\n\nabout the owner"]
    assert other == [souls[1], "## USER.md\n\nabout the owner"]
    assert anna == ["You are a pirate.", souls[0]]
    assert later == [*owner, "## IDENTITY.md\n\nJack"]


async def test_a_folder_that_is_a_link_is_not_followed(house, tmp_path: Path):
    home, model = tmp_path / "home", answering()
    (home / "workspace").mkdir(parents=True)
    (home / "workspace" / "SOUL.md").write_text("what the agent can write")
    (home / "personas").mkdir()
    (home / "personas" / "pirate").symlink_to(home / "workspace")
    async with house(model, settings=personas(pirate={**PIRATE, "places": ["channel:web"]}), roles=PEOPLE) as agent:
        await agent.user("web:anna").ask("hi")
    assert "what the agent can write" not in model.prompts[0].system


async def test_another_persona_is_another_prefix_and_within_one_it_stays_the_same(house):
    model = answering()
    async with house(model, settings=personas(pirate=PIRATE, tutor={"prompt": "You teach."})) as agent:
        for text in ("one", "two", "/persona tutor", "three", "four", "/persona default", "five"):
            await agent.ask(text, "api:x")
        called = [each.prefix for each in await entries(agent, "api:x") if isinstance(each, log.ModelCalled)]
    assert [bool(prefix) for prefix in called] == [True, False, True, False, True]  # kept where it is another
    assert changed_parts(called[0], called[2]) == ["identity", "persona", "skills", "tools"]
    assert called[4] == called[0]
    assert model.prompts[0].system == model.prompts[1].system == model.prompts[4].system


async def test_what_is_chosen_is_an_entry_that_forks_and_undone_turns_keep(house):
    model, tutor = answering(), personas(pirate=PIRATE, tutor={"prompt": "You teach."})
    async with house(model, settings=tutor) as agent:
        shown = [(await agent.ask(text, "api:x")).content for text in ("/persona", "/persona Tutor", "hi", "/persona")]
        found = [each for each in await entries(agent, "api:x") if isinstance(each, log.PersonaChosen)]
        for deed in ("/session fork", "on", "/undo", "on", "/session regenerate", "/session edit go", "on"):
            await agent.ask(deed, "api:x")
        kept = {section(each, "You teach.") for each in model.prompts}
        await agent.ask("/new", "api:x")
        await agent.ask("hi", "api:x")
    choose = "Choose with /persona NAME: pirate, tutor; or go back with /persona default."
    assert shown == [
        f"pirate answers, by channel:api.\n{choose}",
        "From the next turn on: tutor answers, chosen in this conversation.",
        "done",
        f"tutor answers, chosen in this conversation.\n{choose}",
    ]
    assert found == [log.PersonaChosen("tutor", "owner")]
    assert kept == {"You teach."}
    assert section(model.prompts[-1], "You are a pirate.") != ""  # a new conversation is as its place says


async def test_one_chooses_among_those_that_are_open_to_them_and_guests_do_not_choose(house):
    settings = personas(
        free={"prompt": "Free.", "open_to": "user"}, staff={"prompt": "Staff."}, mine={"open_to": "owner"}
    )
    said, model = {}, answering()
    async with house(model, settings=settings, roles=PEOPLE) as agent:
        for person in ("web:anna", "web:ada", "web:guest"):
            user = agent.user(person)
            said[person] = [
                (await user.ask(f"/persona {name}")).content for name in ("staff", "free", "mine", "nobody")
            ]
        owner = (await agent.ask("/persona mine", "api:x")).content
    none = "There is no persona 'staff' for you.\nChoose with /persona NAME: free; or go back with /persona default."
    free = "From the next turn on: free answers, chosen in this conversation."
    assert said["web:anna"] == [none, free, none.replace("staff", "mine"), none.replace("staff", "nobody")]
    assert said["web:ada"][:2] == [free.replace("free", "staff"), free]
    assert said["web:ada"][2].startswith("There is no persona 'mine' for you.")
    assert set(said["web:guest"]) == {"/persona is not for guests: it needs a user."}
    assert owner == free.replace("free", "mine")


async def test_a_persona_that_is_no_longer_open_or_there_gives_way_to_the_one_of_the_place(tmp_path: Path):
    home, model = tmp_path / "home", answering()
    home.mkdir()

    def write(text: str) -> None:
        (home / "config.toml").write_text(f'[personas.base]\nprompt = "Base."\nplaces = ["default"]\n{text}')

    write('[personas.free]\nprompt = "Free."\nopen_to = "user"\n')
    async with everloop.open(home, provider=model, roles=PEOPLE) as agent:
        anna, shown = agent.user("web:anna"), []
        await anna.ask("/persona free")
        await anna.ask("one")
        for text in ('[personas.free]\nprompt = "Free."\n', ""):
            write(text)
            await anna.ask("again")
            shown.append((await anna.ask("/persona")).content.splitlines()[0])
    told = [each.system.split(BETWEEN)[1] for each in model.prompts]
    assert told == ["Free.", "Base.", "Base."]
    assert shown == [
        "free was chosen here, and is no longer open to users. base answers, by default.",
        "free was chosen here, and is no longer there. base answers, by default.",
    ]


class Chat(RecordingChannel):
    def __init__(self) -> None:
        super().__init__("fake")
        self.listens: asyncio.Queue[Deliver] = asyncio.Queue()

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.put_nowait(deliver)


async def test_a_channel_tells_the_server_and_in_a_group_an_administrator_chooses(house):
    channel, model = Chat(), answering()
    settings = personas(
        acme={"prompt": "Acme.", "places": ["server:fake/T%201"]}, free={"prompt": "Free.", "open_to": "user"}
    )
    people = {"fake:anna": Role.USER, "fake:ada": Role.ADMIN}
    heard = [
        ("anna", "hi", "T 1"),
        ("anna", "again", ""),  # the thread knows it
        ("anna", "/persona free", "T 1"),
        ("anna", "/persona", "T 1"),
        ("ada", "/persona free", "T 1"),
        ("anna", "and now?", "T 1"),
    ]
    async with house(model, channels=[channel], settings=settings, roles=people) as _:
        deliver = await channel.listens.get()
        for number, (who, text, server) in enumerate(heard, 1):
            said = Incoming(event=f"e{number}", chat="7", account=who, text=text, server=server, direct=False)
            assert (await deliver(said)).refused == ""
            await channel.sent(number)
    assert [each.system.split(BETWEEN)[1] for each in model.prompts] == ["Acme.", "Acme.", "Free."]
    assert [each.text for each in channel.sends][2:5] == [
        "In a group an administrator or the owner says who I am.",
        "acme answers, by server:fake/T%201.",
        "From the next turn on: free answers, chosen in this conversation.",
    ]


async def test_a_turn_of_a_persona_is_replayed_as_any_other(house):
    lines = [Call("write_file", {"path": "x", "content": "y"}), Say("done")]
    model = ScriptedModel(lambda shown: lines[min(shown.step, 1)])
    async with house(model, settings=personas(pirate=PIRATE, tutor={"prompt": "You teach.", "tools": []})) as agent:
        for text in ("one", "/persona tutor", "two"):
            await agent.ask(text, "api:x")
        written = await entries(agent, "api:x")
    replayed = [await replay(cut(written, seq, ()), {}) for seq in turns_in(written)]
    assert [str(each.difference) for each in replayed] == ["None", "None"]
    assert log.PersonaChosen("tutor", "owner") in written


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"a": {"places": ["default"]}, "b": {"places": ["default"]}}, "both have the place default"),
        ({"Bad Name": {}}, "personas.Bad Name: a persona's name"),
        ({"a": {"places": ["telegram"]}}, "personas.a.places has 'telegram': a place is"),
        ({"a": {"max_tokens": 0}}, "personas.a.max_tokens must be a whole number of at least 1"),
        ({"a": {"open_to": "guest"}}, 'personas.a.open_to must be "user" or "admin" or "owner"'),
        ({"a": {"promt": "x"}}, "there is no setting personas.a.promt; did you mean prompt?"),
    ],
)
async def test_settings_that_could_be_mistaken_are_refused_with_a_sentence(house, named, sentence):
    with pytest.raises(SettingsError, match=sentence):
        async with house(answering(), settings=personas(**named)):
            pass


async def test_a_tool_that_is_not_there_is_done_without_and_that_is_said(house):
    model = answering()
    async with house(model, settings=personas(a={"tools": ["list_dir", "fly"], "places": ["default"]})) as agent:
        await agent.ask("hi", "api:x")
        assert agent.unused == ("personas.a.tools names fly, which is no tool here: it does without.",)
    assert model.prompts[0].tools == ("list_dir",)
