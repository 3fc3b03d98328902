"""Where a log can be cut, and that its branch is a conversation that can be gone on with."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from everloop.core.decide import Rules, Settle, TakeBack, admit, decide
from everloop.core.log import (
    CallReturned,
    CallStarted,
    Compacted,
    Entry,
    ModelCalled,
    ModelChosen,
    ModelSaid,
    Removed,
    Resumed,
    Standing,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
)
from everloop.core.mail import Mail, Said, Stop, Undo
from everloop.core.message import said
from everloop.core.thread import Thread
from everloop.core.tool import Effect, FileChange, ToolSpec
from everloop.ports.conversation import Written
from everloop.readings.branch import branch_off, last_turn
from everloop.readings.undo import changes_of, lasting_in
from tests.core.makers import ROLES, RULES, call
from tests.core.test_properties import SEED, STEERING, World, live_until_rest
from tests.effort import examples

ASKED, ANSWERED = ModelCalled("m"), ModelSaid("an answer")
CHANGE = FileChange("a.md", "new", "0123456789ab")


def user(text: str, mail: int = 0) -> UserSaid:
    return UserSaid(said(text), "ann", "cli:direct", mail)


def written(log: list[Entry], first: int = 1) -> list[Written]:
    return [Written(seq, 0.0, entry) for seq, entry in enumerate(log, first)]


def lived(seed: int, steering: str) -> list[Entry]:
    world = World(Random(seed), Rules(RULES.tools, roles=ROLES, max_steps=3, steering=steering), [], trouble=0.4)
    world.post(Said(said("hi"), "ann", "cli:direct"))
    live_until_rest(world)
    world.post(Said(said("and"), "ann", "cli:direct"))
    live_until_rest(world)
    return world.log


def pairs(log: list[Entry]) -> None:
    """Every call of the transcript has its result before anything else is said."""
    open_ids: list[str] = []
    for message in Thread.of(*log).transcript.messages:
        if message.role == "tool":
            open_ids.remove(message.answers)
        else:
            assert open_ids == []
            open_ids = [each.id for each in message.calls]
    assert open_ids == []


@examples(100)
@given(SEED, STEERING)
def test_a_branch_is_closed_wherever_it_is_cut_and_holds_what_was_said_before(seed, steering):
    log = lived(seed, steering)
    for cut in range(len(log) + 1):
        branch = branch_off(written(log[:cut]), "test:new", "bob")
        thread, before = Thread.of(*branch), Thread.of(*log[:cut])
        assert not thread.owes_reply
        assert not thread.open_calls
        assert thread.transcript.messages[: len(before.transcript.messages)] == before.transcript.messages
        assert [entry.mail for entry in branch if isinstance(entry, UserSaid) and entry.mail] == []
        pairs(branch)


@examples(100)
@given(SEED, STEERING)
def test_turns_are_taken_back_one_by_one_until_none_is_left(seed, steering):
    log = lived(seed, steering)
    while turn := last_turn(1, log):
        shorter = branch_off(written(log[: turn.cut]), "cli:direct", "ann", turn=turn.seq)
        messages = Thread.of(*shorter).transcript.messages
        assert messages == Thread.of(*log).transcript.messages[: len(messages)]
        assert turns(shorter) == turns(log)[:-1]
        pairs(shorter)
        log = shorter
    assert not any(isinstance(entry, UserSaid) for entry in log)


def turns(log: list[Entry]) -> list[int]:
    thread, seen = Thread(), [0]
    for entry in log:
        thread.add(entry)
        seen += [thread.turn.seq] if thread.turn.seq != seen[-1] else []
    return seen[1:]


def test_what_was_said_while_the_model_answered_is_taken_back_without_that_answer():
    log = [user("one"), ASKED, user("two"), ModelSaid("first"), ASKED, ModelSaid("second")]
    turn = last_turn(1, log)
    assert turn is not None
    assert (turn.seq, turn.cut, turn.said) == (3, 4, (user("two"),))
    assert branch_off(written(log[:4]), "cli:direct", "ann", turn=3) == [
        user("one"), ASKED, Removed(), ModelSaid("first"),
    ]  # fmt: skip


def test_a_turn_that_a_compaction_cuts_in_two_is_taken_back_whole():
    fold = Compacted("s", standing=Standing(4, True, "ann", "cli:direct", 1, (7,)))
    log = [user("one"), ASKED, ANSWERED, user("two"), ASKED, fold, ASKED, ANSWERED]
    turn = last_turn(1, log)
    assert turn is not None
    assert (turn.seq, turn.cut) == (4, 3)
    assert last_turn(6, log[5:]) is None  # these entries do not hold all of it
    branch = branch_off(written(log[5:6], 6), "test:new", "ann")
    assert branch == [Compacted("s", standing=Standing(4, True, "ann", "test:new", 1)), Stopped("ann")]


def test_the_model_that_was_chosen_after_the_turn_stays_chosen():
    log = [user("one"), ASKED, ANSWERED, ModelChosen("other", "ann")]
    turn = last_turn(1, log)
    assert turn is not None
    assert turn.choice == "other"
    assert branch_off([], "cli:direct", "ann", turn=1, choice="other") == [ModelChosen("other", "ann")]


def test_a_branch_does_not_undo_what_its_parent_was_undoing():
    log = [user("one"), ASKED, ANSWERED, Undoing("two", (CHANGE, CHANGE), by="ann", mail=3), TakenBack(0)]
    assert branch_off(written(log), "cli:direct", "ann")[3:] == [Removed(), Removed()]


# Undoing


UNDO = Undo("two", (CHANGE, CHANGE), ("send_mail {}",), "ann", "ann", "cli:direct")


def test_an_undo_is_no_turn_and_ends_when_every_change_is_settled():
    thread = Thread.of(user("one"), ASKED, ANSWERED)
    (entry,) = admit(thread, Mail(9, UNDO)).entries
    assert entry == Undoing("two", (CHANGE, CHANGE), ("send_mail {}",), "ann", "ann", "cli:direct", 9)
    thread.add(entry)
    assert decide(thread, RULES) == TakeBack(0)
    thread.add(TakenBack(0))
    assert decide(thread, RULES) == TakeBack(1)
    thread.add(TakenBack(1, "somebody has changed it since"))
    assert not thread.owes_reply
    assert thread.turn.seq == 1
    assert thread.finished is not None
    assert (thread.finished.turn, thread.finished.mails, thread.finished.address) == (4, (9,), "cli:direct")
    assert thread.finished.text == (
        "Taken back: two\na.md was left as it is: somebody has changed it since\nThis cannot be undone: send_mail {}"
    )
    assert [message.text for message in thread.transcript.messages] == ["one", "an answer"]
    assert last_turn(1, [user("one"), ASKED, ANSWERED, entry, TakenBack(0), TakenBack(1)]).cut == 0


def test_while_files_are_put_back_messages_wait_and_a_stop_does_nothing():
    thread = Thread.of(Undoing("two", (CHANGE,), by="ann", address="cli:direct"))
    assert not admit(thread, Mail(1, Said(said("hi"), "ann"))).taken
    assert not admit(thread, Mail(1, UNDO)).taken
    assert (admit(thread, Mail(1, Stop("ann"))).taken, admit(thread, Mail(1, Stop("ann"))).entries) == (True, ())


def test_a_file_at_which_the_process_dies_again_and_again_is_left_and_the_others_are_put_back():
    thread = Thread.of(Undoing("two", (CHANGE, CHANGE), by="ann", address="cli:direct"), *[Resumed()] * 3)
    settled = TakenBack(0, "the process ended each time this was tried")
    assert decide(thread, RULES) == Settle((settled,))
    thread.add(settled)
    assert decide(thread, RULES) == TakeBack(1)


def test_an_undo_without_changes_is_over_at_once():
    thread = Thread.of(Undoing("two", by="ann", address="cli:direct", mail=1))
    assert thread.finished is not None
    assert (thread.finished.text, thread.owes_reply) == ("Taken back: two", False)


def test_changes_are_taken_back_the_latest_first():
    first, second, third = (FileChange(name, "new", "x") for name in ("a", "b", "c"))
    log = [CallReturned(1, 0, "", changes=(first, second)), CallReturned(1, 1, "", changes=(third,))]
    assert changes_of(log) == (third, second, first)


def test_what_started_and_left_no_change_lasts_unless_its_tool_tells_every_change():
    tools = {
        "mail": ToolSpec("mail", "", {}, Effect.UNSAFE),
        "write": ToolSpec("write", "", {}, Effect.IDEMPOTENT, undoable=True),
        "read": ToolSpec("read", "", {}, Effect.READ),
    }
    names = ("mail", "write", "write", "write", "read", "gone", "mail", "mail")
    log: list[Entry] = [
        ModelSaid("", tuple(call(name) for name in names)),
        *(CallStarted(5, place) for place in range(7)),
        CallReturned(5, 0, "sent"),
        CallReturned(5, 1, "", changes=(CHANGE,)),
        CallReturned(5, 2, "Error", "failed"),
        CallReturned(5, 3, "?", "unknown"),
        CallReturned(5, 4, "read"),
        CallReturned(5, 5, "whatever it was"),
        CallReturned(5, 6, "stopped", "cancelled"),
        CallReturned(5, 7, "not allowed", "denied"),
    ]
    assert lasting_in(5, log, tools) == ("mail {}", "write {}", "gone {}", "mail {}")


@examples(100)
@given(st.integers(21, 60))
def test_a_long_list_of_what_lasts_is_cut(count):
    log: list[Entry] = [
        ModelSaid("", tuple(call("mail") for _ in range(count))),
        *(CallStarted(1, place) for place in range(count)),
        *(CallReturned(1, place, "sent") for place in range(count)),
    ]
    assert lasting_in(1, log, {})[20:] == (f"and {count - 20} more",)
