"""everloop's home is out of reach of tools wherever it lies: for commands in both ways of confining, as oneself and as
another user, and for everything that opens files in the workspace.

Each attack is also made on a folder that is not the home, where it must succeed: so it is known to work.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.descriptors import open_descriptors

import everloop
from everloop.app.tools import Toolset, build_tools
from everloop.bus.local import LocalBus
from everloop.core.tool import FileChange
from everloop.errors import SettingsError, ToolError
from everloop.files.folder import Folder
from everloop.settings import load
from everloop.testing import Call, Say, ScriptedModel, Shown
from everloop.tools.bootstrap import Bootstrap
from everloop.tools.home import Home
from everloop.tools.sandbox.bwrap import Bubblewrap
from everloop.tools.sandbox.port import SCRIPT, CommandSpec, CommandView, Outcome
from everloop.tools.sandbox.view import environment, python
from everloop.tools.workspace import Workspace

from .sandbox_helpers import NOBODY, TOKEN, World, context, run_once, world

EXCHANGE = """
import ctypes, os
os.makedirs("other/deep/everloop")
number = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
ctypes.CDLL(None).syscall(number, -100, b"apps", -100, b"other", 2)
"""

# Each leaves the home at another path, or another folder at its path, or reads it where it is.
ATTACKS = (
    "mv apps moved",
    "mv apps moved; mkdir -p apps/deep/everloop; echo decoy > apps/deep/everloop/config.toml",
    "mv apps/deep apps/moved",
    "mv apps/deep moved",
    "mv apps/deep/everloop moved",
    "mv apps apps2; ln -s apps2 apps; mv apps2/deep apps2/deeper",
    "rm -rf apps",
    "rm -rf apps/deep/everloop; rmdir apps/deep apps",
    "chmod 700 apps/deep/everloop && mv -T apps/deep/everloop everloop",
    f"{python()[0]} -c {shlex.quote(EXCHANGE)}",
    "echo decoy > apps/deep/everloop/config.toml",
    "rm apps/deep/everloop/config.toml",
    "cp -a apps copied; cat copied/deep/everloop/config.toml",
    "tar cf all.tar apps; strings all.tar",
    "ln -s apps/deep/everloop link; cat link/config.toml",
    "ln apps/deep/everloop/config.toml hard; cat hard",
    "cat apps/deep/everloop/config.toml",
    "cd apps/deep/everloop && cat vault.key",
    "cat /proc/self/cwd/apps/deep/everloop/config.toml",
    "cat /proc/1/root$PWD/apps/deep/everloop/config.toml",
    "exec 9< apps/deep/everloop; cat /proc/self/fd/9/config.toml",
)
# These fail whatever they aim at: a command may neither mount nor make namespaces.
HOPELESS = (
    "umount apps/deep/everloop; umount -l apps; mount --bind apps/deep apps",
    "unshare -rm umount apps/deep/everloop; unshare -rm cat apps/deep/everloop/config.toml",
)
LOOK = f"grep -rsa {TOKEN} . ; find . -inum {{inode}} -exec cat {{{{}}}} +"


def all_said(outcome: Outcome) -> str:
    return outcome.stderr + outcome.output


class Apps:
    """A person's folder, which is the workspace, with a home deep in it and beside it a folder that is like it."""

    def __init__(self, place: World) -> None:
        self.place = place
        self.workspace = place.base / "person"
        self.home, self.like = self.workspace / "apps/deep/everloop", self.workspace / "like/deep/everloop"
        for folder, text in ((self.home / "spool", TOKEN), (self.like / "spool", "alike")):
            folder.mkdir(parents=True)
            for name in ("config.toml", "vault.key"):
                (folder.parent / name).write_text(f"{text}\n")
        (self.workspace / "apps/deep/mine").mkdir()
        (self.workspace / "apps/deep/mine/note").write_text("mine\n")
        place.own(self.workspace)

    def state(self, home: Path) -> tuple[object, ...]:
        """What must not change."""
        files = (home / name for name in ("config.toml", "vault.key")) if home.is_dir() else ()
        found = [path.read_text() if path.exists() else None for path in files]
        return (home.stat().st_ino if home.exists() else None, home.is_symlink(), *found)

    async def run(self, command: str, number: int) -> Outcome:
        view = CommandView(self.workspace, hidden=(self.home,))
        job = CommandSpec(("/bin/bash", "-c", command), view, self.workspace, environment({}))
        return await run_once(self.place.commands(spool=self.home / "spool"), job, number)


