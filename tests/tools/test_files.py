"""The file tools do what they say, inside the workspace and nowhere else."""

import asyncio
import ctypes
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.descriptors import open_descriptors
from tests.effort import in_full

from everloop.core.people import Role
from everloop.core.tool import Effect, FileChange, ToolCall, problems_of
from everloop.errors import ToolError
from everloop.files.folder import Folder
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.tools.beneath import Opener, open_in_steps, opener
from everloop.tools.edit_file import edited
from everloop.tools.files import file_tools, workspace_tools
from everloop.tools.home import Home
from everloop.tools.read_file import ByteSource, TextWindow, read_part
from everloop.tools.workspace import Workspace

CANARY = "canary-81c2"
NOT_FOUND = "old_text was not found in the file; nothing was changed."
CONTEXT = CallContext(key="t:1:0", thread="t", session="cli:direct", user="ann", role=Role.USER)
OPENERS = [pytest.param(opener(), id="kernel"), pytest.param(open_in_steps, id="steps")]


def tools_in(root: Path, open_beneath: Opener | None = None, max_chars: int = 8000) -> dict[str, Tool]:
    made = file_tools(Workspace(root, open_beneath), Folder(root.parent / "files"), max_chars)
    return {tool.spec.name: tool for tool in made}


async def refusal(tool: Tool, **args: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await tool.run(args, CONTEXT)
    return str(caught.value)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


def test_the_tools_say_what_a_second_run_does(root: Path) -> None:
    tools = workspace_tools(root, Folder(root))
    assert [(tool.spec.name, tool.spec.effect, tool.spec.local) for tool in tools] == [
        ("read_file", Effect.READ, True),
        ("write_file", Effect.IDEMPOTENT, False),
        ("edit_file", Effect.IDEMPOTENT, False),
        ("apply_patch", Effect.IDEMPOTENT, False),
        ("create_document", Effect.IDEMPOTENT, False),
        ("list_dir", Effect.READ, True),
        ("find_files", Effect.READ, False),
        ("grep", Effect.READ, False),
    ]


def test_the_model_is_shown_a_path_a_range_and_nothing_of_the_context(root: Path) -> None:
    spec = workspace_tools(root, Folder(root))[0].spec
    assert list(spec.schema["properties"]) == ["path", "offset", "limit", "column"]
    assert spec.schema["required"] == ["path"]
    assert problems_of(ToolCall("1", "read_file", '{"path": "a", "offset": 0, "column": 10000001}'), spec) == [
        "offset must be at least 1",
        "column must be at most 10000000",
    ]


class TestReading:
    async def test_a_short_file_is_shown_exactly_as_it_is(self, root: Path) -> None:
        text = "one\ntwo\r\nпять\n\n"
        (root / "a.txt").write_bytes(text.encode())
        assert await tools_in(root)["read_file"].run({"path": "a.txt"}, CONTEXT) == text

    @pytest.mark.parametrize("path", ["./a.txt", "sub//../a.txt", "{root}/a.txt", "{root}//./a.txt"])
    async def test_a_file_may_be_named_in_several_ways_but_not_upwards(self, root: Path, path: str) -> None:
        (root / "a.txt").write_text("x")
        read = tools_in(root)["read_file"]
        named = path.format(root=root)
        if ".." in path:
            assert await refusal(read, path=named) == (
                f"{named!r}: a path cannot hold '..'; give a path relative to the workspace"
            )
        else:
            assert await read.run({"path": named}, CONTEXT) == "x"

    async def test_an_absolute_path_through_a_link_to_the_workspace_is_inside_it(self, root: Path) -> None:
        (root / "a.txt").write_text("x")
        (root.parent / "nick").symlink_to("ws")
        read = tools_in(root.parent / "nick")["read_file"]
        for path in (root / "a.txt", root.parent / "nick" / "a.txt"):
            assert await read.run({"path": str(path)}, CONTEXT) == "x"

    async def test_an_empty_file_is_said_to_be_empty(self, root: Path) -> None:
        (root / "a.txt").touch()
        assert await tools_in(root)["read_file"].run({"path": "a.txt"}, CONTEXT) == "[the file is empty]"

    async def test_a_range_of_lines_says_how_to_go_on(self, root: Path) -> None:
        (root / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
        read = tools_in(root)["read_file"]
        assert await read.run({"path": "a.txt", "offset": 3, "limit": 2}, CONTEXT) == (
            "line 3\nline 4\n[lines 3-4 of 10; continue with offset=5]"
        )
        assert await read.run({"path": "a.txt", "offset": 9}, CONTEXT) == "line 9\nline 10\n[the end]"
        assert await refusal(read, path="a.txt", offset=11) == "'a.txt' has fewer than 11 lines"
        assert await refusal(read, path="a.txt", offset=2, column=9) == "line 2 of 'a.txt' has only 6 characters"

    async def test_an_answer_never_exceeds_its_limit(self, root: Path) -> None:
        (root / "lines.txt").write_text("word " * 10 + "\n" * 5000)
        (root / "line.json").write_text("[" + "1," * 50_000 + "1]")
        read = tools_in(root, max_chars=1000)["read_file"]
        for path in ("lines.txt", "line.json"):
            assert len(await read.run({"path": path}, CONTEXT)) <= 1000

    async def test_a_very_long_line_is_read_on_by_columns(self, root: Path) -> None:
        (root / "a.json").write_text("é" * 900 + "\nend\n")
        read = tools_in(root, max_chars=1000)["read_file"]
        first = await read.run({"path": "a.json"}, CONTEXT)
        assert first == "é" * 840 + "\n[line 1 goes on; continue with offset=1, column=841]"
        assert await read.run({"path": "a.json", "column": 841}, CONTEXT) == "é" * 60 + "\nend\n[the end]"

    async def test_a_large_file_is_read_in_the_middle_without_the_rest(self, root: Path) -> None:
        with open(root / "big.txt", "wb") as file:  # noqa: ASYNC230
            file.write(b"x" * 99 + b"\n")
            file.write((b"y" * 99 + b"\n") * 100_000)
            file.truncate(300 * 1024**3)
        read = tools_in(root)["read_file"]
        before = time.monotonic()
        shown = await read.run({"path": "big.txt", "offset": 100_000, "limit": 1}, CONTEXT)
        assert shown.startswith("y" * 99 + "\n[lines 100000-100000 of a file of 322122547200 bytes;")
        assert "lies beyond the first 256 MiB" in await refusal(read, path="big.txt", offset=10**9)
        assert time.monotonic() - before < 60  # reading 300 GiB takes longer

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "'a' is not text but binary data (16 bytes)"),
            (b"x" * 9000 + b"\0", "'a' is not text but binary data (9001 bytes)"),
            (b"one\ntwo \xff\n", "'a' is not UTF-8 text (line 2 holds other bytes)"),
            ("ü".encode()[:1], "'a' is not UTF-8 text (line 1 holds other bytes)"),
        ],
    )
    async def test_what_is_not_text_is_refused_in_a_sentence(self, root: Path, content: bytes, sentence: str) -> None:
        (root / "a").write_bytes(content)
        assert await refusal(tools_in(root, max_chars=20_000)["read_file"], path="a") == sentence

    async def test_a_whole_tool_result_is_read_by_its_reference(self, root: Path) -> None:
        files = Folder(root.parent / "files")
        ref = await files.put("ann", "".join(f"{n}\n" for n in range(1, 100_001)).encode(), "exec")
        read = tools_in(root)["read_file"]
        expected = "99999\n100000\n[the end]"
        own = structs.replace(CONTEXT, results=frozenset({ref}))
        assert await read.run({"path": ref, "offset": 99_999}, own) == expected
        assert await read.run({"path": ref[:20] + "…", "offset": 99_999}, own) == expected

    async def test_what_is_no_result_of_the_conversation_itself_may_be_a_strangers(self, root: Path) -> None:
        ref = await Folder(root.parent / "files").put("ann", b"Dear Sir", "letter.txt")
        assert await tools_in(root)["read_file"].run({"path": ref}, CONTEXT) == Shown("Dear Sir", origin=ref[:17])

    async def test_a_reference_of_someone_else_is_not_there(self, root: Path) -> None:
        ref = await Folder(root.parent / "files").put("bob", CANARY.encode(), "")
        read = tools_in(root)["read_file"]
        assert await refusal(read, path=ref) == f"there is no stored result {ref}"
        assert "a reference is file: and" in await refusal(read, path="file:///etc/passwd")

    async def test_a_reference_can_only_be_read(self, root: Path) -> None:
        tools = tools_in(root)
        sentence = "a file: reference is read with read_file, or brought here with load_file; give a path"
        assert await refusal(tools["write_file"], path="file:abc", content="x") == sentence
        assert await refusal(tools["edit_file"], path="file:abc", old_text="x", new_text="y") == sentence
        assert await refusal(tools["list_dir"], path="file:abc") == sentence

    async def test_a_missing_file_and_a_missing_workspace_are_said(self, root: Path) -> None:
        assert await refusal(tools_in(root)["read_file"], path="a/b") == "there is no 'a/b'"
        assert "cannot be opened (No such file" in await refusal(tools_in(root / "no")["read_file"], path="a")

    async def test_a_small_read_takes_less_than_a_fifth_of_a_millisecond(self, root: Path) -> None:
        (root / "a.txt").write_text("word " * 400)
        read = tools_in(root)["read_file"]
        fastest = 1.0
        for _ in range(200):
            before = time.perf_counter()
            await read.run({"path": "a.txt"}, CONTEXT)
            fastest = min(fastest, time.perf_counter() - before)
        assert fastest < 0.0002

    async def test_no_descriptor_is_left_open(self, root: Path) -> None:
        (root / "a.txt").write_text("x" * 200_000)
        tools = tools_in(root)
        await tools["read_file"].run({"path": "a.txt"}, CONTEXT)
        before = open_descriptors()
        for _ in range(20):
            await tools["read_file"].run({"path": "a.txt"}, CONTEXT)
            await tools["write_file"].run({"path": "b/c/d.txt", "content": "x"}, CONTEXT)
            await tools["edit_file"].run({"path": "b/c/d.txt", "old_text": "x", "new_text": "z"}, CONTEXT)
            await tools["list_dir"].run({}, CONTEXT)
            await refusal(tools["read_file"], path="no")
            await refusal(tools["list_dir"], path="a.txt")
            await refusal(tools["write_file"], path="a.txt/b", content="x")
        assert open_descriptors() == before


