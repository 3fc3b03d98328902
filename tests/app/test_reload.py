"""Every process that is open for long takes over settings and keys that have changed, with its next turn."""

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import everloop
from everloop.app import open_desk
from everloop.app.records import open_records
from everloop.app.secrets import kept_secrets
from everloop.app.settings_files import SettingsFiles
from everloop.testing import Say, ScriptedModel
from everloop.testing.model_server import ModelServer
from tests.strays import told_by


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with ModelServer(lambda shown: Say("hello"), models=("a", "b")) as server:
        yield server


def write(home: Path, model: ModelServer, name: str, more: str = "") -> None:
    home.mkdir(exist_ok=True)
    account = f'[providers.custom]\napi_base = "{model.url}"\n'
    (home / "config.toml").write_text(f'{account}{more}\n[agents.defaults]\nmodel = "custom/{name}"\n')


def asked(model: ModelServer) -> list[str]:
    return [request.body["model"] for request in model.requests]


async def test_a_program_answers_with_the_model_that_the_file_names_by_then(tmp_path: Path, model: ModelServer):
    write(tmp_path, model, "a")
    async with everloop.open(tmp_path) as agent:
        await agent.ask("one")
        before = agent.model
        write(tmp_path, model, "b")
        await agent.ask("two")
        assert (before, agent.model, agent.problem) == ("custom/a", "custom/b", "")
    assert asked(model) == ["a", "b"]


async def test_who_transcribes_and_who_reads_aloud_is_who_the_file_names_by_then(tmp_path: Path, model: ModelServer):
    """A voice message is read before a turn begins, and an answer aloud when none does."""
    write(tmp_path, model, "a")
    async with open_desk(tmp_path) as desk:
        before = await desk.voice.longest(), await desk.aloud.longest()
        write(tmp_path, model, "a", '[voice]\nmodel = "custom/b"\nmax_seconds = 7\n[speech]\nmodel = "custom/b"')
        after = await desk.voice.longest(), await desk.aloud.longest()
        waiting = (await desk.live_settings.look()).waiting
        await desk.live_settings.change({"voice": {"max_seconds": 8}, "speech": {"max_characters": 900}})
        assert (before, after, waiting) == ((0, 0), (7, 5000), [])
        assert (await desk.voice.longest(), await desk.aloud.longest()) == (8, 900)


async def test_what_was_given_to_open_lies_over_the_file(tmp_path: Path, model: ModelServer):
    write(tmp_path, model, "a")
    given = {"agents": {"defaults": {"temperature": 0.5}}}
    async with everloop.open(tmp_path, given) as agent:
        write(tmp_path, model, "b")
        await agent.ask("one")
    assert [(request.body["model"], request.body["temperature"]) for request in model.requests] == [("b", 0.5)]


async def test_a_change_in_the_gateway_is_in_force_in_a_program_over_the_same_home(tmp_path: Path, model: ModelServer):
    write(tmp_path, model, "a")
    async with everloop.open(tmp_path) as agent, open_desk(tmp_path) as desk:
        await desk.live_settings.change({"agents": {"defaults": {"model": "custom/b"}}})
        await agent.ask("one")
        assert (agent.model, desk.model) == ("custom/b", "custom/b")
    assert asked(model) == ["b"]


async def test_a_file_that_was_edited_by_hand_is_in_force_in_the_gateway(tmp_path: Path, model: ModelServer):
    write(tmp_path, model, "a")
    async with open_desk(tmp_path) as desk:
        write(tmp_path, model, "b")
        await desk.ask("one")
        assert (await desk.live_settings.look()).waiting == []
    assert asked(model) == ["b"]


