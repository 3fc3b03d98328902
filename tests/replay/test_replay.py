"""What has happened happens again, and what does not is shown where it first differs."""

import logging
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.replay.chaos import SPECS, Chaos

from everloop.core.errors import ReplayRefused
from everloop.core.log import (
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    Entry,
    GaveUp,
    ModelCalled,
    ModelChosen,
    ModelFailed,
    ModelSaid,
    Resumed,
    Standing,
    Stopped,
    UserSaid,
)
from everloop.core.message import Media, Text, said
from everloop.core.tool import Effect, ToolCall, ToolSpec
from everloop.replay import Record, Replayed, cut, replay, turns_in
from everloop.testing import Stub
from everloop.testing.entry_difference import plain


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


async def again(log: list[Entry], seq: int = 1, *specs: ToolSpec) -> Replayed:
    return await replay(cut(log, seq, specs), {spec.name: spec for spec in specs})


async def expect_the_same(record: Record, *specs: ToolSpec) -> None:
    replayed = await replay(record, {spec.name: spec for spec in specs})
    assert str(replayed.difference) == "None"
    assert [plain(entry, "risk") for entry in replayed.entries] == [plain(entry, "risk") for entry in record.turn]


@settings(max_examples=30)
@given(seed=st.integers(0, 1 << 32), known=st.booleans())
async def test_whatever_has_happened_happens_again(seed: int, known: bool):
    """Also a turn that is not over, wherever its log ends."""
    chance = Random(seed)
    with TemporaryDirectory() as home:
        log = await Chaos.live(chance, Path(home))
    specs = SPECS if known else []
    for seq in turns_in(log):
        await expect_the_same(cut(log, seq, specs), *specs)
    beginning = log[: chance.randrange(1, len(log) + 1)]
    await expect_the_same(cut(beginning, turns_in(beginning)[-1], specs), *specs)


HELLO = UserSaid(said("hello"), "owner", "cli:direct", 1)
CALLED = ModelCalled("m", "Current time: noon\nChannel: cli, chat: direct")
LOOK, ACT = ToolCall("c1", "look", "{}"), ToolCall("c2", "act", "{}")
DONE = ModelSaid("done")
DENIED = "The user did not allow this."


def log_with(*between: Entry) -> list[Entry]:
    return [HELLO, CALLED, *between, CALLED, DONE]


WORK = [HELLO, CALLED, ModelSaid("", (LOOK, ACT)), CallReturned(3, 0, "seen"), CallStarted(3, 1), CallReturned(3, 1, "did"), CALLED, DONE]  # fmt: skip
ASKED = [HELLO, CALLED, ModelSaid("", (ACT,)), Asked(3, 0), Answered(3, 0, "denied", "owner"), CallReturned(3, 0, DENIED, "denied"), CALLED, DONE]  # fmt: skip
FAILED = [HELLO, CALLED, ModelFailed("key", "no key"), GaveUp("key", "no key (error abc-3)", "abc-3")]


@pytest.mark.parametrize(
    "log",
    [
        pytest.param([HELLO, CALLED, DONE], id="a plain answer"),
        pytest.param(WORK, id="a read and an effect"),
        pytest.param(ASKED, id="a denied call"),
        pytest.param(FAILED, id="a turn that was given up"),
        pytest.param(log_with(Resumed("a process")), id="killed while the model answered"),
        pytest.param(log_with(), id="closed while the model answered"),
        pytest.param([HELLO, CALLED, Stopped("owner")], id="stopped while the model answered"),
        pytest.param(
            [HELLO, CALLED, ModelSaid("", (ACT,)), CallStarted(3, 0), Resumed("a process")],
            id="killed while a call ran, and not gone on since",
        ),
        pytest.param(
            [HELLO, CALLED, ModelSaid("", (ACT,)), Asked(3, 0), Answered(3, 0, "allowed", "grant:abc"),
             CallStarted(3, 0), CallReturned(3, 0, "did", media=(Media("f", "image/png"),), file="whole.txt"),
             CALLED, DONE],
            id="allowed ahead, with a picture and a long result",
        ),
        pytest.param(
            [HELLO, CALLED, ModelSaid("", (ACT,)), Asked(3, 0), Answered(3, 0, "withdrawn", "owner"),
             UserSaid(said("no, wait"), "owner", "cli:direct", 2),
             CallReturned(3, 0, "not approved; the user went on", "denied"), CALLED, DONE],
            id="steered while a person was asked",
        ),
        pytest.param(
            [HELLO, CALLED, ModelSaid("", (LOOK, LOOK)), CallReturned(3, 0, "seen"), Stopped("owner"),
             CallReturned(3, 1, "operation cancelled by user", "cancelled")],
            id="cut off between two reads, as a branch may be",
        ),
        pytest.param([HELLO], id="nothing has happened yet"),
    ],
)  # fmt: skip
async def test_a_turn_of_this_shape_is_the_same(log: list[Entry]):
    await expect_the_same(cut(log, 1))


