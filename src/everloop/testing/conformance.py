"""What every channel promises, as checks that anyone can run on a channel of their own.

Its author writes a `Platform`, a stand-in for what the channel speaks with, and runs each check on it:

    @pytest.mark.parametrize("name", CHECKS)
    def test_it_is_a_channel(name, tmp_path):
        asyncio.run(CHECKS[name](Trial(MyPlatform(), tmp_path, everloop.open)))

A check raises AssertionError with a sentence. A platform outlives the houses that are opened in front of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ..errors import ChannelDown, StoreError
from ..ports.channel import Incoming
from .abilities import ABILITIES
from .channel import Trouble
from .platform import PATIENCE, Platform, Trial

__all__ = ["CHECKS", "Platform", "Trial"]


async def check_answered_once(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house():
        await platform.say("e1", "one")
        await platform.shown(1)
        await platform.say("e2", "two")
        await platform.shown(2)
    assert platform.seen == ["you said one", "you said two"], f"each message is answered once: {platform.seen}"
    assert platform.acknowledged == ["e1", "e2"], f"each is acknowledged: {platform.acknowledged}"


async def check_known_event(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (_, model, _):
        for _ in range(3):
            await platform.say("e1", "one")
        await platform.shown(1)
        await platform.say("e2", "two")
        await platform.shown(2)
    async with trial.house() as (_, later, _):
        await platform.say("e1", "one")
        await platform.say("e3", "three")
        await platform.shown(3)
    said = ["you said one", "you said two", "you said three"]
    assert platform.seen == said, f"the same event is one message, also after a restart: {platform.seen}"
    assert (model.calls, later.calls) == (2, 1), "no model is asked about an event that is known"
    heard = " ".join(message.text for message in later.prompts[-1].messages if message.role == "user").split()
    assert heard.count("one") == 1, f"it stands in the conversation once, and not {heard.count('one')} times"


async def check_resumed(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (first, _, _):
        assert first.last == "", "a channel begins without a place to go on from"
        await platform.say("e1", "one")
        await platform.shown(1)
    async with trial.house() as (second, _, agent):
        kept = await agent.store.resume(second.manifest.name)
        assert second.last == kept, "it goes on where the last letter that was committed said"
        assert bool(kept) == platform.resumes, f"where it goes on is kept with its letters: {kept!r}"
        await platform.say("e2", "two")
        await platform.shown(2)
    assert platform.seen == ["you said one", "you said two"], f"nothing is lost or doubled: {platform.seen}"


async def check_uncommitted(trial: Trial) -> None:
    """A deliver that cannot commit: the platform must not be told that the message arrived."""
    platform, channel = trial.platform, trial.platform.channel()

    class Full:
        async def __call__(self, incoming: Incoming, resume: str = "") -> Any:
            tried.set()
            raise StoreError("the disk is full")

        async def skip_to(self, resume: str) -> None:
            tried.set()
            raise StoreError("the disk is full")

    tried, full = asyncio.Event(), Full()
    platform.hooks = channel.hooks(full) if hasattr(channel, "hooks") else ()
    listening = asyncio.ensure_future(channel.run(full, ""))
    saying = asyncio.ensure_future(platform.say("e1", "one"))
    async with asyncio.timeout(PATIENCE):
        await tried.wait()
        if platform.hooks:
            await asyncio.gather(saying, return_exceptions=True)
        else:
            await asyncio.gather(listening, return_exceptions=True)
    for task in (saying, listening):
        task.cancel()
    await asyncio.gather(saying, listening, return_exceptions=True)
    assert platform.acknowledged == [], "what could not be committed is not acknowledged"
    async with trial.house():
        await platform.say("e1", "one")
        await platform.shown(1)
    assert platform.seen == ["you said one"], f"it is answered when it comes again: {platform.seen}"


async def check_retry_after(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (channel, _, _):
        platform.trouble(Trouble.LIMITED, retry_after=1.0)
        await platform.say("e1", "one")
        await platform.shown(1)
    asked = [error.retry_after for error in channel.errors if isinstance(error, ChannelDown)]
    assert asked == [1.0], f"the seconds that the platform asks for are told (ChannelDown.retry_after): {asked}"
    assert platform.seen == ["you said one"], f"the answer arrives once: {platform.seen}"


async def check_down(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (channel, _, _):
        platform.trouble(Trouble.DOWN, Trouble.DOWN)
        await platform.say("e1", "one")
        await platform.shown(1)
    kinds = {type(error) for error in channel.errors}
    assert all(issubclass(kind, ChannelDown) for kind in kinds), f"a platform that is down is ChannelDown: {kinds}"
    assert platform.seen == ["you said one"], f"the answer arrives once: {platform.seen}"


async def check_lost_receipt(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (channel, _, _):
        platform.trouble(Trouble.ACK_LOST)
        await platform.say("e1", "one")
        await platform.shown(2)
    once = channel.manifest.traits.once
    wanted = ["you said one"] if once else ["you said one", "(may be repeated) you said one"]
    assert platform.seen == wanted, (
        f"a send whose receipt was lost is repeated, with its key or marked: {platform.seen}"
    )


async def check_parts(trial: Trial) -> None:
    platform, parts = trial.platform, trial.parts(trial.platform.long)
    assert parts, "an answer has at least one part"
    assert parts == trial.parts(platform.long), "the parts of an answer are always the same"
    async with trial.house(platform.long):
        await platform.say("e1", "one")
        await platform.shown(len(parts))
    assert tuple(platform.seen) == parts, "the parts arrive in their order, each once"


async def check_restart_between_parts(trial: Trial) -> None:
    platform, parts = trial.platform, trial.parts(trial.platform.long)
    if len(parts) == 1:
        return
    async with trial.house(platform.long) as (channel, _, _):
        unsure = 1 if channel.manifest.traits.once else 0  # a part that arrives, and nobody hears of it
        platform.trouble(None, *[Trouble.ACK_LOST] * unsure, *[Trouble.DOWN] * 1000)
        await platform.say("e1", "one")
        await platform.tried(2 + unsure)
    platform.trouble()
    async with trial.house(platform.long):
        await platform.shown(len(parts) + unsure)
    seen = tuple(text.removeprefix("(may be repeated) ") for text in platform.seen)
    assert seen == parts, f"after a restart only the parts without a receipt are sent: {len(seen)} of {len(parts)}"


async def check_forged(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (_, model, _):
        forged = platform.forged()
        assert bool(forged) == bool(platform.hooks), "a channel with hooks is tried with forged requests"
        answers = [[(await hook.answer(each)).status for hook in platform.hooks] for each in forged]
        await platform.say("e1", "one")
        await platform.shown(1)
    refused = [status in (401, 403) for row in answers for status in row]
    assert all(refused), f"what is not signed is refused: {answers}"
    assert (model.calls, platform.seen) == (1, ["you said one"]), (
        "and nothing comes of it, while what is signed is heard"
    )


CHECKS: dict[str, Callable[[Trial], Awaitable[None]]] = {
    "each message is answered once": check_answered_once,
    "the same event is one message": check_known_event,
    "it goes on where it was": check_resumed,
    "what is not committed is not acknowledged": check_uncommitted,
    "the platform says when to try again": check_retry_after,
    "what is down is tried again": check_down,
    "a lost receipt is not a second message": check_lost_receipt,
    "parts arrive in order": check_parts,
    "a restart between parts repeats none": check_restart_between_parts,
    "what is forged is refused": check_forged,
    **ABILITIES,
}