@pytest.fixture(params=["self", "nobody"])
def uid(request: pytest.FixtureRequest) -> int:
    return os.geteuid() if request.param == "self" else NOBODY


class TestDeepInTheWorkspace:
    async def test_no_command_reads_moves_or_replaces_it(self, uid: int) -> None:
        with world("bwrap", uid) as place:
            apps = Apps(place)
            before, said = apps.state(apps.home), []
            look = LOOK.format(inode=(apps.home / "config.toml").stat().st_ino)
            for number, attack in enumerate((*ATTACKS, *HOPELESS)):
                said.append(all_said(await apps.run(f"{attack}\n{look}", 2 * number + 1)))
                said.append(all_said(await apps.run(look, 2 * number + 2)))
                assert apps.state(apps.home) == before, attack
            assert [text for text in said if TOKEN in text] == []

    async def test_what_is_not_the_home_falls_to_each_of_these_attacks(self, uid: int) -> None:
        """Negative control, in the same sandbox: on a folder that is just like it."""
        with world("bwrap", uid) as place:
            apps, failed = Apps(place), []
            for number, attack in enumerate(ATTACKS):
                before = apps.state(apps.like)
                outcome = await apps.run(attack.replace("apps", "like"), number + 1)
                if apps.state(apps.like) == before and "alike" not in all_said(outcome):
                    failed.append((attack, all_said(outcome)))
                for path in apps.workspace.iterdir():
                    if path.name != "apps":
                        path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)
                apps.like.mkdir(parents=True)
                for name in ("config.toml", "vault.key"):
                    (apps.like / name).write_text("alike\n")
                place.own(apps.workspace)
            assert failed == []

    async def test_what_lies_beside_it_can_be_used_as_ever(self, uid: int) -> None:
        with world("bwrap", uid) as place:
            command = (
                "cat apps/deep/mine/note; mv apps/deep/mine apps/yours && echo ours > apps/deep/new; cat apps/*/n*"
            )
            outcome = await Apps(place).run(command, 1)
            assert (outcome.code, all_said(outcome)) == (0, "mine\nours\nmine\n")

    async def test_a_folder_that_its_path_only_passes_is_held_too(self) -> None:
        """`x/..` is another folder when x has become a link; even if the home lies elsewhere."""
        with world("bwrap", os.geteuid()) as place:
            apps = Apps(place)
            (apps.workspace / "x").mkdir()
            home = apps.workspace / "x/../../home"
            view = CommandView(apps.workspace, hidden=(home,))
            job = CommandSpec(
                ("/bin/bash", "-c", "mv x y; ln -s apps/deep x; ls -d x y"), view, view.workspace, environment({})
            )
            said = all_said(await run_once(place.commands(), job))
            assert said.startswith("mv: cannot move 'x' to 'y': Device or resource busy\n")
            assert (home.samefile(place.home), (apps.workspace / "x").is_symlink()) == (True, False)
            view = CommandView(apps.workspace, hidden=(place.home,))
            await run_once(place.commands(), structs.replace(job, view=view), 2)
            assert (apps.workspace / "y").is_dir()  # negative control

    async def test_two_commands_at_once_do_not_free_each_other(self) -> None:
        """One that runs in the background holds the folders that another would rename."""
        with world("bwrap", os.geteuid()) as place:
            apps = Apps(place)
            view = CommandView(apps.workspace, hidden=(apps.home,))
            wait = "until [ -e go ]; do sleep 0.02; done; mv apps moved; touch done"
            job = CommandSpec(("/bin/bash", "-c", wait), view, apps.workspace, environment({}), background=True)
            commands = place.commands(spool=apps.home / "spool")
            await commands.run(context(1), job)
            command = "touch go; until [ -e done ]; do sleep 0.02; done; mv apps moved; ls -d apps moved"
            job = structs.replace(job, argv=("/bin/bash", "-c", command), background=False)
            said = all_said(await commands.run(context(2), job))
            await commands.close()
            assert said == (
                "mv: cannot move 'apps' to 'moved': Device or resource busy\n"
                "ls: cannot access 'moved': No such file or directory\napps\n"
            )

    async def test_landlock_refuses_every_command(self, uid: int) -> None:
        with world("landlock", uid) as place:
            apps = Apps(place)
            with pytest.raises(ToolError, match=r"everloop lies in .*/person, which commands see, and only bubblewrap"):
                await apps.run("true", 1)


