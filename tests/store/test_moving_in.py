"""Moving in where the store is PostgreSQL: the same comes as into SQLite, and once."""

from pathlib import Path

import pytest
from tests.moving.foreign_homes import FIXTURES, chatgpt_export, claude_export, openclaw_home
from tests.store.conftest import PostgresHome

from everloop.app.moving import open_mover
from everloop.app.records import open_records


def source_in(folder: Path, kind: str) -> Path:
    match kind:
        case "nanobot":
            return FIXTURES / "nanobot"
        case "openclaw":
            return openclaw_home(folder)
        case "chatgpt":
            return chatgpt_export(folder / "export.zip")
    return claude_export(folder / "claude")


async def moved(home: Path, kind: str, source: Path) -> tuple[list[str], list[str], dict[str, int], list[str]]:
    async with open_mover(home, kind, source) as mover:
        report = await mover.move()
    async with open_records(home) as records:
        titles = [each.title for each in await records.store.conversations("owner")]
    return [each.name for each in report.taken], report.left, report.there, sorted(titles)


@pytest.mark.parametrize("kind", ["nanobot", "openclaw", "chatgpt", "claude"])
async def test_the_same_comes_into_postgres_as_into_sqlite(kind: str, tmp_path: Path, postgres_home: PostgresHome):
    source = source_in(tmp_path, kind)
    files, server = tmp_path / "files", tmp_path / "server"
    server.mkdir()
    (server / "config.toml").write_text(f'[store]\nurl = "{postgres_home.url}"\n')
    assert await moved(server, kind, source) == await moved(files, kind, source)
    taken, _, there, titles = await moved(server, kind, source)
    assert (taken, bool(there), bool(titles)) == ([], True, True)
    assert not (server / "everloop.db").exists()
