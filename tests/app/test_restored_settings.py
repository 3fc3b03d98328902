"""What a restored home has for settings: those of then, and nothing that leads to the original."""

import json
from pathlib import Path

import pytest

from everloop.app.restored_settings import own_settings
from everloop.settings import load, workspace_of

ELSEWHERE = {
    "config.toml": 'workspace = "/original"\n[store]\nurl = "postgresql://original/db"\n',
    "config.json": json.dumps({"agents": {"defaults": {"workspace": "/original", "botName": "nanobot"}}}),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_copy_has_a_workspace_and_a_database_of_its_own(name: str, tmp_path: Path):
    (tmp_path / name).write_text(ELSEWHERE[name])
    before = load(tmp_path, {})
    assert workspace_of(before, tmp_path) == Path("/original")
    told = own_settings(tmp_path, "")
    settings = load(tmp_path, {})
    assert (workspace_of(settings, tmp_path), settings.store.url) == (tmp_path / "workspace", "")
    assert len(told) == 1 + bool(before.store.url)


@pytest.mark.parametrize("files", [{"config.toml": "= ="}, {"config.toml": "", "config.json": "{}"}])
def test_settings_that_cannot_be_read_keep_nobody_from_the_rest(files: dict[str, str], tmp_path: Path):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    told, _ = own_settings(tmp_path, "postgresql://new/db")
    assert told.startswith("Its settings cannot be read, and lie in config.toml.unread")
    assert load(tmp_path, {}).store.url == "postgresql://new/db"
    assert {name: (tmp_path / f"{name}.unread").read_text() for name in files} == files
