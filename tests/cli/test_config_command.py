"""`everloop config` as people run it: what is wrong is never written, what is right keeps the file's comments."""

import asyncio
import os
import signal
import sqlite3
from pathlib import Path

import msgspec
import pytest
from tests.cli.at_terminal import AtTerminal
from tests.cli.person import Person, is_one_plain_sentence

from everloop.settings import load
from everloop.settings.edit import SettingChange
from everloop.settings.template import begun_file

COMMENTED = """\
# mine
[agents.defaults]
model = "openai/gpt-5"  # the usual

[gateway]
# the port that the firewall lets through
port = 8080
"""
TOKEN = "xoxb-canary-7f3a91b2c3"


@pytest.fixture
def person(person: Person) -> Person:
    person.environment.pop("EVERLOOP_AGENTS__DEFAULTS__MODEL", None)
    person.home.mkdir(exist_ok=True)
    return person


def file_of(person: Person) -> Path:
    return person.home / "config.toml"


async def test_a_setting_is_set_read_and_taken_out_and_comments_stay(person: Person):
    file_of(person).write_text(COMMENTED)
    ran = await person.run("config", "set", "agents.defaults.maxTokens", "500")
    assert (ran.status, ran.out) == (0, "agents.defaults.max_tokens = 500\n")
    assert "next turn" in ran.err
    assert file_of(person).read_text() == COMMENTED.replace("# the usual\n", "# the usual\nmax_tokens = 500\n")
    assert (await person.run("config", "get", "agents.defaults.max_tokens")).out == "500\n"
    assert (await person.run("config", "unset", "agents.defaults.maxTokens")).status == 0
    assert file_of(person).read_text() == COMMENTED
    again = await person.run("config", "unset", "agents.defaults.maxTokens")
    assert (again.status, is_one_plain_sentence(again.err)) == (1, True)


async def test_it_says_what_needs_a_new_start_and_the_audit_has_it(person: Person):
    ran = await person.run("config", "set", "gateway.port", "9000", "--json")
    assert msgspec.json.decode(ran.out) == {
        "file": str(file_of(person)),
        "changed": ["gateway.port"],
        "at_next_start": ["gateway.port"],
    }
    with sqlite3.connect(person.home / "everloop.db") as db:
        rows = db.execute("SELECT deed FROM audit").fetchall()
    assert rows == [("settings.changed",)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("set", "gateway.port", "high"),
            "gateway.port must be a whole number of at least 0 and at most 65535",
        ),
        (
            ("set", "agents.defaults.modl", "x"),
            "there is no setting agents.defaults.modl; did you mean agents.defaults.model?",
        ),
        (("get", "max_tokens"), "there is no setting max_tokens; did you mean agents.defaults.max_tokens?"),
        (("set", "zzz", "1"), "there is no setting zzz; all of them: everloop config list --all"),
        (
            ("set", "gateway", "{}"),
            "gateway is a table of settings; name the one that is to be changed",
        ),
        (
            ("set", "providers.openai.api_key", TOKEN),
            "providers.openai.api_key: keys are kept in the vault: everloop models key set openai, or PUT "
            "/api/keys/openai",
        ),
        (
            ("set", "channels.telegram.token", TOKEN),
            "channels are set up with `everloop channels add telegram`, and taken out with `everloop channels remove "
            "telegram`; here channels.telegram.enabled can be set, which switches one off and on",
        ),
        (
            ("set", "providers.custom.api_base", "http://127.0.0.1:1/v1"),
            "providers.custom.api_base is set by the environment variable EVERLOOP_PROVIDERS__CUSTOM__API_BASE; change "
            "it there",
        ),
        (
            ("set", "net.proxy", "${NOBODY_SET_THIS}"),
            "{file}, line 10: net.proxy needs the environment variable NOBODY_SET_THIS, which is not set",
        ),
        (("unset", "gateway"), "gateway is a table of settings; name the one that is to be taken out"),
    ],
    ids=lambda words: " ".join(words[:2]) if isinstance(words, tuple) else "",
)
async def test_what_is_wrong_is_one_sentence_and_nothing_is_written(
    person: Person, words: tuple[str, ...], sentence: str
):
    file_of(person).write_text(COMMENTED)
    ran = await person.run("config", *words)
    told = sentence.replace("{file}", str(file_of(person)))
    assert (ran.status, ran.out, ran.err) == (1, "", f"everloop: {told}\n")
    assert file_of(person).read_text() == COMMENTED