class TestOwnCode:
    """everloop, and the environment that it runs in, where these lie in the workspace."""

    CHANGES = (
        "echo evil >> lib/env/bin/everloop",
        "echo evil > lib/env/new.py",
        "rm lib/env/bin/everloop",
        "chmod 777 lib/env/bin/everloop",
        "ln lib/env/bin/everloop hard; echo evil > hard",
        "mv lib/env lib/other; mkdir -p lib/env/bin; echo evil > lib/env/bin/everloop",
        "mv lib gone; mkdir -p lib/env/bin; echo evil > lib/env/bin/everloop",
        "rm -r lib",
    )

    @pytest.mark.parametrize("home", ["home", "elsewhere"])  # the workspace lies in the first
    async def test_can_be_run_by_commands_and_not_changed(self, uid: int, home: str) -> None:
        assert await self.changes(uid, home, "lib/env") == {}

    async def test_what_is_not_that_can_be_changed_in_each_of_these_ways(self, uid: int) -> None:
        assert [*await self.changes(uid, "home", "other/env")] == [*self.CHANGES]

    async def changes(self, uid: int, home: str, own: str) -> dict[str, str]:
        """Which of the attempts have changed something, and what was said then."""
        done: dict[str, str] = {}
        for number, attempt in enumerate(self.CHANGES):
            with world("bwrap", uid) as place:
                self.build_tools(place)
                (place.base / "elsewhere").mkdir()
                before = self.state(place)
                way = Bubblewrap(str(place.bwrap), [str(place.workspace / own)])
                view = CommandView(place.workspace, hidden=(place.base / home,))
                command = f"lib/env/bin/everloop; echo mine > note; {attempt}"
                job = CommandSpec(("/bin/bash", "-c", command), view, place.workspace, environment({}))
                outcome = await run_once(place.commands(confined=way), job, number)
                assert (outcome.output, (place.workspace / "note").read_text()) == ("run\n", "mine\n")
                if self.state(place) != before:
                    done[attempt] = outcome.stderr
        return done

    def build_tools(self, place: World) -> None:
        program = place.workspace / "lib/env/bin/everloop"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho run\n")
        program.chmod(0o755)
        (place.workspace / "other/env").mkdir(parents=True)
        place.own(place.workspace)

    def state(self, place: World) -> dict[str, tuple[int, bytes]]:
        files = [path for path in sorted((place.workspace / "lib").rglob("*")) if path.is_file()]
        return {str(path): (path.stat().st_mode, path.read_bytes()) for path in files}


