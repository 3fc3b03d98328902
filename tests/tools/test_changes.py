"""What a file held before a change is kept, found again, and changed only if it is what the model believes."""

import asyncio
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from everloop.core.tool import FileChange
from everloop.errors import StoreFull, ToolError
from everloop.files.folder import Folder
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.tools.changes import LARGEST_KEPT, Changes
from everloop.tools.files import workspace_tools
from everloop.tools.workspace import Workspace
from everloop.tools.write_file import write_file_tool

FIRST = CallContext(key="t:1:0", thread="t", session="cli:direct", user="ann")
LATER = CallContext(key="t:2:0", thread="t", session="cli:direct", user="ann")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def files(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "files")


@pytest.fixture
def tools(root: Path, files: Folder) -> dict[str, Tool]:
    return {tool.spec.name: tool for tool in workspace_tools(root, files)}


def sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()


async def refusal(tool: Tool, **args: object) -> str:
    with pytest.raises(ToolError) as caught:
        await tool.run(args, LATER)
    return str(caught.value)


async def test_every_change_can_be_taken_back(root: Path, files: Folder, tools: dict[str, Tool]):
    """What an undo does: read the log from its end, and put back what was before."""
    steps = [
        ("write_file", {"path": "a.txt", "content": "one\n"}),
        ("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "two"}),
        ("create_document", {"path": "b.md", "content": "# B"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+three\n"
                                  "*** Delete File: b.md\n*** Add File: c/d.txt\n+new\n*** End Patch"}),
    ]  # fmt: skip
    states, log = [], []
    for number, (name, args) in enumerate(steps):
        states.append(tree(root))
        context = CallContext(key=f"t:{number}:0", thread="t", session="cli:direct", user="ann")
        log.append(await tools[name].run(args, context))
    assert tree(root) == {"a.txt": "three\n", "c/d.txt": "new\n"}
    for said, before in reversed(list(zip(log, states, strict=True))):
        for change in reversed(said.changes):
            path = root / change.path
            assert change.now == ("gone" if not path.exists() else sha(path.read_text())[:12])
            if change.before == "new":
                path.unlink()
            else:
                path.write_bytes(await files.get("ann", change.before))
        assert tree(root) == before


def tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


async def test_what_was_before_belongs_to_who_changed_it(root: Path, files: Folder, tools: dict[str, Tool]):
    (root / "a.txt").write_text("private")
    (change,) = (await tools["write_file"].run({"path": "a.txt", "content": "x"}, FIRST)).changes
    assert await files.get("ann", change.before) == b"private"
    with pytest.raises(FileNotFoundError):
        await files.get("bob", change.before)


async def test_what_is_too_large_is_not_kept_and_that_is_said(root: Path, tools: dict[str, Tool], tmp_path: Path):
    with open(root / "big", "wb") as file:  # noqa: ASYNC230
        file.truncate(LARGEST_KEPT + 1)
    said = await tools["write_file"].run({"path": "big", "content": "x"}, FIRST)
    assert said == Shown("Wrote 1 bytes to big.", changes=(FileChange("big", "not kept", sha("x")[:12]),))
    assert not (tmp_path / "files").exists()


async def test_what_cannot_be_kept_is_not_changed(root: Path):
    class Full:
        async def put(self, owner: str, content: bytes, name: str) -> str:
            raise StoreFull("no room")

        async def get(self, owner: str, ref: str) -> bytes:
            raise FileNotFoundError

    (root / "a.txt").write_text("old")
    write = write_file_tool(Changes(Workspace(root), Full()))
    assert await refusal(write, path="a.txt", content="new") == (
        "what 'a.txt' holds could not be kept, so it was not changed (no room)"
    )
    assert (root / "a.txt").read_text() == "old"


@pytest.mark.parametrize("path", ["a] b.txt", "x | y", "[before: new]", "a\u2028b", "ж.txt"])
async def test_a_strange_name_is_told_as_it_is(tools: dict[str, Tool], path: str):
    said = await tools["write_file"].run({"path": path, "content": "x"}, FIRST)
    assert said == Shown(f"Wrote 1 bytes to {path}.", changes=(FileChange(path, "new", sha("x")[:12]),))


class TestExpectedSha:
    @pytest.fixture(autouse=True)
    def _file(self, root: Path) -> None:
        (root / "a.txt").write_text("old")

    @pytest.mark.parametrize(
        ("path", "expected", "sentence"),
        [
            ("a.txt", "", f"'a.txt' already exists (its sha is {sha('old')[:12]}); leave expected_sha out"),
            ("a.txt", sha("other"), f"'a.txt' is not what was expected (its sha is {sha('old')[:12]}): read it again"),
            ("a.txt", sha("other")[:12], "'a.txt' is not what was expected"),
            ("a.txt", sha("old")[:11], "expected_sha is at least 12 digits of a sha256"),
            ("a.txt", "not hexadecimal", "expected_sha is at least 12 digits of a sha256"),
            ("b.txt", sha("old"), "there is no 'b.txt', so its sha is not"),
        ],
    )
    async def test_what_is_not_expected_is_left_alone(
        self, root: Path, tools: dict[str, Tool], path: str, expected: str, sentence: str
    ):
        assert sentence in await refusal(tools["write_file"], path=path, content="new", expected_sha=expected)
        if path == "a.txt" and expected:
            said = await refusal(tools["edit_file"], path=path, old_text="old", new_text="new", expected_sha=expected)
            assert sentence in said
        assert tree(root) == {"a.txt": "old"}

    @pytest.mark.parametrize("expected", [sha("old"), sha("old")[:12], sha("old").upper(), None])
    async def test_what_is_expected_is_changed(self, root: Path, tools: dict[str, Tool], expected: str | None):
        args = {"path": "a.txt", "old_text": "old", "new_text": "new", "expected_sha": expected}
        await tools["edit_file"].run(args, FIRST)
        assert tree(root) == {"a.txt": "new"}

    async def test_a_second_run_is_no_surprise(self, root: Path, tools: dict[str, Tool]):
        for path, expected in (("a.txt", sha("old")), ("b.txt", "")):
            args = {"path": path, "content": "new", "expected_sha": expected}
            first = await tools["write_file"].run(args, FIRST)
            assert await tools["write_file"].run(args, FIRST) == first
            assert await tools["write_file"].run(args, LATER) == f"{path} already holds this; nothing was changed."
        assert tree(root) == {"a.txt": "new", "b.txt": "new"}


async def test_a_killed_attempt_is_undone_from_what_the_next_one_says(root: Path, files: Folder):
    """The process dies after the change, before anyone was told; the call is run again."""
    (root / "a.txt").write_text("old")
    code = """
import asyncio, os, signal, sys
from pathlib import Path
from everloop.ports.tools import CallContext
from everloop.files.folder import Folder
from everloop.tools.files import workspace_tools
root = Path(sys.argv[1])
tools = {tool.spec.name: tool for tool in workspace_tools(root, Folder(root.parent / "files"))}
async def main():
    context = CallContext(key="t:1:0", thread="t", session="s", user="ann")
    if sys.argv[2] == "edit_file":
        args = {"path": "a.txt", "old_text": "old", "new_text": "new"}
    else:
        args = {"path": "a.txt", "content": "new"}
    await tools[sys.argv[2]].run(args, context)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    tools = {tool.spec.name: tool for tool in workspace_tools(root, files)}
    for name, args in (
        ("write_file", {"path": "a.txt", "content": "new"}),
        ("edit_file", {"path": "a.txt", "old_text": "old", "new_text": "new"}),
    ):
        (root / "a.txt").unlink()
        (root / "a.txt").write_text("old")
        ran = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code, str(root), name])
        assert ran.returncode == -signal.SIGKILL
        assert (root / "a.txt").read_text() == "new"
        (change,) = (await tools[name].run(args, FIRST)).changes
        assert (change.path, change.now) == ("a.txt", sha("new")[:12])
        assert await files.get("ann", change.before) == b"old"


async def test_without_marks_on_files_nothing_is_changed_twice(root: Path, tools: dict[str, Tool]):
    """Not every file system can hold one; then it is only not known what was before."""
    args = {"path": "a.txt", "content": "new"}
    await tools["write_file"].run(args, FIRST)
    os.removexattr(root / "a.txt", "user.everloop.before")
    assert await tools["write_file"].run(args, FIRST) == "a.txt already holds this; nothing was changed."