async def test_a_secret_is_read_from_stdin_and_never_shown(person: Person):
    ran = await person.run("config", "set", "tools.web.search.api_key", typed=TOKEN.encode() + b"\n")
    assert (ran.status, ran.out) == (0, "tools.web.search.api_key = …\n")
    assert load(person.home, {}).tools.web.search.api_key == TOKEN
    (person.home / "config.toml").open("a").write(f'\n[channels.slack]\nbot_token = "{TOKEN}"\nchannel = "C1"\n')
    for words in (("get", "tools.web.search.api_key"), ("list", "--all"), ("get", "channels"), ("list", "--json")):
        shown = await person.run("config", *words)
        assert (shown.status, TOKEN in shown.out + shown.err) == (0, False)
    told = await person.run("config", "get", "channels.slack")
    assert msgspec.json.decode(told.out) == {"bot_token": "…", "channel": "C1"}


async def test_lists_tables_names_of_ones_own_and_what_is_to_be_done_by_hand_can_be_set(person: Person):
    for key, value in (
        ("tools.exec.network", "pypi.org, *.example.com"),
        ("models.deep.model", "openai/gpt-6"),
        ("agents.profiles.reader.steps", "3"),
        ("providers.own.headers", '{"X-Team": "a"}'),
        ("mcpServers.little.command", "little"),
        ("workspace", str(person.home / "elsewhere")),
        ("agents.defaults.temperature", "0.5"),
        ("agents.defaults.temperature", ""),
    ):
        assert (await person.run("config", "set", key, value)).status == 0
    found = load(person.home, {})
    assert (found.tools.exec.network, found.models["deep"].model) == (("pypi.org", "*.example.com"), "openai/gpt-6")
    assert (found.agents.profiles["reader"].steps, found.providers.accounts["own"].headers) == (3, {"X-Team": "a"})
    assert (found.tools.mcp_servers["little"].command, found.agents.defaults.temperature) == ("little", None)
    assert found.workspace == str(person.home / "elsewhere")
    assert (await person.run("config", "unset", "models.deep")).out == "models.deep is taken out.\n"
    assert (await person.run("config", "get", "agents.profiles.reader.steps")).out == "3\n"


async def test_a_json_file_is_changed_as_what_it_is(person: Person):
    file = person.home / "config.json"
    file.write_text('{\n    "agents": {"defaults": {"maxTokens": 100}}\n}\n')
    assert (await person.run("config", "set", "agents.defaults.max_tokens", "200")).status == 0
    assert msgspec.json.decode(file.read_text()) == {"agents": {"defaults": {"maxTokens": 200}}}
    assert (await person.run("config", "path")).out == f"{file}\n"


async def test_a_store_that_cannot_be_opened_does_not_keep_one_from_the_setting_that_mends_it(person: Person):
    file_of(person).write_text('[store]\nurl = "postgresql://nobody@127.0.0.1:1/none"\n')
    ran = await person.run("config", "unset", "store.url")
    assert ran.status == 0
    assert "The audit does not have it" in ran.err
    assert load(person.home, {}).store.url == ""


async def test_several_who_change_settings_at_once_all_have_their_way(person: Person):
    file_of(person).write_text(COMMENTED)
    names = [f"m{number}" for number in range(4)]
    ran = await asyncio.gather(*(person.run("config", "set", f"models.{name}.model", "custom/x") for name in names))
    assert [each.status for each in ran] == [0] * len(names), ran
    assert sorted(load(person.home, {}).models) == names
    assert file_of(person).read_text().startswith(COMMENTED)


