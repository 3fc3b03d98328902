"""The embedded model as a Provider: fetched and loaded on first use, one answer at a time, in a thread of its own."""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.message import Message, said
from ...core.prompt import Prompt, Usage
from ...core.tool import ToolSpec
from ...errors import BadRequest, ModelMissing
from ...ports import Http
from ...ports.provider import Delta, Reply
from .answer import REPLY, AnswerParser
from .codec import Codec, Memory, Question
from .download import Download, DownloadState
from .overhear import overhear
from .profile import spelling
from .rules import REPLY_ONLY
from .weights import Weights
from .world import Look, look_at

if TYPE_CHECKING:
    from .llama import Llama

NOTICE = (
    "This is a small offline model that runs on this machine: it is private and free, but slow and easily mistaken."
)
BETTER = (
    "To connect a better one, run everloop gateway and press Connect a model in its page; or put a key such as "
    "OPENAI_API_KEY into the environment, or run Ollama."
)

_LONGEST = 2048  # tokens of one answer; a small model that has lost its way does not stop by itself
_REMEMBERED = 256
_TEMPERATURE, _WARMER = 0.2, 0.6
_AT_A_GLANCE = 64  # tokens that are read too soon to speak of it

Show = Callable[[Delta], None]


class EmbeddedProvider:
    """Implements the Provider port. Also raises ModelMissing, when there are no weights or no xllamacpp."""

    def __init__(
        self,
        weights: Weights,
        folder: Path,
        http: Http | None = None,
        *,
        given: Path | None = None,
        threads: int = 0,
        look: Look = look_at,
    ) -> None:
        """`folder` keeps the weights and the states of prefixes. `threads` 0: one core is left to others. `look` tells
        what exists in a workspace."""
        self.name = weights.name
        self._weights, self._folder = weights, folder
        self.download = Download(weights, folder, http, given)
        self._threads = (threads, threads) if threads else (max(1, _cores() - 1), _cores())
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="llama")
        self._turn = asyncio.Lock()
        self._closed = False
        self._path: Path | None = None
        self._llama: Llama | None = None
        self._spoken: dict[str, str] = {}
        self._offered: dict[str, tuple[ToolSpec, ...]] = {}
        self._memory = Memory(look)

    async def reply(self, prompt: Prompt, show: Show) -> Reply:
        self._path = self._path or await self._fetch(show)
        async with self._turn:
            codec = await asyncio.to_thread(self._memory.codec, prompt, self._tools(prompt))
            if call := codec.settled:
                return Reply("", (call,), finish="calls", model=prompt.model or self.name)
            return await self._asked(prompt, codec, show)

    async def _asked(self, prompt: Prompt, codec: Codec, show: Show) -> Reply:
        """What the model answers. A call that is unusable is asked for once more, a little less strictly; one that
        must not be made is answered by words instead."""
        spent, temperature = Usage(), _TEMPERATURE if prompt.temperature is None else prompt.temperature
        tries = ((codec.allowed, temperature), (codec.allowed, _WARMER))
        for allowed, warmth in tries:
            question = codec.question(self._spoken, allowed)
            answer = AnswerParser(question.names)
            reason, usage = await self._generate(prompt, question, answer, warmth, show)
            spent += usage
            reply = answer.finish(reason, spent, prompt.model or self.name, f"call_{len(prompt.transcript.messages)}")
            if reply is None:
                continue
            called = codec.call(reply)
            if called is None:
                return await self._in_words(prompt, codec, show)
            self._remember(called, answer.raw, as_json=bool(question.names))
            return called
        raise BadRequest(
            f"The embedded model did not come to the end of a tool call within {spent.output} tokens. "
            f"Ask for something shorter, or connect a larger model."
        )

    async def _in_words(self, prompt: Prompt, codec: Codec, show: Show) -> Reply:
        question = codec.question(self._spoken, REPLY_ONLY)
        answer = AnswerParser(question.names)
        reason, usage = await self._generate(prompt, question, answer, _TEMPERATURE, show)
        reply = answer.finish(reason, usage, prompt.model or self.name, "")
        assert reply is not None  # words are never unusable
        self._remember(reply, answer.raw, as_json=bool(question.names))
        return reply

    async def warm(self) -> None:
        """Load the model ahead of the first question, if its weights are on this machine."""
        if self.download.is_here:
            await self.count("")

    async def count(self, text: str) -> int:
        """How many tokens the model reads a rendered text as."""
        async with self._turn:
            self._path = self._path or await self._fetch(lambda delta: None)
            return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: self._loaded().count(text))

    async def close(self) -> None:
        """May be called again: a house whose settings have changed has it in more than one list."""
        if self._closed:
            return
        self._closed = True
        await self.download.leave()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._unload)
        self._thread.shutdown(wait=False)

    async def _fetch(self, show: Show) -> Path:
        def tell(state: DownloadState) -> None:
            show(Delta(progress=f"{self._weights.title}: {state.words}"))

        return await self.download.join(tell)

    def _tools(self, prompt: Prompt) -> tuple[ToolSpec, ...]:
        """The tools that are described. The last call of a turn that ran too long has none, but keeps the prefix."""
        if prompt.tools:
            self._offered[prompt.conversation] = tuple(tool for tool in prompt.tools if tool.name != REPLY)
            _forget_oldest(self._offered)
        called = any(message.calls for message in prompt.transcript.messages)
        return self._offered.get(prompt.conversation, ()) if prompt.tools or called else ()

    async def _generate(
        self, prompt: Prompt, question: Question, answer: AnswerParser, temperature: float, show: Show
    ) -> tuple[str, Usage]:
        """Have the model go on; returns why it stopped and what it cost."""
        request: dict[str, Any] = {
            "prompt": question.prefix + question.messages,
            "n_predict": min(prompt.max_tokens, question.longest, _LONGEST),
            "temperature": temperature,
            "cache_prompt": True,
        }
        if question.grammar:
            request["grammar"] = question.grammar
        reason, usage = "stop", Usage()
        async with overhear(self._thread, lambda hear: self._run(question.prefix, request, hear)) as events:
            async for event in events:
                for delta in _deltas(event, answer):
                    show(delta)
                reason = _reason(event) or reason
                usage = _usage(event) or usage
                if answer.is_lost:
                    return "length", usage
        return reason, usage

    def _run(self, prefix: str, request: dict[str, Any], hear: Callable[[dict[str, Any]], bool]) -> None:
        if self._llama is None and hear({"loading": True}):
            return
        llama = self._loaded()
        llama.prime(prefix, hear)
        if not hear({}):
            llama.complete(request, hear)

    def _loaded(self) -> "Llama":
        if self._llama is None:
            assert self._path is not None
            states = self._folder / "prefixes"
            self._llama = _load()(self._path, self._weights.sha256, self._weights.window, self._threads, states)
        return self._llama

    def _unload(self) -> None:
        if self._llama is not None:
            self._llama.close()
            self._llama = None

    def _remember(self, reply: Reply, raw: str, *, as_json: bool) -> None:
        usual = spelling(Message("assistant", said(reply.text) if reply.text else (), reply.calls), as_json=as_json)
        if usual != raw and reply.finish != "length":
            self._spoken[usual] = raw
            _forget_oldest(self._spoken)


