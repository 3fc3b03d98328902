"""A chain of models: when another is asked, what of it is seen, and when the first is the first again."""

import re
from collections.abc import Callable

import pytest

from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.errors import (
    AnswerOversized,
    AnswerTimeout,
    BadRequest,
    ContextOverflow,
    HostFailed,
    HostHungUp,
    HostTimeout,
    HostUnreachable,
    KeyRefused,
    LoginDenied,
    LoginExpired,
    ModelMissing,
    NoVision,
    OutOfCredit,
    OwnKeyRefused,
    ProviderError,
    RateLimited,
    SocketClosed,
    SocketRefused,
    StreamCut,
    UnknownModel,
)
from everloop.ports.provider import Delta, ModelLimits, Reply
from everloop.providers.router import Candidate, Router
from everloop.testing import Call, Fail, Line, Say, ScriptedModel, Spend, Think

PROMPT = Prompt("first", "Be brief.", Transcript((Message("user", said("hi")),)))
USED = Usage(10, 2)

CURABLE = [
    KeyRefused("The key is wrong."),
    LoginDenied("No."),
    LoginExpired("Too late."),
    OutOfCredit("Nothing left."),
    UnknownModel("Who?"),
    ModelMissing("Nobody."),
    RateLimited("Slowly.", 7.0),
    HostTimeout("Too slow."),
    AnswerTimeout("Without end."),
    HostUnreachable("Not there."),
    HostHungUp("Gone."),
    HostFailed("Broken."),
    AnswerOversized("Too large."),
    StreamCut("Cut."),
    NoVision("Dark."),
]
INCURABLE = [ContextOverflow("Too long."), BadRequest("Wrong."), OwnKeyRefused("Yours is not taken.")]


def kind(error: ProviderError) -> str:
    return type(error).__name__


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


class Chain:
    """Candidates `host/first`, `host/second`, … that play these scripts, and what was shown of their answers."""

    def __init__(self, *scripts: list[Line] | Callable[..., Line]) -> None:
        self.clock = Clock()
        self.models = [
            ScriptedModel(script, name=name)
            for name, script in zip(("first", "second", "third"), scripts, strict=False)
        ]
        self.candidates = [
            Candidate(
                f"host/{model.name}", model.name, model, cost=lambda reply: reply.usage.input * 0.5, now=self.clock
            )
            for model in self.models
        ]
        self.router = Router(self.candidates)
        self.shown: list[Delta] = []

    async def ask(self, prompt: Prompt = PROMPT) -> Reply:
        return await self.router.reply(prompt, self.shown.append)

    @property
    def calls(self) -> list[int]:
        return [model.calls for model in self.models]


def broken(error: ProviderError) -> Callable[..., Line]:
    return lambda shown: Fail(type(error)(*error.args))


async def test_the_first_answers_and_nobody_else_is_asked():
    chain = Chain([[Say("hello"), Spend(USED)]], [Say("never")])
    assert await chain.ask() == Reply("hello", usage=USED, model="host/first", cost=5.0)
    assert (chain.calls, chain.shown, chain.router.name) == ([1, 0], [Delta("hello")], "host/first")


def test_every_kind_of_error_is_one_that_another_can_cure_or_is_not():
    def kinds(error: type[ProviderError]) -> set[type[ProviderError]]:
        return {error}.union(*map(kinds, error.__subclasses__()))

    apart = {ProviderError, SocketRefused, SocketClosed}  # no model is asked over a WebSocket
    ours = {error for error in kinds(ProviderError) - apart if error.__module__ == ProviderError.__module__}
    assert {type(error) for error in (*CURABLE, *INCURABLE)} == ours
    assert [error.curable for error in (*CURABLE, *INCURABLE)] == [True] * len(CURABLE) + [False] * len(INCURABLE)


@pytest.mark.parametrize("error", CURABLE, ids=kind)
async def test_a_fault_that_another_can_cure_is_answered_by_the_next(error):
    chain = Chain([Fail(error)], [[Say("hello"), Spend(USED)]])
    assert await chain.ask() == Reply("hello", usage=USED, model="host/second", cost=5.0)
    assert [delta.text for delta in chain.shown] == ["", "hello"]
    assert re.fullmatch(r"host/first does not answer \(.+\); asking host/second", chain.shown[0].notice)