@pytest.mark.parametrize(
    "spoiled, why",
    [
        ("[agents", r"config.toml, line 1: this is not valid TOML"),
        ("[agents.defaults]\ntemperature = 'hot'", r"config.toml, line 2"),
        ("[agents.defaults]\nmodel = 'nobody/nothing'", r"nobody"),
    ],
)
async def test_settings_that_cannot_be_used_change_nothing_and_say_why_once(
    tmp_path: Path, model: ModelServer, caplog, spoiled: str, why: str
):
    write(tmp_path, model, "a")
    async with everloop.open(tmp_path) as agent:
        (tmp_path / "config.toml").write_text(spoiled)
        for _ in range(2):
            await agent.ask("one")
        problem = agent.problem
        write(tmp_path, model, "b")
        await agent.ask("two")
        assert agent.problem == ""
    assert asked(model) == ["a", "a", "b"]
    assert problem.startswith("The settings have changed and cannot be used: ")
    assert problem.endswith("What was in force before stays so.")
    assert why.replace("\\", "") in problem
    assert told_by("everloop", (each for each in caplog.records if each.levelname == "WARNING")) == [problem]


async def test_a_file_that_is_put_back_as_it_was_is_no_problem_any_more(tmp_path: Path, model: ModelServer):
    write(tmp_path, model, "a")
    good = (tmp_path / "config.toml").read_text()
    async with everloop.open(tmp_path) as agent:
        for text in ("[agents", good):
            (tmp_path / "config.toml").write_text(text)
            await agent.ask("one")
        assert agent.problem == ""


async def test_a_key_that_another_process_keeps_is_used_with_the_next_turn(tmp_path: Path, model: ModelServer):
    write(tmp_path, model, "a")
    async with open_records(tmp_path) as records:
        await records.vault.set("key:custom", "sk-one")
    async with everloop.open(tmp_path) as agent:
        await agent.ask("one")
        async with open_records(tmp_path) as records:
            await records.vault.set("key:custom", "sk-two")
        await agent._live.look_at_keys()  # as it does every two seconds
        await agent.ask("two")
        assert "keys" in [task.name for task in agent.tasks()]
    assert [request.headers["Authorization"] for request in model.requests] == ["Bearer sk-one", "Bearer sk-two"]


async def test_a_key_that_another_process_forgets_is_used_no_longer(tmp_path: Path):
    (tmp_path / "config.toml").write_text('[agents.defaults]\nmodel = "openai/a"\n')
    async with open_records(tmp_path) as records:
        await records.vault.set("key:openai", "sk-one")
    async with everloop.open(tmp_path) as agent:
        async with open_records(tmp_path) as records:
            await records.vault.forget("key:openai")
        await agent._live.look_at_keys()
        with pytest.raises(everloop.TurnFailed, match="Nobody can answer yet: openai/a needs a key"):
            await agent.ask("one")
        async with open_records(tmp_path) as records:
            await records.vault.set("key:openai", "sk-two")
        await agent._live.catch_up()  # as each turn does where nobody can answer
        assert (agent._live.now.missing, agent.problem) == ("", "")


async def test_a_key_in_a_file_that_has_changed_is_used_with_the_next_turn(tmp_path: Path, model: ModelServer):
    write(tmp_path, model, "a", 'api_key_file = "key"')
    (tmp_path / "key").write_text("sk-one")
    async with everloop.open(tmp_path) as agent:
        await agent.ask("one")
        (tmp_path / "key").write_text("sk-two")
        await agent.ask("two")
    assert [request.headers["Authorization"] for request in model.requests] == ["Bearer sk-one", "Bearer sk-two"]


async def test_where_nothing_has_changed_nothing_is_built_again(tmp_path: Path, model: ModelServer):
    write(tmp_path, model, "a")
    async with everloop.open(tmp_path) as agent:
        first = agent._live.now
        for _ in range(2):
            await agent._live.look_at_keys()
            await agent.ask("one")
        assert agent._live.now is first


