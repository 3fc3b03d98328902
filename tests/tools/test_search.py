"""find_files and grep find what is there, say what they left out, and cannot be made to run for ever."""

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.descriptors import open_descriptors

from everloop.errors import ToolError
from everloop.ports.tools import CallContext, Tool
from everloop.tools.find_files import find_files_tool
from everloop.tools.grep import grep_tool
from everloop.tools.walk import Glob
from everloop.tools.worker import run_apart
from everloop.tools.workspace import Workspace

CONTEXT = CallContext(key="t:1:0", thread="t", session="cli:direct", user="ann")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in {
        "a.py": "import os\n\ndef one():\n    return 1\n",
        "src/b.py": "def two():\n    return 2\n",
        "src/deep/c.ts": "const two = 2;\n",
        "docs/d.md": "# One\n\none and two\n",
        "node_modules/x/e.py": "def two(): ...\n",
        "src/photo.png": "\x89PNG\0two\n",
    }.items():
        (tmp_path / "ws" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ws" / path).write_text(text)
    return tmp_path / "ws"


def find(root: Path, max_chars: int = 8000) -> Tool:
    return find_files_tool(Workspace(root), max_chars)


def grep(root: Path, max_chars: int = 8000, seconds: float = 20) -> Tool:
    return grep_tool(Workspace(root), max_chars, seconds)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("src/**/*.py", "a.py", False),
        ("src/**", "src", False),
        ("src/**", "src/x/y", True),
        ("**", "a", True),
        ("**/x/**/y", "x/y", True),
        ("**/x/**/y", "a/x/b/c/y", True),
        ("**/x/**/y", "a/b/y", False),
        ("*.{ts,tsx}", "a/b.tsx", True),
        ("{a,b}/*.{c,d}", "b/x.c", True),
        ("{a,b}/*.{c,d}", "c/x.c", False),
        ("?.[ch]", "x.h", True),
        ("?.[!ch]", "x.h", False),
        ("a.b", "aXb", False),
    ],
)
def test_a_pattern_fits(pattern: str, path: str, fits: bool):
    glob = Glob(pattern)
    state = glob.start
    for name in path.split("/"):
        state = glob.step(state, name)
    assert glob.accepts(state) == fits


def test_no_pattern_is_slow():
    before = time.monotonic()
    stars = Glob("/".join(["**", "*a*a*a*a*a*a*a*a*b"] * 30))
    state = stars.start
    for _ in range(200):
        state = stars.step(state, "a" * 200)
    with pytest.raises(ValueError, match="more than 64 alternatives"):
        Glob("{a,b}" * 30)
    assert time.monotonic() - before < 30  # one that tried every way would not end in a lifetime


