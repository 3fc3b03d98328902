"""A folder is known by what it is; a command that was allowed in one begins in no other, however names are swapped."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from everloop.errors import ToolError
from everloop.tools.exec import Shell, exec_tools
from everloop.tools.ground import grounds_of, identity_of
from everloop.tools.sandbox.commands import SandboxedCommands
from everloop.tools.sandbox.port import CommandLimits, CommandSpec, CommandView
from everloop.tools.sandbox.view import environment
from everloop.tools.workspace import Workspace

from .sandbox_helpers import NOBODY, World, context, run_once, world


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("ws/site/below", "ws/secret", "outside"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "ws"


def identity(path: Path) -> str:
    fd = os.open(path, os.O_RDONLY)
    try:
        return identity_of(fd)
    finally:
        os.close(fd)


def names(root: Path, path: str) -> list[str]:
    return [ground.name for ground in grounds_of(Workspace(root), path)]


@pytest.mark.parametrize(
    ("path", "found"),
    [(".", [""]), ("", [""]), ("site", ["", "site"]), ("./site//below/", ["", "site", "site/below"])],
)
def test_a_folder_comes_after_all_above_it(root: Path, path: str, found: list[str]):
    grounds = grounds_of(Workspace(root), path)
    assert [ground.name for ground in grounds] == found
    assert [ground.identity for ground in grounds] == [identity(root / name) for name in found]


def test_a_folder_behind_a_link_is_where_it_really_is(root: Path):
    (root / "site/link").symlink_to("../secret")
    (root / "way").symlink_to("site")
    assert names(root, "site/link") == ["", "secret"]
    assert names(root, "way/below") == ["", "site", "site/below"]


def test_an_absolute_path_into_the_workspace_is_the_same_folder(root: Path):
    assert grounds_of(Workspace(root), str(root / "site")) == grounds_of(Workspace(root), "site")


@pytest.mark.parametrize("target", ["../outside", "/etc", "loop"])
def test_what_leads_out_or_nowhere_is_no_folder(root: Path, target: str):
    (root / "loop").symlink_to(target)
    with pytest.raises(ToolError):
        grounds_of(Workspace(root), "loop")


def test_a_folder_whose_name_cannot_be_shown_is_none_to_be_named(root: Path):
    os.mkdir(os.path.join(os.fsencode(root), b"\xff\x1b[2J"))
    os.symlink(b"\xff\x1b[2J", os.path.join(os.fsencode(root), b"way"))
    assert grounds_of(Workspace(root), "way") == ()


def test_a_folder_made_anew_is_another_even_with_the_same_number(root: Path):
    """Where the system tells when a folder was made; else the number alone has to tell them apart."""
    before, number = identity(root / "site/below"), (root / "site/below").stat().st_ino
    for _ in range(200):
        (root / "site/below").rmdir()
        (root / "site/below").mkdir()
        if (root / "site/below").stat().st_ino == number:
            break
    assert identity(root / "site/below") != before


WAYS = [("bwrap", os.geteuid()), ("bwrap", NOBODY), ("landlock", os.geteuid()), ("none", os.geteuid())]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way[0]}-{way[1]}")
def place(request: pytest.FixtureRequest) -> Iterator[World]:
    with world(*request.param) as made:
        for name in ("site", "secret"):
            (made.workspace / name).mkdir()
        made.own(made.workspace)
        yield made


def job_in(place: World, folder: str, ground: str) -> CommandSpec:
    argv = ("/bin/sh", "-c", "pwd; touch mark")
    hidden = () if place._way == "landlock" else (place.home,)
    view = structs.replace(place.job().view, hidden=hidden)
    return structs.replace(place.job(*argv), view=view, folder=place.workspace / folder, ground=ground)


def marks(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("mark"))


async def test_a_command_begins_in_the_folder_that_it_was_allowed_in(place: World):
    ground = identity(place.workspace / "site")
    outcome = await run_once(place.commands(), job_in(place, "site", ground))
    assert (outcome.code, outcome.output, marks(place.workspace)) == (0, f"{place.workspace}/site\n", ["site/mark"])


@pytest.mark.parametrize("link", [True, False])
async def test_a_folder_that_took_its_name_after_the_last_look_is_not_run_in(place: World, link: bool):
    """Between our look at the folder and the start of the command: as a command in the background could do."""
    job = job_in(place, "site", identity(place.workspace / "site"))
    (place.workspace / "site").rename(place.workspace / "moved")
    if link:
        (place.workspace / "site").symlink_to("secret")
    else:
        (place.workspace / "secret").rename(place.workspace / "site")
    outcome = await run_once(place.commands(), job)
    assert (outcome.code, marks(place.workspace)) == (126, [])
    assert "not run: the folder is not the one that was allowed" in outcome.stderr


async def test_without_a_folder_that_was_allowed_any_will_do(place: World):
    """Which shows that it is the look at it that keeps the command from running."""
    job = job_in(place, "site", "")
    (place.workspace / "site").rename(place.workspace / "moved")
    (place.workspace / "site").symlink_to("secret")
    outcome = await run_once(place.commands(), job)
    assert (outcome.code, marks(place.workspace)) == (0, ["secret/mark"])


async def test_a_tool_is_told_where_it_was_allowed_and_goes_nowhere_else(root: Path):
    shell = Shell(SandboxedCommands(root.parent / "spool"), CommandView(root), environment({}), CommandLimits())
    run = exec_tools(shell)[0]
    assert run.ground is not None
    assert run.ground({"command": "ls", "cwd": "site"}) == grounds_of(Workspace(root), "site")
    there = structs.replace(context(1), ground=identity(root / "secret"))
    with pytest.raises(ToolError, match="'site' is not the folder any more that was allowed"):
        await run.run({"command": "touch mark", "cwd": "site"}, there)
    assert marks(root) == []
