"""What has happened happens again, and what does not is shown where it first differs."""

import logging
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from everloop.core.decide import HANDED
from everloop.core.log import (
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    Entry,
    GaveUp,
    ModelCalled,
    ModelFailed,
    ModelSaid,
    Resumed,
    Standing,
    Stopped,
    UserSaid,
)
from everloop.core.message import Media, Message, said
from everloop.core.prompt import Brought, Offered
from everloop.core.tool import Effect, ToolCall, ToolSpec
from everloop.errors import ReplayRefused
from everloop.replay import Record, Replayed, cut, replay, turns_in
from everloop.testing.entry_difference import plain
from tests.effort import examples
from tests.replay.chaos import SPECS, Chaos


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


@examples(30)
@given(seed=st.integers(0, 1 << 32), known=st.booleans())
async def test_whatever_has_happened_happens_again(seed: int, known: bool):
    """Also a turn that is not over, wherever its log ends."""
    chance = Random(seed)
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
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


WORK = [
    *(HELLO, CALLED, ModelSaid("", (LOOK, ACT)), CallReturned(3, 0, "seen"), CallStarted(3, 1)),
    *(CallReturned(3, 1, "did"), CALLED, DONE),
]
ASKED = [
    *(HELLO, CALLED, ModelSaid("", (ACT,)), Asked(3, 0), Answered(3, 0, "denied", "owner")),
    *(CallReturned(3, 0, DENIED, "denied"), CALLED, DONE),
]
GUEST = UserSaid(said("hello"), "discord:7", "cli:direct", 1)
REFUSED = GaveUp("budget", "You have spent 1,000 of 1,000 tokens this month.")
FAILED = [HELLO, CALLED, ModelFailed("key", "no key"), GaveUp("key", "no key (error abc-3)", "abc-3")]


@pytest.mark.parametrize(
    "log",
    [
        pytest.param([HELLO, CALLED, DONE], id="a plain answer"),
        pytest.param(WORK, id="a read and an effect"),
        pytest.param([HELLO, structs.replace(HELLO, mail=2), CALLED, DONE], id="two messages in one go"),
        pytest.param(
            [
                *(HELLO, CALLED, ModelSaid("", (LOOK,)), CallReturned(3, 0, "seen")),
                *(structs.replace(HELLO, parts=said("I meant: hi"), mail=0), CALLED, DONE),
            ],
            id="a message that was changed while its turn ran",
        ),
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
            [HELLO, CALLED, ModelSaid("", (ACT, ACT)), Asked(3, 0), Asked(3, 1), Answered(3, 0, "withdrawn", "owner")],
            id="cut off before the words by which a question was withdrawn",
        ),
        pytest.param(
            [HELLO, CALLED, ModelSaid("", (LOOK, LOOK)), CallReturned(3, 0, "seen"), Stopped("owner"),
             CallReturned(3, 1, "operation cancelled by user", "cancelled")],
            id="cut off between two reads, as a branch may be",
        ),
        pytest.param([HELLO], id="nothing has happened yet"),
        pytest.param([GUEST, CALLED, DONE], id="a guest was answered"),
        pytest.param([GUEST, REFUSED], id="a guest had no calls left"),
        pytest.param([GUEST, CALLED, ModelFailed("cut", "cut"), REFUSED], id="a guest had none left for a second try"),
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


async def test_a_call_that_was_handed_to_a_client_is_handed_again():
    brought = Brought(instructions="Be brief.", tools=(Offered("look"),))
    before = (Message("user", said("hi")), Message("assistant", said("hello")))
    begun = structs.replace(HELLO, before=before, brought=brought)
    answer = ModelSaid("", (LOOK, ACT), finish="calls")
    handed, ours = CallReturned(3, 0, HANDED, "handed"), CallReturned(3, 1, "did")
    await expect_the_same(cut([begun, CALLED, answer, handed, CallStarted(3, 1), ours], 1))


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
            'different at 7, in model_called:\n- tail: "It is noon."\n+ tail: nothing',
        ),
        (
            changed(WORK, 2, tail="Current time: noon"),
            "different at 2, in model_called:\n"
            '- tail: "Current time: noon"\n+ tail: "Current time: noon\\nChannel: cli, chat: direct"',
        ),
        (
            changed(FAILED, 4, reason="tired"),
            'different at 4, in gave_up:\n- reason: "tired"\n+ reason: "key"',
        ),
        (
            [*WORK[:6], WORK[7]],
            'different at 7:\n- model_said text="done"\n'
            '+ model_called model="m" tail="Current time: …\\nChannel: cli, chat: direct"',
        ),
        (
            [*ASKED[:3], CallReturned(3, 0, DENIED, "denied"), CALLED, DONE],
            f'different at 4:\n- call_returned answer=3 place=0 text="{DENIED}" outcome="denied"\n'
            "+ call_started answer=3 place=0",
        ),
        (
            [*changed(WORK[:4], 3, calls=(LOOK, LOOK)), CallReturned(3, 1, "again?", "repeated"), CALLED, DONE],
            'different at 5:\n- call_returned answer=3 place=1 text="again?" outcome="repeated"\n+ the call is run',
        ),
        (
            [HELLO, CALLED, ModelSaid(""), CALLED, ModelSaid(""), CALLED, DONE],
            'different at 6:\n- model_called model="m" tail="Current time: noon\\nChannel: cli, chat: direct"\n'
            '+ gave_up reason="empty" text="The model gave no answer, twice in a row. Please try again, or put it in '
            'other words. (error …)"',
        ),
    ],
)
async def test_a_changed_log_differs_where_it_was_changed(log: list[Entry], told: str):
    assert str((await again(log)).difference) == told


