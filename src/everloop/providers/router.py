"""A chain of models: the first that can answer does.

Another is asked only as long as nothing has been shown, and only for faults that another can cure. A model that has
failed rests for a while; then the first choice is the first again.
"""

import logging
import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ..core.message import Media
from ..core.prompt import Prompt, Usage
from ..errors import NoVision, ProviderError, RateLimited
from ..ports import Provider
from ..ports.provider import Delta, ModelLimits, Reply
from .model_limits import longest_answer

_log = logging.getLogger("everloop.router")

_WHY = {
    "key": "key refused",
    "model": "unknown model",
    "credit": "no credit",
    "rate": "too many requests",
    "timeout": "no answer in time",
    "endless": "no end of its answer",
    "connection": "not reachable",
    "server": "failed",
    "cut": "broke off",
    "overflow": "too long for it",
    "request": "request refused",
    "vision": "cannot see",
    "provider": "failed",
}
_REST = {"key": 300.0, "model": 300.0, "credit": 300.0}
_SHORT_REST = 30.0
_LONGEST_REST = 600.0
_NOTHING_KNOWN = ModelLimits()


class Candidate:
    """One model at one host: the Provider port, which also knows the model's price and whether it can see."""

    def __init__(
        self,
        name: str,
        model: str,
        provider: Provider,
        *,
        cost: Callable[[Reply], float | None] = lambda reply: None,
        limits: Callable[[], ModelLimits] = lambda: _NOTHING_KNOWN,
        sees: bool = True,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`name` is provider/model, `model` what the host calls it; `limits` are those that are known by now."""
        self.name = name
        self._model = model
        self._host = name.removesuffix(model)
        self._provider = provider
        self._cost = cost
        self._limits = limits
        self._sees = sees
        self._now = now
        self._rested = 0.0  # when it may be asked again

    @property
    def rests(self) -> bool:
        return self._now() < self._rested

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        """As the port promises. Raises NoVision when the message that is to be answered holds what it cannot see."""
        try:
            reply = await self._provider.reply(self._fitted(prompt), show)
        except NoVision:
            if not prompt.transcript.media:
                raise
            # It is not shown another: else this conversation could never go on with this model.
            saw, self._sees = self._sees, False
            if not saw or _is_asked_to_look(prompt):
                raise
            reply = await self._provider.reply(self._fitted(prompt), show)  # what a tool or an earlier turn has shown
        return replace(reply, model=self._host + (reply.model or self._model), cost=self._cost(reply))

    def most(self, usage: Usage) -> float | None:
        """What a call of this usage costs; None: nobody knows."""
        return self._cost(Reply("", usage=usage))

    async def close(self) -> None:
        await self._provider.close()

    def shortened(self, prompt: Prompt) -> Prompt:
        """As this model can answer it, where the prompt was made for another with another window."""
        limits = self._limits()
        return replace(prompt, max_tokens=longest_answer(prompt.max_tokens, limits)) if limits.window else prompt

    def rest(self, error: ProviderError) -> None:
        """It has failed: leave it alone for as long as its host asks, or as the fault is likely to last."""
        asked = error.retry_after if isinstance(error, RateLimited) else None
        seconds = _REST.get(error.kind, _SHORT_REST) if asked is None else asked
        self._rested = self._now() + min(seconds, _LONGEST_REST)

    def _fitted(self, prompt: Prompt) -> Prompt:
        output = self._limits().output or 0
        if prompt.model == self._model and output == prompt.output_limit and self._sees:
            return prompt
        if not self._sees and _is_asked_to_look(prompt):
            raise NoVision(
                f"{self.name} cannot see images or read documents. Choose a model that can with /model, or say it in "
                "words."
            )
        capped = min(prompt.max_tokens, output or prompt.max_tokens)
        return replace(prompt, model=self._model, max_tokens=capped, sees=self._sees, output_limit=output)


def _is_asked_to_look(prompt: Prompt) -> bool:
    """Whether something to be seen came with what the person said last."""
    for message in reversed(prompt.transcript.messages):
        if message.role == "user":
            return any(isinstance(part, Media) for part in message.parts)
    return False


class Router:
    """The Provider port over a chain of candidates, the first choice first."""

    def __init__(self, chain: Sequence[Candidate]) -> None:
        self.name = chain[0].name
        self._chain = chain

    def most(self, usage: Usage) -> float | None:
        """What a call of this usage costs at most, whoever answers; None: nobody knows of one of them."""
        costs = [candidate.most(usage) for candidate in self._chain]
        known = [cost for cost in costs if cost is not None]
        return max(known) if len(known) == len(costs) else None

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        """As the port promises; the answer says which model gave it. When none can, the first one's fault is told."""
        shown = False

        def watch(delta: Delta) -> None:
            nonlocal shown
            shown = shown or bool(delta.text or delta.reasoning)
            show(delta)

        failures: list[tuple[Candidate, ProviderError]] = []
        for candidate in self._awake():
            if failures:
                failed, error = failures[-1]
                show(Delta(notice=f"{failed.name} does not answer ({_WHY[error.kind]}); asking {candidate.name}"))
            try:
                return await candidate.reply(
                    prompt if candidate is self._chain[0] else candidate.shortened(prompt), watch
                )
            except ProviderError as error:
                if shown or not (error.curable or failures):
                    raise
                _log.warning("%s failed (%s): %s", candidate.name, error.kind, error)
                if not isinstance(error, NoVision):  # it can still read
                    candidate.rest(error)
                failures.append((candidate, error))
        raise _explain(failures)

    async def close(self) -> None:
        for candidate in self._chain:
            await candidate.close()

    def _awake(self) -> list[Candidate]:
        """Those that do not rest; all of them when all do, for one may have come back early."""
        return [candidate for candidate in self._chain if not candidate.rests] or list(self._chain)


def _explain(failures: Sequence[tuple[Candidate, ProviderError]]) -> ProviderError:
    (_, first), *others = failures
    if others:
        names = ", ".join(f"{candidate.name} ({_WHY[error.kind]})" for candidate, error in others)
        first.args = (f"{first} The fallbacks failed too: {names}.",)
    return first