@pytest.mark.parametrize("error", INCURABLE, ids=kind)
async def test_a_fault_that_lies_in_the_request_is_told_at_once(error):
    chain = Chain([Fail(error), Say("well again")], [Say("never")])
    with pytest.raises(type(error)) as raised:
        await chain.ask()
    assert (raised.value, chain.calls, chain.shown) == (error, [1, 0], [])
    assert (await chain.ask()).text == "well again"  # it need not rest


@pytest.mark.parametrize("error", [*CURABLE, *INCURABLE], ids=kind)
@pytest.mark.parametrize("beginning", [Say("half"), Think("hm")], ids=["text", "reasoning"])
async def test_once_something_was_shown_nobody_else_is_asked(error, beginning):
    chain = Chain([[beginning, Fail(error)]], [Say("never")])
    with pytest.raises(type(error)) as raised:
        await chain.ask()
    assert (raised.value, chain.calls, len(chain.shown)) == (error, [1, 0], 1)


async def test_progress_is_nothing_of_an_answer():
    class Warming(ScriptedModel):
        async def reply(self, prompt, show):
            show(Delta(progress="loading 10 %"))
            return await super().reply(prompt, show)

    first = Candidate("embedded", "embedded", Warming([Fail(HostFailed("no memory"))]))
    second = Candidate("host/b", "b", ScriptedModel([Say("hello")]))
    assert (await Router([first, second]).reply(PROMPT, lambda delta: None)).model == "host/b"


async def test_the_third_answers_when_two_have_failed_with_one_line_for_each_change():
    chain = Chain([Fail(HostFailed("x"))], [Fail(KeyRefused("y"))], [[Call("look"), Spend(USED)]])
    reply = await chain.ask()
    assert ([call.name for call in reply.calls], reply.model, reply.cost) == (["look"], "host/third", 5.0)
    assert chain.shown == [
        Delta(notice="host/first does not answer (failed); asking host/second"),
        Delta(notice="host/second does not answer (key refused); asking host/third"),
    ]
    assert chain.calls == [1, 1, 1]


async def test_each_model_is_asked_by_the_name_that_its_host_knows():
    chain = Chain([Fail(HostFailed("x"))], [Say("hello")])
    await chain.ask()
    assert [model.prompts[0].model for model in chain.models] == ["first", "second"]


async def test_a_host_that_says_which_model_it_took_is_believed():
    class Gateway(ScriptedModel):
        async def reply(self, prompt, show):
            return Reply("hello", model="vendor/best-1")

    reply = await Candidate("gate/auto", "auto", Gateway()).reply(PROMPT, lambda delta: None)
    assert (reply.model, reply.cost) == ("gate/vendor/best-1", None)


async def test_a_candidate_caps_what_the_others_would_allow():
    asked: list[Prompt] = []

    class Small(ScriptedModel):
        async def reply(self, prompt, show):
            asked.append(prompt)
            return Reply("hello")

    await Candidate("a/m", "m", Small(), limits=lambda: ModelLimits(output=100)).reply(PROMPT, lambda delta: None)
    assert (asked[0].max_tokens, asked[0].model, PROMPT.max_tokens) == (100, "m", 8192)


# Resting


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (RateLimited("x", 7.0), 7.0),
        (RateLimited("x", 86_400.0), 600.0),
        (RateLimited("x"), 30.0),
        (HostFailed("x"), 30.0),
        (HostUnreachable("x"), 30.0),
        (HostTimeout("x"), 30.0),
        (KeyRefused("x"), 300.0),
        (UnknownModel("x"), 300.0),
        (OutOfCredit("x"), 300.0),
    ],
    ids=lambda value: kind(value) if isinstance(value, ProviderError) else str(value),
)
async def test_one_that_failed_is_left_alone_for_a_while_and_is_then_the_first_again(error, seconds):
    chain = Chain([Fail(error), Say("back")], lambda shown: Say("instead"))
    await chain.ask()
    chain.clock.time += seconds - 0.1
    assert (await chain.ask()).model == "host/second"
    assert chain.calls == [1, 2]
    chain.clock.time += 0.2
    assert (await chain.ask()).model == "host/first"


async def test_while_the_first_rests_nothing_is_said_about_it():
    chain = Chain([Fail(HostFailed("x"))], lambda shown: Say("instead"))
    await chain.ask()
    chain.shown.clear()
    await chain.ask()
    assert chain.shown == [Delta("instead")]


