"""A patch is applied whole or not at all, and once."""

import difflib
import os
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.core.tool import FileChange
from everloop.errors import ToolError
from everloop.files.folder import Folder
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.tools.apply_patch import apply_patch_tool
from everloop.tools.changes import Changes
from everloop.tools.patch import FilePatch, Hunk, parse, patched
from everloop.tools.workspace import Workspace

CONTEXT = CallContext(key="t:1:0", thread="t", session="cli:direct", user="ann")
LATER = CallContext(key="t:2:0", thread="t", session="cli:direct", user="ann")

BOTH = {
    "unified": """\
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,3 +1,3 @@
 def f():
-    return 1
+    return 2
 # end
--- /dev/null
+++ b/new/b.txt
@@ -0,0 +1,2 @@
+one
+two
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
""",
    "begun": """\
*** Begin Patch
*** Update File: a.py
@@ def f():
-    return 1
+    return 2
*** Add File: new/b.txt
+one
+two
*** Delete File: old.txt
*** End Patch
""",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/a.py").write_text("def f():\n    return 1\n# end\n")
    (tmp_path / "ws/old.txt").write_text("old\n")
    return tmp_path / "ws"


@pytest.fixture
def apply(root: Path) -> Tool:
    workspace = Workspace(root)
    return apply_patch_tool(workspace, Changes(workspace, Folder(root.parent / "files")))


def tree(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def sha(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def kept(text: str) -> str:
    """How the store of files names a content."""
    return f"file:{sha(text)}"


async def refusal(tool: Tool, **args: object) -> str:
    with pytest.raises(ToolError) as caught:
        await tool.run(args, CONTEXT)
    return str(caught.value)


@pytest.mark.parametrize("form", BOTH)
async def test_files_are_changed_added_and_deleted(root: Path, apply: Tool, form: str):
    said = await apply.run({"patch": BOTH[form]}, CONTEXT)
    assert tree(root) == {"a.py": "def f():\n    return 2\n# end\n", "new/b.txt": "one\ntwo\n"}
    assert said == Shown(
        "Patch applied: changed a.py; added new/b.txt; deleted old.txt.",
        changes=(
            FileChange("a.py", kept("def f():\n    return 1\n# end\n"), sha("def f():\n    return 2\n# end\n")[:12]),
            FileChange("new/b.txt", "new", sha("one\ntwo\n")[:12]),
            FileChange("old.txt", kept("old\n"), "gone"),
        ),
    )


@pytest.mark.parametrize("form", BOTH)
async def test_a_second_run_changes_nothing(root: Path, apply: Tool, form: str):
    await apply.run({"patch": BOTH[form]}, CONTEXT)
    after = tree(root)
    said = await apply.run({"patch": BOTH[form]}, LATER)
    assert said == Shown("Patch applied: a.py already reads so; new/b.txt already reads so; old.txt was not there.")
    assert tree(root) == after


@pytest.mark.parametrize("form", BOTH)
@pytest.mark.parametrize("cut", [1, 2])
async def test_an_attempt_that_was_cut_off_is_finished_by_the_next(root: Path, apply: Tool, form: str, cut: int):
    whole, old = tree(root), (root / "a.py").read_text()
    await apply.run({"patch": BOTH[form]}, CONTEXT)
    after = tree(root)
    (root / "old.txt").write_text("old\n")  # as if it had not come to that
    if cut == 1:
        (root / "new/b.txt").unlink()
    said = await apply.run({"patch": BOTH[form]}, CONTEXT)
    assert tree(root) == after != whole
    before = {change.path: change.before for change in said.changes}
    assert list(before) == ["a.py", "new/b.txt", "old.txt"]
    assert await Folder(root.parent / "files").get("ann", before["a.py"]) == old.encode()


@pytest.mark.parametrize(
    ("patch", "sentence"),
    [
        ("", "the patch names no file; give a unified diff, or *** Begin Patch … *** End Patch"),
        ("*** Begin Patch\n*** End Patch", "the patch names no file"),
        ("*** Begin Patch\n*** Delete File: old.txt\n", "the patch has no *** End Patch; nothing was changed"),
        ("*** Begin Patch\n*** Rename File: x\n*** End Patch", "'*** Rename File: x' is no line of a patch"),
        ("*** Begin Patch\n*** Add File: x\nplain\n*** End Patch", "'x' is added, so each line begins with +"),
        ("*** Begin Patch\n*** Update File: a.py\n*** End Patch", "the patch changes nothing in 'a.py'"),
        ("*** Begin Patch\n*** Update File: a.py\n@@\n def f():\n*** End Patch", "no line that begins with + or -"),
        ("*** Begin Patch\n*** Update File: no.py\n@@\n-x\n+y\n*** End Patch", "there is no 'no.py'"),
        ("*** Begin Patch\n*** Add File: a.py\n+x\n*** End Patch", "'a.py' already exists"),
        ("@@ -1 +1 @@\n-a\n+b\n", "the patch names no file before '@@ -1 +1 @@'"),
        ("--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n?x\n", "'?x' begins with neither a space nor + or -"),
        ("diff --git a/a.py b/a.py\nBinary files differ\n", "there is no change of text"),
        ("diff --git a/a.py b/c.py\ncopy from a.py\ncopy to c.py\n--- a/a.py\n+++ b/c.py\n@@ -1 +1 @@\n-a\n+b\n",
         "a patch cannot copy a file"),
    ],
)  # fmt: skip
async def test_what_is_no_patch_or_does_not_fit_is_refused(root: Path, apply: Tool, patch: str, sentence: str):
    before = tree(root)
    assert sentence in await refusal(apply, patch=patch)
    assert tree(root) == before


async def test_nothing_is_changed_if_one_file_does_not_fit(root: Path, apply: Tool):
    before = tree(root)
    wrong = BOTH["begun"].replace("*** Delete", "*** Update File: old.txt\n@@\n-odl\n+new\n*** Delete", 1)
    wrong = wrong.replace("*** Delete File: old.txt\n", "")
    assert await refusal(apply, patch=wrong) == (
        "'old.txt': hunk 1 does not fit: its lines were not found. In the file line 1 is the nearest:\n1: old\n"
        "Nothing was changed in any file."
    )
    assert tree(root) == before
    assert "names 'a.py' twice" in await refusal(apply, patch=BOTH["unified"] + "--- ./a.py\n+++ ./a.py\n@@ @@\n-x\n+y")


async def test_what_was_done_when_it_failed_in_the_middle_is_said_exactly(root: Path, apply: Tool):
    (root / "shut").mkdir()
    os.mkfifo(root / "shut/pipe")
    (root / "shut" / ("x" * 250)).write_text("x\n")  # a name that leaves room for itself alone, but not for `/y`
    patch = (
        "*** Begin Patch\n*** Update File: a.py\n@@\n-# end\n+# END\n*** Add File: old.txt/below\n+x\n"
        "*** Add File: last.txt\n+x\n*** End Patch\n"
    )
    # The first look cannot see that old.txt will be in the way, since nothing is there yet.
    (root / "old.txt").unlink()
    (root / "old.txt").symlink_to("nowhere")
    with pytest.raises(ToolError) as caught:
        await apply.run({"patch": patch}, CONTEXT)
    assert str(caught.value) == (
        "there is no 'old.txt/below'. The patch was applied in part. Done: changed a.py. Not tried: last.txt."
    )
    assert caught.value.changes == (
        FileChange("a.py", kept("def f():\n    return 1\n# end\n"), sha("def f():\n    return 1\n# END\n")[:12]),
    )
    assert (root / "a.py").read_text().endswith("# END\n")
    assert not (root / "last.txt").exists()


@pytest.mark.parametrize(
    "patch",
    [
        "*** Begin Patch\n*** Update File: a.py\n*** Move to: sub/z.py\n@@\n-# end\n+# END\n*** End Patch\n",
        "diff --git a/a.py b/sub/z.py\nrename from a.py\nrename to sub/z.py\n--- a/a.py\n+++ b/sub/z.py\n"
        "@@ -2,2 +2,2 @@\n     return 1\n-# end\n+# END\n",
    ],
)
async def test_a_file_is_moved(root: Path, apply: Tool, patch: str):
    await apply.run({"patch": patch}, CONTEXT)
    after = tree(root)
    assert after == {"old.txt": "old\n", "sub/z.py": "def f():\n    return 1\n# END\n"}
    said = await apply.run({"patch": patch}, CONTEXT)
    assert tree(root) == after
    assert said.changes == (FileChange("sub/z.py", "new", sha(after["sub/z.py"])[:12]),)


async def test_a_patch_of_files_that_are_too_large_together_is_refused(root: Path, apply: Tool):
    names = [f"large{number}.txt" for number in range(10)]
    for name in names:
        (root / name).write_text("first\n" + "x" * 8_000_000)
    updates = "".join(f"*** Update File: {name}\n@@\n-first\n+second\n" for name in names)
    said = await refusal(apply, patch=f"*** Begin Patch\n{updates}*** End Patch")
    assert said == "the files of the patch have more than 64 MiB together; patch fewer at once"
    assert {(root / name).read_text()[:6] for name in names} == {"first\n"}


async def test_names_of_a_copy_beside_the_file_are_no_move(root: Path, apply: Tool):
    await apply.run({"patch": "--- a.py.orig\n+++ a.py\n@@ -3 +3 @@\n-# end\n+# END\n"}, CONTEXT)
    assert tree(root) == {"old.txt": "old\n", "a.py": "def f():\n    return 1\n# END\n"}


async def test_a_link_is_not_deleted(root: Path, apply: Tool):
    (root / "link").symlink_to("a.py")
    said = await refusal(apply, patch="*** Begin Patch\n*** Delete File: link\n*** End Patch")
    assert said == "'link' is a link, not a regular file"
    assert (root / "link").is_symlink()


async def test_a_file_that_is_not_as_expected_is_left_alone(root: Path, apply: Tool):
    wrong = {"a.py": "0" * 12}
    assert "'a.py' is not what was expected" in await refusal(apply, patch=BOTH["begun"], expected_sha=wrong)
    assert "which the patch does not" in await refusal(apply, patch=BOTH["begun"], expected_sha={"b": "0" * 12})
    assert "old.txt" in tree(root)


@pytest.mark.parametrize(
    ("text", "hunk", "result"),
    [
        ("a\nb\nc\n", Hunk(("b",), ("x",)), "a\nx\nc\n"),
        ("a\nb\nb\n", Hunk(("b",), ("x",), line=3), "a\nb\nx\n"),
        ("a\n", Hunk(("a",), ("a", "b"), kept_before=1), "a\nb\n"),
        ("a\nb\n", Hunk(("a",), ("a", "b"), kept_before=1), "a\nb\n"),
        ("a\nc\n", Hunk(("a", "b", "c"), ("a", "c"), kept_before=1, kept_after=1), "a\nc\n"),
        ("", Hunk((), ("a",), line=0), "a\n"),
        ("a\n", Hunk((), ("b",)), "a\nb\n"),
        ("a\nb\n", Hunk((), ("b",)), "a\nb\n"),
        ("a\r\nb\r\n", Hunk(("b",), ("x", "y")), "a\r\nx\r\ny\r\n"),
        ("a\nb", Hunk(("b",), ("x",)), "a\nx"),
        ("a\nb", Hunk(("b",), ("x",), ends_bare=False), "a\nx\n"),
        ("a\n", Hunk(("a",), ()), ""),
        ("f\nx\ng\nx\n", Hunk(("x",), ("y",), anchor="g"), "f\nx\ng\ny\n"),
    ],
)
def test_a_hunk_gives_what_was_asked_for_once(text: str, hunk: Hunk, result: str):
    assert patched(text, [hunk]) == result
    if hunk.new:  # that lines are gone cannot be seen
        assert patched(result, [hunk]) == result


@pytest.mark.parametrize(
    ("text", "hunk", "sentence"),
    [
        ("a\nb\na\n", Hunk(("a",), ("x",)), "hunk 1 fits in 2 places (lines 1, 3); give more lines around the change"),
        ("a\n", Hunk(("b", "a"), ("a",), kept_after=1), "hunk 1 does not fit: its lines were not found."),
        ("a\na\na\n", Hunk(("a", "a"), ("a",), line=1),
         "the patch would fit its own result once more; give more lines around the change"),
        ("a\n", Hunk((), ("b",), line=7), "hunk 1 adds lines after line 7, but there are only 1"),
        ("abc\n", Hunk(("x",), ("y",), anchor="abd"),
         "hunk 1: there is no line 'abd'. In the file line 1 is the nearest:\n1: abc"),
    ],
)  # fmt: skip
def test_a_hunk_that_is_not_clear_is_refused(text: str, hunk: Hunk, sentence: str):
    with pytest.raises(ToolError) as caught:
        patched(text, [hunk])
    assert str(caught.value).startswith(sentence)


LINES = st.lists(st.sampled_from("ab "), max_size=6)


@given(LINES, st.lists(st.tuples(LINES, LINES, st.none() | st.integers(0, 6)), min_size=1, max_size=2))
def test_a_second_run_changes_nothing_whatever_the_patch(lines: list[str], changes: list[tuple]):
    hunks = [Hunk(tuple(old), tuple(new), line) for old, new, line in changes]
    text = "".join(f"{line}\n" for line in lines)
    try:
        once = patched(text, hunks)
    except ToolError:
        return
    try:
        assert patched(once, hunks) == once
    except ToolError:
        return


@given(LINES, LINES)
def test_what_diff_says_of_two_texts_makes_the_one_the_other(one: list[str], other: list[str]):
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (one, other))
    diff = "\n".join(difflib.unified_diff(one, other, "a/x", "b/x", lineterm=""))
    if not diff or not before:
        return
    (file,) = parse(diff)
    try:
        result = patched(before, file.hunks)
    except ToolError:
        return  # it would fit once more
    assert result in (after, before)  # before: it looks as if it had been done already


@pytest.mark.parametrize(
    ("text", "hunk"),
    [
        ("\n" * 4_000_000, Hunk(("", "", ""), ("", "x", ""))),
        ("a\nb\n" * 500_000, Hunk(("a", "b") * 1000 + ("c",), ("d",))),
        ("a\n" * 100_000, Hunk(("a",), ("a",) * 50_000 + ("b",), line=60_000)),
    ],
)
def test_a_patch_that_would_take_minutes_is_given_up(text: str, hunk: Hunk):
    with pytest.raises(ToolError) as caught:
        patched(text, [hunk])
    assert str(caught.value) == "the patch takes too long to be fitted into this file; use edit_file, or fewer hunks"


def test_a_line_that_is_said_is_not_searched_for():
    assert patched("\n" * 4_000_000, [Hunk(("", "", ""), ("", "x", ""), line=7)]) == "\n" * 7 + "x" + "\n" * 3_999_993


def test_a_removed_line_that_looks_like_a_header_is_a_line():
    (file,) = parse("--- a/x\n+++ b/x\n@@ -1,2 +1,1 @@\n--- old\n keep\n")
    assert file == FilePatch("x", "update", (Hunk(("-- old", "keep"), ("keep",), 1, kept_after=1),))
