"""The log file, and `everloop logs` as people use it."""

import asyncio
import logging
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import pytest
from tests.cli.person import SECRET, Person, Ran, is_one_plain_sentence

from everloop.app.log_tail import Tail, parse
from everloop.cli.logbook import KEPT, LogFile, line_of, masked
from everloop.cli.logs import to_text
from everloop.ports.log_context import LogContext, log_context
from everloop.ports.log_lines import LogLine
from everloop.testing import Say

Fault = tuple[type[BaseException], BaseException, TracebackType | None]


def record(message: str, level: int = logging.WARNING, fault: Fault | None = None, **extra: Any) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "everloop.x", "msg": message, "levelno": level, "exc_info": fault, **extra})
    made.levelname = logging.getLevelName(level)
    return made


def lines_in(path: Path) -> list[LogLine]:
    return [parse(line) for line in path.read_bytes().splitlines()]


def log_of(person: Person) -> Path:
    return person.home / "logs" / "everloop.log"


def line(time: str, message: str, **more: Any) -> LogLine:
    return LogLine(f"2026-11-15T{time}.000Z", more.pop("level", "warning"), "everloop.x", message, **more)


def write_log(person: Person, *lines: LogLine) -> None:
    log_of(person).parent.mkdir(parents=True, exist_ok=True)
    log_of(person).write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in lines))


class TestTheFile:
    def test_a_line_has_the_error_and_the_turn_it_belongs_to(self):
        token = log_context.set(LogContext("page:x", "abc", 5))
        try:
            told = line_of(record("it failed", error_id="abc-7", created=0.5, process=3))
        finally:
            log_context.reset(token)
        assert told == LogLine(
            *("1970-01-01T00:00:00.500Z", "warning", "everloop.x", "it failed"),
            *(3, "abc-7", "page:x", "abc", 5),
        )

    def test_what_python_said_stands_under_it_without_its_secrets(self):
        try:
            raise ValueError("no: sk-canary-0123456789")
        except ValueError:
            fault = sys.exc_info()
        told = line_of(record("with sk-canary-0123456789", logging.ERROR, fault))  # type: ignore[arg-type]
        assert (told.message, told.detail.splitlines()[-1]) == ("with ***", "ValueError: no: ***")

    @pytest.mark.parametrize(
        "text, shown",
        [
            ("http://me:hunter22@host/x", "http://me:***@host/x"),
            ("Authorization: Bearer abcdefgh.ijkl=", "Authorization: Bearer ***"),
            ("{'api_key': 'abcdefghijkl', 'n': 1}", "{'api_key': '***', 'n': 1}"),
            ("GET /login?code=abcdef&x=1", "GET /login?code=***&x=1"),
            ("the token ev_0123456789abcdef is void", "the token *** is void"),
            ("set OPENAI_API_KEY, at most 12345678 tokens: wait", "set OPENAI_API_KEY, at most 12345678 tokens: wait"),
        ],
    )
    def test_what_looks_like_a_secret_is_taken_out_and_nothing_else(self, text, shown):
        assert masked(text) == shown

    def test_it_is_the_owners_alone(self, tmp_path: Path):
        path = tmp_path / "home" / "logs" / "everloop.log"
        book = LogFile(path)
        assert not path.parent.exists()
        book.emit(record("one"))
        book.close()
        modes = [each.stat().st_mode & 0o777 for each in (path, path.parent, path.parent.parent)]
        assert modes == [0o600, 0o700, 0o700]

    def test_it_is_put_aside_when_it_is_large_and_the_oldest_goes(self, tmp_path: Path):
        path = tmp_path / "logs" / "everloop.log"
        books = [LogFile(path, 1000), LogFile(path, 1000)]  # as two processes have it open
        for number in range(200):
            books[number % 2].emit(record(f"{number:03}"))
        for book in books:
            book.close()
        names = ["everloop.log", *(f"everloop.log.{number}" for number in range(1, KEPT + 1))]
        assert sorted(each.name for each in path.parent.iterdir()) == names
        told = [each.message for name in reversed(names) for each in lines_in(path.parent / name)]
        assert told == [f"{number:03}" for number in range(200 - len(told), 200)]
        assert all((path.parent / name).stat().st_size < 1000 + 200 for name in names)

    def test_what_cannot_be_written_or_formatted_disturbs_nobody(self, tmp_path: Path):
        (tmp_path / "logs").write_text("no folder")
        book = LogFile(tmp_path / "logs" / "everloop.log")
        book.emit(record("one"))
        book.emit(logging.makeLogRecord({"msg": "%d", "args": ("x",)}))
        book.close()
        assert (tmp_path / "logs").read_text() == "no folder"

    def test_a_reader_follows_it_into_the_next_file(self, tmp_path: Path):
        path = tmp_path / "logs" / "everloop.log"
        book = LogFile(path, 400)
        book.emit(record("0"))
        read = list[str]()
        with Tail(path) as tail:
            for number in range(1, 10):
                book.emit(record(str(number)))
                read += [each.message for each in tail.read()]
        book.close()
        assert (read, len(list(path.parent.iterdir())) > 2) == ([str(number) for number in range(10)], True)


