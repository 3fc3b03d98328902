"""What a machine lacks is skipped by name, and listed at the end; with EVERLOOP_NO_SKIPS=1 it is a failure.

A test that never ends is ended after the `timeout` in pyproject.toml. One that leaves a key lying open has an error;
`canary` tells what that means.
"""

import os
from collections.abc import Generator
from typing import TypeVar

import hypothesis
import pytest

from tests.canary import Ear, leaks_of

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

hypothesis.settings.register_profile("everloop", deadline=None, print_blob=True)  # a busy machine is no bug
hypothesis.settings.load_profile("everloop")

ear = Ear()

# What takes longest, by the beginnings of its names.
LONG = tuple(
    f"tests/{place}"
    for place in (
        *("torture/", "gateway/page/test_page_access", "gateway/api/test_schema", "providers/test_embedded"),
        *("tools/test_sandbox_escapes", "tools/test_home", "gateway/page/", "store/", "journeys/", "channels/"),
    )
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """It begins first, so that both workers end together: a file is one worker's."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "may_hold_keys(*names): the files of a test in which its keys may lie open")
    ear.listen()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield
    if leaks := [*ear.told(), *leaks_of(item)]:
        pytest.fail("\n".join(leaks), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _judge((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _judge((yield))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.getreports("skipped")
    if skipped:
        terminalreporter.section("skipped, because this machine lacks something")
    for report in skipped:
        terminalreporter.write_line(f"{report.nodeid}: {_reason(report)}")


def _judge(report: Report) -> Report:
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("EVERLOOP_NO_SKIPS"):
        report.longrepr = f"skipped, which EVERLOOP_NO_SKIPS forbids: {_reason(report)}"
        report.outcome = "failed"
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
