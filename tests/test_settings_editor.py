"""The settings of a home, looked at with their origins and changed by a program."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.errors import SettingsError, SettingsMoved
from everloop.settings import AccountSection, Preset, Settings, load
from everloop.settings.editor import SettingsEditor
from everloop.settings.rows import SettingsRow, leaves_of
from everloop.settings.words import ABOUT

FILE = "# mine\n[agents.defaults]\nmodel = 'openai/gpt-5'\nmaxTokens = 5\n\n[providers.openai]\napi_key = 'sk-123'\n"


def book(home: Path, text: str = FILE, environ: dict[str, str] | None = None, **overrides: Any) -> SettingsEditor:
    (home / "config.toml").write_text(text)
    return SettingsEditor(home, environ or {}, overrides)


def row(of: SettingsEditor, key: str) -> SettingsRow:
    return next(row for row in of.read().rows if row.key == key)


def test_every_setting_has_a_line_about_it():
    assert {".".join(leaf.path) for leaf in leaves_of()} == set(ABOUT)


def test_a_row_tells_what_a_setting_is_and_where_it_comes_from(tmp_path: Path):
    of = book(tmp_path, environ={"EVERLOOP_AGENTS__DEFAULTS__TOP_P": "0.5"}, gateway={"port": 0})
    assert row(of, "agents.defaults.max_tokens") == SettingsRow(
        *("agents.defaults.max_tokens", "whole", ABOUT["agents.defaults.max_tokens"], 5, 8192, True),
        *("file", "config.toml, line 4"),
        least=1.0,
    )
    assert row(of, "agents.defaults.top_p") == SettingsRow(
        *("agents.defaults.top_p", "number", ABOUT["agents.defaults.top_p"], 0.5, None, True),
        *("environment", "EVERLOOP_AGENTS__DEFAULTS__TOP_P"),
        optional=True,
        least=0.0,
        most=1.0,
    )
    assert row(of, "gateway.port").source == "start"
    assert row(of, "tools.approvals").options == ("allow", "ask", "deny")
    kinds = {row(of, key).kind for key in ("tools.policy", "tools.disabled", "gateway.behind_proxy", "workspace")}
    assert kinds == {"rows", "list", "switch", "text"}


def test_a_secret_is_never_told(tmp_path: Path):
    of = book(tmp_path)
    assert row(of, "providers.openai.api_key") == SettingsRow(
        *("providers.openai.api_key", "text", ABOUT["providers.<name>.api_key"], None, None, True),
        *("file", "config.toml, line 7"),
        secret=True,
    )
    assert "sk-123" not in repr(of.read().rows)


def test_a_change_is_written_and_the_rest_stays(tmp_path: Path):
    of = book(tmp_path)
    os.chmod(tmp_path / "config.toml", 0o640)
    draft = of.draft({"agents.defaults.model": "groq/x", "models": {"fast": {"model": "groq/y"}}}, of.read().version)
    of.write(draft)
    text = FILE.replace("'openai/gpt-5'", '"groq/x"') + '\n[models.fast]\nmodel = "groq/y"\n'
    assert (tmp_path / "config.toml").read_text() == text
    assert (tmp_path / "config.toml").stat().st_mode & 0o777 == 0o640
    assert load(tmp_path, {}) == draft.edition.settings == of.read().settings
    assert draft.edition.settings.models == {"fast": Preset("groq/y")}
    assert draft.paths == (("agents", "defaults", "model"), ("models", "fast", "model"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.toml"]


def test_null_takes_a_setting_out(tmp_path: Path):
    of = book(tmp_path)
    of.write(of.draft({"agents.defaults.max_tokens": None, "providers.openai": None}))
    assert (tmp_path / "config.toml").read_text() == "# mine\n[agents.defaults]\nmodel = 'openai/gpt-5'\n\n"


def test_a_home_without_a_file_gets_one_for_its_owner_only(tmp_path: Path):
    of = SettingsEditor(tmp_path / "new", {})
    of.write(of.draft({"gateway.port": 1}))
    assert (tmp_path / "new" / "config.toml").read_text() == "[gateway]\nport = 1\n"
    assert (tmp_path / "new" / "config.toml").stat().st_mode & 0o777 == 0o600


def test_a_file_in_json_stays_one_and_a_link_stays_a_link(tmp_path: Path):
    (tmp_path / "dotfiles.json").write_text('{"agents": {"defaults": {"maxTokens": 1}}}')
    (tmp_path / "config.json").symlink_to("dotfiles.json")
    of = SettingsEditor(tmp_path, {})
    of.write(of.draft({"agents.defaults.max_tokens": 2}))
    assert load(tmp_path, {}).agents.defaults.max_tokens == 2
    assert (tmp_path / "config.json").is_symlink()


@pytest.mark.parametrize(
    "asked, sentence",
    [
        ({"agents.defaults.max_tokens": 0}, "agents.defaults.max_tokens must be a whole number of at least 1"),
        ({"agents": {"defaults": {"max_tokens": "5"}}},
         "agents.defaults.max_tokens must be a whole number of at least 1"),
        ({"tools.approvals": "maybe"}, 'tools.approvals must be "allow" or "ask" or "deny"'),
        ({"agents.defaults.modle": "x"}, "there is no setting agents.defaults.modle; did you mean model?"),
        ({"agents.defaults.model.x": 1},
         "there is no setting agents.defaults.model.x; agents.defaults.model is one by itself"),
        ({"agents": None}, "agents is a table of settings; name those that are to be changed"),
        ({"agents.defaults": 3}, "agents.defaults is a table of settings; name those that are to be changed"),
        ({"channels": {}}, "channels is changed in the settings file itself, and not here"),
        ({"agents.defaults.system_prompt": "${HOME}"},
         "agents.defaults.system_prompt has a ${…} in it, which can only be written in the file itself"),
        ({"providers.openai.api_key": "sk-456"}, "providers.openai.api_key: keys are kept in the vault: everloop "
         "models key set openai, or PUT /api/keys/openai"),
        ({"agents.defaults.top_p": 0.1}, "agents.defaults.top_p is set by the environment variable "
         "EVERLOOP_AGENTS__DEFAULTS__TOP_P; change it there"),
        ({"gateway": {"port": 1}}, "gateway.port was given when the program was started; start it without that first"),
        ({"workspace": "x"}, "workspace names a file or a folder of this machine, and is only changed by hand: edit "
         "config.toml in the home"),
        ({"a b": 1}, "'a b' is not the name of a setting"),
        ({"models": {"fast": {"modell": 1}}}, "there is no setting models.fast.modell; did you mean model?"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_its_name_and_nothing_is_written(tmp_path: Path, asked: Any, sentence: str):
    of = book(tmp_path, environ={"EVERLOOP_AGENTS__DEFAULTS__TOP_P": "0.5"}, gateway={"port": 0})
    with pytest.raises(SettingsError) as refused:
        of.draft(asked)
    assert str(refused.value) == sentence
    assert (tmp_path / "config.toml").read_text() == FILE


def test_of_two_who_change_the_same_file_the_second_is_told(tmp_path: Path):
    of = book(tmp_path)
    seen = of.read().version
    first, second = of.draft({"gateway.port": 1}, seen), of.draft({"gateway.port": 2}, seen)
    of.write(first)
    with pytest.raises(SettingsMoved):
        of.write(second)
    with pytest.raises(SettingsMoved):
        of.draft({"gateway.port": 3}, seen)
    assert load(tmp_path, {}).gateway.port == 1


def test_all_of_it_is_what_the_settings_are(tmp_path: Path):
    of = book(tmp_path)
    assert of.read().settings == load(tmp_path, {}) != Settings()
    assert of.read().settings.providers.accounts == {"openai": AccountSection("sk-123")}
