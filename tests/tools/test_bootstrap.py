"""The owner's files that every prompt begins with."""

import os
from pathlib import Path

import pytest

from everloop.core.prompt import Section
from everloop.tools.bootstrap import FILES, LONGEST, Bootstrap, make_workspace, without_comments
from everloop.tools.home import Home
from everloop.tools.workspace import Workspace

LONG_AGO = 1_000_000_000


class Opened(Workspace):
    """Counts how often a file is opened."""

    opens = 0

    def opened(self, path: str):
        self.opens += 1
        return super().opened(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def write(path: Path, text: str | bytes, at: int = LONG_AGO) -> None:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (at, at))


def told(root: Path) -> dict[str, str]:
    return {section.name: section.text for section in Bootstrap(Workspace(root)).sections()}


def test_the_files_are_read_in_their_order_from_the_root_alone(root):
    for name in ("IDENTITY.md", "USER.md", "AGENTS.md", "README.md"):
        write(root / name, f"from {name}")
    (root / "sub").mkdir()
    write(root / "sub" / "SOUL.md", "not this one")
    assert Bootstrap(Workspace(root)).sections() == tuple(
        Section(name.lower(), f"## {name}\n\nfrom {name}", name) for name in ("AGENTS.md", "USER.md", "IDENTITY.md")
    )


def test_comments_are_for_people_and_a_file_of_comments_says_nothing(root):
    write(root / "AGENTS.md", "<!-- what\nto write -->\nBe kind.<!-- or not -->\n")
    write(root / "USER.md", "<!-- who you are -->\n")
    assert told(root) == {"agents.md": "## AGENTS.md\n\nBe kind."}
    assert without_comments("a <!-- b") == "a <!-- b"


def test_a_long_file_is_cut_with_a_note(root):
    write(root / "AGENTS.md", "word " * LONGEST)
    (text,) = told(root).values()
    assert len(text) <= LONGEST
    assert text.endswith("word\n[… cut here; the rest is in AGENTS.md]")


def test_what_is_no_utf8_is_read_as_far_as_it_can_be(root):
    write(root / "SOUL.md", b"\xef\xbb\xbfgr\xfc\xdfe, \xe4\xbd\xa0")
    assert told(root) == {"soul.md": "## SOUL.md\n\ngr��e, 你"}


def test_a_link_that_leads_out_is_ignored_and_one_that_stays_inside_is_followed(root, tmp_path):
    write(tmp_path / "canary", "canary")
    write(root / "mine.md", "mine")
    (root / "AGENTS.md").symlink_to(tmp_path / "canary")
    (root / "SOUL.md").symlink_to("../canary")
    (root / "USER.md").symlink_to("mine.md")
    assert told(root) == {"user.md": "## USER.md\n\nmine"}


def test_the_home_that_lies_inside_is_not_read(root):
    (root / "home").mkdir()
    write(root / "home" / "config.toml", "canary")
    (root / "AGENTS.md").symlink_to("home/config.toml")
    assert Bootstrap(Workspace(root, hidden=Home(root / "home"))).sections() == ()
    assert len(Bootstrap(Workspace(root)).sections()) == 1


def test_what_is_no_file_is_ignored(root):
    os.mkfifo(root / "AGENTS.md")
    (root / "SOUL.md").mkdir()
    assert told(root) == {}
    assert told(root / "nowhere") == {}


def test_nothing_is_opened_while_nothing_has_changed(root):
    write(root / "AGENTS.md", "one")
    workspace = Opened(root)
    bootstrap = Bootstrap(workspace)
    first = bootstrap.sections()
    assert bootstrap.sections() is first
    assert workspace.opens == 1
    write(root / "AGENTS.md", "two", LONG_AGO + 1)
    assert [section.text for section in bootstrap.sections()] == ["## AGENTS.md\n\ntwo"]
    (root / "AGENTS.md").unlink()
    assert bootstrap.sections() == ()


def test_a_file_that_is_written_twice_in_a_moment_is_seen_both_times(root):
    bootstrap = Bootstrap(Workspace(root))
    seen = []
    for text in ("one", "two", "six"):
        (root / "AGENTS.md").write_text(text)
        seen += [section.text for section in bootstrap.sections()]
    assert seen == [f"## AGENTS.md\n\n{text}" for text in ("one", "two", "six")]


def test_a_file_that_is_written_anew_with_the_same_words_changes_nothing(root):
    write(root / "AGENTS.md", "one")
    bootstrap = Bootstrap(Workspace(root))
    first = bootstrap.sections()
    write(root / "AGENTS.md", "one", LONG_AGO + 1)
    assert bootstrap.sections() is first


def test_a_new_workspace_is_filled_once(tmp_path):
    folder = tmp_path / "deep" / "workspace"
    make_workspace(folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == FILES
    assert os.listdir(folder.parent) == ["workspace"]
    (folder / "SOUL.md").unlink()
    (folder / "USER.md").write_text("Ann")
    make_workspace(folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        **{name: text for name, text in FILES.items() if name != "SOUL.md"},
        "USER.md": "Ann",
    }


def test_a_workspace_that_is_there_is_not_touched(root):
    make_workspace(root)
    assert os.listdir(root) == []


def test_the_files_of_a_new_workspace_are_worth_their_tokens(tmp_path):
    make_workspace(tmp_path / "workspace")
    assert sum(map(len, FILES.values())) / 4 <= 250
    assert sum(map(len, told(tmp_path / "workspace").values())) / 4 <= 120