@given(st.text("aé\n\r😀", min_size=1, max_size=60), st.integers(1, 20), st.integers(1, 5))
def test_the_parts_of_a_text_make_up_the_text(text: str, chars: int, limit: int) -> None:
    data = text.encode()
    source = ByteSource("t", len(data), lambda at, count: data[at : at + count])
    whole, offset, column = "", 1, 1
    for _ in range(200):
        shown = read_part(source, TextWindow(offset, limit, column, chars))
        body, _, note = shown.rpartition("\n")
        if more := re.fullmatch(r"\[line \d+ goes on; continue with offset=(\d+), column=(\d+)\]", note):
            whole, offset, column = whole + body, int(more[1]), int(more[2])
        elif more := re.fullmatch(r"\[lines \d+-\d+ of \d+; continue with offset=(\d+)\]", note):
            whole, offset, column = f"{whole}{body}\n", int(more[1]), 1
        else:
            whole += body if note == "[the end]" else shown
            break
    assert text in (whole, f"{whole}\n")  # the last part does not tell whether the last line is ended


class TestWriting:
    async def test_a_file_is_written_with_the_folders_above_it(self, root: Path) -> None:
        write = tools_in(root)["write_file"]
        assert await write.run({"path": "a/b/c.txt", "content": "жук\n"}, CONTEXT) == Shown(
            "Wrote 7 bytes to a/b/c.txt.", changes=(FileChange("a/b/c.txt", "new", "a8adca71e237"),)
        )
        assert (root / "a/b/c.txt").read_bytes() == "жук\n".encode()
        assert os.listdir(root / "a/b") == ["c.txt"]

    async def test_a_second_run_says_and_leaves_the_same(self, root: Path) -> None:
        write = tools_in(root)["write_file"]
        args = {"path": "a/b.txt", "content": "x"}
        assert await write.run(args, CONTEXT) == await write.run(args, CONTEXT)
        assert (root / "a/b.txt").read_text() == "x"

    async def test_a_script_stays_executable_and_a_new_file_follows_the_umask(self, root: Path) -> None:
        (root / "run.sh").write_text("old")
        (root / "run.sh").chmod(0o751)
        write = tools_in(root)["write_file"]
        await write.run({"path": "run.sh", "content": "new"}, CONTEXT)
        await write.run({"path": "new.txt", "content": "new"}, CONTEXT)
        mask = os.umask(0)
        os.umask(mask)
        assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o751
        assert stat.S_IMODE((root / "new.txt").stat().st_mode) == 0o666 & ~mask

    async def test_a_file_stays_whose_it_is(self, root: Path) -> None:
        (root / "a.txt").write_text("old")
        if os.geteuid() == 0:
            os.chown(root / "a.txt", 1234, 1235)
        before = (root / "a.txt").stat()
        tools = tools_in(root)
        await tools["write_file"].run({"path": "a.txt", "content": "new"}, CONTEXT)
        await tools["edit_file"].run({"path": "a.txt", "old_text": "new", "new_text": "newer"}, CONTEXT)
        after = (root / "a.txt").stat()
        assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
        assert (root / "a.txt").read_text() == "newer"

    @pytest.mark.parametrize(
        ("name", "args"),
        [
            ("write_file", {"path": "sub/a.txt", "content": "new"}),
            ("edit_file", {"path": "sub/a.txt", "old_text": "old", "new_text": "new"}),
            ("create_document", {"path": "sub/a.txt", "content": "new"}),
            ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: sub/a.txt\n*** End Patch"}),
        ],
    )
    async def test_what_someone_has_protected_is_left_alone(self, root: Path, name: str, args: dict[str, Any]) -> None:
        (root / "sub").mkdir()
        (root / "sub/a.txt").write_text("old")
        (root / "sub/a.txt").chmod(0o444)
        assert "a.txt' is write-protected and was not changed; ask the user" in await refusal(
            tools_in(root)[name], **args
        )
        assert [path.name for path in (root / "sub").iterdir()] == ["a.txt"]
        assert (root / "sub/a.txt").read_text() == "old"

    @pytest.mark.parametrize("open_beneath", OPENERS)
    async def test_a_link_inside_the_workspace_stays_a_link(self, root: Path, open_beneath: Opener) -> None:
        (root / "sub").mkdir()
        (root / "sub/real.md").write_text("old")
        (root / "CLAUDE.md").symlink_to("sub/real.md")
        (root / "sub/up.md").symlink_to("../CLAUDE.md")
        await tools_in(root, open_beneath)["write_file"].run({"path": "sub/up.md", "content": "new"}, CONTEXT)
        assert (root / "CLAUDE.md").is_symlink()
        assert (root / "sub/real.md").read_text() == "new"

    async def test_a_hard_link_lets_no_change_through(self, root: Path) -> None:
        outside = root.parent / "outside.txt"
        outside.write_text(CANARY)
        os.link(outside, root / "twin.txt")
        tools = tools_in(root)
        await tools["edit_file"].run({"path": "twin.txt", "old_text": CANARY, "new_text": "edited"}, CONTEXT)
        await tools["write_file"].run({"path": "twin.txt", "content": "mine"}, CONTEXT)
        assert outside.read_text() == CANARY

    @pytest.mark.parametrize(
        ("path", "sentence"),
        [
            ("", "'' is the name of a folder; name a file"),
            (".", "'.' is the name of a folder; name a file"),
            ("new/", "'new/' is the name of a folder; name a file"),
            ("sub", "'sub' is a folder, not a regular file"),
            ("pipe", "'pipe' is a pipe, not a regular file"),
            ("a.txt/b", "'a.txt/b': a part of it is not a folder"),
            ("x" * 300, f"'{'x' * 300}'…: a name is too long"),
            ("dangling/a", "there is no 'dangling/a'"),
        ],
    )
    async def test_what_cannot_be_written_is_refused(self, root: Path, path: str, sentence: str) -> None:
        (root / "sub").mkdir()
        os.mkfifo(root / "pipe")
        (root / "a.txt").write_text("x")
        (root / "dangling").symlink_to("nowhere")
        assert await refusal(tools_in(root)["write_file"], path=path, content="x") == sentence
        assert (root / "a.txt").read_text() == "x"

    async def test_half_a_character_is_refused(self, root: Path) -> None:
        assert "lone surrogate" in await refusal(tools_in(root)["write_file"], path="a", content="\ud800")
        assert os.listdir(root) == []

    async def test_killed_at_any_moment_a_file_is_old_or_new_and_the_next_run_clears_up(self, root: Path) -> None:
        code = """
import asyncio, sys
from pathlib import Path
from everloop.ports.tools import CallContext
from everloop.files.folder import Folder
from everloop.tools.changes import Changes
from everloop.tools.workspace import Workspace
from everloop.tools.write_file import write_file_tool
root = Path(sys.argv[1])
write = write_file_tool(Changes(Workspace(root), Folder(root.parent / "files")))
context = CallContext(key="t:1:0", thread="t", session="s", user="ann", role=1)
async def main():
    print("ready", flush=True)
    for n in range(10_000_000):
        await write.run({"path": "a.txt", "content": str(n % 10) * 1_000_000}, context)
asyncio.run(main())
"""
        (root / "a.txt").write_text("0" * 1_000_000)
        for kill in range(6):
            worker = await asyncio.to_thread(_start, code, root)
            with pytest.raises(subprocess.TimeoutExpired):
                await asyncio.to_thread(worker.wait, 0.02 + kill * 0.007)
            worker.send_signal(signal.SIGKILL)
            await asyncio.to_thread(worker.communicate)
            content = (root / "a.txt").read_text()
            assert content == content[0] * 1_000_000
        await tools_in(root)["write_file"].run({"path": "a.txt", "content": "x"}, CONTEXT)
        assert os.listdir(root) == ["a.txt"]


