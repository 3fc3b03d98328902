"""Faults of our own have a name, which the client is told and the log tells more under."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from everloop.cli.logbook import line_of
from everloop.errors import MailRefused, StoreFull, TurnFailed
from everloop.gateway.http.errors import Refused, noted, refused_by
from everloop.ports.log_lines import LogLine


class Ear(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[LogLine] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(line_of(record))


@contextmanager
def listening() -> Iterator[list[LogLine]]:
    ear, logger = Ear(), logging.getLogger("everloop.gateway")
    logger.addHandler(ear)
    try:
        yield ear.lines
    finally:
        logger.removeHandler(ear)


def test_a_fault_of_ours_is_told_with_the_id_that_the_log_has():
    fault = StoreFull("the disk is full")
    with listening() as lines:
        told = noted(refused_by(fault), fault, "page:a")
    (line,) = lines
    assert re.fullmatch(r"[0-9a-f]{8}", line.error)
    assert (told.status, told.code, told.message) == (503, "store", f"the disk is full (error {line.error})")
    assert (line.message, line.session, line.level) == (f"the disk is full (error {line.error})", "page:a", "error")
    assert line.detail.splitlines()[-1].endswith("StoreFull: the disk is full")


def test_what_the_client_did_wrong_or_a_turn_has_told_already_needs_no_id():
    with listening() as lines:
        for fault in (MailRefused("too long"), TurnFailed("it is down (error ab-1)", "server", "ab-1")):
            assert noted(refused_by(fault), fault).message == str(fault)
        assert noted(Refused(404, "not_found", "nothing here"), KeyError()).message == "nothing here"
    assert lines == []
