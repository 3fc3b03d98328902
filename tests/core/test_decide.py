import pytest
from msgspec import structs

from everloop.core.approval import Policy, PolicyRule, approval_id
from everloop.core.decide import (
    ABANDONED,
    CANCELLED,
    CANCELLED_STARTED,
    UNKNOWN,
    Absorbed,
    Ask,
    CallModel,
    Compact,
    GiveUp,
    Rest,
    Rules,
    RunCalls,
    Settle,
    Verify,
    admit,
    decide,
    heard,
)
from everloop.core.log import (
    AgentTold,
    Answered,
    CallReturned,
    CallStarted,
    Compacted,
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
from everloop.core.mail import Choose, Decision, Mail, Said, Stop, Telling
from everloop.core.message import Made, Media, Message, said
from everloop.core.people import Role
from everloop.core.prompt import Usage
from everloop.core.thread import Thread
from everloop.core.tool import FileChange, ToolCall
from everloop.core.turn import Finished
from everloop.core.wording import rendered
from tests.core.makers import CALLED, DIGEST, ROLES, RULES, SPECS, answered, asked, call, calling, spoke


def after(thread: Thread, *entries) -> Thread:
    thread.extend(entries)
    return thread


def test_an_empty_thread_rests():
    assert decide(Thread(), RULES) == Rest()


def test_a_message_is_answered_by_the_model():
    assert decide(Thread.of(spoke()), RULES) == CallModel()


def test_a_text_answer_ends_the_turn():
    thread = Thread.of(spoke(), CALLED, answered("hello"))
    assert decide(thread, RULES) == Rest()
    assert thread.finished is not None
    assert (thread.finished.turn, thread.finished.seq, thread.finished.text) == (1, 3, "hello")
    assert thread.finished.mails == (1,)


def test_a_model_call_without_an_answer_is_made_again():
    assert decide(Thread.of(spoke(), CALLED, Resumed()), RULES) == CallModel()


def test_reads_at_the_front_run_side_by_side():
    assert decide(calling("look", "look", "send", "look"), RULES) == RunCalls((0, 1))


def test_an_effect_runs_alone_and_a_read_behind_it_waits():
    thread = calling("send", "look")
    assert decide(thread, RULES) == RunCalls((0,))
    after(thread, CallStarted(3, 0), CallReturned(3, 0, "sent"))
    assert decide(thread, RULES) == RunCalls((1,))


def test_when_all_calls_have_results_the_model_goes_on():
    assert decide(after(calling("look"), CallReturned(3, 0, "x")), RULES) == CallModel()


def test_an_unknown_tool_is_answered_with_the_names_of_the_tools():
    step = decide(calling("fly"), RULES)
    assert step == Settle(
        (
            CallReturned(
                3, 0, "Error: there is no tool 'fly'. The tools are: look, put, pay, file, send, ask.", "failed"
            ),
        )
    )


def test_a_call_with_broken_arguments_is_not_run():
    thread = Thread.of(spoke(), CALLED, ModelSaid("", (ToolCall("1", "send", '{"a": '),)))
    step = decide(thread, RULES)
    assert isinstance(step, Settle)
    assert step.results[0].outcome == "failed"
    assert "not valid JSON" in step.results[0].text


@pytest.mark.parametrize("name", ["look", "put", "pay"])
def test_a_repeatable_call_found_started_is_run_again(name):
    assert decide(after(calling(name), CallStarted(3, 0), Resumed()), RULES) == RunCalls((0,))


def test_a_verifiable_call_found_started_is_looked_up():
    assert decide(after(calling("file"), CallStarted(3, 0), Resumed()), RULES) == Verify(0)


@pytest.mark.parametrize("name", ["send", "ask"])
def test_an_unsafe_call_found_started_is_unknown_and_not_run_again(name):
    thread = after(calling(name), CallStarted(3, 0), Resumed())
    assert decide(thread, RULES) == Settle((CallReturned(3, 0, UNKNOWN, "unknown"),))


def test_a_tool_that_is_gone_after_a_restart_counts_as_unsafe():
    thread = after(calling("pay"), CallStarted(3, 0), Resumed())
    assert decide(thread, Rules({})) == Settle((CallReturned(3, 0, UNKNOWN, "unknown"),))


def test_a_stop_cancels_every_open_call_and_then_rests():
    thread = after(calling("send", "look"), CallStarted(3, 0), Stopped("ann"))
    step = decide(thread, RULES)
    assert step == Settle(
        (CallReturned(3, 0, CANCELLED_STARTED, "cancelled"), CallReturned(3, 1, CANCELLED, "cancelled"))
    )
    assert CANCELLED == "operation cancelled by user"
    after(thread, *step.results)
    assert decide(thread, RULES) == Rest()
    assert thread.finished is not None
    assert (thread.finished.text, thread.finished.reason) == (None, "stopped")


def test_a_stop_during_a_model_call_ends_the_turn():
    assert decide(Thread.of(spoke(), CALLED, Stopped("ann")), RULES) == Rest()


def test_after_a_stop_the_next_message_begins_a_new_turn():
    thread = Thread.of(spoke(), CALLED, Stopped("ann"), spoke("again", mail=2))
    assert decide(thread, RULES) == CallModel()
    assert thread.turn.seq == 4


def test_guarded_calls_are_all_asked_about_at_once_and_then_waited_for():
    thread = calling("ask", "ask")
    assert decide(thread, RULES) == Ask((0, 1))
    after(thread, asked(), asked(1))
    assert decide(thread, RULES) == Rest()
    assert thread.pending == [0, 1]


def test_an_allowed_call_runs():
    thread = after(calling("ask"), asked(), Answered(3, 0, "allowed", "ann"))
    assert decide(thread, RULES) == RunCalls((0,))


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        ("denied", "The user did not allow this."),
        ("expired", "Nobody answered in time, so this was not allowed."),
        ("withdrawn", "not approved; the user went on"),
    ],
)
def test_a_call_that_is_not_allowed_is_refused(verdict, text):
    thread = after(calling("ask"), asked(), Answered(3, 0, verdict))
    assert decide(thread, RULES) == Settle((CallReturned(3, 0, text, "denied"),))


