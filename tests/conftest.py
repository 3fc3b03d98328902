"""What a machine lacks is skipped by name, and listed at the end; with EVERLOOP_NO_SKIPS=1 it is a failure.

A test that never ends is ended after the `timeout` in pyproject.toml; one whose end never comes, with its process, and
says where it stood. One that leaves a key lying open has an error; `canary` tells what that means. What fails is told
at once, as a run that somebody ends has no summary.
"""

import faulthandler
import gc
import os
import signal
from collections.abc import Generator
from typing import TypeVar

import hypothesis
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

from tests.canary import EAR, leaks_of, printed_by
from tests.effort import FULL, THOROUGH
from tests.order import begin_elsewhere, in_turn

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

hypothesis.settings.register_profile(
    "everloop",
    max_examples=100 if FULL or not THOROUGH else 50,
    deadline=None,  # a busy machine is no bug
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize=not FULL,  # whoever runs `make test` sees what the others see
    database=None,
    print_blob=True,
)
hypothesis.settings.load_profile("everloop")

LIMIT = 120.0  # seconds, the `timeout` in pyproject.toml
PATIENCE = 60.0  # seconds for what pytest-timeout does not end: what holds its signal off, or comes after a failure


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = in_turn(items)


def pytest_collection_finish() -> None:
    """Thousands of tests stay in memory to the end; whoever looks for garbage need not look through them each time."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "shortened: `make torture` does more of it; see effort.py")
    config.addinivalue_line("markers", "may_hold_keys(*names): the files of a test in which its keys may lie open")
    EAR.listen()
    begin_elsewhere(config)
    # As in `make test &` and under nohup: what tests begin would never hear them.
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        config.pluginmanager.register(Teller(reporter))


class Teller:
    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = getattr(crash, "message", None) or str(report.longrepr)
            self._reporter.write_line(f"\nfailed: {report.nodeid} ({report.when}): {why[:500]}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    mark = item.get_closest_marker("timeout")
    _end_after(item, mark.args[0] if mark else LIMIT)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    _end_after(item, 0)
    yield
    if leaks := leaks_of(item):
        pytest.fail("\n".join(leaks), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = _judge((yield))
    if report.when == "teardown" and report.passed and (leaks := printed_by(report)):
        report.outcome, report.longrepr = "failed", "\n".join(leaks)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _judge((yield))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.getreports("skipped")
    if skipped:
        terminalreporter.section("skipped, because this machine lacks something")
    for report in skipped:
        terminalreporter.write_line(f"{report.nodeid}: {_reason(report)}")


def _end_after(item: pytest.Item, seconds: float) -> None:
    """Of this process, with what each of its threads was doing, if the test has not ended by then."""
    told = item.config.stash[fault_handler_stderr_fd_key]
    faulthandler.dump_traceback_later(seconds + PATIENCE, exit=True, file=told)


def _judge(report: Report) -> Report:
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("EVERLOOP_NO_SKIPS"):
        report.longrepr = f"skipped, which EVERLOOP_NO_SKIPS forbids: {_reason(report)}"
        report.outcome = "failed"
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
