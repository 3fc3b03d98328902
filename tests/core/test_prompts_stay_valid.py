"""After any sequence of steering, stops, kills, compaction, undo and forks, every prompt is one that hosts accept.

The checks are those of the hosts: every call has its result right after it, and where the sides have to take turns they
do.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given

from everloop.core.decide import Rules
from everloop.core.log import (
    AgentTold,
    Compacted,
    CompactionAsked,
    Entry,
    ModelCalled,
    ModelSaid,
    TakenBack,
    Undoing,
    UserSaid,
)
from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript
from everloop.core.thread import Thread
from everloop.core.tool import FileChange, ToolCall
from everloop.ports.conversation import Written
from everloop.providers.dialects import anthropic_messages, gemini, openai_chat, openai_responses
from everloop.providers.dialects.quirks import Quirks
from everloop.readings.branch import branch_off, last_turn
from everloop.runtime.summaries import Summary, compacted, plan_for
from tests.core.makers import ROLES, RULES
from tests.core.test_properties import SEED, STEERING, World, live_until_rest, spoken
from tests.effort import examples

Body = dict[str, Any]


def check_chat(body: Body) -> None:
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert waiting == []
            waiting = [each["id"] for each in message.get("tool_calls", ())]
    assert waiting == []


def check_responses(body: Body) -> None:
    waiting: list[str] = []
    answering = False
    for item in body["input"]:
        if item.get("type") == "function_call":
            assert not answering or not waiting
            answering = False
            waiting.append(item["call_id"])
        elif item.get("type") == "function_call_output":
            answering = True
            assert item["call_id"] == waiting.pop(0)
        else:
            assert waiting == []
    assert waiting == []


def check_anthropic(body: Body) -> None:
    roles = [message["role"] for message in body["messages"]]
    assert roles == [("user", "assistant")[n % 2] for n in range(len(roles))]
    waiting: list[str] = []
    for message in body["messages"]:
        blocks = message["content"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert results == waiting
        assert [block["type"] for block in blocks[: len(results)]] == ["tool_result"] * len(results)
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert len(waiting) == len(set(waiting))
    assert waiting == []


def check_gemini(body: Body) -> None:
    roles = [content["role"] for content in body["contents"]]
    assert roles == [("user", "model")[n % 2] for n in range(len(roles))]
    waiting: list[str] = []
    for content in body["contents"]:
        results = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        assert results == waiting
        waiting = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
    assert waiting == []


Check = Callable[[Body], None]
DIALECTS: dict[str, tuple[Callable[[Prompt, Quirks, str], bytes], Check]] = {
    "chat": (openai_chat.encode, check_chat),
    "responses": (openai_responses.encode, check_responses),
    "anthropic": (anthropic_messages.encode, check_anthropic),
    "gemini": (gemini.encode, check_gemini),
}


def check_prompt(messages: list[Message]) -> None:
    for encode, check in DIALECTS.values():
        prompt = Prompt("m", "be brief", Transcript(tuple(messages)), tuple(RULES.tools.values()), "now")
        check(msgspec.json.decode(encode(prompt, Quirks(), "host")))


def check_log(log: list[Entry], since: int) -> None:
    """Every prompt that was asked since, and the next one."""
    thread = Thread()
    for entry in log:
        thread.add(entry)
        if isinstance(entry, ModelCalled) and thread.seq > since:
            check_prompt(list(thread.transcript.messages))
    thread.add(UserSaid(said("next"), "ann"))
    check_prompt(list(thread.transcript.messages))


class Named(World):
    """A world whose model gives each call of an answer an id of its own, as hosts do; over answers they repeat."""

    def model_says(self) -> Entry:
        entry = super().model_says()
        if not isinstance(entry, ModelSaid):
            return entry
        calls = (msgspec.structs.replace(each, id=f"call_{place}") for place, each in enumerate(entry.calls))
        return msgspec.structs.replace(entry, calls=tuple(calls))


class Life:
    """A conversation that all of this happens to; the log is read as a store reads it, parents included."""

    def __init__(self, chance: Random, rules: Rules) -> None:
        self.chance, self.rules = chance, rules
        self.log: list[Entry] = []
        self.open = False
        self.compacted = 0

    def speak(self) -> None:
        world = Named(self.chance, self.rules, self.log, trouble=0.4)
        world.running = self.open
        world.post(spoken(self.chance, address="cli:direct"))
        live_until_rest(world)
        self.open = False

    def tell(self) -> None:
        """Words of the agent's own, from elsewhere: at rest, as they are let in."""
        self.log += [AgentTold("lunch", (), "cli:direct", "api:work", "ann")] * self.chance.randint(1, 2)

    def fork(self) -> None:
        if self.log:
            self.branch(self.chance.randint(1, len(self.log)))

    def undo(self) -> None:
        if turn := last_turn(1, self.log):
            self.branch(turn.cut, turn.seq)
            self.log += [Undoing("hi", (FileChange("a", "new", "x"),), by="ann", address="cli:direct"), TakenBack(0)]

    def branch(self, cut: int, turn: int = 0) -> None:
        folds = [seq for seq, entry in enumerate(self.log[:cut], 1) if isinstance(entry, Compacted)]
        first = folds[-1] if folds else 1
        written = [Written(seq, 0.0, entry) for seq, entry in enumerate(self.log[first - 1 : cut], first)]
        self.log = [*self.log[: first - 1], *branch_off(written, "cli:direct", "ann", turn=turn)]

    def compact(self) -> None:
        """At rest, or somewhere in the middle of a turn where no call is open."""
        thread, places = Thread(), [len(self.log)]
        for entry in self.log:
            thread.add(entry)
            if not (
                thread.open_calls or thread.turn.calling or thread.unheard or thread.turn.failure or thread.undoing
            ):
                places.append(thread.seq)
        self.log = self.log[: self.chance.choice(places)]
        thread = Thread.of(*self.log)
        share = self.chance.choice((0.2, 0.5, 0.9))
        limit = max(200, int(thread.estimated * self.chance.choice((0.5, 1.0, 2.0))))
        rules = msgspec.structs.replace(self.rules, limit=limit)
        if self.chance.random() < 0.5:
            self.log.append(CompactionAsked("ann"))
            thread.add(self.log[-1])
        planned = plan_for(thread, rules, share)
        if planned or thread.wants_room:
            entry = compacted(thread, planned, Summary("what was said" if planned else ""))
            standing = msgspec.structs.replace(entry.standing, mails=())
            self.log.append(msgspec.structs.replace(entry, standing=standing))
            self.compacted += planned is not None
        self.open = thread.owes_reply
        self.speak()