def test_at_the_step_cap_there_is_one_last_call_without_tools():
    thread = after(calling("look"), CallReturned(3, 0, "x"))
    assert decide(thread, Rules(SPECS, max_steps=1)) == CallModel(wrap=True)
    after(thread, ModelCalled("m", wrap=True), answered("done this, left that", "look"))
    assert decide(thread, Rules(SPECS, max_steps=1)) == Rest()
    assert thread.open_calls == {}


def test_an_empty_answer_is_asked_for_once_more_and_then_given_up():
    thread = Thread.of(spoke(), CALLED, answered(" "))
    assert decide(thread, RULES) == CallModel()
    after(thread, CALLED, answered(""))
    assert decide(thread, RULES) == GiveUp("empty")


def test_an_empty_answer_is_not_shown_to_the_next_call():
    thread = Thread.of(spoke(), CALLED, answered(""))
    assert thread.transcript.messages == [Message("user", said("hi"))]


def test_a_failed_model_call_ends_the_turn_with_its_sentence():
    failure = ModelFailed("key", "The key was refused.")
    assert decide(Thread.of(spoke(), CALLED, failure), RULES) == GiveUp("key", failure)


def test_a_stream_that_broke_off_is_asked_for_once_more():
    cut = ModelFailed("cut", "The answer broke off.")
    thread = Thread.of(spoke(), CALLED, cut)
    assert decide(thread, RULES) == CallModel()
    assert decide(after(thread, CALLED, cut), RULES) == GiveUp("cut", cut)


def test_a_budget_refusal_ends_the_turn():
    refused = ModelFailed("budget", "The budget is used up.")
    assert decide(Thread.of(spoke(), CALLED, refused), RULES) == GiveUp("budget", refused)


def test_having_given_up_the_thread_rests_and_the_reason_is_known():
    thread = Thread.of(spoke(), CALLED, ModelFailed("key", "x"), GaveUp("key", "Sorry: x"))
    assert decide(thread, RULES) == Rest()
    assert thread.finished is not None
    assert (thread.finished.text, thread.finished.reason) == ("Sorry: x", "key")


def test_a_thread_that_is_too_long_is_compacted_once_or_given_up():
    small = Rules(SPECS, limit=100)
    thread = Thread.of(spoke("x" * 1000))
    assert decide(thread, small) == GiveUp("context")
    compacting = Rules(SPECS, limit=100, compacts=True)
    assert decide(thread, compacting) == Compact()
    after(thread, Compacted("y" * 1000, standing=thread.standing))
    assert decide(thread, compacting) == GiveUp("context")


