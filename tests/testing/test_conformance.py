"""The conformance suite notices channels that do not keep what a channel promises."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
from msgspec import structs
from tests.channels.platform import Receiver

import everloop
from everloop.channels.webhook import Webhook
from everloop.errors import ChannelDown, EverloopError
from everloop.ports import Deliver
from everloop.ports.channel import Hook, HookAnswer, HookRequest, OutgoingPart
from everloop.testing.conformance import CHECKS, Platform, Trial


class Wrapped:
    """A webhook that does one thing wrong."""

    def __init__(self, channel: Webhook) -> None:
        self._channel = channel
        self.manifest = channel.manifest

    async def run(self, deliver: Deliver, resume: str) -> None:
        await self._channel.run(deliver, resume)

    async def send(self, part: OutgoingPart) -> str:
        return await self._channel.send(part)

    def hooks(self, deliver: Deliver) -> Sequence[Hook]:
        return self._channel.hooks(deliver)


class Forgetful(Wrapped):
    """Gives each message a new id, so that nobody knows it again."""

    ids = count()

    def hooks(self, deliver: Deliver) -> Sequence[Hook]:
        async def renamed(incoming: Any, resume: str = "") -> Any:
            return await deliver(structs.replace(incoming, event=f"{incoming.event}-{next(self.ids)}"), resume)

        return self._channel.hooks(renamed)


class Hasty(Wrapped):
    """Acknowledges what was not committed."""

    def hooks(self, deliver: Deliver) -> Sequence[Hook]:
        (hook,) = self._channel.hooks(deliver)

        async def answer(request: HookRequest) -> HookAnswer:
            try:
                return await hook.answer(request)
            except EverloopError:
                return HookAnswer(202)

        return [structs.replace(hook, answer=answer)]


class Impatient(Wrapped):
    """Does not tell when it may be tried again."""

    async def send(self, part: OutgoingPart) -> str:
        try:
            return await self._channel.send(part)
        except ChannelDown as error:
            raise ChannelDown(str(error)) from error


class Careless(Wrapped):
    """Sends each attempt under another key, and calls itself one that knows them."""

    keys = count()

    async def send(self, part: OutgoingPart) -> str:
        return await self._channel.send(structs.replace(part, key=f"{part.key}-{next(self.keys)}"))


class Vague(Wrapped):
    """Raises any error where the platform was down."""

    async def send(self, part: OutgoingPart) -> str:
        try:
            return await self._channel.send(part)
        except ChannelDown as error:
            raise RuntimeError(str(error)) from error


class Unsteady(Wrapped):
    """Makes other parts of the same answer each time."""

    lengths = count(100)

    def render(self, outbound: Any) -> tuple[str, ...]:
        length = next(self.lengths)
        return tuple(outbound.text[at : at + length] for at in range(0, len(outbound.text), length))


def platform_of(wrong: Callable[[Webhook], Any]) -> Platform:
    class Misled(Receiver):
        def channel(self) -> Any:
            return wrong(super().channel())

    return Misled()


WRONG = {
    Forgetful: "the same event is one message",
    Hasty: "what is not committed is not acknowledged",
    Impatient: "the platform says when to try again",
    Careless: "a lost receipt is not a second message",
    Vague: "what is down is tried again",
    Unsteady: "parts arrive in order",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__.lower())
async def test_a_channel_that_breaks_its_word_is_found_out(wrong: type[Wrapped], tmp_path):
    with pytest.raises(AssertionError):
        await CHECKS[WRONG[wrong]](Trial(platform_of(wrong), tmp_path / "home", everloop.open))


@pytest.mark.parametrize("name", sorted(set(WRONG.values())))
async def test_the_same_channel_without_the_fault_passes(name: str, tmp_path):
    await CHECKS[name](Trial(platform_of(Wrapped), tmp_path / "home", everloop.open))