async def test_what_is_set_is_listed_with_where(person: Person):
    file_of(person).write_text(COMMENTED)
    ran = await person.run("config")
    assert [line.split(maxsplit=2) for line in ran.out.splitlines()] == [
        ["KEY", "VALUE", "FROM"],
        ["agents.defaults.model", "openai/gpt-5", "config.toml, line 3"],
        ["providers.custom.api_key", "…", "EVERLOOP_PROVIDERS__CUSTOM__API_KEY"],
        [
            "providers.custom.api_base",
            person.environment["EVERLOOP_PROVIDERS__CUSTOM__API_BASE"],
            "EVERLOOP_PROVIDERS__CUSTOM__API_BASE",
        ],
        ["gateway.port", "8080", "config.toml, line 7"],
    ]
    assert (await person.run("config", "list", "gateway")).out.splitlines()[1:] == [
        "gateway.port  8080   config.toml, line 7"
    ]


def editor(person: Person, script: str) -> None:
    program = person.home / "editor.sh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    person.environment["EDITOR"] = str(program)


async def test_an_edited_file_is_put_in_place_once_it_is_right(person: Person):
    file_of(person).write_text(COMMENTED)
    copy = person.home / "config.edit.toml"
    editor(person, 'sed -i s/8080/wrong/ "$1"')
    ran = await person.run("config", "edit")
    assert ran.status == 1
    assert ran.err.splitlines() == [
        f"everloop: {file_of(person)}, line 7: this is not valid TOML (Invalid value)",
        f"everloop: nothing was put in place. What you wrote is in {copy}; `everloop config edit` goes on there",
    ]
    assert (file_of(person).read_text(), "wrong" in copy.read_text()) == (COMMENTED, True)
    refused = await person.run("config", "edit")
    assert (refused.status, is_one_plain_sentence(refused.err)) == (1, True)
    async with AtTerminal(person, "config", "edit") as seat:
        await seat.sees("Go on with it? [Y/n]")
        editor(person, 'sed -i s/wrong/9000/ "$1"')
        seat.type("")
        assert await seat.ends() == 0
    assert file_of(person).read_text() == COMMENTED.replace("8080", "9000")
    assert not copy.exists()


async def test_a_wrong_edit_is_offered_again_at_a_terminal(person: Person):
    file_of(person).write_text(COMMENTED)
    editor(person, 'if grep -q 70000 "$1"; then sed -i s/70000/7000/ "$1"; else sed -i s/8080/70000/ "$1"; fi')
    async with AtTerminal(person, "config", "edit") as seat:
        await seat.sees("gateway.port must be a whole number")
        await seat.sees("Edit it again? [Y/n]")
        seat.type("")
        assert await seat.ends() == 0
    assert load(person.home, {}).gateway.port == 7000


async def test_an_editor_that_was_killed_or_changed_nothing_changes_nothing(person: Person):
    file_of(person).write_text(COMMENTED)
    editor(person, "true")
    assert (await person.run("config", "edit")).err == "Nothing was changed.\n"
    editor(person, "kill -9 $$")
    ran = await person.run("config", "edit")
    assert (ran.status, f"ended with {-signal.SIGKILL}" in ran.err) == (1, True)
    person.environment["EDITOR"] = "no-such-editor"
    os.unlink(person.home / "config.edit.toml")
    ran = await person.run("config", "edit")
    assert (ran.status, is_one_plain_sentence(ran.err)) == (1, True)
    assert file_of(person).read_text() == COMMENTED


@pytest.mark.parametrize(
    ("named", "told"), [("vi 'unended", "its quotes do not match"), ("torn", "torn cannot be run (Exec format error)")]
)
async def test_an_editor_that_is_none_is_one_sentence(person: Person, named: str, told: str):
    file_of(person).write_text(COMMENTED)
    (person.home / "torn").write_bytes(b"\0")
    (person.home / "torn").chmod(0o700)
    person.environment["VISUAL"] = named.replace("torn", str(person.home / "torn"))
    ran = await person.run("config", "edit")
    assert (ran.status, is_one_plain_sentence(ran.err), told in ran.err) == (1, True, True)
    assert file_of(person).read_text() == COMMENTED