@examples(150)
@given(SEED, STEERING)
def test_every_prompt_is_valid_for_every_dialect_whatever_has_happened(seed, steering):
    chance = Random(seed)
    life = Life(chance, Rules(RULES.tools, roles=ROLES, max_steps=3, steering=steering))
    life.speak()
    for _ in range(6):
        before = len(life.log)
        chance.choice((life.speak, life.tell, life.fork, life.undo, life.undo, life.compact))()
        check_log(life.log, min(before, len(life.log)))


USER, ANSWER = Message("user", said("hi")), Message("assistant", said("hello"))
CALLS = Message("assistant", said(""), (ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}")))
RESULT_A, RESULT_B = Message("tool", said("x"), answers="a"), Message("tool", said("x"), answers="b")


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "wrong", [[USER, CALLS, RESULT_A, USER], [USER, CALLS, USER], [USER, CALLS], [USER, CALLS, RESULT_A, ANSWER, USER]]
)
def test_the_checks_notice_a_call_without_a_result(name, wrong):
    encode, check = DIALECTS[name]
    with pytest.raises((AssertionError, IndexError)):
        check(msgspec.json.decode(encode(Prompt("m", "s", Transcript(tuple(wrong))), Quirks(), "host")))
    check(
        msgspec.json.decode(
            encode(Prompt("m", "s", Transcript((USER, CALLS, RESULT_A, RESULT_B, ANSWER))), Quirks(), "host")
        )
    )