async def test_a_login_to_an_mcp_server_builds_nothing_again_and_is_no_secret_of_the_list(
    tmp_path: Path, model: ModelServer
):
    write(tmp_path, model, "a")
    async with everloop.open(tmp_path) as agent:
        first = agent._live.now
        async with open_records(tmp_path) as records:
            await records.vault.set("mcp:demo", "tokens")
            assert await kept_secrets(records.vault) == {}
            assert await records.store.secrets_of_people() == []
        await agent._live.look_at_keys()
        assert agent._live.now is first


async def test_turns_that_begin_beside_each_other_look_at_the_file_once(tmp_path: Path):
    files = SettingsFiles(tmp_path)
    (tmp_path / "config.toml").write_text("")
    assert (files.is_stale(crowded=True), files.is_stale()) == (False, True)


async def test_every_way_in_which_the_file_can_change_is_noticed_and_none_in_which_it_does_not(tmp_path: Path):
    toml, json, old = tmp_path / "config.toml", tmp_path / "config.json", 1_700_000_000
    files = SettingsFiles(tmp_path)

    def noticed() -> tuple[bool, bool]:
        """Now, and once more after it was read."""
        for file in (toml, json):
            if file.exists() and file.stat().st_mtime > time.time() - 60:
                os.utime(file, (old, old))  # nothing is so fresh that it is read once more to be sure
        found = files.is_stale()
        files.see()
        return found, files.is_stale()

    def replace() -> None:
        (tmp_path / "new").write_text("a = 9")
        (tmp_path / "new").rename(toml)

    steps = [
        ("nothing", lambda: None, False),
        ("it comes", lambda: toml.write_text("a = 1"), True),
        ("it grows", lambda: toml.write_text("a = 10"), True),
        ("it is touched", lambda: os.utime(toml, (old - 1, old - 1)), True),
        ("another takes its place", replace, True),
        ("something else in the home changes", lambda: (tmp_path / "other").write_text("x"), False),
        ("it goes", toml.unlink, True),
        ("one of the other kind comes", lambda: json.write_text("{}"), True),
    ]
    seen = []
    for name, step, _ in steps:
        step()
        seen.append((name, *noticed()))
    assert seen == [(name, expected, False) for name, _, expected in steps]


async def test_a_file_that_is_so_fresh_that_it_may_change_under_the_same_time_is_read_once_more(tmp_path: Path):
    (tmp_path / "config.toml").write_text("")
    assert SettingsFiles(tmp_path).is_stale()


@pytest.mark.parametrize("how", ["emptied", "moved away", "says less", "touched"])
async def test_a_file_that_is_just_being_written_lifts_no_limit(tmp_path: Path, how: str):
    """Editors empty a file, or move it away, before they write it. Without settings everything is allowed that they
    forbid; what the file says by itself counts at once."""
    config, limited = tmp_path / "config.toml", '[tools]\ndisabled = ["exec", "run_python"]\n'
    config.write_text(limited)
    seen: list[bool] = []
    model = ScriptedModel(lambda shown: seen.append("exec" in shown.tools) or Say("hello"))
    deeds = {
        "emptied": lambda: config.write_text(""),
        "moved away": lambda: config.rename(tmp_path / "config.toml~"),
        "says less": lambda: config.write_text('[tools]\ndisabled = ["run_python"]\n'),
        "touched": config.touch,
    }
    async with everloop.open(tmp_path, provider=model) as agent:
        agent._live._opened.files._settled = 600.0  # nothing is meant to be gone before four has been asked
        await agent.ask("one")
        deeds[how]()
        await agent.ask("two")
        await agent.ask("three")
        config.write_text(limited)
        await agent.ask("four")
    assert seen == [False, how == "says less", how == "says less", False]


def test_a_file_that_stays_empty_is_meant_to_be(tmp_path: Path):
    config = tmp_path / "config.toml"
    config.write_text("[tools]\n")
    files = SettingsFiles(tmp_path, settled=0.0)
    config.write_text("")
    files.see()
    assert not files.is_being_written()