async def test_a_tool_that_is_not_what_it_was_makes_a_difference():
    look = ToolSpec("look", "", {"type": "object", "required": ["at"]}, Effect.READ)
    assert str((await again(WORK, 1)).difference) == "None"
    assert str((await again(WORK, 1, look)).difference).splitlines()[1:] == [
        '- text: "seen"',
        '+ text: "Error: the call was not run: at is required. Correct the arguments and call again."',
        "- outcome: nothing",
        '+ outcome: "failed"',
    ]


async def test_a_model_that_is_shown_something_else_makes_a_difference():
    record = cut(WORK, 1)
    other = structs.replace(record, shown=(record.shown[0], "4:0123456789ab"))
    assert str((await replay(record)).difference) == "None"
    assert str((await replay(other)).difference) == (
        'different at 7:\n- model_called model="m" tail="Current time: noon\\nChannel: cli, chat: direct"\n'
        f"+ the model is shown other messages: 4 ({record.shown[1][2:]}), and then 4 (0123456789ab)"
    )


@pytest.mark.parametrize(
    "log, seq, sentence",
    [
        ([], 1, "no turn of … begins at entry 1; nothing was said in it yet"),
        (WORK, 2, "no turn of … begins at entry 2; its turns are 1"),
        (WORK, 0, "no turn of … begins at entry 0; its turns are 1"),
        ([HELLO, CALLED, DONE] * 7, 5, "no turn of … begins at entry 5; its last turns are 7, 10, 13, 16, 19"),
        ([HELLO, CALLED, CallReturned(3, 0, "what?"), DONE], 1, "the log of … is damaged at entry 3"),
        ([*WORK[:4], CallStarted(3, 7), *WORK[5:]], 1, "the log of … is damaged at entry 5"),
        (changed(WORK, 4, answer=2), 1, "the log of … is damaged at entry 4"),
    ],
)
def test_a_turn_that_cannot_be_run_is_refused_with_a_sentence(log: list[Entry], seq: int, sentence: str):
    with pytest.raises(ReplayRefused) as refused:
        cut(log, seq)
    assert str(refused.value).replace("this conversation", "…") == sentence
