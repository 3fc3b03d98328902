"""Failpoints: off by default, refused outside tests, and doing what they are told in a real process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from everloop.ports import failpoint
from everloop.ports.failpoint import reach
from everloop.testing import failpoints

PROGRAM = """
import sys
from everloop.ports.failpoint import reach
from everloop.testing import failpoints
failpoints.from_environment()
for name in ("first", "second", "second"):
    reach(name)
    print(name, flush=True)
"""


@pytest.fixture(autouse=True)
def _armed_only_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EVERLOOP_TEST", "1")
    yield
    failpoints.disarm()


def started(**environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )


def ended(**environment: str) -> tuple[str, int]:
    with started(**environment) as process:
        output, _ = process.communicate(timeout=30)
        return output, process.returncode


def test_reaching_a_failpoint_does_nothing_when_none_is_armed():
    reach("anything")
    assert failpoint.hook is None


def test_a_failpoint_acts_at_the_nth_time_only():
    reached: list[str] = []
    failpoints.arm("here", 2, reached.append)
    counts = []
    for name in ("here", "there", "here", "here"):
        reach(name)
        counts.append(len(reached))
    assert counts == [0, 0, 1, 1]


def test_one_that_raises_raises():
    failpoints.arm("here", action="raise")
    with pytest.raises(failpoints.Reached, match="here"):
        reach("here")


def test_a_disarmed_failpoint_does_nothing():
    failpoints.arm("here", action="raise")
    failpoints.disarm()
    reach("here")


def test_outside_tests_arming_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("EVERLOOP_TEST")
    with pytest.raises(failpoints.NotUnderTest, match="EVERLOOP_TEST=1"):
        failpoints.arm("here")
    monkeypatch.setenv("EVERLOOP_FAILPOINT", "here:1:kill")
    with pytest.raises(failpoints.NotUnderTest, match="EVERLOOP_TEST=1"):
        failpoints.from_environment()
    assert failpoint.hook is None


@pytest.mark.parametrize("text", ["here", "here:1", "here:often:kill", "here:1:explode", "here:0:kill"])
def test_a_failpoint_that_cannot_be_understood_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVERLOOP_FAILPOINT", text)
    with pytest.raises(ValueError):
        failpoints.from_environment()


def test_without_the_variables_a_process_runs_on():
    assert ended() == ("first\nsecond\nsecond\n", 0)


def test_kill_ends_the_process_with_sigkill():
    assert ended(EVERLOOP_FAILPOINT="second:2:kill") == ("first\nsecond\n", -signal.SIGKILL)


def test_exit_ends_the_process_with_its_code():
    assert ended(EVERLOOP_FAILPOINT="second:1:exit") == ("first\n", failpoints.EXIT_CODE)


def test_stop_freezes_the_process_until_it_is_continued():
    with started(EVERLOOP_FAILPOINT="second:1:stop") as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate(timeout=30)
        assert (output, process.returncode) == ("first\nsecond\nsecond\n", 0)


def test_a_recording_holds_every_name_reached_also_by_a_process_that_was_killed(tmp_path: Path):
    path = tmp_path / "reached.jsonl"
    ended(EVERLOOP_FAILPOINT_RECORD=str(path), EVERLOOP_FAILPOINT="second:2:kill")
    assert failpoints.reached_in(path) == ["first", "second", "second"]


def test_the_names_are_found_in_the_source(tmp_path: Path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text('def f():\n    reach("b.second")\n    # reach("no")\n')
    (tmp_path / "b.py").write_text('failpoint.reach("a.first")\nother.reach(1)\nreach("b.second")\n')
    assert failpoints.names_in_source(tmp_path) == ["a.first", "b.second"]


def test_a_name_that_is_not_written_out_is_found_too(tmp_path: Path):
    (tmp_path / "a.py").write_text("reach(name)\n")
    with pytest.raises(ValueError, match=r"a\.py:1"):
        failpoints.names_in_source(tmp_path)