def test_an_overflow_that_the_host_reports_is_treated_alike():
    thread = Thread.of(spoke(), CALLED, ModelFailed("overflow", "too long"))
    assert decide(thread, RULES) == GiveUp("context")
    assert decide(thread, Rules(SPECS, compacts=True)) == Compact()


def test_three_take_overs_without_progress_end_the_turn():
    thread = Thread.of(spoke(), CALLED, Resumed(), CALLED, Resumed(), CALLED)
    assert decide(thread, RULES) == CallModel()
    assert decide(after(thread, Resumed()), RULES) == GiveUp("resumed")


def test_a_call_that_ends_the_process_three_times_is_abandoned():
    thread = after(calling("put"), Resumed(), Resumed(), Resumed())
    step = decide(thread, RULES)
    assert step == Settle((CallReturned(3, 0, ABANDONED, "abandoned"),))
    assert decide(after(thread, *step.results), RULES) == GiveUp("resumed")


def test_progress_forgives_earlier_take_overs():
    thread = Thread.of(spoke(), CALLED, Resumed(), Resumed(), CALLED, answered("", "look"), Resumed(), Resumed())
    assert decide(thread, RULES) == RunCalls((0,))


def test_a_message_while_the_model_answers_gets_its_own_turn():
    thread = Thread.of(spoke("one"), CALLED, spoke("two", mail=2), answered("to one"))
    assert decide(thread, RULES) == CallModel()
    assert thread.turn.seq == 3
    assert thread.finished is not None
    assert thread.finished.mails == (1,)
    assert [m.text for m in thread.transcript.messages] == ["one", "to one", "two"]


def test_a_message_during_tool_calls_stands_after_their_results():
    thread = after(calling("look", "look"), CallReturned(3, 0, "a"), spoke("wait", mail=2), CallReturned(3, 1, "b"))
    assert [m.text for m in thread.transcript.messages] == ["hi", "", "a", "b", "wait"]
    assert thread.turn.mails == [1, 2]


def test_compaction_keeps_where_the_turn_stands():
    before = after(calling("look"), CallReturned(3, 0, "x"))
    compacted = Compacted("so far", (Message("user", said("hi")),), before.standing)
    thread = Thread("t", 99)
    thread.add(compacted)
    assert (
        thread.standing
        == before.standing
        == Standing(*(1, True, "ann", "cli:direct", 1, (1,)), began=0, cost=None, tools_used=("look",))
    )
    assert [m.text for m in thread.transcript.messages] == [rendered("so far", ()), "hi"]
    assert decide(thread, RULES) == CallModel()


def test_a_turn_ends_with_its_files_as_they_were_last_also_over_a_compaction():
    one, two, picture = (Media(f"file:{name}", "text/plain", f"{name}.md", "ann") for name in ("one", "two", "picture"))
    changed = CallReturned(
        3, 0, "x", changes=(FileChange("one.md", "new", "1"), FileChange("two.md", "new", "2")), made=(one, two)
    )
    thread = after(calling("look"), changed)
    fold = Thread("t", thread.seq)
    fold.add(Compacted("so far", (), thread.standing))
    again = CallReturned(
        7, 0, "y", changes=(FileChange("one.md", "x", "3"), FileChange("two.md", "x", "gone")), media=(picture,)
    )
    for entry in (
        CALLED,
        answered("", "look"),
        again,
        CALLED,
        answered("done"),
        spoke("next"),
        CALLED,
        answered("done"),
    ):
        fold.add(entry)
        if entry == answered("done"):
            assert fold.finished is not None
            assert fold.finished.files == ((Made(picture, 8),) if fold.seq == 10 else ())


def test_reported_usage_replaces_the_estimate():
    said_with_usage = ModelSaid("", (call("look"),), Usage(input=500, output=20))
    assert Thread.of(spoke(), CALLED, said_with_usage).tokens == 520


def letter(letter, id: int = 9) -> Mail:
    return Mail(id, letter)


HELLO = Said(said("hello"), "ann", "cli:direct")


def test_mail_enters_a_resting_thread():
    assert admit(Thread(), letter(HELLO)) == Absorbed((UserSaid(said("hello"), "ann", "cli:direct", 9),))


def test_a_word_from_elsewhere_enters_a_resting_thread_and_waits_for_the_end_of_a_turn():
    word = Telling("lunch", (), "cli:direct", "api:work", "ann", outside=True)
    told = AgentTold("lunch", (), "cli:direct", "api:work", "ann", True, 9)
    assert admit(Thread(), letter(word)) == Absorbed((told,))
    for running in (Thread.of(spoke(), CALLED), calling("look"), Thread.of(spoke())):
        assert admit(running, letter(word)) == Absorbed(taken=False)