def _start(code: str, root: Path) -> "subprocess.Popen[str]":
    worker = subprocess.Popen([sys.executable, "-c", code, str(root)], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    return worker


class TestEditing:
    async def test_one_exact_piece_is_replaced(self, root: Path) -> None:
        (root / "a.py").write_text("def f():\n    return 1\n")
        edit = tools_in(root)["edit_file"]
        args = {"path": "a.py", "old_text": "return 1", "new_text": "return 2"}
        old, new = (sha256(f"def f():\n    return {n}\n".encode()).hexdigest() for n in (1, 2))
        assert await edit.run(args, CONTEXT) == Shown(
            "Edited a.py at line 2.", changes=(FileChange("a.py", f"file:{old}", new[:12]),)
        )
        assert (root / "a.py").read_text() == "def f():\n    return 2\n"
        later = CallContext(key="t:2:0", thread="t", session="cli:direct", user="ann", role=Role.USER)
        assert await edit.run(args, later) == "a.py already reads so; nothing was changed."
        assert (root / "a.py").read_text() == "def f():\n    return 2\n"

    async def test_windows_lines_stay_windows_lines(self, root: Path) -> None:
        (root / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
        edit = tools_in(root)["edit_file"]
        await edit.run({"path": "a.txt", "old_text": "one\ntwo", "new_text": "1\n2"}, CONTEXT)
        assert (root / "a.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"

    @pytest.mark.parametrize(
        ("text", "old", "new", "result"),
        [
            ("a b c", "b", "x", "a x c"),
            ("a b c", "b ", "", "a c"),
            ("import a\n", "import a\n", "import a\nimport b\n", "import a\nimport b\n"),
            ("import a\nimport b\n", "import a\n", "import a\nimport b\n", "import a\nimport b\n"),
            ("x = 10", "x = 1", "x = 10", "x = 10"),
            ("done already", "not done", "done already", "done already"),
            ("say it\n", "say it", "say it, say it", "say it, say it\n"),
            ("say it, say it\n", "say it", "say it, say it", "say it, say it\n"),
        ],
    )
    def test_an_edit_gives_what_was_asked_for_once(self, text: str, old: str, new: str, result: str) -> None:
        assert edited(text, old, new) == result

    @pytest.mark.parametrize(
        ("text", "old", "new", "sentence"),
        [
            ("a", "", "x", "old_text is empty; use write_file to write a whole file"),
            ("a", "a", "a", "old_text and new_text are the same; nothing was changed"),
            ("a\nb\na\n", "a", "x", "old_text occurs 2 times (lines 1, 3); give more of the surrounding lines"),
            ("aaa", "aa", "x", "old_text occurs 2 times (lines 1, 1); give more of the surrounding lines"),
            ("    x", "  x", "x",
             "the result would hold old_text once more; give whole lines, or more of the surrounding ones"),
            ("a", "b", "c", NOT_FOUND),
            ("a", "b", "", f"{NOT_FOUND} If it was to be removed, it is already gone."),
            ("if x:\n\treturn 1\n", "    return 1\n", "z",
             f"{NOT_FOUND} In the file line 2 is the same but for white space:\n2: \treturn 1"),
            ("one\nreturn value\n", "return valeu", "z",
             f"{NOT_FOUND} In the file line 2 is the nearest:\n2: return value"),
            ("x\ndef f():\n    a = 1\n    return a\n", "def f():\n    a = 2\n    return a\n", "z",
             f"{NOT_FOUND} In the file lines 2-4 are the nearest:\n2: def f():\n3:     a = 1\n4:     return a"),
        ],
    )  # fmt: skip
    def test_an_edit_that_is_not_clear_is_refused(self, text: str, old: str, new: str, sentence: str) -> None:
        with pytest.raises(ToolError) as caught:
            edited(text, old, new)
        assert str(caught.value) == sentence

    @pytest.mark.parametrize(
        ("text", "old", "new", "sentence"),
        [
            ("a" * 8_000_000, "a", "a" * 100_000, "old_text occurs more than 1,000 times; give more of"),
            ("a" * 8_000_000, "a" * 1000, "b", "old_text occurs more than 1,000 times; give more of"),
            ("a" * 900 + "b", "a", "a" * 200_000 + "b", "old_text and new_text are too alike to be told apart; give"),
        ],
    )
    def test_an_edit_that_would_take_minutes_is_given_up(self, text: str, old: str, new: str, sentence: str) -> None:
        with pytest.raises(ToolError, match=sentence):
            edited(text, old, new)

    @given(st.text("ab ", max_size=12), st.text("ab ", max_size=4), st.text("ab ", max_size=6))
    def test_a_second_run_changes_nothing_whatever_the_edit(self, text: str, old: str, new: str) -> None:
        try:
            once = edited(text, old, new)
        except ToolError:
            return
        try:
            twice = edited(once, old, new)
        except ToolError:
            return
        assert twice == once

    async def test_a_file_that_changes_under_the_edit_is_left_alone(self, root: Path) -> None:
        (root / "a.txt").write_text("old")
        seen = Workspace(root).look("a.txt", 100)
        (root / "a.txt").write_text("newer")
        with pytest.raises(ToolError, match="was changed by someone else in this moment"):
            Workspace(root).replace("a.txt", b"mine", "key", seen)
        assert (root / "a.txt").read_text() == "newer"
        assert os.listdir(root) == ["a.txt"]

    async def test_what_is_not_text_and_what_is_too_large_is_refused(self, root: Path) -> None:
        (root / "a").write_bytes(b"x\n\xff")
        with open(root / "b", "wb") as file:  # noqa: ASYNC230
            file.truncate(1024**4)
        edit = tools_in(root)["edit_file"]
        assert "(line 2 holds other bytes)" in await refusal(edit, path="a", old_text="x", new_text="y")
        assert "is too large to edit" in await refusal(edit, path="b", old_text="x", new_text="y")


class TestListing:
    async def test_a_folder_is_listed_by_name(self, root: Path) -> None:
        (root / "b").mkdir()
        (root / "a.txt").write_text("12345")
        (root / "c").symlink_to("/etc")
        (root / "two\nlines").touch()
        listing = await tools_in(root)["list_dir"].run({}, CONTEXT)
        assert listing == "a.txt  5\nb/\nc@\n'two\\nlines'  0"

    async def test_an_empty_folder_is_said_to_be_empty(self, root: Path) -> None:
        assert await tools_in(root)["list_dir"].run({"path": "."}, CONTEXT) == "[the folder is empty]"

    async def test_a_large_folder_is_shown_in_pages(self, root: Path) -> None:
        for n in range(1500):
            (root / f"f{n:04}").touch()
        list_dir = tools_in(root, max_chars=1000)["list_dir"]
        names: list[str] = []
        offset = 1
        while True:
            *lines, note = (await list_dir.run({"offset": offset}, CONTEXT)).splitlines()
            names += [line.split()[0] for line in lines]
            if note == "[the end; 1500 entries]":
                break
            offset = int(note.rstrip("]").rpartition("=")[2])
        assert names == [f"f{n:04}" for n in range(1500)]

    async def test_what_is_no_folder_is_refused(self, root: Path) -> None:
        (root / "a").touch()
        assert await refusal(tools_in(root)["list_dir"], path="a") == "'a': a part of it is not a folder"
        assert await refusal(tools_in(root)["list_dir"], path="b") == "there is no 'b'"


# Around the workspace lie a folder beside it, one whose name begins like it, and inside it links that lead out.

OUTSIDE = ("outside", "ws-evil")


@pytest.fixture
def trap(root: Path) -> Path:
    above = root.parent
    (above / "files").mkdir()  # where the content before a change is kept; it must not be taken for an escape
    for name in OUTSIDE:
        (above / name / "deep").mkdir(parents=True)
        (above / name / "canary.txt").write_text(CANARY)
        (above / name / "deep" / "canary.txt").write_text(CANARY)
    (root / "sub/deep").mkdir(parents=True)
    (root / "notes.txt").write_text("notes")
    for at, up in ((root, ".."), (root / "sub", "../.."), (root / "sub/deep", "../../..")):
        (at / "to_file").symlink_to(f"{up}/outside/canary.txt")
        (at / "to_dir").symlink_to(f"{up}/outside")
        (at / "to_evil").symlink_to(f"{up}/ws-evil")
        (at / "to_above").symlink_to(up)
        (at / "to_abs_file").symlink_to(above / "outside/canary.txt")
        (at / "to_abs_dir").symlink_to(above / "outside")
        (at / "to_root").symlink_to("/")
        (at / "to_proc_root").symlink_to("/proc/self/root")
        (at / "to_cwd").symlink_to("/proc/self/cwd")
        (at / "to_fd").symlink_to("/proc/self/fd")
        (at / "to_chain").symlink_to("to_dir")
        (at / "to_new").symlink_to(f"{up}/outside/new.txt")
        (at / "to_itself").symlink_to("to_itself")
    return root


def escapes(root: Path) -> Iterator[str]:
    """Paths that mean something outside, in several thousand forms; all of them aim at the canaries of this test.

    If a tool should ever let one through, a test that is run as root must not cost more than a canary.
    """
    above = root.parent
    absolute = [f"{above}/{name}/canary.txt" for name in OUTSIDE]
    ups = ["../", "..//", "./../", "..\\", "../././", ".././/", "sub/../../", "..\\/"]
    befores = ["", "./", "sub/", "sub/deep/", "nowhere/", "notes.txt/", "//", ".//./", "to_above/", "a b/", "ж/"]
    for up, count, before, name in product(ups, (1, 2, 3, 4, 5, 6, 8, 12), befores, OUTSIDE):
        yield f"{before}{up * (count + 20)}{above}/{name}/canary.txt"
        yield f"{root}/{before}{up * (count + 20)}{above}/{name}/canary.txt"
        yield f"{before}{up * count}{name}/canary.txt"
        yield f"{root}/{before}{up * count}{name}/canary.txt"
    for path in absolute:
        name = path.removeprefix("/")
        yield from (path, f"/{path}", f"//{path}", f"/./{name}", f"/..{path}", f"/../..{path}")
        yield from (f"/proc/self/root{path}", f"/proc/self/cwd{path}", f"/proc/1/root{path}", f"/dev/fd/../..{path}")
        yield from (f"~{path}", f"~/..{path}", f"~root{path}", f"~/../../..{path}", f"~+{path}")
        yield from (
            f"{path}\0",
            f"{path}\0.txt",
            f"notes.txt\0{path}",
            f"\0{path}",
            f"{path}\n",
            f"\n{path}",
            f"\t{path}",
        )
        yield from (f"{'../' * 20}{name}", f"sub/{'../' * 20}{name}", f"{'a/' * 10}{'../' * 30}{name}")
        yield from (f"file:{path}", f"file://{path}", f"file://localhost{path}")
        yield from (f"{path}\ud800", f"{path}\udc00")
        yield from (f"/proc/self/fd/{n}{path}" for n in range(8))
        yield from (f"/proc/self/task/{os.getpid()}/root{path}", f"/proc/self/map_files{path}")
    yield from (f"{root}-evil/canary.txt", f"{root}-evil//canary.txt", f"{root}/../ws-evil/canary.txt", f"{root}x/a")
    for at in ("", "sub/", "sub/deep/", f"{root}/", "./sub/./", "sub//"):
        for link in ("to_dir", "to_evil", "to_abs_dir", "to_chain", "to_above/outside", "sub/to_above/../outside"):
            yield from (f"{at}{link}/canary.txt", f"{at}{link}/deep/canary.txt", f"{at}{link}/./canary.txt")
        yield from (f"{at}to_file", f"{at}to_abs_file", f"{at}to_root{absolute[0]}", f"{at}to_root{absolute[1]}")
        yield from (f"{at}to_proc_root{absolute[0]}", f"{at}to_proc_root{absolute[1]}")
        yield from (f"{at}to_new", f"{at}to_itself", f"{at}to_itself/x", f"{at}to_above/ws-evil/canary.txt")
        yield from (f"{at}to_above/{root.name}/../outside/canary.txt", f"{at}to_dir/../outside/canary.txt")


def system_paths() -> Iterator[str]:
    """Paths of the machine itself: only for tools that read, for the same reason."""
    yield from ("/etc/passwd", "/etc/shadow", "//etc/passwd", "/etc/../etc/passwd", "/", "//", "/..", "..", "../")
    yield from ("~", "~/", "../..", "/dev/null/x", "/dev/stdin", "/dev/tty", "/dev/zero", "/dev/fd/0", "/proc/version")
    yield from ("/proc/self/environ", "/proc/self/mem", "/proc/self/exe", "/proc/self/cmdline", "to_cwd", "to_root")
    for at in ("", "sub/", "sub/deep/"):
        yield from (f"{at}to_root/etc/passwd", f"{at}to_proc_root/etc/passwd", f"{at}to_cwd/pyproject.toml")
        yield from (f"{at}to_fd/{n}" for n in range(6))


def disguises() -> Iterator[str]:
    """Paths that some other program would read as a way out, but that are plain names to the kernel."""
    dots = [
        "%2e%2e",
        "%252e%252e",
        "%c0%ae%c0%ae",
        "．．",
        "․․",
        "...",
        "....",
        ".. ",
        " ..",
        "..;",
        "%2e.",
        "..%00",
        "‥",
    ]
    slashes = ["/", "%2f", "%252f", "%5c", "⁄", "∕", "／", "\\"]
    for dot, slash, count, name in product(dots, slashes, (1, 3), OUTSIDE):
        yield f"{(dot + slash) * count}{name}{slash}canary.txt"
    yield from ("$HOME/canary.txt", "${PWD}/../canary.txt", "`pwd`/x", "$(pwd)/x", "*/canary.txt", "C:\\x")
    yield from ("\\\\host\\share", "NUL", "-rf", "a;b", "ж/\u0301", "TO_FILE")


def snapshot(folder: Path) -> dict[str, bytes | None]:
    outside = [path for name in OUTSIDE for path in (folder / name).rglob("*")]
    return {str(path): path.read_bytes() if path.is_file() else None for path in outside} | {
        str(path): None for path in folder.iterdir()
    }


Call = Callable[[dict[str, Tool], str], tuple[Tool, dict[str, Any]]]
CANARY_PATCHES = {
    "patch_update": "*** Begin Patch\n*** Update File: {}\n@@\n-" + CANARY + "\n+changed\n*** End Patch",
    "patch_delete": "*** Begin Patch\n*** Delete File: {}\n*** End Patch",
    "patch_add": "*** Begin Patch\n*** Add File: {}\n+added\n*** End Patch",
    "patch_move_from": "*** Begin Patch\n*** Update File: {}\n*** Move to: stolen.txt\n*** End Patch",
    "patch_move_to": "*** Begin Patch\n*** Update File: notes.txt\n*** Move to: {}\n*** End Patch",
    "diff_update": "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-" + CANARY + "\n+changed\n",
    "diff_delete": "--- {0}\n+++ /dev/null\n@@ -1 +0,0 @@\n-" + CANARY + "\n",
    "diff_add": "--- /dev/null\n+++ {0}\n@@ -0,0 +1 @@\n+added\n",
}


def patching(name: str) -> "Call":
    return lambda tools, path: (tools["apply_patch"], {"patch": CANARY_PATCHES[name].format(path)})


CALLS: dict[str, Call] = {
    "read_file": lambda tools, path: (tools["read_file"], {"path": path}),
    "write_file": lambda tools, path: (tools["write_file"], {"path": path, "content": "overwritten"}),
    "edit_file": lambda tools, path: (tools["edit_file"], {"path": path, "old_text": CANARY, "new_text": "changed"}),
    "list_dir": lambda tools, path: (tools["list_dir"], {"path": folder_of(path)}),
    "create_document": lambda tools, path: (tools["create_document"], {"path": path, "content": "overwritten"}),
    "find_files": lambda tools, path: (tools["find_files"], {"path": folder_of(path), "pattern": "*"}),
    "grep": lambda tools, path: (tools["grep"], {"path": path, "pattern": CANARY}),
    "grep_in_folder": lambda tools, path: (tools["grep"], {"path": folder_of(path), "pattern": CANARY}),
    **{name: patching(name) for name in CANARY_PATCHES},
}
REPEAT_THE_PATH = {"write_file", "create_document", *CANARY_PATCHES}
PATTERNS: dict[str, Call] = {
    "pattern of find_files": lambda tools, path: (tools["find_files"], {"pattern": path}),
    "include of grep": lambda tools, path: (tools["grep"], {"pattern": CANARY, "include": path}),
}


def folder_of(path: str) -> str:
    return path.removesuffix("canary.txt").removesuffix("passwd") or "/"


async def answer(tools: dict[str, Tool], name: str, path: str) -> str | None:
    """What the tool says, or None if it refuses."""
    tool, args = (CALLS | PATTERNS)[name](tools, path)
    try:
        return await tool.run(args, CONTEXT)
    except ToolError:
        return None


def ways_for(name: str, root: Path) -> list[str]:
    """The ways out that this call is tried with: all of them where it is the plainest, and in the short form a part of
    them elsewhere, another one for each call."""
    every = sorted(set(escapes(root)))
    return every if name == "read_file" else in_full(every, every[[*CALLS, *PATTERNS].index(name) % 4 :: 4])


class TestEscapes:
    def test_the_corpus_is_large(self, trap: Path) -> None:
        assert len(set(escapes(trap))) >= 3000
        assert len(set(disguises())) >= 400

    def test_the_corpus_has_teeth(self, trap: Path) -> None:
        """Negative control: a tool that joins the path and opens it gives the canary away, over and over."""
        given_away = 0
        for path in set(escapes(trap)):
            try:
                with open(os.path.join(trap, path), "rb") as file:
                    given_away += CANARY.encode() in file.read(1000)
            except (OSError, ValueError):
                continue
        assert given_away >= 1000

    @pytest.mark.shortened
    @pytest.mark.parametrize("open_beneath", OPENERS)
    @pytest.mark.parametrize("name", CALLS)
    async def test_every_way_out_is_refused(self, trap: Path, name: str, open_beneath: Opener) -> None:
        tools, before = tools_in(trap, open_beneath), snapshot(trap.parent)
        let_through = [path for path in ways_for(name, trap) if await answer(tools, name, path) is not None]
        assert let_through == []
        assert snapshot(trap.parent) == before

    @pytest.mark.parametrize("name", CALLS)
    async def test_without_the_guard_links_lead_out(self, trap: Path, name: str) -> None:
        """Negative control: with an opener that checks nothing each tool reaches the canary."""

        def open_anything(folder: int, path: str, flags: int, mode: int = 0) -> int:
            return os.open(path, flags, mode, dir_fd=folder)

        tools, before = tools_in(trap, open_anything), snapshot(trap.parent)
        path = "to_dir/new.txt" if name in ("patch_add", "diff_add", "patch_move_to") else "to_dir/canary.txt"
        said = await answer(tools, name, path) or ""
        if name in ("read_file", "list_dir", "find_files", "grep", "grep_in_folder"):
            assert "canary" in said
        elif name == "patch_move_from":
            assert (trap / "stolen.txt").read_text() == CANARY
        else:
            assert snapshot(trap.parent) != before

    @pytest.mark.parametrize("name", CALLS)
    async def test_the_same_inside_is_not_refused(self, trap: Path, name: str) -> None:
        """Negative control: what refuses everything would pass the test above."""
        inside = trap / "sub" / "inside" / "canary.txt"
        if name not in ("patch_add", "diff_add", "patch_move_to"):
            inside.parent.mkdir()
            inside.write_text(f"{CANARY}\n")
        for path in ("sub/inside/canary.txt", str(inside)):
            if name.startswith("diff") and path.startswith("/"):
                continue
            assert await answer(tools_in(trap), name, path) is not None
            for made in ("patch_delete", "patch_move_from"):
                if name == made:
                    assert not inside.exists()
                    inside.write_text(f"{CANARY}\n")
            (trap / "stolen.txt").unlink(missing_ok=True)
            (trap / "notes.txt").write_text("notes")
            if name == "patch_move_to":
                inside.unlink()

    @pytest.mark.shortened
    @pytest.mark.parametrize("name", PATTERNS)
    async def test_a_pattern_finds_nothing_outside(self, trap: Path, name: str) -> None:
        tools = tools_in(trap)
        (trap / "sub/mine").write_text(CANARY)
        assert "sub/mine" in (await answer(tools, name, "sub/m*") or "")
        patterns = {
            *ways_for(name, trap),
            "to_*/**",
            "to_*/*/canary.txt",
            "*/to_*/*",
            "**/canary.txt",
            "to_dir/canary.{txt,md}",
        }
        for path in patterns:
            said = await answer(tools, name, path) or ""
            assert "canary.txt" not in said
            assert CANARY not in said

    @pytest.mark.parametrize("open_beneath", OPENERS)
    @pytest.mark.parametrize("name", ["read_file", "list_dir", "find_files", "grep"])
    async def test_the_machine_itself_cannot_be_read(self, trap: Path, name: str, open_beneath: Opener) -> None:
        tools = tools_in(trap, open_beneath)
        assert [path for path in system_paths() if await answer(tools, name, path) is not None] == []

    @pytest.mark.parametrize("open_beneath", OPENERS)
    @pytest.mark.parametrize("name", CALLS)
    async def test_a_disguise_reaches_nothing_outside(self, trap: Path, name: str, open_beneath: Opener) -> None:
        tools, before = tools_in(trap, open_beneath), snapshot(trap.parent)
        answers = [await answer(tools, name, path) for path in set(disguises())]
        assert not any(
            CANARY in said or "canary.txt" in said for said in answers if said and name not in REPEAT_THE_PATH
        )
        assert snapshot(trap.parent) == before

    async def test_links_that_stay_inside_are_followed(self, root: Path) -> None:
        (root / "sub").mkdir()
        (root / "a.txt").write_text("inside")
        (root / "sub/link").symlink_to("../a.txt")
        assert await tools_in(root)["read_file"].run({"path": "sub/link"}, CONTEXT) == "inside"

    @pytest.mark.parametrize("open_beneath", OPENERS)
    @pytest.mark.parametrize("name", CALLS)
    async def test_what_is_no_file_is_refused_at_once(self, root: Path, name: str, open_beneath: Opener) -> None:
        os.mkfifo(root / "pipe")
        with socket.socket(socket.AF_UNIX) as server:
            folder = os.open(root, os.O_RDONLY)
            server.bind(f"/proc/self/fd/{folder}/sock")  # the whole path may be too long for a socket
            os.close(folder)
            odd = ["pipe", "sock"]
            if os.geteuid() == 0:
                os.mknod(root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
                odd.append("zero")
            for path in odd:
                assert await answer(tools_in(root, open_beneath), name, path) is None
                assert not stat.S_ISREG((root / path).lstat().st_mode)


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """While this runs, `door` is by turns a folder of the workspace and a link to the folder outside."""
    done = threading.Event()
    exchange = ctypes.CDLL(None).renameat2  # a plain rename leaves a moment in which there is no door at all
    one, other = os.fsencode(root / "door"), os.fsencode(root / "link")

    def swap() -> None:
        while not done.is_set():
            assert exchange(-100, one, -100, other, 2) == 0

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@pytest.fixture
def door(trap: Path) -> Path:
    (trap / "door").mkdir()
    (trap / "door/canary.txt").write_text("harmless")
    (trap / "door/inside").touch()
    (trap / "link").symlink_to("../outside")
    return trap


def _by_turns(turn: int) -> tuple[str, dict[str, Any]]:
    name = "patch_add" if turn % 2 else "patch_delete"
    return "apply_patch", {"patch": CANARY_PATCHES[name].format("door/canary.txt")}


RACES: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "read_file": lambda turn: ("read_file", {"path": "door/canary.txt"}),
    "list_dir": lambda turn: ("list_dir", {"path": "door"}),
    "write_file": lambda turn: ("write_file", {"path": "door/canary.txt", "content": str(turn)}),
    "edit_file": lambda turn: (
        "edit_file", {"path": "door/canary.txt", "old_text": CANARY, "new_text": "overwritten"}
    ),
    "create_document": lambda turn: ("create_document", {"path": "door/canary.txt", "content": str(turn)}),
    "add and delete": _by_turns,
    "find_files": lambda turn: ("find_files", {"path": "door", "pattern": "*"}),
    "find_files from above": lambda turn: ("find_files", {"pattern": "door/**"}),
    "grep": lambda turn: ("grep", {"path": "door", "pattern": f"{CANARY}|harmless", "files_only": True}),
    "grep from above": lambda turn: ("grep", {"pattern": CANARY, "files_only": True}),
}  # fmt: skip
NEVER_REFUSED = {"find_files from above", "grep from above"}  # a link is passed by
ONE_ANSWER = {"edit_file", *NEVER_REFUSED}  # this edit finds nothing inside
TIMES, TIMES_OF_GREP = in_full((2000, 30), (200, 5))


class TestRace:
    def test_checking_first_and_opening_then_lets_the_canary_out(self, door: Path) -> None:
        """Negative control: this is what the swapping does to an honest check."""

        def read_naively() -> str:
            path = door / "door/canary.txt"
            if not Path(os.path.realpath(path)).is_relative_to(door):
                return "refused"
            with open(path) as file:
                return file.read()

        with swapping(door):
            for _ in range(100_000):
                try:
                    if read_naively() == CANARY:
                        return
                except OSError:
                    continue
        pytest.fail("the swapping never hit, so the tests below prove nothing")

    @pytest.mark.shortened
    @pytest.mark.parametrize("open_beneath", OPENERS)
    @pytest.mark.parametrize(("name", "times"), [(name, TIMES_OF_GREP if "grep" in name else TIMES) for name in RACES])
    async def test_swapping_a_folder_for_a_link_lets_nothing_out(
        self, door: Path, name: str, times: int, open_beneath: Opener
    ) -> None:
        tools, before = tools_in(door, open_beneath), snapshot(door.parent)
        answers = set()
        told = 0
        with swapping(door):
            for turn in range(100_000):  # on a busy machine whoever swaps may not have their turn for long
                tool, args = RACES[name](turn)
                try:
                    said = await tools[tool].run(args, CONTEXT)
                    answers.add(said if isinstance(said, str) else said.text)
                    told += 1
                except ToolError:
                    answers.add("refused")
                has_hit = ("refused" in answers or name in NEVER_REFUSED) and (len(answers) > 1 or name in ONE_ANSWER)
                if has_hit and (told >= times or turn >= 2000):
                    break
        assert "refused" in answers or name in NEVER_REFUSED
        assert len(answers) > 1 or name in ONE_ANSWER
        assert not any(CANARY in said or "deep/" in said for said in answers)
        assert snapshot(door.parent) == before


class TestHome:
    """A workspace may be a folder in which everloop's own home lies, with its keys and its settings."""

    CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
        *(("read_file", {"path": f"{way}/vault.key"}) for way in ("home", "./home", "link", "deep/link")),
        ("read_file", {"path": "straight"}),
        *(("list_dir", {"path": way}) for way in ("home", "home/", "link")),
        *(("find_files", {"path": way, "pattern": "*"}) for way in ("home", "link")),
        *(("grep", {"path": way, "pattern": CANARY}) for way in ("home", "home/vault.key", "straight")),
        *(("write_file", {"path": path, "content": "x"}) for path in ("home/config.toml", "home/new/x", "straight")),
        ("write_file", {"path": "link/config.toml", "content": "x"}),
        ("edit_file", {"path": "home/vault.key", "old_text": CANARY, "new_text": "x"}),
        ("create_document", {"path": "home/a.md", "content": "x"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: home/vault.key\n*** End Patch"}),
        ("apply_patch", {"patch": "*** Begin Patch\n*** Update File: a.txt\n*** Move to: home/a.txt\n@@\n-a\n+b\n"
                                  "*** End Patch"}),
    )  # fmt: skip

    @pytest.fixture
    def around(self, tmp_path: Path) -> Path:
        root = tmp_path / "person"
        (root / "home/files").mkdir(parents=True)
        (root / "home/vault.key").write_text(CANARY)
        (root / "deep").mkdir()
        (root / "a.txt").write_text("a\n")
        (root / "link").symlink_to("home")
        (root / "deep/link").symlink_to("../home")
        (root / "straight").symlink_to("home/vault.key")
        return root

    def tools(self, root: Path, open_beneath: Opener | None, hidden: Path | None) -> dict[str, Tool]:
        workspace = Workspace(root, open_beneath, Home(hidden) if hidden else None)
        return {tool.spec.name: tool for tool in file_tools(workspace, Folder(root.parent / "files"), 8000)}

    @pytest.mark.parametrize("open_beneath", OPENERS)
    async def test_it_is_not_there_for_any_tool(self, around: Path, open_beneath: Opener) -> None:
        tools, before = self.tools(around, open_beneath, around / "home"), snapshot(around)
        for name, args in self.CALLS:
            said = await refusal(tools[name], **args)
            assert CANARY not in said
            # Who follows no link stops at it already.
            assert "permission denied" in said or open_beneath is open_in_steps, (name, args)
        assert snapshot(around) == before

    async def test_who_walks_passes_it_by(self, around: Path) -> None:
        tools = self.tools(around, None, around / "home")
        assert await tools["grep"].run({"pattern": "."}, CONTEXT) == "a.txt:1:a"
        assert await tools["find_files"].run({"pattern": "**"}, CONTEXT) == "a.txt\ndeep/link@\nlink@\nstraight@"
        assert await tools["list_dir"].run({}, CONTEXT) == "a.txt  2\ndeep/\nhome/\nlink@\nstraight@"

    async def test_were_it_not_hidden_it_would_be_there(self, around: Path) -> None:
        """Negative control."""
        tools = self.tools(around, None, None)
        assert await tools["read_file"].run({"path": "deep/link/vault.key"}, CONTEXT) == CANARY
        assert await tools["grep"].run({"pattern": CANARY}, CONTEXT) == f"home/vault.key:1:{CANARY}"

    async def test_a_workspace_inside_the_home_is_as_any_other(self, tmp_path: Path) -> None:
        (tmp_path / "ws").mkdir()
        tools = self.tools(tmp_path / "ws", None, tmp_path)
        await tools["write_file"].run({"path": "a.txt", "content": "x"}, CONTEXT)
        assert await tools["read_file"].run({"path": "a.txt"}, CONTEXT) == "x"
