"""Turns as spans: what they are named, how long they take, and that the log alone says so."""

from random import Random

from hypothesis import given

from everloop.core.decide import Rules
from everloop.core.log import (
    Answered,
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
)
from everloop.core.prompt import Usage
from everloop.core.thread import Thread
from everloop.core.turn import Finished
from everloop.ports.conversation import Written
from everloop.ports.outbox import Delivery
from everloop.readings.spans import Span, TurnSpans, deliver, keys_of, span_id, trace_id, turns_of
from tests.core.makers import ROLES, RULES, answered, asked, spoke
from tests.core.test_properties import SEED, STEERING, World, live_until_rest, spoken
from tests.effort import examples

MODEL = ModelCalled("mistral/small")


def log_of(*entries: Entry) -> list[Written]:
    """A log in which every entry is written a second after the one before."""
    return [Written(seq, float(seq), entry) for seq, entry in enumerate(entries, 1)]


def told(turn: TurnSpans) -> list[tuple[str, str, float, float | None, str]]:
    return [(span.kind, span.name, span.start, span.end, span.outcome) for span in turn.spans]


def test_an_answer_is_a_span_that_says_which_model_and_how_many_tokens():
    used = Usage(100, 20, 60, 5, 7)
    log = log_of(spoke("how are you?"), MODEL, ModelSaid("fine", (), used, model="mistral/small-2", cost=0.25))
    assert turns_of("t1", log) == [
        TurnSpans(
            *(1, "how are you?", 1.0, 3.0, "answered"),
            [
                Span(
                    *("queue", "waited", 1.0, 2.0, 2),
                    id=span_id("t1", "queue", 1),
                    operation="queue",
                    attributes={"gen_ai.conversation.id": "t1"},
                ),
                Span(
                    *("model", "mistral/small-2", 2.0, 3.0, 3, "stop", 100, 20, 0.25),
                    id=span_id("t1", "model", 2),
                    operation="chat small",
                    attributes={
                        "gen_ai.conversation.id": "t1",
                        "gen_ai.operation.name": "chat",
                        "gen_ai.provider.name": "mistral_ai",
                        "gen_ai.request.model": "small",
                        "gen_ai.response.model": "small-2",
                        "gen_ai.response.finish_reasons": ("stop",),
                        "gen_ai.usage.input_tokens": 100,
                        "gen_ai.usage.output_tokens": 20,
                        "gen_ai.usage.cache_read.input_tokens": 60,
                        "gen_ai.usage.cache_creation.input_tokens": 5,
                        "gen_ai.usage.reasoning.output_tokens": 7,
                        "everloop.cost.usd": 0.25,
                    },
                ),
            ],
            *(100, 20, 0.25),
            trace=trace_id("t1", 1),
            id=span_id("t1", "turn", 1),
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "everloop",
                "gen_ai.conversation.id": "t1",
                "everloop.session": "cli:direct",
                "everloop.turn": "t1:1",
                "gen_ai.provider.name": "mistral_ai",
                "gen_ai.response.model": "small-2",
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 20,
                "everloop.ending": "answered",
                "everloop.cost.usd": 0.25,
            },
            mail=1,
            ended=3,
        )
    ]


