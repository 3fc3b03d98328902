"""What lies in a home says whose it is. Of a workspace nothing else is handed out, and what is removed is theirs."""

import os
from pathlib import Path

import everloop
from everloop.app.home_folders import DEEP, DEEPEST, LINK, OTHER, HomeFoldersOf, undeclared
from everloop.app.skills import installed_in
from everloop.cli.logbook import log_path
from everloop.core.people import Role
from everloop.files.folder import Folder
from everloop.files.inventory import FileInventory
from everloop.ports import HomeFile
from everloop.testing import Call, Calls, Say, ScriptedModel


def folders_of(home: Path) -> HomeFoldersOf:
    return HomeFoldersOf(home, home / "workspace", Folder(home / "files"), FileInventory(home / "files"))


async def test_every_folder_of_a_home_that_was_used_is_declared(tmp_path: Path):
    script = ScriptedModel([Calls(Call("exec", {"command": "echo hello"})), Say("done"), Say("hello, Anna")])
    settings = {"tools": {"exec": {"unsafe_without_sandbox": True}}}
    roles = {"web:anna": Role.USER}
    async with everloop.open(tmp_path, settings, provider=script, roles=roles) as agent:
        await agent.ask("run it", preapproved=True)
        await agent.user("web:anna").ask("hello", files=[Path(__file__)])
    log_path(tmp_path).parent.mkdir(exist_ok=True)
    (tmp_path / "everloop.db.before-3").touch()
    (tmp_path / "config.toml").touch()
    names = set(os.listdir(tmp_path))
    assert names >= {"everloop.db", "files", "people", "run", "spool", "workspace"}
    assert undeclared(names) == ""


def test_a_folder_that_nobody_has_declared_breaks_the_build_with_what_to_do():
    told = undeclared({"files", "diaries", "everloop.db-wal"})
    assert told.startswith(
        "diaries: nobody has said whose this is. Add a line for each to FOLDERS in app/home_folders.py"
    )


async def test_no_link_leads_out_of_a_workspace_and_what_is_no_file_is_named(tmp_path: Path):
    workspace = tmp_path / "people" / "web%3Aanna" / "workspace"
    deep = workspace.joinpath(*["d"] * (DEEPEST + 1))
    deep.mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (workspace / "own.txt").write_text("own")
    os.symlink(tmp_path / "secret", workspace / "link.txt")
    os.symlink(tmp_path, workspace / "folder")
    os.mkfifo(workspace / "pipe")
    folders, found = folders_of(tmp_path), dict[str, bytes | str]()
    async for file in folders.workspace("web:anna"):
        pieces = [piece async for piece in file.pieces] if file.pieces else []
        found[file.path] = b"".join(pieces) if file.pieces else file.left_out
    assert found.pop("/".join(["d"] * (DEEPEST + 1))) == DEEP
    assert found == {"own.txt": b"own", "link.txt": LINK, "folder": LINK, "pipe": OTHER}


async def test_one_persons_folders_go_and_their_lines_in_the_logs_and_nothing_that_a_link_leads_to(tmp_path: Path):
    for name in ("anna", "ben"):
        workspace = tmp_path / "people" / f"web%3A{name}" / "workspace"
        workspace.mkdir(parents=True)
        (workspace / "a.txt").write_text(name)
    os.symlink(tmp_path / "people" / "web%3Aben", tmp_path / "people" / "web%3Aanna" / "workspace" / "ben")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "everloop.log").write_text("about web:anna\nabout web:ben\nthread 12ab\n")
    (tmp_path / "logs" / "everloop.log.1").write_text("web:anna\n")
    folders = folders_of(tmp_path)
    assert await folders.count(["web:anna"]) == {"files in the workspace": 1}
    await folders.remove(["web:anna"], ["web:anna", "12ab"])
    await folders.remove(["web:anna"], ["web:anna", "12ab"])  # again, as after a kill
    assert [path.name for path in (tmp_path / "people").iterdir()] == ["web%3Aben"]
    assert (tmp_path / "people" / "web%3Aben" / "workspace" / "a.txt").read_text() == "ben"
    assert (tmp_path / "logs" / "everloop.log").read_text() == "about web:ben\n"
    assert (tmp_path / "logs" / "everloop.log.1").read_text() == ""


async def test_what_somebody_has_installed_is_handed_out_with_theirs_and_goes_with_them(tmp_path: Path):
    for person in ("web:anna", "web:ben", "owner"):
        folder = installed_in(tmp_path, person) / "greet"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"of {person}")
    folders, found = folders_of(tmp_path), dict[str, list[bytes]]()
    for person in ("web:anna", "owner", "web:nobody"):
        found[person] = [await _whole(file) async for file in folders.skills(person)]
    await folders.remove(["web:anna"], ())
    assert found == {"web:anna": [b"of web:anna"], "owner": [b"of owner"], "web:nobody": []}
    left = [installed_in(tmp_path, person).exists() for person in ("web:anna", "web:ben", "owner")]
    assert left == [False, True, True]
    assert undeclared(set(os.listdir(tmp_path))) == ""


async def _whole(file: HomeFile) -> bytes:
    assert file.pieces is not None
    return b"".join([piece async for piece in file.pieces])