class TestInAFolderThatCommandsRead:
    """As below /usr, or below the folders of a Python of one's own."""

    def job(self, place: World, command: str, hidden: bool, script: str | None = None) -> CommandSpec:
        view = CommandView(place.workspace, (place.base,), (place.home,) if hidden else ())
        argv = ("/bin/bash", "-c", command) if script is None else (python()[0], SCRIPT)
        return CommandSpec(argv, view, place.workspace, environment({}), script=script)

    async def test_there_is_nothing_but_the_workspace(self, uid: int) -> None:
        with world("bwrap", uid) as place:
            command = f"cat {place.home}/config.toml; ls -A {place.home}; touch {place.home}/x; echo hi > new; cat new"
            said = all_said(await run_once(place.commands(), self.job(place, command, hidden=True)))
            assert said.replace(str(place.home), "HOME") == (
                "cat: HOME/config.toml: No such file or directory\n"
                "touch: cannot touch 'HOME/x': Read-only file system\nworkspace\nhi\n"
            )
            script = f"import os; print(os.listdir({str(place.home)!r}), os.listdir('.'))"
            job = self.job(place, "", hidden=True, script=script)
            assert all_said(await run_once(place.commands(), job, 2)) == "['workspace'] ['new']\n"
            said = all_said(await run_once(place.commands(), self.job(place, command, hidden=False), 3))
            assert f"{TOKEN} of config.toml\n" in said  # negative control

    async def test_landlock_refuses_every_command(self, uid: int) -> None:
        with world("landlock", uid) as place:
            with pytest.raises(ToolError, match=r"home lies in .*, which commands see, and only bubblewrap"):
                await run_once(place.commands(), self.job(place, "true", hidden=True))
            job = structs.replace(self.job(place, "echo on", hidden=True), view=CommandView(place.workspace))
            assert all_said(await run_once(place.commands(), job)) == "on\n"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can put a home below /usr")
    @pytest.mark.parametrize("way", ["bwrap", "landlock"])
    async def test_below_usr_it_is_hidden_or_every_command_refused(self, way: str) -> None:
        home = Path(f"/usr/local/share/everloop-test-{os.getpid()}/home")
        with world(way, os.geteuid()) as place:
            try:
                (home / "workspace").mkdir(parents=True)
                (home / "config.toml").write_text(TOKEN)
                command = f"cat {home}/config.toml /usr/../{home}/config.toml; ls {home} {home.parent}; pwd"
                view = CommandView(home / "workspace", hidden=(home,))
                job = CommandSpec(("/bin/bash", "-c", command), view, view.workspace, environment({}))
                if way == "landlock":
                    with pytest.raises(ToolError, match="lies in /usr, which commands see"):
                        await run_once(place.commands(), job)
                else:
                    said = all_said(await run_once(place.commands(), job))
                    assert TOKEN not in said
                    assert said.endswith(f"{home.parent}:\nhome\n\n{home}:\nworkspace\n{home}/workspace\n")
            finally:
                shutil.rmtree(home.parent)


def everything_in(folder: Path) -> dict[str, str]:
    return {str(path): path.read_text() if path.is_file() else "" for path in folder.rglob("*")}


def put_decoy(home: Path) -> None:
    home.mkdir(parents=True)
    (home / "config.toml").write_text("approvals = 'allow'")


