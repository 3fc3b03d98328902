"""Spans on their way to a collector: every turn once, beside everything else, whatever the collector does."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.ports import free_port
from tests.telemetry.collector import Collector, attributes_of, collecting
from tests.test_doors import loaded_by

import everloop
from everloop import tool
from everloop.core.mail import Address, Inbound, Said, reply_key
from everloop.core.message import said
from everloop.core.tool import Effect
from everloop.core.turn import Finished
from everloop.net.trusted import TrustedHttp
from everloop.readings.spans import trace_id
from everloop.telemetry import exporter as exporter_
from everloop.telemetry.exporter import Exporter
from everloop.telemetry.target import ExportTarget
from everloop.testing import Call, Say, ScriptedModel, Wait
from everloop.testing.channel import RecordingChannel

CANARY = "the plan of the canary"


@tool(Effect.UNSAFE)
async def note(text: str) -> str:
    """Write something down."""
    return f"noted: {text}"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes its time for the last spans of a house that closes."""
    monkeypatch.setattr(exporter_, "FAREWELL", 60.0)
    monkeypatch.setattr(exporter_, "SECONDS", 60.0)


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    async with collecting() as found:
        yield found


def wanting(collector: Collector, **more: Any) -> dict[str, Any]:
    return {"telemetry": {"otlp_endpoint": collector.url, **more}}


def names(spans: list[Any]) -> list[str]:
    return [span.name for span in spans]


class Ear(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


@contextmanager
def listening() -> Iterator[list[str]]:
    ear, logger = Ear(), logging.getLogger("everloop.telemetry")
    logger.addHandler(ear)
    try:
        yield ear.lines
    finally:
        logger.removeHandler(ear)


async def test_a_turn_arrives_with_its_steps_and_without_what_was_said(tmp_path: Path, collector: Collector):
    model = ScriptedModel([Call("note", {"text": CANARY}), Say(f"done: {CANARY}")])
    settings = wanting(collector, otlp_headers={"X-Key": "sk-canary-collector"})
    async with everloop.open(tmp_path, settings, provider=model, tools=[note]) as agent:
        answer = await agent.ask(CANARY)
        thread = answer.turn.partition(":")[0]
    spans = await collector.until(6)
    assert names(spans) == [
        "invoke_agent everloop", "queue", "chat scripted", "execute_tool note", "chat scripted",
        "deliver api",
    ]  # fmt: skip
    assert {span.trace_id.hex() for span in spans} == {trace_id(thread, 1)}
    assert CANARY not in str(collector.requests)
    assert collector.headers[0]["X-Key"] == "sk-canary-collector"
    assert collector.headers[0]["Content-Type"] == "application/x-protobuf"
    assert attributes_of(spans[3])["gen_ai.tool.name"] == "note"


async def test_what_was_said_is_sent_where_that_is_wanted(tmp_path: Path, collector: Collector):
    model = ScriptedModel([Call("note", {"text": "x"}), Say("done")])
    async with everloop.open(tmp_path, wanting(collector, content=True), provider=model, tools=[note]) as agent:
        await agent.ask("note x")
    turn, _, first, call, last, _ = map(attributes_of, await collector.until(6))
    assert turn["gen_ai.input.messages"] == '[{"role":"user","parts":[{"type":"text","content":"note x"}]}]'
    done = '[{"role":"assistant","parts":[{"type":"text","content":"done"}],"finish_reason":"stop"}]'
    assert (turn["gen_ai.output.messages"], last["gen_ai.output.messages"]) == (done, done)
    assert '"type":"tool_call"' in first["gen_ai.output.messages"]
    assert (call["gen_ai.tool.call.arguments"], call["gen_ai.tool.call.result"]) == ('{"text":"x"}', "noted: x")


async def test_a_delivery_belongs_to_the_trace(tmp_path: Path, collector: Collector):
    channel = RecordingChannel("fake")
    letter = Inbound(Address("fake", "1"), "e1", Said(said("hi"), "owner", "fake:1"))
    model = ScriptedModel([Say("hello")])
    async with everloop.open(tmp_path, wanting(collector), provider=model, channels=[channel]) as agent:
        await agent.tell(letter)
        spans = await collector.until(4)
    assert names(spans) == ["invoke_agent everloop", "queue", "chat scripted", "deliver fake"]
    assert attributes_of(spans[-1])["everloop.delivery.state"] == "sent"
    assert spans[-1].parent_span_id == spans[0].span_id


async def test_what_was_said_too_late_for_a_turn_is_found_as_the_next(tmp_path: Path, collector: Collector):
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("one")], Say("two")])
    async with everloop.open(tmp_path, wanting(collector), provider=model) as agent:
        with agent.events() as events:
            first = asyncio.ensure_future(agent.ask("one", "api:a"))
            async for event in events:
                if event.name == "stream_start":
                    break
        second = await agent.tell(Inbound(Address("api", "a"), "e2", Said(said("two"), "owner", "api:a")))
        gate.set()
        await first
        await agent.finish("api:a")
        ended = await agent.store.ended(second.id)
    spans = await collector.until(6)
    turns = [attributes_of(span) for span in spans if span.name == "invoke_agent everloop"]
    assert len(turns) == 2
    assert ended


