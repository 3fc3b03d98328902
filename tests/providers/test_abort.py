"""An answer that is stopped in its middle, in every dialect: a real server streams half of it, and /stop comes."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from msgspec import Struct
from tests.providers.test_conformance import DIALECTS, recording
from tests.providers.vendors import allowed

import everloop
from everloop.core.tool import Effect
from everloop.errors import TurnFailed
from everloop.net.trusted import TrustedHttp
from everloop.ports import HttpAnswer
from everloop.ports.tools import Tool
from everloop.providers import dialects
from everloop.tools.decorator import tool


class Half(Struct, frozen=True):
    """How far an answer comes: up to the last of `end` in a recording; and what of it is shown."""

    case: str
    end: Mapping[str, bytes]
    text: str
    reasoning: str = ""


LAST_OF_ARGS = dict.fromkeys(DIALECTS, b".txt") | {"anthropic_messages": b'xt\\"'}
HALVES = {
    "text": Half("text", dict.fromkeys(DIALECTS, b" there"), "Hello"),
    "call": Half("text_and_call", LAST_OF_ARGS, "Let me look."),
    "thought_and_call": Half("reasoning_and_call", LAST_OF_ARGS, "", "I should look."),
}
# What is left of a stopped turn: what the person said, and that it was stopped.
STOPPED = "operation cancelled by user"


class Host:
    """Answers with what it is given. After the first answer, if that `hangs`, it neither goes on nor hangs up."""

    def __init__(self, first: bytes, then: bytes, hangs: bool = True) -> None:
        self._answers = [first, then]
        self._hangs = hangs
        self.bodies: list[dict[str, Any]] = []
        self.left = asyncio.Event()  # the client has closed the connection

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.bodies.append(msgspec.json.decode(await request.read()))
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(self._answers[len(self.bodies) - 1])
        if self._hangs and len(self.bodies) == 1:
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        return answer


class Counted:
    """An answer that tells when so many bytes of it have been read."""

    def __init__(self, answer: HttpAnswer, awaited: int, reached: asyncio.Event) -> None:
        self.status, self.headers, self.read = answer.status, answer.headers, answer.read
        self._answer = answer
        self._awaited = awaited
        self._reached = reached

    async def chunks(self) -> AsyncIterator[bytes]:
        async for data in self._answer.chunks():
            yield data  # whoever comes back for more has read it
            self._awaited -= len(data)
            if self._awaited <= 0:
                self._reached.set()


class Counting:
    """The Http port: the network, with answers that are counted."""

    def __init__(self, http: TrustedHttp, awaited: int) -> None:
        self._http = http
        self._awaited = awaited
        self.reached = asyncio.Event()

    @asynccontextmanager
    async def request(self, method: str, url: str, **more: Any) -> AsyncIterator[HttpAnswer]:
        async with self._http.request(method, url, **more) as answer:
            yield Counted(answer, self._awaited, self.reached)

    async def close(self) -> None:
        pass


class Looking:
    """A tool that tells what it was asked to look at."""

    def __init__(self) -> None:
        self.at: list[str] = []

        @tool(Effect.READ)
        async def look(path: str) -> str:
            """Looks at a file."""
            self.at.append(path)
            return "x"

        self.tool: Tool = look


def opened(
    home: Path, dialect: dialects.Name, base: str, http: Counting, look: Tool
) -> AbstractAsyncContextManager[everloop.Agent]:
    here = {
        "agents": {"defaults": {"model": "mine/m", "context_window": 50_000}},
        "providers": {"mine": {"api_base": base, "api_key": "sk-canary-abort", "dialect": dialect}},
        "prices": {"mine/m": {"input": 1.0, "output": 1.0}},
    }
    return everloop.open(home=home, settings=here, http=http, tools=[look])


async def watch(agent: everloop.Agent, seen: list[everloop.Event]) -> None:
    async for event in agent.stream("hi"):
        seen.append(event)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_stop_in_the_middle_leaves_nothing_half_done(serve, http, tmp_path, dialect: dialects.Name, half: str):
    cut, looking = HALVES[half], Looking()
    whole = recording(dialect, cut.case)
    begun = whole[: whole.index(cut.end[dialect])]
    host, counting = Host(begun, recording(dialect, "text")), Counting(http, len(begun))
    async with opened(tmp_path / "home", dialect, await serve(host.answer), counting, looking.tool) as agent:
        seen: list[everloop.Event] = []
        watching = asyncio.create_task(watch(agent, seen))
        async with asyncio.timeout(30):
            await counting.reached.wait()
        assert (await agent.ask("/stop")).content == "⏹ Stopped 1 task(s)."
        with pytest.raises(TurnFailed) as failed:
            await watching
        assert (failed.value.reason, str(failed.value)) == ("stopped", "stopped; what was said and done so far stays")
        async with asyncio.timeout(30):
            await host.left.wait()
        chunks = [event.data for event in seen if event.name == "stream_chunk"]
        assert "".join(chunk["text"] for chunk in chunks) == cut.text
        assert "".join(chunk["reasoning"] for chunk in chunks).strip() == cut.reasoning
        assert [event.data["kept"] for event in seen if event.name == "stream_end"] == [bool(cut.text)]
        assert [event for event in seen if event.name in ("metrics", "tool_call", "tool_result")] == []
        row = await agent.store.session("api:default")
        entries = await agent.store.read(row.id)
        assert [type(entry).__name__ for entry in entries] == ["UserSaid", "ModelCalled", "Stopped"]
        assert (entries[2].text, entries[2].reasoning.strip()) == (cut.text, cut.reasoning)
        assert (await agent.store.spent(), looking.at) == ([], [])

        answer = await agent.ask("go on")
        (spent,) = await agent.store.spent()
    assert (answer.content, spent.calls, spent.usage, looking.at) == ("Hello there.", 1, answer.usage, [])
    assert len(host.bodies) == 2
    told = f"{cut.text}\n\n[{STOPPED}]" if cut.text else STOPPED
    assert heard(dialect, host.bodies[1]) == [
        ("user", "hi"),
        ("assistant", told.partition("\n\n")[0]),
        ("user", "go on"),
    ]
    assert allowed(dialect, host.bodies[1])


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_without_a_stop_it_would_have_been_done(serve, http, tmp_path, dialect: dialects.Name):
    host = Host(recording(dialect, "text_and_call"), recording(dialect, "text"), hangs=False)
    looking, base = Looking(), await serve(host.answer)
    async with opened(tmp_path / "home", dialect, base, Counting(http, 1), looking.tool) as agent:
        answer = await agent.ask("hi")
        (spent,) = await agent.store.spent()
    assert (answer.content, looking.at, spent.calls, spent.usage) == ("Hello there.", ["a.txt"], 2, answer.usage)
    assert allowed(dialect, host.bodies[1])


def heard(dialect: dialects.Name, body: dict[str, Any]) -> list[tuple[str, str]]:
    """What the host is told was said, without the tail."""
    if dialect == "gemini":
        told = [(content["role"], content["parts"]) for content in body["contents"]]
    else:
        told = [(each["role"], each["content"]) for each in body["input" if "input" in body else "messages"]]
    texts = [(role, content if isinstance(content, str) else content[0]["text"]) for role, content in told]
    return [(role.replace("model", "assistant"), text.partition("\n\n")[0]) for role, text in texts if role != "system"]