class TestFileTools:
    CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
        *(("read_file", {"path": f"{way}/config.toml"}) for way in ("apps/deep/everloop", "link", "apps/link")),
        ("read_file", {"path": "moved/config.toml"}),
        *(("read_file", {"path": path}) for path in ("straight", "chain", "AGENTS.md")),
        *(("list_dir", {"path": path}) for path in ("apps/deep/everloop", "link", "apps/deep/everloop/files")),
        ("find_files", {"path": "apps/deep/everloop", "pattern": "**"}),
        *(("grep", {"path": path, "pattern": TOKEN}) for path in ("apps/deep/everloop", "link/config.toml")),
        ("grep", {"path": "straight", "pattern": TOKEN}),
        *(("write_file", {"path": path, "content": "x"}) for path in ("apps/deep/everloop/config.toml", "straight")),
        ("write_file", {"path": "link/new/x", "content": "x"}),
        ("edit_file", {"path": "apps/deep/everloop/config.toml", "old_text": TOKEN, "new_text": "x"}),
        ("create_document", {"path": "apps/deep/everloop/a.md", "content": "x"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: apps/deep/everloop/config.toml\n*** End Patch"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: a.txt\n*** Move to: link/a.txt\n@@\n-a\n+b\n"
                                  "*** End Patch"}),
        ("exec", {"command": "true", "cwd": "apps/deep/everloop"}),
    )  # fmt: skip

    @pytest.fixture
    def home(self, tmp_path: Path) -> Path:
        home = tmp_path / "person/apps/deep/everloop"
        (home / "files").mkdir(parents=True)
        (home / "config.toml").write_text(f"# {TOKEN}\n")
        root = tmp_path / "person"
        (root / "a.txt").write_text("a\n")
        for link, target in (
            ("link", "apps/deep/everloop"), ("apps/link", "../apps/deep/everloop"), ("AGENTS.md", "straight"),
            ("straight", "apps/deep/everloop/config.toml"), ("chain", "link/../everloop/config.toml"),
        ):  # fmt: skip
            (root / link).symlink_to(target)
        return home

    def toolset(self, home: Path) -> Toolset:
        settings = load(home.parent, {}, {})
        return build_tools(home, home.parents[2], settings, Folder(home / "files"), LocalBus(), 8000)

    async def all_refused(self, toolset: Toolset) -> list[str]:
        tools, said = {tool.spec.name: tool for tool in toolset.tools}, []
        for name, args in self.CALLS:
            with pytest.raises(ToolError) as caught:
                await tools[name].run(args, context())
            said.append(str(caught.value))
        assert [text for text in said if TOKEN in text] == []
        return said

    async def test_none_sees_it(self, home: Path) -> None:
        toolset = self.toolset(home)
        before = everything_in(home)
        said = await self.all_refused(toolset)
        assert {text for text in said if "permission denied" not in text} == {"there is no 'moved/config.toml'"}
        assert everything_in(home) == before

    async def test_who_walks_passes_it_by(self, home: Path) -> None:
        tools = {tool.spec.name: tool for tool in self.toolset(home).tools}
        assert TOKEN not in await tools["grep"].run({"pattern": "."}, context())
        assert "config.toml" not in await tools["find_files"].run({"pattern": "*"}, context())

    async def test_nothing_of_it_is_kept_or_put_back_or_said_to_models(self, home: Path) -> None:
        toolset = self.toolset(home)
        change = FileChange("apps/deep/everloop/config.toml", before="new", now="")
        assert await toolset.keep(change, "ann") is None
        assert "permission denied" in await toolset.take_back(change, "key", "ann")
        assert Bootstrap(Workspace(home.parents[2], hidden=Home(home))).sections() == ()
        assert len(Bootstrap(Workspace(home.parents[2])).sections()) == 1  # negative control

    async def test_nothing_of_it_is_sent_with_a_message(self, home: Path) -> None:
        def line(shown: Shown) -> Any:
            path = shown.asked
            if path and not shown.step:
                return Call("message", {"session": "page:other", "text": "see", "files": [path]})
            return Say(shown.messages[-1].text)

        settings = {"workspace": str(home.parents[2])}
        async with everloop.open(home, settings, provider=ScriptedModel(line)) as agent:
            await agent.ask("a.txt", "page:other")
            for path in ("apps/deep/everloop/config.toml", "straight"):
                assert "permission denied" in (await agent.ask(path, "api:work")).content
            assert (await agent.ask("a.txt", "api:work")).content == "Told in page:other."

    async def test_when_a_folder_above_it_was_renamed_all_refuse(self, home: Path) -> None:
        """By a person; and a decoy is in its place."""
        toolset, root = self.toolset(home), home.parents[2]
        (root / "apps").rename(root / "gone")
        (root / "moved").symlink_to("gone/deep/everloop")
        for decoy in (False, True):
            if decoy:
                put_decoy(home)
            assert set(await self.all_refused(toolset)) == {
                f"everloop's home {home} is not the folder any more that it was at the start, so no file and no "
                "command is touched; put it back, or start everloop again"
            }
        shutil.rmtree(root / "apps")
        (root / "gone").rename(root / "apps")
        tools = {tool.spec.name: tool for tool in toolset.tools}
        assert await tools["read_file"].run({"path": "a.txt"}, context()) == "a\n"

    async def test_were_it_not_the_home_it_would_be_there(self, home: Path, tmp_path: Path) -> None:
        """Negative control: all the same ways lead there when something else is the home."""
        settings = load(tmp_path, {}, {})
        toolset = build_tools(tmp_path / "home", home.parents[2], settings, Folder(tmp_path / "f"), LocalBus(), 8000)
        tools = {tool.spec.name: tool for tool in toolset.tools}
        (home.parents[2] / "moved").symlink_to("link")
        for name, args in self.CALLS[:7]:
            assert await tools[name].run(args, context()) == f"# {TOKEN}\n"

    async def test_who_swaps_links_meanwhile_gets_nothing(self, home: Path) -> None:
        root, over = home.parents[2], threading.Event()
        (root / "open").mkdir()
        (root / "open/config.toml").write_text("open")

        def swap() -> None:
            while not over.is_set():
                for target in ("open", "apps/deep/everloop"):
                    (root / "new").symlink_to(target)
                    os.replace(root / "new", root / "door")

        swapper = threading.Thread(target=swap)
        swapper.start()
        workspace = Workspace(root, hidden=Home(home))
        found: dict[str, int] = {}
        try:
            while min(found.get("open", 0), found.get("denied", 0)) < 100:
                try:
                    with workspace.opened("door/config.toml") as (fd, _):
                        said = os.pread(fd, 100, 0).decode()
                except ToolError as error:
                    said = "denied" if "permission denied" in str(error) else "not there"
                found[said] = found.get(said, 0) + 1
        finally:
            over.set()
            swapper.join()
        assert found.keys() <= {"open", "denied", "not there"}