def test_a_word_from_elsewhere_is_no_turn_and_is_delivered():
    thread = Thread.of(
        spoke(), CALLED, answered("hello"), AgentTold("lunch", (), "cli:direct", "api:work", "ann", mail=9)
    )
    assert (thread.turn.seq, thread.owes_reply, decide(thread, RULES)) == (1, False, Rest())
    assert thread.finished == Finished(4, 4, "lunch", "cli:direct", (9,))
    assert [m.role for m in thread.transcript.messages] == ["user", "assistant", "user", "assistant"]
    assert not thread.before(0).mentions("lunch")


def test_the_requester_steers_a_running_turn_and_anyone_else_waits():
    running = Thread.of(spoke(), CALLED)
    assert admit(running, letter(HELLO)).taken
    assert admit(running, letter(Said(said("me too"), "bob"))) == Absorbed(taken=False)


def test_queued_messages_wait_and_interrupting_ones_stop_the_turn_first():
    running = Thread.of(spoke(), CALLED)
    assert admit(running, letter(HELLO), "queue") == Absorbed(taken=False)
    assert admit(running, letter(HELLO), "interrupt") == Absorbed((Stopped("ann"),), taken=False)


def test_what_is_said_after_a_stop_waits_until_the_calls_are_cancelled():
    stopping = after(calling("send"), Stopped("ann"))
    assert admit(stopping, letter(HELLO)) == Absorbed(taken=False)


def test_a_stop_by_someone_else_ends_only_what_has_begun_to_work():
    fresh, working = Thread.of(spoke(author="bob")), Thread.of(spoke(author="bob"), CALLED)
    assert admit(fresh, letter(Stop("ann"))) == Absorbed()
    assert admit(working, letter(Stop("ann"))) == Absorbed((Stopped("ann"),))


def test_a_message_withdraws_a_pending_approval():
    thread = after(calling("ask"), asked())
    assert admit(thread, letter(HELLO)).entries == (
        Answered(3, 0, "withdrawn", "ann"),
        UserSaid(said("hello"), "ann", "cli:direct", 9),
    )


@pytest.mark.parametrize("steering", ["steer", "interrupt", "queue"])
def test_whoever_was_not_shown_a_question_does_not_withdraw_it(steering):
    thread = after(calling("ask", "ask"), asked(), asked(1))
    names = [approval_id(thread.id, 3, place, thread.asked[place].digest) for place in (0, 1)]
    for shown in ((), ("another",), (names[0],)):
        assert admit(thread, letter(structs.replace(HELLO, instead=shown)), steering) == Absorbed(taken=False)
    everything = structs.replace(HELLO, instead=(*names, "another"))
    assert admit(thread, letter(everything)) == admit(thread, letter(HELLO))
    working = after(calling("ask"))
    assert admit(working, letter(structs.replace(HELLO, instead=()))).taken  # nobody is asked anything: it steers


@pytest.mark.parametrize(
    "other", [structs.replace(HELLO, unattended=True), structs.replace(HELLO, unattended=True, preapproved=True)]
)
@pytest.mark.parametrize("steering", ["steer", "interrupt", "queue"])
def test_what_comes_with_another_word_about_permissions_waits_and_withdraws_nothing(other: Said, steering):
    thread = after(calling("ask"), asked())
    assert admit(thread, letter(other), steering) == Absorbed(taken=False)
    assert admit(Thread.of(heard(other), CALLED), letter(HELLO), steering) == Absorbed(taken=False)
    assert admit(Thread.of(heard(other), CALLED), letter(other)).taken  # the same word steers, as ever


@pytest.mark.parametrize(
    ("author", "expected"), [("ann", RunCalls((0,))), ("bob", RunCalls((0,))), ("cid", Ask((0,))), ("eve", Ask((0,)))]
)
def test_who_may_allow_it_allows_it_ahead_for_one_turn(author: str, expected):
    rules = structs.replace(RULES, tools={"ask": structs.replace(SPECS["ask"], permission=Role.GUEST)})
    said_so = structs.replace(spoke(author=author), preapproved=True)
    assert decide(Thread.of(said_so, CALLED, answered("", "ask")), rules) == expected
    later = Thread.of(said_so, CALLED, answered("done"), spoke(author=author), CALLED, answered("", "ask"))
    assert decide(later, rules) == Ask((0,))


