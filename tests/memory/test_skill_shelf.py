"""The shelf of skills: read once, and again when a file has changed."""

import os
from pathlib import Path

from everloop.core.people import Role
from everloop.memory.skills.shelf import Requirements, SkillShelf, WorkspaceSkill

NEEDS = Requirements(lambda name: name == "sh")


def written(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "SKILL.md").write_text(text)
    for path in (folder / name / "SKILL.md", folder):
        os.utime(path, (1e9, 1e9 + len(text)))  # long ago: what is fresh is read again anyway


def test_it_is_the_same_tuple_until_a_file_has_changed_and_then_another(tmp_path: Path):
    written(tmp_path, "one", "The first.")
    shelf = SkillShelf(lambda principal: tmp_path, (), NEEDS)
    before = [shelf.of("owner", Role.OWNER, {}) for _ in range(2)]
    guests = [shelf.of("web:guest", Role.GUEST, {}) for _ in range(2)]
    written(tmp_path, "one", "The second one.")
    after = shelf.of("owner", Role.OWNER, {})
    written(tmp_path, "two", "Another.")
    more = shelf.of("owner", Role.OWNER, {})
    assert before[0] is before[1]
    assert guests == [(), ()]
    described = [{each.skill.name: each.skill.description for each in found} for found in (before[0], after, more)]
    assert [found["one"] for found in described] == ["The first.", "The second one.", "The second one."]
    assert ["two" in found for found in described] == [False, False, True]


def test_what_is_wrong_in_the_workspace_hides_what_is_installed_and_says_so(tmp_path: Path):
    written(tmp_path, "one", "The installed one.")
    shelf = SkillShelf(lambda principal: tmp_path, (), NEEDS)
    found = shelf.of("owner", Role.OWNER, {"one": WorkspaceSkill(b"---\n")})
    (row,) = [each.row for each in found if each.skill.name == "one"]
    assert (row.source, row.state, row.hides) == ("workspace", "wrong", "installed")