class TestRefusedAtTheStart:
    def sentence(self, home: Path, workspace: Path) -> str:
        settings = load(home.parent, {}, {})
        try:
            build_tools(home, workspace, settings, Folder(home.parent / "f"), LocalBus(), 8000)
        except SettingsError as error:
            return str(error)
        return ""

    def test_a_link_of_the_workspace_on_the_way_to_the_home(self, tmp_path: Path) -> None:
        """Else a command could put a folder with settings of its own in the link's place."""
        person, real = tmp_path / "person", tmp_path / "data/everloop"
        person.mkdir()
        real.mkdir(parents=True)
        (person / ".everloop").symlink_to("../data/everloop")
        (person / "way").symlink_to(tmp_path / "data")
        for link, home in ((".everloop", person / ".everloop"), ("way", person / "way/everloop")):
            assert self.sentence(home, person) == (
                f"everloop's home {home} is reached through the link {person}/{link} in the workspace, and a command "
                f"could put another in its place; set EVERLOOP_HOME to {real}, or choose another workspace"
            )
        assert self.sentence(real, person) == ""
        assert self.sentence(person / ".everloop", tmp_path / "other") == ""

    @pytest.mark.parametrize("name", ["files", "logs", "models", "run", "spool", "spool/x"])
    def test_a_workspace_among_everloops_own_files(self, tmp_path: Path, name: str) -> None:
        workspace = tmp_path / "home" / name
        workspace.mkdir(parents=True)
        (tmp_path / "link").symlink_to(workspace)
        for given in (workspace, tmp_path / "link"):
            assert self.sentence(tmp_path / "home", given) == (
                f"workspace is {given}, where everloop keeps its own files; choose another folder"
            )
        assert self.sentence(tmp_path / "home", tmp_path / "home/workspace") == ""

    def test_settings_that_really_lie_in_the_workspace(self, tmp_path: Path) -> None:
        person, home = tmp_path / "person", tmp_path / "home"
        (person / "dotfiles").mkdir(parents=True)
        (person / "dotfiles/config.toml").touch()
        home.mkdir()
        (home / "workspace").symlink_to(person)
        assert self.sentence(home, home / "workspace") == ""
        (home / "config.toml").symlink_to("../person/dotfiles/config.toml")
        assert self.sentence(home, home / "workspace") == (
            f"{home}/config.toml leads into the workspace, where commands could change what everloop reads there; put "
            "the file itself into the home, or choose another workspace"
        )
        assert self.sentence(home, tmp_path / "elsewhere") == ""

    def test_the_whole_machine_as_workspace(self, tmp_path: Path) -> None:
        assert self.sentence(tmp_path / "home", Path("/")) == (
            "/proc, which shows the processes of this machine, lies in the workspace; choose another workspace"
        )


