"""What a person allows is exactly what runs: bound by digest, shown whole, decided by those who may."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from everloop.core.approval import Policy, PolicyRule, approval_id, digest_of, risk_of
from everloop.core.decide import (
    CHANGED,
    FORBIDDEN,
    REPEATED,
    Absorbed,
    Ask,
    CallModel,
    GiveUp,
    Rest,
    Rules,
    RunCalls,
    Settle,
    admit,
    decide,
)
from everloop.core.log import Answered, CallReturned, Compacted, ModelSaid, decode, encode
from everloop.core.mail import Decision, Mail
from everloop.core.people import Role, role_of
from everloop.core.thread import Thread
from everloop.core.tool import Circumstances, Effect, Risk, ToolCall
from tests.core.makers import CALLED, DIGEST, ROLES, RULES, SPECS, asked, calling, spoke
from tests.effort import examples

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
arguments = st.dictionaries(st.text(), json_values, max_size=4)


def allowed(thread: Thread, place: int = 0) -> Thread:
    thread.extend((asked(place), Answered(3, place, "allowed", "ann")))
    return thread


def with_tool(**changes: object) -> Rules:
    """Rules in which the tool that was asked about is another."""
    return structs.replace(RULES, tools={**SPECS, "ask": structs.replace(SPECS["ask"], **changes)})


class TestBinding:
    def test_what_was_allowed_runs(self):
        assert decide(allowed(calling("ask")), RULES) == RunCalls((0,))

    @pytest.mark.parametrize(
        "change",
        [
            {"description": "ask something else"},
            {"schema": {"type": "object"}},
            {"effect": Effect.READ},
            {"permission": Role.ADMIN},
            {"scene": "/another/folder"},
        ],
    )
    def test_a_tool_that_is_another_now_does_not_run(self, change: dict[str, object]):
        refused = Settle((CallReturned(3, 0, CHANGED, "denied"),))
        assert decide(allowed(calling("ask")), with_tool(**change)) == refused

    def test_a_policy_that_forbids_it_now_counts(self):
        rules = structs.replace(RULES, policy=Policy("deny"))
        assert decide(allowed(calling("ask")), rules) == Settle((CallReturned(3, 0, FORBIDDEN, "denied"),))

    def test_a_requester_who_may_not_use_it_any_more_does_not(self):
        rules = structs.replace(RULES, roles={"ann": Role.ADMIN})
        refused = CallReturned(3, 0, "ask is not for ann to use.", "denied")
        assert decide(allowed(calling("ask")), rules) == Settle((refused,))

    @examples(100)
    @given(arguments, arguments)
    def test_other_arguments_have_another_digest(self, one: dict[str, object], other: dict[str, object]):
        calls = [ToolCall("", "ask", json.dumps(args)) for args in (one, other)]
        digests = {digest_of(call, SPECS["ask"]) for call in calls}
        assert (len(digests) == 1) == (calls[0].args == calls[1].args)

    def test_the_name_of_a_question_stands_for_one_place(self):
        places = [("t", 3, 0), ("t", 3, 1), ("t", 30, 1), ("u", 3, 0)]
        assert len({approval_id(*place, DIGEST) for place in places}) == len(places)
        assert approval_id("t", 3, 0, DIGEST) == approval_id("t", 3, 0, DIGEST)


class TestDeciding:
    def letter(self, by: str, digest: str = DIGEST, verdict: str = "allowed") -> Mail:
        return Mail(9, Decision("", 3, 0, verdict, by, digest))

    def waiting(self) -> Thread:
        thread = calling("ask")
        thread.add(asked())
        return thread

    @pytest.mark.parametrize(
        ("by", "counts"), [("ann", True), ("bob", True), ("cid", False), ("", False), ("x", False)]
    )
    def test_only_who_has_the_role_decides(self, by: str, counts: bool):
        entries = (Answered(3, 0, "allowed", by),) if counts else ()
        assert admit(self.waiting(), self.letter(by), roles=ROLES) == Absorbed(entries)

    def test_whoever_saw_something_else_decides_nothing(self):
        assert admit(self.waiting(), self.letter("ann", "0" * 64), roles=ROLES) == Absorbed()

    def test_time_decides_against(self):
        expired = self.letter("", "", "expired")
        assert admit(self.waiting(), expired, roles=ROLES) == Absorbed((Answered(3, 0, "expired", ""),))

    def test_a_second_answer_changes_nothing(self):
        thread = self.waiting()
        thread.add(Answered(3, 0, "denied", "ann"))
        assert admit(thread, self.letter("bob"), roles=ROLES) == Absorbed()

    def test_an_unknown_person_is_a_guest(self):
        assert role_of("somebody", ROLES) is Role.GUEST


def leaving(args: dict[str, object], situation: Circumstances) -> Risk:
    return Risk("high" if args.get("far") else "low", leaves=bool(args.get("out")), privileged=bool(args.get("root")))


class TestPolicy:
    SPEC = structs.replace(SPECS["look"], name="go", risk=leaving)

    def stance(self, policy: Policy, **args: object) -> str:
        return policy.stance(ToolCall("", "go", json.dumps(args)), self.SPEC, Thread())

    @pytest.mark.parametrize("default", ["ask", "allow", "deny"])
    def test_the_default_is_for_what_leaves_or_is_privileged_or_guarded(self, default: str):
        policy = Policy(default)
        assert [self.stance(policy), self.stance(policy, out=1), self.stance(policy, root=1)] == [
            "allow",
            default,
            default,
        ]
        call = ToolCall("", "ask", "{}")
        assert policy.stance(call, SPECS["ask"], Thread()) == default

    def test_the_first_rule_that_fits_decides(self):
        rules = (PolicyRule("g*", "deny", "high"), PolicyRule("go", "allow"), PolicyRule("*", "ask"))
        policy = Policy("ask", rules)
        assert [self.stance(policy, far=1, out=1), self.stance(policy, out=1)] == ["deny", "allow"]
        assert policy.stance(ToolCall("", "look", "{}"), SPECS["look"], Thread()) == "ask"

    def test_a_read_that_must_be_asked_about_does_not_run_beside_others(self):
        tools = {**SPECS, "go": self.SPEC}
        thread = Thread.of(
            spoke(), CALLED, ModelSaid("", (ToolCall("", "look", "{}"), ToolCall("", "go", '{"out": 1}')))
        )
        assert decide(thread, structs.replace(RULES, tools=tools)) == RunCalls((0,))
        thread.add(CallReturned(3, 0, "seen"))
        assert decide(thread, structs.replace(RULES, tools=tools)) == Ask((1,))

    def test_a_tool_that_cannot_tell_its_risk_is_asked_about(self):
        def broken(args: dict[str, object], situation: Circumstances) -> Risk:
            raise KeyError("to")

        spec = structs.replace(self.SPEC, risk=broken)
        risk = risk_of(ToolCall("", "go", "{}"), spec, Thread())
        assert risk == Risk("high", True, True, why="how risky it is cannot be told (KeyError('to'))")

    def test_without_more_said_an_effect_is_the_risk(self):
        risks = {name: risk_of(ToolCall("", name, "{}"), SPECS[name], Thread()) for name in ("look", "put", "send")}
        assert risks == {"look": Risk(), "put": Risk("low", mutates=True), "send": Risk("medium", mutates=True)}


class TestGoingInCircles:
    def step(
        self, thread: Thread, name: str = "look", text: str = "same", outcome: str = "done", args: str = "{}"
    ) -> None:
        seq = thread.seq + 2
        thread.extend((CALLED, ModelSaid("", (ToolCall("", name, args),)), CallReturned(seq, 0, text, outcome)))

    def circling(self, steps: int, **how: str) -> Thread:
        thread = Thread.of(spoke())
        for _ in range(steps):
            self.step(thread, **how)
        return thread

    def test_the_same_call_with_the_same_result_is_at_last_not_run(self):
        thread = self.circling(4)
        thread.extend((CALLED, ModelSaid("", (ToolCall("", "look", "{}"),))))
        assert decide(thread, RULES) == Settle((CallReturned(thread.seq, 0, REPEATED, "repeated"),))

    def test_another_call_is_still_run(self):
        thread = self.circling(4)
        thread.extend((CALLED, ModelSaid("", (ToolCall("", "look", '{"at": 2}'),))))
        assert decide(thread, RULES) == RunCalls((0,))

    def test_other_results_are_progress(self):
        thread = Thread.of(spoke())
        for number in range(20):
            self.step(thread, text=str(number))
        assert (thread.turn.futile, decide(thread, RULES)) == (0, CallModel())

    def test_going_back_and_forth_is_no_progress(self):
        thread = Thread.of(spoke())
        for number in range(10):
            self.step(thread, args=json.dumps({"at": number % 2}))
        assert thread.turn.futile == 8

    def test_failing_again_and_again_ends_the_turn(self):
        thread = Thread.of(spoke())
        for number in range(8):
            self.step(thread, text=f"Error {number}", outcome="failed", args=json.dumps({"at": number}))
        assert decide(thread, RULES) == GiveUp("futile")

    def test_a_word_from_the_user_begins_the_count_anew(self):
        thread = self.circling(6)
        thread.add(spoke("try the other door", mail=2))
        assert (thread.turn.futile, decide(thread, RULES)) == (0, CallModel())

    def test_who_waits_for_something_may_look_again(self):
        polls = structs.replace(RULES, tools={"look": structs.replace(SPECS["look"], polls=True)})
        thread = self.circling(5)
        thread.extend((CALLED, ModelSaid("", (ToolCall("", "look", "{}"),))))
        assert decide(thread, polls) == RunCalls((0,))

        while thread.turn.futile < 20:
            self.step(thread)
        assert decide(thread, polls) == CallModel()

    def test_the_turn_ends_even_so(self):
        thread = self.circling(9)
        assert decide(thread, RULES) == GiveUp("futile")


class TestWhatStrangersWrote:
    def test_it_is_known_where_it_came_from(self):
        thread = calling("look")
        assert not thread.outside
        thread.add(CallReturned(3, 0, "see http://a.example/x", origin="http://b.example/", public=True))
        assert thread.outside
        assert thread.before(0).mentions("http://a.example/x")
        assert not thread.before(0).mentions("http://a.example/y")

    def test_a_summary_does_not_wash_it_off(self):
        thread = calling("look")
        thread.add(CallReturned(3, 0, "x", origin="http://b.example/"))
        later = Thread.of(decode(encode(Compacted("we read a page", standing=thread.standing))))
        assert later.outside


def test_whoever_has_asked_all_rests():
    thread = calling("ask")
    thread.add(asked())
    assert decide(thread, RULES) == Rest()
