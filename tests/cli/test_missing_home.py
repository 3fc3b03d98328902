"""Commands in a home that is not there, as after a mistake in its name."""

import asyncio
import contextlib
import io
import os
import re
import sys
from pathlib import Path

import pytest
from tests.cli.person import Person, is_one_plain_sentence

from everloop.cli import NO_TEXT, run
from everloop.testing import Say
from everloop.testing.model_server import ModelServer

LOOKING = [
    *("status", "tokens", "users", "channels", "personas", "mcp", "secrets", "approvals"),
    *("sessions", "memory", "cron", "heartbeat", "context", "files", "outbox", "tasks", "usage", "audit", "logs"),
    *("backup", "config", "service", "doctor", "completion bash"),
]
WITHOUT = ("config", "service", "doctor", "completion bash")  # tell what holds where nothing is, too


@pytest.mark.parametrize("command", LOOKING)
async def test_who_looks_into_a_home_that_is_not_there_is_told_so_and_none_is_made(person: Person, command: str):
    person.environment["EVERLOOP_HOME"] = missing = str(person.home / "typo")
    ran = await person.run(*command.split())
    how = "`everloop onboard` makes one there; where it is, EVERLOOP_HOME says"
    told = f"everloop: there is no home at {missing}: {how}\n"
    assert (ran.status, ran.out, ran.err) == (1, "", told) or (command in WITHOUT and not ran.status)
    assert not (person.home / "typo").exists()


async def shell(person: Person, line: str) -> tuple[int | None, str, str]:
    """`everloop` in a line for sh, as $E; how it ended, and what it said."""
    pipe, environment = asyncio.subprocess.PIPE, {**person.environment, "E": f"{sys.executable} -m everloop"}
    started = await asyncio.create_subprocess_exec("sh", "-c", line, stdout=pipe, stderr=pipe, env=environment)
    out, err = await started.communicate()
    return started.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(("closed", "out"), [("<&-", "Hello.\n"), (">&-", ""), ("<&- >&- 2>&-", "")])
async def test_a_standard_stream_that_is_closed_keeps_nobody_from_an_answer(
    person: Person, model: ModelServer, closed: str, out: str
):
    model.play([Say("Hello.")])
    assert await shell(person, f"$E -m hi {closed}") == (0, out, "")
    assert model.calls == 1


async def test_a_folder_that_is_gone_matters_only_to_a_home_that_lies_in_it(person: Person, model: ModelServer):
    model.play([Say("Hello.")])
    gone = f"mkdir {person.home}-gone && cd {person.home}-gone && rmdir {person.home}-gone && "
    assert (await shell(person, f"{gone}$E -m hi"))[:2] == (0, "Hello.\n")
    person.environment["EVERLOOP_HOME"] = "here"
    for command in ("status", "doctor", "-m hi"):
        status, out, err = await shell(person, f"{gone}$E {command}")
        assert (status, out, is_one_plain_sentence(err), "is gone" in err) == (1, "", True, True)


class Torn(io.StringIO):
    """A place to print to that fails as nobody has foreseen."""

    def write(self, text: str) -> int:
        raise RuntimeError("torn")


def test_what_nobody_has_put_into_words_is_a_sentence_and_the_log_has_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("EVERLOOP_HOME", str(tmp_path))
    with contextlib.redirect_stdout(Torn()), contextlib.redirect_stderr(io.StringIO()) as err:
        assert run(["completion", "bash"]) == 1
    found = re.fullmatch(
        r"everloop: something went wrong in everloop itself \(RuntimeError: torn\); everloop logs --error "
        r"([0-9a-f]{8}) has the details, for a report\n",
        err.getvalue(),
    )
    assert found
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run(["logs", "--error", found[1]]) == 0
    assert "RuntimeError: torn" in out.getvalue()


def test_bytes_that_are_no_text_are_no_fault_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVERLOOP_HOME", str(tmp_path))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        assert run(["cron", "add", "every 1d", os.fsdecode(b"\x80")]) == 2
    assert err.getvalue() == f"everloop: {NO_TEXT}\n"


async def test_what_keeps_something_may_be_the_first_in_a_home(person: Person):
    person.environment["EVERLOOP_HOME"] = str(person.home / "new")
    assert (await person.run("secrets", "set", "pin", typed=b"4711\n")).status == 0
    assert (person.home / "new").exists()