BEFORE = Standing(turn=1, address="cli:direct", requester="owner", choice="other", prefix="model:1")
AMIDST = structs.replace(BEFORE, owes=True, steps=1, mails=(1,))


@pytest.mark.parametrize(
    "log, turn, believed",
    [
        ([*WORK[:6], Compacted("so far: …", (), AMIDST), CALLED, DONE], 1, 1),
        ([HELLO, CALLED, DONE, Compacted("so far: …", (), BEFORE), HELLO, CALLED, DONE], 5, 0),
        ([HELLO, CALLED, ModelFailed("overflow", "too long"), Compacted("…", (), AMIDST), CALLED, DONE], 1, 1),
        ([HELLO, GaveUp("context", "This conversation is too long.")], 1, 1),
    ],
)
async def test_what_only_the_record_can_know_is_believed_and_counted(log: list[Entry], turn: int, believed: int):
    record = cut(log, turn)
    await expect_the_same(record)
    assert (await replay(record)).believed == believed


async def test_what_came_before_a_compaction_is_not_needed():
    log = [*WORK, Compacted("so far: …", (), BEFORE), HELLO, CALLED, DONE]
    assert cut(log, 10).before == [log[8]]
    await expect_the_same(cut(log, 10))


async def test_what_was_said_while_a_turn_failed_is_the_next_turn():
    later = UserSaid(said("and now?"), "owner", "cli:direct", 2)
    log = [HELLO, CALLED, FAILED[2], later, FAILED[3], CALLED, DONE]
    assert turns_in(log) == [1, 4]
    for seq, entries in ((1, 5), (4, 2)):
        await expect_the_same(cut(log, seq))
        assert len(cut(log, seq).turn) == entries


def changed(log: list[Entry], seq: int, **fields: object) -> list[Entry]:
    return [structs.replace(entry, **fields) if n == seq else entry for n, entry in enumerate(log, 1)]


@pytest.mark.parametrize(
    "log, told",
    [
        (
            changed(ASKED, 6, text="You may not."),
            f'different at 6, in call_returned:\n- text: "You may not."\n+ text: "{DENIED}"',
        ),
        (
            changed(WORK, 7, tail="It is noon."),
            'different at 7, in model_called:\n- tail: "It is noon."\n+ tail: "Channel: cli, chat: direct"',
        ),
        (
            changed(WORK, 7, wrap=True) + [HELLO],
            "",
        ),
        (
            changed(FAILED, 4, reason="tired"),
            'different at 4, in gave_up:\n- reason: "tired"\n+ reason: "key"',
        ),
        (
            [*WORK[:6], WORK[7]],
            'different at 7:\n- model_said text="done"\n+ model_called model="" tail="Channel: cli, chat: direct"',
        ),
        (
            [HELLO, CALLED, DONE, CALLED, DONE],
            "",
        ),
        (
            [*ASKED[:3], *ASKED[5:]],
            "",
        ),
    ],
)
async def test_a_changed_log_differs_where_it_was_changed(log: list[Entry], told: str):
    print(str((await again(log)).difference))
    assert str((await again(log)).difference) == told
