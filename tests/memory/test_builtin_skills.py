"""Our own skills are right: they parse, are short, and name no tool, command, setting or file that there is not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from everloop.cli import _completed as completed
from everloop.cli import build_parser
from everloop.cli.terminal import WrongUse
from everloop.memory.skills.review import warnings_of
from everloop.memory.skills.shelf import BUILT_IN, built_in
from everloop.memory.skills.unpack import SkillContent
from everloop.readings.commands import COMMANDS
from everloop.settings import Settings
from tests.test_docs import ROOT, settings

NAMES = ("data-analysis", "everloop", "github", "skill-writer", "summarise", "tmux", "weather")
TOOLS = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "tools.md").read_text(), re.MULTILINE))
SETTINGS = {name for name, _ in settings(Settings)}
FIELDS = {"latitude", "longitude", "country", "timezone", "weather_code", "offset", "background", "gh", "everloop"}
MODULES = {"csv", "json", "sqlite3", "statistics", "datetime", "openpyxl", "matplotlib"}


def text_of(name: str) -> str:
    return (BUILT_IN / name / "SKILL.md").read_text()


def test_those_are_ours_and_each_is_in_order():
    found = built_in()
    assert tuple(found) == NAMES
    assert [skill.wrong for skill in found.values() if skill.wrong] == []
    assert all(20 <= len(skill.description) <= 60 for skill in found.values())
    assert all(len(skill.body) < 4500 for skill in found.values())
    assert not any(skill.always for skill in found.values())


@pytest.mark.parametrize("name", NAMES)
def test_what_looks_like_a_tool_or_a_setting_is_one(name: str):
    quoted = re.findall(r"`([a-z0-9_.]+)`", text_of(name))
    words = {word for word in quoted if re.fullmatch(r"[a-z]+(_[a-z]+)*", word)} - FIELDS - MODULES
    assert words - TOOLS == set()
    sections = {key.split(".")[0] for key in SETTINGS}
    dotted = {word for word in quoted if re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", word)}
    assert {word for word in dotted if word.split(".")[0] in sections} - SETTINGS == set()


@pytest.mark.parametrize("name", NAMES)
def test_every_command_of_everloop_and_every_slash_command_is_understood(name: str):
    typed = [each for each in re.findall(r"`everloop(?: ([^`]*))?`", text_of(name)) if not each.startswith("COMMAND")]
    for line in typed:
        words = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)]
        if words[-1:] != ["--help"]:
            words = completed(words)
            build_parser(words[:1]).parse_args(words)
    slashes = re.findall(r"`(/[a-z]+)([^`]*)`", text_of(name))
    assert {command for command, _ in slashes} - COMMANDS.keys() == set()
    words = {(command, rest.split()[0]) for command, rest in slashes if rest.split() and COMMANDS[command].words}
    assert [pair for pair in words if pair[1].islower() and pair[1] not in COMMANDS[pair[0]].words] == []


def test_a_command_that_there_is_not_would_be_seen():
    with pytest.raises(WrongUse):
        build_parser(["skills"]).parse_args(["skills", "fetch", "x"])


@pytest.mark.parametrize("name", NAMES)
def test_files_that_a_skill_names_are_there(name: str):
    variable = "SKILL_" + name.upper().replace("-", "_")
    named = re.findall(rf"\${variable}/([\w./-]+)", text_of(name))
    assert [path for path in named if not (BUILT_IN / name / path).is_file()] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_review_finds_nothing_hidden_in_them(name: str):
    found = warnings_of({"SKILL.md": SkillContent((BUILT_IN / name / "SKILL.md").read_bytes())})
    assert [each for each in found if "speaks of" not in each] == []


def test_the_script_of_data_analysis_tells_what_is_in_a_table(tmp_path: Path):
    table = tmp_path / "t.csv"
    table.write_text("name;amount\nAnn;1,5\nBob;\nAnn;20\nx;1;2\n", encoding="utf-8")
    script = BUILT_IN / "data-analysis" / "scripts" / "columns.py"
    said = subprocess.run([sys.executable, "-I", script, table], check=True, capture_output=True, text=True).stdout
    assert said == (
        f"{table}: 4 rows, 2 columns, separator ';'\n1 rows have more or fewer cells than the first line\n"
        "- name: text, 'Ann' to 'x'; 3 different, 0 empty; 'Ann' 2x, 'Bob' 1x, 'x' 1x\n"
        "- amount: number, 1 to 20; 3 different, 1 empty; '1,5' 1x, '20' 1x, '1' 1x\n"
    )