def test_a_call_is_a_span_with_its_name_and_id_after_the_question_about_it():
    log = log_of(
        *(spoke(), MODEL, answered("", "ask"), asked(), Answered(3, 0, "allowed"), CallStarted(3, 0)),
        *(CallReturned(3, 0, "no paper", "failed"), MODEL, answered("sorry")),
    )
    (turn,) = turns_of("t1", log)
    assert told(turn) == [
        ("queue", "waited", 1.0, 2.0, ""),
        ("model", "mistral/small", 2.0, 3.0, "stop"),
        ("approval", "ask", 4.0, 5.0, "allowed"),
        ("tool", "ask", 6.0, 7.0, "failed"),
        ("model", "mistral/small", 8.0, 9.0, "stop"),
    ]
    about = {"gen_ai.conversation.id": "t1", "gen_ai.tool.name": "ask", "gen_ai.tool.call.id": "id-ask"}
    risk = {"everloop.approval.risk": "low", "everloop.approval.verdict": "allowed"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.type": "function", "error.type": "failed"}
    assert [(span.operation, span.attributes) for span in turn.spans[2:4]] == [
        ("approval ask", {**about, **risk}),
        ("execute_tool ask", {**about, **tool}),
    ]


def test_reads_run_side_by_side_and_after_what_has_an_effect():
    log = log_of(
        *(spoke(), MODEL, answered("", "send", "look", "look"), CallStarted(3, 0), CallReturned(3, 0, "sent")),
        *(CallReturned(3, 1, "a"), CallReturned(3, 2, "b")),
    )
    (turn,) = turns_of("t1", log)
    assert [each[2:4] for each in told(turn)[2:]] == [(4.0, 5.0), (5.0, 6.0), (5.0, 7.0)]


def test_what_runs_has_no_end_yet():
    log = log_of(spoke(), MODEL, answered("", "send"), CallStarted(3, 0))
    (turn,) = turns_of("t1", log)
    assert (turn.ending, turn.end, told(turn)[-1]) == ("open", None, ("tool", "send", 4.0, None, ""))


def test_a_turn_that_is_given_up_names_the_error_that_the_person_was_told():
    log = log_of(spoke(), MODEL, ModelFailed("rate", "too many"), GaveUp("rate", "too many (error t1-3)", "t1-3"))
    (turn,) = turns_of("t1", log)
    assert (turn.ending, told(turn)[-1]) == ("failed", ("model", "mistral/small", 2.0, 3.0, "rate"))
    assert turn.spans[-1].attributes["error.type"] == "rate"
    assert (turn.attributes["error.type"], turn.attributes["everloop.error.id"]) == ("rate", "t1-3")


def test_a_call_that_was_lost_in_a_crash_is_told_and_made_again():
    log = log_of(spoke(), MODEL, Resumed("somebody"), MODEL, answered("here"))
    (turn,) = turns_of("t1", log)
    assert told(turn)[1:] == [
        ("model", "mistral/small", 2.0, 3.0, "lost"),
        ("model", "mistral/small", 4.0, 5.0, "stop"),
    ]


def test_a_stop_ends_the_turn_when_its_calls_are_settled():
    log = log_of(
        spoke(), MODEL, answered("", "send"), CallStarted(3, 0), Stopped("ann"), CallReturned(3, 0, "", "cancelled")
    )
    (turn,) = turns_of("t1", log)
    assert (turn.ending, turn.end, turn.ended) == ("stopped", 6.0, 6)
    assert told(turn)[-1] == ("tool", "send", 4.0, 6.0, "cancelled")


def test_a_summary_takes_the_time_since_what_was_written_before_and_counts():
    standing = Standing(1, True, "ann", "cli:direct")
    written = Compacted("so far", standing=standing, model="openai/mini", usage=Usage(50, 5), cost=0.5)
    log = log_of(spoke(), written, MODEL, ModelSaid("yes", (), Usage(10, 1), model="mistral/small", cost=0.25))
    (turn,) = turns_of("t1", log)
    assert told(turn)[0] == ("summary", "openai/mini", 1.0, 2.0, "")
    assert (turn.spans[0].operation, turn.spans[0].attributes["gen_ai.provider.name"]) == ("compact mini", "openai")
    assert (turn.input, turn.output, turn.cost) == (60, 6, 0.75)


def test_what_was_said_too_late_for_an_answer_is_a_turn_of_its_own_from_then_on():
    log = log_of(spoke("one"), MODEL, spoke("two", mail=2), answered("one!"), MODEL, answered("two!"))
    first, second = turns_of("t1", log)
    assert (first.said, first.start, first.end) == ("one", 1.0, 4.0)
    assert (second.said, second.turn, second.start, second.end, second.mail) == ("two", 3, 3.0, 6.0, 2)
    assert told(second)[0] == ("queue", "waited", 3.0, 5.0, "")


def test_a_log_that_is_read_from_its_middle_tells_the_turns_that_begin_there():
    log = log_of(
        spoke("one"), MODEL, answered("", "send"), CallStarted(3, 0), CallReturned(3, 0, ""), MODEL, answered("a")
    )
    more = [Written(8, 8.0, spoke("two")), Written(9, 9.0, MODEL), Written(10, 10.0, answered("b"))]
    assert [turn.said for turn in turns_of("t1", [*log[3:], *more])] == ["two"]


def test_a_turn_begins_when_its_letter_comes_in_and_ends_with_its_delivery():
    turns = turns_of("t1", log_of(spoke(), MODEL, answered("hi")))
    (key,) = keys_of("t1", turns)
    deliver("t1", turns, {1: 0.25}, {key: Delivery(key, "mail", "sent", 3.0, 4.5, 2)})
    (turn,) = turns
    assert (key, turn.start, told(turn)[0]) == ("reply:t1:3", 0.25, ("queue", "waited", 0.25, 2.0, ""))
    assert turn.spans[-1] == Span(
        *("delivery", "mail", 3.0, 4.5, 3, "sent"),
        id=span_id("t1", "delivery", 3),
        operation="deliver mail",
        attributes={
            "gen_ai.conversation.id": "t1",
            "everloop.channel": "mail",
            "everloop.delivery.state": "sent",
            "everloop.delivery.attempts": 2,
        },
    )


def test_an_answer_that_is_not_delivered_yet_or_never_is_told_so():
    turns = turns_of("t1", log_of(spoke(), MODEL, answered("hi"), spoke(), MODEL, answered("hi")))
    late, lost = keys_of("t1", turns)
    found = {late: Delivery(late, "mail", "pending", 3.0), lost: Delivery(lost, "mail", "failed", 6.0, 9.0, 8)}
    deliver("t1", turns, {}, found)
    spans = [turn.spans[-1] for turn in turns]
    assert [(span.end, span.outcome, span.attributes.get("error.type")) for span in spans] == [
        (None, "pending", None),
        (9.0, "failed", "undelivered"),
    ]


def ids_of(turns: list[TurnSpans]) -> list[str]:
    return [id for turn in turns for id in (turn.trace, turn.id, *(span.id for span in turn.spans))]


def test_two_threads_and_two_turns_have_different_ids_and_the_same_turn_has_the_same():
    log = log_of(spoke(), MODEL, answered("hi"), spoke(), MODEL, answered("hi"))
    ids = [
        [turn.trace, turn.id, *(span.id for span in turn.spans)] for id in ("t1", "t2") for turn in turns_of(id, log)
    ]
    flat = [id for each in ids for id in each]
    assert len(flat) == len(set(flat)) == 16
    again = [[turn.trace, turn.id, *(span.id for span in turn.spans)] for turn in turns_of("t1", log)]
    assert again == ids[:2]


ENDINGS = {"": "answered", "stopped": "stopped"}


def ended(log: list[Entry]) -> list[tuple[int, int, str]]:
    """The turns of a log, their last entries and how they ended, as the fold itself sees them."""
    thread, found = Thread(), list[Finished]()
    for entry in log:
        thread.add(entry)
        if thread.finished is not None and (not found or thread.finished is not found[-1]):
            found.append(thread.finished)
    return [(turn.turn, turn.seq, ENDINGS.get(turn.reason, "failed")) for turn in found]


@examples(200)
@given(SEED, STEERING)
def test_whatever_happens_the_turns_are_those_of_the_thread_and_every_span_has_an_end(seed, steering):
    chance = Random(seed)
    rules = Rules(RULES.tools, roles=ROLES, max_steps=3, steering=steering)
    world = World(chance, rules, [], trouble=0.4)
    world.post(spoken(chance, address="cli:direct"))
    live_until_rest(world)
    turns = turns_of("t1", log_of(*world.log))
    assert [(turn.turn, turn.ended, turn.ending) for turn in turns] == ended(world.log)
    assert all(span.end is not None and span.end >= span.start for turn in turns for span in turn.spans)
    calls = [entry for entry in world.log if isinstance(entry, CallReturned)]
    assert sum(span.kind == "tool" for turn in turns for span in turn.spans) == len(calls)