def test_what_a_rule_asks_or_forbids_is_not_allowed_ahead():
    thread = Thread.of(structs.replace(spoke(), preapproved=True), CALLED, answered("", "ask"))
    for stance, expected in (("ask", Ask), ("deny", Settle)):
        policy = Policy(rules=(PolicyRule("ask", stance),))
        assert isinstance(decide(thread, structs.replace(RULES, policy=policy)), expected)


def test_a_summary_in_the_middle_of_a_turn_keeps_what_was_allowed_ahead():
    thread = Thread.of(structs.replace(spoke(), preapproved=True), CALLED)
    assert after(thread, Compacted("s", standing=thread.standing)).turn.preapproved


def test_a_stop_enters_only_what_runs():
    assert admit(Thread.of(spoke()), letter(Stop("ann"))) == Absorbed((Stopped("ann"),))
    assert admit(Thread(), letter(Stop("ann"))) == Absorbed()


def test_a_decision_counts_once_and_only_for_what_is_pending():
    thread = after(calling("ask"), asked())
    decision = letter(Decision("", 3, 0, "allowed", "ann", DIGEST))
    assert admit(thread, decision, roles=ROLES) == Absorbed((Answered(3, 0, "allowed", "ann"),))
    after(thread, Answered(3, 0, "allowed", "ann"))
    assert admit(thread, decision, roles=ROLES) == Absorbed()
    assert admit(thread, letter(Decision("", 2, 0, "allowed", "ann", DIGEST)), roles=ROLES) == Absorbed()


def test_a_choice_of_the_model_enters_at_any_time_by_anyone():
    chosen = Absorbed((ModelChosen("fast", "bob"),))
    stopping = after(calling("send"), Stopped("ann"))
    asking = after(calling("ask"), asked())
    for thread in (Thread(), Thread.of(spoke()), Thread.of(spoke(), CALLED), calling("look"), stopping, asking):
        for steering in ("steer", "queue", "interrupt"):
            assert admit(thread, letter(Choose("fast", "bob")), steering) == chosen


def test_a_model_that_comes_with_a_message_is_chosen_before_it_and_only_if_it_is_another():
    asking, usual = letter(structs.replace(HELLO, model="fast")), letter(structs.replace(HELLO, model=""))
    (entry,) = admit(Thread(), letter(HELLO)).entries
    assert admit(Thread(), asking) == Absorbed((ModelChosen("fast", "ann"), entry))
    assert admit(Thread.of(ModelChosen("fast", "ann")), asking) == Absorbed((entry,))
    assert admit(Thread(), usual) == Absorbed((entry,))
    assert admit(Thread.of(spoke()), asking).entries == (ModelChosen("fast", "ann"), entry)  # also while one answers


def test_a_chosen_model_stays_until_another_is_chosen():
    thread = Thread.of(ModelChosen("fast", "ann"), spoke(), CALLED, answered("hello"))
    assert (thread.choice, after(thread, ModelChosen("slow", "ann")).choice) == ("fast", "slow")
    assert after(thread, ModelChosen("", "ann")).choice == ""


@pytest.mark.parametrize(
    "before",
    [(), (spoke(),), (spoke(), CALLED), (spoke(), CALLED, answered("", "look")), (spoke(), CALLED, answered("hello"))],
    ids=["empty", "asked", "called", "calling", "answered"],
)
def test_a_choice_of_the_model_changes_nothing_else(before):
    thread, plain = Thread.of(*before, ModelChosen("fast")), Thread.of(*before)
    assert decide(thread, RULES) == decide(plain, RULES)
    assert thread.transcript.messages == plain.transcript.messages
    assert thread.standing == structs.replace(plain.standing, choice="fast")


def test_the_chosen_model_and_the_prefix_survive_a_compaction():
    before = Thread.of(ModelChosen("fast"), spoke(), ModelCalled("m", prefix="model:1 system:2"), answered("hello"))
    thread = Thread("t", 99)
    thread.add(Compacted("so far", standing=before.standing))
    assert (thread.choice, thread.prefix) == ("fast", "model:1 system:2")
    assert thread.standing == before.standing


def test_a_prefix_that_is_not_given_is_the_one_before():
    thread = Thread.of(spoke(), ModelCalled("m", prefix="one"), answered("a"), spoke(mail=2), CALLED)
    assert thread.prefix == "one"
    assert after(thread, answered("b"), spoke(mail=3), ModelCalled("m", prefix="two")).prefix == "two"