async def test_an_editor_that_removes_its_copy_has_changed_nothing(person: Person):
    file_of(person).write_text(COMMENTED)
    person.environment["EDITOR"] = "rm"
    ran = await person.run("config", "edit")
    assert (ran.status, ran.err) == (0, "Nothing was changed.\n")
    assert file_of(person).read_text() == COMMENTED


async def test_a_file_that_was_changed_meanwhile_is_not_overwritten(person: Person):
    file_of(person).write_text(COMMENTED)
    editor(person, f'sed -i s/8080/9000/ "$1"; echo "# another" >> {file_of(person)}')
    ran = await person.run("config", "edit")
    assert (ran.status, is_one_plain_sentence(ran.err)) == (1, True)
    assert file_of(person).read_text() == f"{COMMENTED}# another\n"
    assert "9000" in (person.home / "config.edit.toml").read_text()


def test_a_new_file_has_comments_and_says_what_was_asked_for(tmp_path: Path):
    changes = [
        SettingChange(("agents", "defaults", "model"), "ollama/qwen3"),
        SettingChange(("providers", "ollama", "api_base"), "http://127.0.0.1:11434"),
    ]
    (tmp_path / "config.toml").write_text(begun_file(changes))
    found = load(tmp_path, {})
    assert (found.agents.defaults.model, found.providers.accounts["ollama"].api_base) == (
        "ollama/qwen3",
        "http://127.0.0.1:11434",
    )
    (tmp_path / "config.toml").write_text(begun_file())
    assert load(tmp_path, {}) == load(tmp_path / "nowhere", {})
    uncommented = "\n".join(line.removeprefix("# ") if " = " in line else line for line in begun_file().splitlines())
    (tmp_path / "config.toml").write_text(uncommented)
    assert load(tmp_path, {}) == load(tmp_path / "nowhere", {})


class TestModelNames:
    @pytest.mark.parametrize(
        "name, told",
        [
            ("nonsense", "no provider or preset is called 'nonsense', and no table has such a model. Write provider"),
            ("opena/gpt-5.4-mini", "Did you mean openai/gpt-5.4-mini?"),
        ],
    )
    async def test_one_that_nobody_knows_is_refused(self, person: Person, name: str, told: str):
        ran = await person.run("config", "set", "agents.defaults.model", name)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.startswith("everloop: agents.defaults.model: ")
        assert told in ran.err
        assert not (person.home / "config.toml").exists()

    @pytest.mark.parametrize("name", ["auto", "openai", "openai/gpt-5.4-mini", "custom/anything", "ollama/x", "gpt-9"])
    async def test_one_that_somebody_may_have_is_taken(self, person: Person, name: str):
        ran = await person.run("config", "set", "agents.defaults.model", name)
        assert (ran.status, "is in no table" in ran.err) == (0, False)

    async def test_a_new_one_of_a_known_provider_is_taken_with_a_doubt(self, person: Person):
        ran = await person.run("config", "set", "agents.defaults.model", "openai/brand-new")
        assert (ran.status, ran.out) == (0, "agents.defaults.model = openai/brand-new\n")
        assert (
            "(brand-new is in no table of openai's models: `everloop models test openai/brand-new` tries it)" in ran.err
        )


async def test_what_would_keep_everloop_from_opening_is_not_written_unless_something_does_already(person: Person):
    (person.home / "skills").mkdir(parents=True)
    for key, value, told in (
        ("tools.disabled", "shel", "there is no tool 'shel'"),
        ("workspace", str(person.home), "where everloop keeps its own files"),
    ):
        ran = await person.run("config", "set", key, value)
        assert (ran.status, ran.out, told in ran.err, is_one_plain_sentence(ran.err)) == (1, "", True, True)
    assert not (person.home / "config.toml").exists()
    (person.home / "config.toml").write_text('[tools]\ndisabled = ["shel"]\nplugins = ["wheather"]\n')
    assert (await person.run("config", "unset", "tools.disabled")).status == 0  # one after the other
