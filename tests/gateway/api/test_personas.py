"""Personas through the API of an open gateway: defined, given places and removed by the owner; the next turn knows."""

from pathlib import Path

import pytest

from everloop.app.persona_desk import open_personas
from everloop.testing import Say, ScriptedModel, Shown
from tests.gateway.api.test_setup import Door, opened

SUPPORT = {"name": "support", "prompt": "You answer customers.", "tools": ["list_dir"], "places": ["channel:api"]}


class Telling:
    """A model that says which tools it was shown, and keeps the rest."""

    def __init__(self) -> None:
        self.shown: list[Shown] = []

    def __call__(self, shown: Shown) -> Say:
        self.shown.append(shown)
        return Say(f"tools: {', '.join(shown.tools)}")


async def test_the_owner_defines_a_persona_and_the_next_turn_knows_it(tmp_path: Path):
    model = Telling()
    async with opened(tmp_path, provider=ScriptedModel(model)) as door:
        empty = await door.get("/api/personas")
        added = await door.send(
            "POST", "/api/personas", {**SUPPORT, "places": ["default"], "files": {"SOUL.md": "Calm."}}
        )
        tools = await door.ask("hi", "one")
        changed = await door.send(
            "PATCH", "/api/personas/support", {"tools": [], "max_tokens": 9, "files": {"SOUL.md": ""}}
        )
        without = await door.ask("hi", "two")
        session = (await door.get("/api/sessions"))["sessions"][0]
        answering = await door.get(f"/api/sessions/{session['id']}/persona")
        removed = await door.send("DELETE", "/api/personas/support")
        left = await door.get("/api/personas")
        everything = await door.ask("hi", "three")
    shown = {"model": "", "max_tokens": None, "open_to": "admin", "places": ["default"]}
    assert added == (201, {"persona": {**SUPPORT, **shown, "files": {"SOUL.md": "Calm."}}})
    assert changed == (200, {"persona": {**SUPPORT, **shown, "tools": [], "max_tokens": 9, "files": {}}})
    assert (tools, without) == ("tools: list_dir", "tools: ")
    assert "write_file" in everything.split(", ")
    assert ["Calm." in each.system for each in model.shown] == [True, False, False]
    assert answering == {"name": "support", "by": "default", "told": "support answers, by default."}
    assert removed == (200, {"told": (
        "support is removed. From the next turn on at default the agent itself answers. "
        "Where it was chosen in a conversation, that is told there."
    )})  # fmt: skip
    assert (empty["personas"], left["personas"], (tmp_path / "personas" / "support").exists()) == ([], [], False)
    assert empty["files"] == ["AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md"]


async def test_a_place_goes_from_one_to_another_and_the_command_line_and_the_gateway_see_the_same(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Telling())) as door:
        await door.send("POST", "/api/personas", SUPPORT)
        async with open_personas(tmp_path) as desk:
            await desk.add("tutor", {"prompt": "You teach."}, {})
        used = await door.send("POST", "/api/personas/tutor/use", {"place": "channel:api"})
        places = {each["name"]: each["places"] for each in (await door.get("/api/personas"))["personas"]}
        nobody = await door.send("POST", "/api/personas/none/use", {"place": "channel:api"})
        async with open_personas(tmp_path) as desk:
            at = (await desk.all()).at
    assert used == (200, {"told": "At channel:api tutor answers from the next turn on."})
    assert places == {"support": [], "tutor": ["channel:api"]}
    assert (nobody, at) == ((200, {"told": "At channel:api the agent itself answers from the next turn on."}), {})


async def test_at_the_platform_door_the_server_and_the_platform_decide(tmp_path: Path):
    model = Telling()
    places = {
        "of-server": "server:platform/discord/1",
        "of-platform": "channel:platform/discord",
        "other": "channel:platform",
    }
    async with opened(tmp_path, provider=ScriptedModel(model)) as door:
        for name, place in places.items():
            await door.send("POST", "/api/personas", {"name": name, "prompt": f"I am {name}.", "places": [place]})
        for platform, server in (("discord", "1"), ("discord", "2"), ("discord", None), ("slack", "1")):
            said = {"platform": platform, "platform_user_id": "u", "content": "hi", "platform_channel_id": "c"}
            status, _ = await door.send("POST", "/message", {**said, "platform_server_id": server})
            assert status == 200
    told = [next(each for each in places if f"I am {each}." in shown.system) for shown in model.shown]
    assert told == ["of-server", "of-platform", "of-platform", "other"]


async def test_a_token_that_is_worth_less_than_the_owner_defines_none_by_any_way(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Telling()), scopes=("admin", "read", "chat")) as door:
        ways = [
            await door.send("POST", "/api/personas", SUPPORT),
            await door.send("PATCH", "/api/settings", {"personas.support.prompt": "x"}),
            await door.send("PATCH", "/api/settings", {"personas": {"support": {"tools": None}}}),
            await door.send("DELETE", "/api/personas/support"),
            await door.send("POST", "/api/personas/none/use", {"place": "default"}),
        ]
        listed = await door.get("/api/personas")
    assert [status for status, _ in ways] == [403] * 5
    assert (listed["personas"], door.file) == ([], "")


@pytest.fixture
async def door(tmp_path: Path):
    async with opened(tmp_path, provider=ScriptedModel(Telling())) as door:
        await door.send("POST", "/api/personas", SUPPORT)
        yield door


async def test_what_cannot_be_is_refused_with_a_sentence_and_changes_nothing(door: Door):
    before = door.file
    refused = {
        "There is no tool 'fly'; there is": ("POST", "", {"name": "a", "tools": ["fly"]}),
        "A persona's name has up to 40": ("POST", "", {"name": "../a"}),
        "There is a persona support already": ("POST", "", SUPPORT),
        "personas.support and personas.a both have the place channel:api.": ("POST", "", {**SUPPORT, "name": "a"}),
        "personas.a.places has 'nowhere': a place is": ("POST", "", {"name": "a", "places": ["nowhere"]}),
        "A persona has no file '../../config.toml'; it may have": (
            "POST",
            "",
            {"name": "a", "files": {"../../config.toml": "x"}},
        ),
        "SOUL.md is longer than the 80,000 bytes": ("POST", "", {"name": "a", "files": {"SOUL.md": "x" * 80_001}}),
        "this program has one model": ("POST", "", {"name": "a", "model": "nobody/knows"}),
        "personas.a.prompt has a ${…} in it": ("POST", "", {"name": "a", "prompt": "${HOME}"}),
        "There is no persona 'nobody'; there is support.": ("PATCH", "/nobody", {"prompt": "x"}),
        "There is no persona 'gone'": ("DELETE", "/gone", None),
        "'here' is no place": ("POST", "/support/use", {"place": "here"}),
    }
    for sentence, (method, path, body) in refused.items():
        status, told = await door.send(method, f"/api/personas{path}", body)
        assert (status, told["error"]["message"][: len(sentence)]) == (409, sentence)
    assert [
        (await door.send("POST", "/api/personas", body))[0]
        for body in ({"name": "a", "max_tokens": 0}, {"name": ""}, {})
    ] == [400] * 3
    assert door.file == before
    assert sorted(path.name for path in door.home.iterdir() if path.name == "personas") == []
