"""Counting tools, their repeats, and a file that survives the death of its writers."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everloop.core.tool import Effect, ToolCall, problems_of
from everloop.ports.tools import CallContext
from everloop.testing import counting_tool, effects_in, outside, repeats_in, runs_in
from everloop.testing.effects import Ran

CONTEXT = CallContext("t:1:0", "t", "cli:direct", "owner")


def ran(effect: Effect, key: str = "t:1:0") -> Ran:
    return Ran(key, "pay", {"sum": 5}, os.getpid(), effect)


@pytest.mark.parametrize("effect", list(Effect))
async def test_a_run_leaves_one_effect(effect: Effect, tmp_path: Path):
    tool = counting_tool(tmp_path / "effects", "pay", effect)
    assert await tool.run({"sum": 5}, CONTEXT) == "pay: done"
    assert effects_in(tmp_path / "effects") == [ran(effect)]
    assert tool.spec.effect is effect


async def test_a_keyed_tool_has_one_effect_a_key(tmp_path: Path):
    path = tmp_path / "effects"
    other = CallContext("t:3:0", "t", "cli:direct", "owner")
    for context in (CONTEXT, CONTEXT, other):
        await counting_tool(path, "pay", Effect.KEYED).run({"sum": 5}, context)
    assert effects_in(path) == [ran(Effect.KEYED), ran(Effect.KEYED, "t:3:0")]
    assert repeats_in(path) == [ran(Effect.KEYED)]
    assert len(runs_in(path)) == 3


async def test_an_unsafe_tool_that_runs_twice_has_two_effects(tmp_path: Path):
    tool = counting_tool(tmp_path / "effects", "pay", Effect.UNSAFE)
    await tool.run({"sum": 5}, CONTEXT)
    await tool.run({"sum": 5}, CONTEXT)
    assert effects_in(tmp_path / "effects") == [ran(Effect.UNSAFE)] * 2


async def test_a_verifiable_tool_can_be_asked_whether_it_ran(tmp_path: Path):
    tool = counting_tool(tmp_path / "effects", "pay", Effect.VERIFIABLE)
    assert tool.verify is not None
    assert await tool.verify({}, CONTEXT) is None
    await tool.run({}, CONTEXT)
    assert await tool.verify({}, CONTEXT) == "pay: done"


def test_any_arguments_are_well_formed(tmp_path: Path):
    spec = counting_tool(tmp_path / "effects", "pay", Effect.KEYED).spec
    assert problems_of(ToolCall("c", "pay", '{"whatever": [1]}'), spec) == []


def test_nothing_has_happened_where_there_is_no_file(tmp_path: Path):
    assert effects_in(tmp_path / "effects") == []


def test_what_was_written_survives_a_kill_right_after_it(tmp_path: Path):
    program = "import os, pathlib, sys; from everloop.testing import outside\n" + (
        "outside.append(pathlib.Path(sys.argv[1]), {'n': 1}); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], check=False)
    assert done.returncode == -signal.SIGKILL
    assert outside.records_in(tmp_path / "file") == [{"n": 1}]


def test_a_torn_line_does_not_swallow_the_next(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b'{"n":1}\n{"n":')
    outside.append(path, {"n": 3})
    assert outside.records_in(path) == [{"n": 1}, {"n": 3}]


def test_writers_in_several_processes_do_not_mix_their_lines(tmp_path: Path):
    program = "import pathlib, sys; from everloop.testing import outside\n" + (
        "for n in range(500): outside.append(pathlib.Path(sys.argv[1]), {'by': sys.argv[2], 'n': n, 'pad': 'x' * 200})"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "file")]
    writers = [subprocess.Popen([*command, str(number)]) for number in range(4)]
    assert [writer.wait(timeout=60) for writer in writers] == [0] * 4
    records = outside.records_in(tmp_path / "file")
    assert [sum(record["by"] == str(number) for record in records) for number in range(4)] == [500] * 4