async def test_when_all_rest_all_are_tried():
    chain = Chain([Fail(KeyRefused("x")), Fail(KeyRefused("x"))], [Fail(HostFailed("y")), Say("early")])
    with pytest.raises(KeyRefused):
        await chain.ask()
    assert (await chain.ask()).text == "early"
    assert chain.calls == [2, 2]


# Failing


async def test_when_all_fail_the_firsts_fault_is_told_and_the_others_are_named():
    chain = Chain(broken(RateLimited("Too many.")), broken(KeyRefused("Wrong.")), broken(HostFailed("Broken.")))
    with pytest.raises(RateLimited) as raised:
        await chain.ask()
    assert str(raised.value) == "Too many. The fallbacks failed too: host/second (key refused), host/third (failed)."
    assert raised.value.kind == "rate"


async def test_a_fallback_that_cannot_take_the_request_does_not_hide_what_was_wrong_first():
    """One with a smaller window, for example."""
    chain = Chain(broken(HostFailed("Broken.")), broken(ContextOverflow("Too long for me.")), [Say("hello")])
    assert (await chain.ask()).model == "host/third"
    other = Chain(broken(HostFailed("Broken.")), broken(ContextOverflow("Too long for me.")))
    with pytest.raises(HostFailed, match=r"^Broken\. The fallbacks failed too: host/second \(too long for it\)\.$"):
        await other.ask()


async def test_closing_closes_all():
    chain = Chain([], [], [])
    await chain.router.close()
    assert [model.closed for model in chain.models] == [True, True, True]


# Seeing


PICTURE = Message("user", (Text("what is this?"), Media("f1", "image/png", "a.png", "ann")))


async def test_a_model_that_turned_out_to_be_blind_is_not_shown_a_picture_again_and_goes_on_in_words():
    seen: list[bool] = []

    class Blind(ScriptedModel):
        async def reply(self, prompt, show):
            seen.append(prompt.sees)
            if prompt.sees and prompt.transcript.media:
                raise NoVision("I cannot see.")
            return Reply("hello")

    blind = Candidate("a/m", "m", Blind())
    looking = Prompt("m", "", Transcript((PICTURE,)))
    with pytest.raises(NoVision, match="I cannot see"):
        await blind.reply(looking, lambda delta: None)
    with pytest.raises(NoVision, match=r"^a/m cannot see images or read documents\. Choose a model that can"):
        await blind.reply(looking, lambda delta: None)
    later = Prompt(
        "m", "", Transcript((PICTURE, Message("assistant", said("no")), Message("user", said("never mind"))))
    )
    assert (await blind.reply(later, lambda delta: None)).text == "hello"
    assert seen == [True, False]


class Sighted(ScriptedModel):
    """Tells what it is asked with, and sees or does not."""

    def __init__(self, name: str, sees: bool) -> None:
        super().__init__([], name=name)
        self.looked = 0
        self._sees = sees

    async def reply(self, prompt, show):
        self.looked += bool(prompt.sees and prompt.transcript.media)
        if not self._sees and prompt.sees and prompt.transcript.media:
            raise NoVision(f"{self.name} cannot see.")
        return Reply(self.name)


async def test_what_the_first_cannot_see_is_shown_to_a_fallback_that_does_and_words_to_the_first_again():
    models = [Sighted("blind", False), Sighted("dark", False), Sighted("keen", True)]
    router = Router([Candidate(f"a/{model.name}", model.name, model) for model in models])
    shown: list[Delta] = []
    looking = Prompt("blind", "", Transcript((PICTURE,)))
    assert [(await router.reply(looking, shown.append)).text for _ in range(2)] == ["keen", "keen"]
    assert [delta.notice for delta in shown] == [
        "a/blind does not answer (cannot see); asking a/dark",
        "a/dark does not answer (cannot see); asking a/keen",
    ] * 2
    assert [model.looked for model in models] == [1, 1, 2]
    assert (await router.reply(PROMPT, shown.append)).text == "blind"


async def test_where_none_sees_it_is_said_of_the_first():
    models = [Sighted("blind", False), Sighted("dark", False)]
    router = Router([Candidate(f"a/{model.name}", model.name, model) for model in models])
    with pytest.raises(NoVision, match=r"^blind cannot see\. The fallbacks failed too: a/dark \(cannot see\)\.$"):
        await router.reply(Prompt("blind", "", Transcript((PICTURE,))), lambda delta: None)