MOUNTS = """
import json, os, subprocess, sys
from pathlib import Path
from everloop.tools.home import Home
from everloop.tools.sandbox.exposure import folders_above, why_not_there
from everloop.tools.workspace import Workspace
from everloop.errors import ToolError
base = Path(sys.argv[1])
home, person = base / "data/home", base / "person"
for folder in (home / "files", home / "workspace/sub", person / "at", base / "other/at"):
    folder.mkdir(parents=True)
(home / "config.toml").write_text("secret")
said = []
for source, at, workspace in json.loads(sys.argv[2]):
    subprocess.run(["mount", "--bind", base / source, base / at], check=True)
    said.append(why_not_there(home, base / workspace).replace(str(base), "BASE"))
    if [*folders_above(str(home), [str(base / at)])]:
        said.append(f"BASE/{at} is above the home")
    for path in (base / at).rglob("config.toml"):
        try:
            with Workspace(base / workspace, hidden=Home(home)).opened(str(path)):
                said.append(f"opened {path}")
        except ToolError as error:
            said.append(str(error).replace(str(base), "BASE"))
    subprocess.run(["umount", base / at], check=True)
print(json.dumps(said))
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root can mount")
def test_a_home_that_a_mount_shows_a_second_time_is_refused_and_not_opened(tmp_path: Path) -> None:
    cases = [
        ("data/home", "person/at", "person"),
        ("data", "person/at", "person"),
        ("data/home/files", "person/at", "person"),
        ("data", "other/at", "other/at"),
        ("data/home/files", "other/at", "other/at"),
        ("data/home", "other/at", "other/at"),
        ("data/home/workspace", "other/at", "other/at"),
        ("data/home/workspace/sub", "data/home/workspace", "data/home/workspace"),
        ("data/home", "other/at", "person"),
        ("person", "other/at", "other"),
    ]
    argv = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", MOUNTS, str(tmp_path), json.dumps(cases)]
    ran = subprocess.run(argv, capture_output=True, text=True)
    twice = (
        "everloop's home BASE/data/home, or a part of it, is also mounted at {}, where commands see it; unmount it "
        "there, or choose another workspace"
    )
    own = "workspace is BASE/other/at, where everloop keeps its own files; choose another folder"
    denied = "'BASE/{}/config.toml' may not be opened (permission denied)"
    assert ran.stderr == ""
    assert json.loads(ran.stdout) == [
        twice.format("BASE/person/at"), denied.format("person/at"),
        twice.format("BASE/person/at/home"), "BASE/person/at is above the home", denied.format("person/at/home"),
        twice.format("BASE/person/at"),
        twice.format("BASE/other/at/home"), "BASE/other/at is above the home", denied.format("other/at/home"),
        own,
        own, denied.format("other/at"),
        "",
        "",
        "", "'BASE/other/at/config.toml' lies outside the workspace; give a path relative to the workspace",
        "",
    ]  # fmt: skip


def test_its_number_is_given_to_no_other_folder_while_it_is_known(tmp_path: Path) -> None:
    """Some file systems give the number of what was removed to what is made next."""
    home = Home(tmp_path / "home")
    (tmp_path / "home").rmdir()
    for number in range(50):
        (tmp_path / f"folder{number}").mkdir()
        assert (tmp_path / f"folder{number}").stat().st_ino != home.identity[1]


def test_it_is_let_go_with_whoever_knew_it(tmp_path: Path) -> None:
    before = open_descriptors()
    known = [Home(tmp_path / "home") for _ in range(20)]
    assert open_descriptors() == before + 20
    del known
    assert open_descriptors() == before