class TestFinding:
    async def test_files_are_found_by_name_in_every_folder(self, root: Path):
        assert await find(root).run({"pattern": "*.py"}, CONTEXT) == (
            "a.py\nsrc/b.py\n[not searched, unless named: node_modules]"
        )
        assert await find(root).run({"pattern": "node_modules/**"}, CONTEXT) == "node_modules/x/e.py"
        assert await find(root).run({"pattern": "*.ts", "path": "src"}, CONTEXT) == "src/deep/c.ts"
        assert await find(root).run({"pattern": "*.rs", "path": "src"}, CONTEXT) == "[no file fits]"

    async def test_the_newest_come_first(self, root: Path):
        for age, name in enumerate(("src/b.py", "docs/d.md", "a.py")):
            os.utime(root / name, (1000 - age, 1000 - age))
        found = await find(root).run({"pattern": "{*.py,*.md}", "order": "newest"}, CONTEXT)
        assert found.splitlines()[:3] == ["src/b.py", "docs/d.md", "a.py"]

    async def test_a_link_is_named_and_not_followed(self, root: Path):
        (root / "link").symlink_to("src")
        assert await find(root).run({"pattern": "link/**"}, CONTEXT) == "[no file fits]"
        assert await find(root).run({"pattern": "li*"}, CONTEXT) == (
            "link@\n[not searched, unless named: node_modules]"
        )

    async def test_many_files_are_shown_in_pages(self, root: Path):
        for n in range(500):
            (root / "docs" / f"f{n:03}.x").touch()
        names: list[str] = []
        offset = 1
        while offset:
            said = await find(root, 1000).run({"pattern": "docs/*.x", "offset": offset}, CONTEXT)
            assert len(said) <= 1000
            *lines, note = said.splitlines()
            names += lines
            offset = int(note.rstrip("]").rpartition("=")[2]) if "continue" in note else 0
        assert names == [f"docs/f{n:03}.x" for n in range(500)]

    async def test_a_tree_that_is_too_deep_is_left(self, root: Path):
        fd = os.open(root, os.O_RDONLY)
        for _ in range(300):
            os.mkdir("d", dir_fd=fd)
            below = os.open("d", os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = below
        os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        os.close(fd)
        assert "[incomplete: folders more than 64 deep" in await find(root).run({"pattern": "bottom"}, CONTEXT)

    @pytest.mark.parametrize("pattern", ["../*", "/etc/*", "~/*", "a\0b", "src/../../*"])
    async def test_a_pattern_cannot_lead_out(self, root: Path, pattern: str):
        for tool, args in ((find(root), {"pattern": pattern}), (grep(root), {"pattern": "x", "include": pattern})):
            with pytest.raises(ToolError):
                await tool.run(args, CONTEXT)


class TestSearching:
    async def test_lines_are_told_with_their_place(self, root: Path):
        assert await grep(root).run({"pattern": r"def \w+\(", "include": "*.py"}, CONTEXT) == (
            "a.py:3:def one():\nsrc/b.py:1:def two():\n[not searched, unless named: node_modules]"
        )
        assert await grep(root).run({"pattern": "ONE", "path": "docs", "ignore_case": True}, CONTEXT) == (
            "docs/d.md:1:# One\ndocs/d.md:3:one and two"
        )
        assert await grep(root).run({"pattern": "two", "path": "src/b.py"}, CONTEXT) == "src/b.py:1:def two():"
        assert await grep(root).run({"pattern": "two", "path": "src", "files_only": True}, CONTEXT) == (
            "src/b.py\nsrc/deep/c.ts"
        )
        assert await grep(root).run({"pattern": "three", "path": "src"}, CONTEXT) == "[nothing was found]"

    async def test_lines_around_are_shown_once(self, root: Path):
        (root / "n.txt").write_text("".join(f"{n}\n" for n in range(1, 21)))
        assert await grep(root).run({"pattern": "^(5|7|15)$", "path": "n.txt", "context": 1}, CONTEXT) == (
            "n.txt-4-4\nn.txt:5:5\nn.txt-6-6\nn.txt:7:7\nn.txt-8-8\n--\nn.txt-14-14\nn.txt:15:15\nn.txt-16-16"
        )

    async def test_what_is_binary_or_large_or_odd_is_passed_by(self, root: Path):
        os.mkfifo(root / "src/pipe")
        (root / "src/link.ts").symlink_to("deep/c.ts")
        with open(root / "src/large", "wb") as file:  # noqa: ASYNC230
            file.write(b"two\n")
            file.truncate(20 * 1024 * 1024)
        (root / "src/latin").write_bytes(b"two \xe9\n")
        assert await grep(root).run({"pattern": "two", "path": "src", "files_only": True}, CONTEXT) == (
            "src/b.py\nsrc/deep/c.ts\nsrc/latin\n[1 files of more than 16 MiB were not searched]"
        )

    async def test_an_answer_never_exceeds_its_limit(self, root: Path):
        (root / "many").write_text("word and more\n" * 100_000)
        (root / "long").write_text("x" * 40_000 + "needle" + "y" * 1_000_000)
        for args in ({"pattern": "word"}, {"pattern": ".", "context": 20}, {"pattern": "needle"}):
            assert len(await grep(root, 1000).run(args, CONTEXT)) <= 1000
        said = await grep(root).run({"pattern": "needle", "path": "long"}, CONTEXT)
        assert said.startswith("long:1:…x")
        assert "needle" in said
        assert "[there is more;" in await grep(root, 1000).run({"pattern": "word"}, CONTEXT)

    async def test_a_line_cannot_pretend_to_be_of_another_file(self, root: Path):
        (root / "docs" / "x\ny:1:z").write_text("two\n")
        said = await grep(root).run({"pattern": "^two$", "path": "docs"}, CONTEXT)
        assert said == "'docs/x\\ny:1:z':1:two"

    async def test_what_is_no_expression_is_refused(self, root: Path):
        for pattern in ("(", "a{99999999999}", "(?P<x", "", "[" * 10, "x" * 6000):
            with pytest.raises(ToolError, match=r"pattern"):
                await grep(root).run({"pattern": pattern}, CONTEXT)

    @pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(.*)*x", "(a*)*(a*)*b", r"(\w+\s?)*!"])
    async def test_an_endless_expression_is_ended_and_holds_nobody_up(self, root: Path, pattern: str):
        (root / "a.txt").write_text("found aaab\n" if "b" in pattern else "found\n")
        (root / "b.txt").write_text("a" * 5000 + "!"[pattern.endswith("!") :] + "\n")
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        async with asyncio.TaskGroup() as group:
            heart = group.create_task(beat())
            said = await grep(root, seconds=1).run({"pattern": pattern, "path": "b.txt"}, CONTEXT)
            heart.cancel()
        assert said == "[incomplete: it was ended after 1 s; narrow the path, or write a simpler pattern]"
        assert beats > 3

    async def test_what_was_found_before_it_was_ended_is_told(self, root: Path):
        (root / "docs/a").write_text("aa\n")
        (root / "docs/b").write_text("a" * 5000 + "!\n")
        # Long enough for a busy machine to begin.
        said = await grep(root, seconds=4).run({"pattern": "^(a+)+$", "path": "docs", "include": "?"}, CONTEXT)
        assert said.text.startswith("docs/a:1:aa\n[incomplete: it was ended after 4 s")
        assert said.origin == "what was searched"  # whose the last lines are was not told any more

    async def test_a_search_ends_with_its_call(self, root: Path):
        (root / "b.txt").write_text("a" * 5000 + "!\n")
        others = _children()  # of tests before this one, in the same process
        call = asyncio.ensure_future(grep(root).run({"pattern": "(a+)+$", "path": "b.txt"}, CONTEXT))
        while not (children := _children() - others):  # noqa: ASYNC110
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert children.isdisjoint(_children())

    async def test_no_descriptor_is_left_open(self, root: Path):
        await grep(root).run({"pattern": "two"}, CONTEXT)
        before = open_descriptors()
        for _ in range(3):
            await grep(root).run({"pattern": "two"}, CONTEXT)
            await find(root).run({"pattern": "*"}, CONTEXT)
            with pytest.raises(ToolError):
                await grep(root).run({"pattern": "("}, CONTEXT)
        assert open_descriptors() == before


def _children() -> set[str]:
    children: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that waited for a child ends with it
            children.update(Path(f"/proc/self/task/{task}/children").read_text().split())
    return children


async def test_what_runs_apart_has_no_environment_and_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "probe_apart.py").write_text(
        "import os, sys\n"
        "def main():\n"
        "    word = sys.stdin.read()\n"
        "    if word == 'env': print(dict(os.environ).get('EVERLOOP_CANARY', 'nothing'))\n"
        "    if word == 'memory': bytearray(4 << 30)\n"
        "    if word == 'write': open(sys.argv[0] + 'x', 'w').write('x')\n"
    )
    monkeypatch.setenv("EVERLOOP_CANARY", "canary")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert (await run_apart("probe_apart", b"env", seconds=10)).out == b"nothing\n"
    assert "MemoryError" in (await run_apart("probe_apart", b"memory", seconds=10)).problem
    assert (await run_apart("probe_apart", b"", seconds=10)).problem == ""