def test_a_line_is_shown_with_where_it_belongs_and_cannot_steer_the_terminal():
    told = LogLine(
        "2026-11-15T09:30:00.000Z", "error", "everloop.driver", "bad \x1b[2J", 1, "ab-7", "page:x", "ab", 3, "A\nB"
    )
    assert to_text(told).partition(" ERROR   ")[2] == (
        "driver: bad \\u001b[2J (error ab-7, page:x, turn ab:3)\n    A\n    B"
    )


class TestTheCommand:
    async def test_without_a_log_it_says_so(self, person):
        ran = await person.run("logs")
        assert (ran.status, ran.out, ran.err.startswith("There is no log yet: ")) == (0, "", True)
        assert (await person.run("logs", "--error", "ab-7")).status == 1

    async def test_an_error_is_found_by_the_id_that_the_person_was_told(self, person, model):
        person.environment["EVERLOOP_PROVIDERS__CUSTOM__API_BASE"] = "http://127.0.0.1:9"
        failed = await person.run("agent", "-m", "hi")
        id = failed.err.partition("(error ")[2].partition(")")[0]
        shown = await person.run("logs", "--error", id, "--json")
        told = msgspec.json.decode(shown.out, type=LogLine)
        assert (failed.status, told.error, told.session, told.level) == (1, id, "cli:direct", "warning")
        assert (told.turn, id.partition("-")[0]) == (1, told.thread[:6])
        assert SECRET not in log_of(person).read_text()
        assert (await person.run("logs", "--error", f"(error {id})", "--json")).out == shown.out
        unknown = await person.run("logs", "--error", "abc-1")
        assert (unknown.status, unknown.out, is_one_plain_sentence(unknown.err)) == (1, "", True)

    async def test_lines_are_chosen_by_level_session_time_and_number(self, person):
        one = line("09:00:00", "one", session="page:a", thread="aa11", turn=1)
        two = line("10:00:00", "two", level="error", session="page:b", thread="bb22")
        three = line("11:00:00", "three", level="info")
        write_log(person, one, two, three)

        async def told(*arguments: str) -> list[str]:
            ran = await person.run("logs", "--json", *arguments)
            assert ran.status == 0
            return [msgspec.json.decode(each)["message"] for each in ran.out.splitlines()]

        person.environment["TZ"] = "UTC"
        assert await told() == ["one", "two", "three"]
        assert await told("--level", "warning") == ["one", "two"]
        assert await told("--session", "page:a") == ["one"]
        assert await told("--session", "bb2") == ["two"]
        assert await told("--since", "2026-11-15T09:30") == ["two", "three"]
        assert await told("-n", "1") == ["three"]
        assert await told("-n", "1", "--level", "error") == ["two"]

    async def test_older_files_are_read_first_and_what_is_not_json_as_it_is(self, person):
        write_log(person, line("09:00:00", "new"))
        log_of(person).with_name("everloop.log.1").write_text("an older line\n")
        ran = await person.run("logs")
        assert ran.out.splitlines()[0] == "an older line"
        assert ran.out.splitlines()[1].endswith("WARNING x: new")

    async def test_nothing_that_fits_is_said_on_stderr(self, person):
        write_log(person, line("09:00:00", "one"))
        assert await person.run("logs", "--level", "error") == Ran(0, "", "Nothing in the log fits.\n")

    @pytest.mark.parametrize("wrong", [("--since", "soon"), ("-n", "0"), ("--error", "a b"), ("--level", "loud")])
    async def test_a_wrong_option_is_refused(self, person, wrong):
        ran = await person.run("logs", *wrong)
        assert (ran.status, ran.out) == (2, "")

    async def test_following_waits_for_a_log_that_is_not_there_yet(self, person):
        process = await person.start("logs", "-f", "--json")
        assert process.stdout is not None
        async with asyncio.timeout(60):
            write_log(person, line("09:00:00", "one"))
            first = await process.stdout.readline()
            process.terminate()
            await process.communicate()
        assert parse(first) == line("09:00:00", "one")

    async def test_following_shows_what_comes(self, person):
        write_log(person, line("09:00:00", "one", level="error"))
        process = await person.start("logs", "--follow", "--level", "error")
        assert process.stdout is not None
        async with asyncio.timeout(60):
            first = await process.stdout.readline()
            with log_of(person).open("ab") as file:
                for each in (line("10:00:00", "two"), line("11:00:00", "three", level="error")):
                    file.write(msgspec.json.encode(each) + b"\n")
            second = await process.stdout.readline()
            process.terminate()
            await process.communicate()
        assert [each.split()[-1] for each in (first, second)] == [b"one", b"three"]

    async def test_the_gateway_writes_where_it_listens_and_not_the_link(self, person, model):
        model.play([Say("hello")])
        process = await person.start("gateway", "--port", "0")
        assert process.stderr is not None
        url = (await process.stderr.readline()).decode().split()[-1]
        link = (await process.stderr.readline()).decode().split()[-1]
        process.terminate()
        await process.communicate()
        told = lines_in(log_of(person))
        how, *rest = [each.message for each in told]
        assert (how.split(" (")[0], rest) == (
            "Facts are found by their words and their meaning",
            [f"the gateway listens at {url}", "the gateway stops"],
        )
        assert {(each.level, each.logger, each.process) for each in told} == {("info", "everloop.gateway", process.pid)}
        assert link.partition("code=")[2] not in log_of(person).read_text()
        assert os.stat(log_of(person)).st_mode & 0o777 == 0o600