class House:
    """An exporter with turns of a real log, and hardly any pauses."""

    def __init__(self, agent: everloop.Agent, exporter: Exporter, turns: list[tuple[str, Finished]]) -> None:
        self.agent, self.exporter, self._turns = agent, exporter, turns

    def note(self, count: int = 1) -> None:
        for thread, turn in self._turns[:count]:
            self.exporter.note(thread, turn)


@asynccontextmanager
async def exporting(home: Path, url: str) -> AsyncIterator[House]:
    model = ScriptedModel([Say("one"), Say("two"), Say("three")])
    http = TrustedHttp(None, "")
    async with everloop.open(home, provider=model) as agent:
        turns = [await _ended(agent, text) for text in ("a", "b", "c")]
        exporter = Exporter(agent.store, http, ExportTarget(f"{url}/v1/traces", {}, {}), "1", pause=0.01, delivery=0.01)
        running = asyncio.ensure_future(exporter.run())
        try:
            yield House(agent, exporter, turns)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await exporter.close()
            await http.close()


async def _ended(agent: everloop.Agent, text: str) -> tuple[str, Finished]:
    thread, _, seq = (await agent.ask(text)).turn.partition(":")
    head = (await agent.store.open(thread)).row.head
    await agent.acknowledge([reply_key(thread, head)])
    return thread, Finished(int(seq), head, text, "", ())


async def test_what_the_collector_does_not_take_now_is_sent_later_and_told_of_once(
    tmp_path: Path, collector: Collector
):
    collector.statuses = [503, 429, 503]
    with listening() as lines:
        async with exporting(tmp_path, collector.url) as house:
            house.note(3)
            spans = await collector.until(10)
    assert names(spans).count("invoke_agent everloop") == 3
    warnings = [line for line in lines if line.startswith("WARNING")]
    assert warnings == ["WARNING spans are not sent: the collector answers with 503"]


async def test_what_the_collector_refuses_is_not_sent_again(tmp_path: Path, collector: Collector):
    collector.statuses = [401]
    with listening() as lines:
        async with exporting(tmp_path, collector.url) as house:
            house.note(1)
            await collector.until_asked(1)
            house.note(2)
            spans = await collector.until(7)
    assert len({span.trace_id for span in spans if span.name == "invoke_agent everloop"}) == 2
    assert lines[0].startswith(
        "WARNING spans are not sent: the collector answers with 401; check telemetry.otlp_headers"
    )


async def test_a_collector_that_is_not_there_is_told_of_in_one_line_and_stops_nothing(tmp_path: Path):
    url = f"http://127.0.0.1:{free_port()}"
    model = ScriptedModel([Say("one"), Say("two")])
    settings = {"telemetry": {"otlp_endpoint": url}}
    with listening() as lines:
        async with everloop.open(tmp_path, settings, provider=model) as agent:
            answers = [(await agent.ask("hi")).content for _ in range(2)]
    assert answers == ["one", "two"]
    assert len(lines) == 1
    assert lines[0].startswith(f"WARNING spans are not sent: {url.removeprefix('http://')} cannot be reached: ")


async def test_what_waits_for_a_collector_is_bounded(tmp_path: Path, collector: Collector):
    collector.statuses = [503] * 1000
    async with exporting(tmp_path, collector.url) as house:
        for _ in range(exporter_.MOST):
            house.note(2)
        waiting = len(house.exporter._waiting)
    assert waiting == exporter_.MOST


async def test_the_same_turn_sent_twice_is_the_same_spans(tmp_path: Path, collector: Collector):
    async with exporting(tmp_path, collector.url) as house:
        house.note(1)
        once = await collector.until(4)
        house.note(1)
        twice = await collector.until(8)
    assert twice[4:] == once


def test_nothing_of_it_is_loaded_where_it_is_not_wanted(tmp_path: Path):
    code = [
        "import asyncio, everloop",
        "from everloop.testing import ScriptedModel, Say",
        "async def main():",
        "    async with everloop.open({home!r}, {settings!r}, provider=ScriptedModel([Say('hi')])) as agent:",
        "        await agent.ask('hi')",
        "asyncio.run(main())",
    ]
    wanted = {"telemetry": {"otlp_endpoint": "http://127.0.0.1:9"}}

    def loaded(settings: dict[str, Any]) -> set[str]:
        lines = [line.format(home=str(tmp_path), settings=settings) for line in code]
        return {
            name for name in loaded_by(*lines) if name.startswith(("everloop.telemetry", "everloop.readings.spans"))
        }

    assert loaded({}) == set()
    assert "everloop.telemetry.exporter" in loaded(wanted)