def _deltas(event: dict[str, Any], answer: AnswerParser) -> Iterator[Delta]:
    if "loading" in event:
        yield Delta(progress="loading the model")
    if read := event.get("prompt_progress"):
        done, left = read["processed"] - read["cache"], read["total"] - read["cache"]
        if left > _AT_A_GLANCE:
            yield Delta(progress=f"reading {100 * done // left} %")
    for choice in event.get("choices", ()):
        if words := answer.feed(choice["text"]):
            yield Delta(text=words)


def _reason(event: dict[str, Any]) -> str:
    return next((choice["finish_reason"] or "" for choice in event.get("choices", ())), "")


def _usage(event: dict[str, Any]) -> Usage | None:
    if not (usage := event.get("usage")):
        return None
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    return Usage(input=usage["prompt_tokens"], output=usage["completion_tokens"], cache_read=cached)


def _forget_oldest(memory: dict[str, Any]) -> None:
    while len(memory) > _REMEMBERED:
        del memory[next(iter(memory))]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _load() -> "type[Llama]":
    # Its OpenMP threads must sleep while they wait: spinning ones make two threads on a busy two-core machine eight
    # times slower than one. The library looks at this once, when it is loaded.
    before = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        from .llama import Llama
    except ImportError as error:
        raise ModelMissing(f"The embedded model needs xllamacpp: pip install 'everloop[local]' ({error}).") from error
    finally:
        if before is None:
            del os.environ["OMP_WAIT_POLICY"]
    return Llama
