"""A recorded turn as a test: one that a person can read, that passes as it is, and fails when the agent changes."""

import ast
import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

import everloop
from everloop.core.log import CallReturned, Entry, ModelSaid
from everloop.core.message import Opaque
from everloop.core.prompt import Usage
from everloop.core.tool import ToolCall
from everloop.replay import Record, cut, replay
from everloop.testing import Stub
from everloop.testing.as_test import name_of, quoted, source_of
from tests.effort import examples, in_full
from tests.replay.chaos import SPECS, Chaos
from tests.replay.test_replay import ASKED, CALLED, DONE, HELLO, WORK

SOURCE = str(Path(everloop.__file__).parents[1])


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def read(source: str) -> Record:
    """What a test file says, as Python understands it."""
    names: dict[str, Any] = {}
    exec(compile(source, "test_turn.py", "exec"), names)
    record = names["RECORD"]
    assert isinstance(record, Record)
    return record


def formatted(source: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length=120", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=True).stdout


def complaints(source: str) -> str:
    command = [sys.executable, "-m", "ruff", "check", "-q", "--isolated", "--select=E,F,I", "--line-length=120", "-"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False).stdout


def test_it_is_written_so_that_a_person_can_read_it():
    assert source_of(cut(WORK, 1), "0123456789abcdef:1", "0.1.0").split("\n\n", 2)[2] == (
        '# ruff: noqa: E501\n'
        'import asyncio\n'
        '\n'
        'from everloop.core.log import CallReturned, CallStarted, ModelCalled, ModelSaid, UserSaid\n'
        'from everloop.core.message import Text\n'
        'from everloop.core.tool import Effect, ToolCall\n'
        'from everloop.replay import replay\n'
        'from everloop.testing import Record, Stub\n'
        '\n'
        'RECORD = Record(\n'
        '    start=1,\n'
        '    before=[],\n'
        '    turn=[\n'
        '        UserSaid(parts=(Text("hello"),), author="owner", address="cli:direct", mail=1),\n'
        '        ModelCalled(model="m", tail="Current time: noon\\nChannel: cli, chat: direct"),\n'
        '        ModelSaid(text="", calls=(ToolCall(id="c1", name="look", args="{}"), ToolCall(id="c2", name="act", '
        'args="{}"))),\n'
        '        CallReturned(answer=3, place=0, text="seen"),\n'
        '        CallStarted(answer=3, place=1),\n'
        '        CallReturned(answer=3, place=1, text="did"),\n'
        '        ModelCalled(model="m", tail="Current time: noon\\nChannel: cli, chat: direct"),\n'
        '        ModelSaid(text="done"),\n'
        '    ],\n'
        '    tools={"look": Stub(effect=Effect.READ), "act": Stub()},\n'
        f'    shown=("{cut(WORK, 1).shown[0]}", "{cut(WORK, 1).shown[1]}"),\n'
        ')\n'
        '\n'
        '\n'
        'def test_turn_012345_1():\n'
        '    assert asyncio.run(replay(RECORD)).difference is None\n'
    )  # fmt: skip


@examples(12)
@given(seed=st.integers(0, 1 << 32), known=st.booleans())
async def test_what_is_written_is_what_was_recorded_as_formatters_like_it(seed: int, known: bool):
    with TemporaryDirectory(ignore_cleanup_errors=True) as home:
        log = await Chaos.live(Random(seed), Path(home), turns=1)
    record = cut(log, 1, SPECS if known else [])
    source = source_of(record, "abcdef:1", "0.1.0")
    assert (formatted(source), complaints(source)) == (source, "")
    assert read(source) == record
    assert (await replay(read(source))).difference is None


@given(text=st.text(st.sampled_from("'\"\\\n\t\x00 aä\u2028😀{}%")))
def test_any_text_is_quoted_as_formatters_do_it(text: str):
    assert ast.literal_eval(quoted(text)) == text


def test_every_kind_of_quote_is_left_as_it_is_by_a_formatter():
    texts = ["plain", "it's", 'say "hi"', 'it\'s "so"', "'''\"", "\\'\"", "a\\", "", "\n\t\x1b", "{}"]
    source = "".join(f"text = {quoted(text)}\n" for text in texts)
    assert formatted(source) == source


def test_what_only_a_provider_can_read_stays_as_it_is():
    block = b'{"type":"x","sig":"\'"}'
    said = ModelSaid("done", usage=Usage(7, 3), opaque=(Opaque("anthropic", Raw(block)),), cost=0.25)
    record = cut([HELLO, CALLED, said], 1)
    written = read(source_of(record, "abcdef:1", "0.1.0")).turn[2]
    assert isinstance(written, ModelSaid)
    assert [(each.dialect, bytes(each.block)) for each in written.opaque] == [("anthropic", block)]
    assert (written.usage, written.cost) == (said.usage, said.cost)


def test_of_a_known_tool_the_schema_is_kept_when_it_mattered():
    (put,) = [spec for spec in SPECS if spec.name == "put"]
    refused = CallReturned(
        3, 0, "Error: the call was not run: n is required. Correct the arguments and call again.", "failed"
    )
    log: list[Entry] = [HELLO, CALLED, ModelSaid("", (ToolCall("c", "put", "{}"),)), refused, CALLED, DONE]
    assert cut(log, 1, SPECS).tools == {"put": Stub(put.effect, put.permission, schema=put.schema)}
    assert cut(log, 1).tools == {"put": Stub()}
    assert [asyncio.run(replay(cut(log, 1, known))).believed for known in (SPECS, [])] == [0, 1]


@pytest.mark.parametrize(
    "turn, name", [("0123456789abcdef:7", "turn_012345_7"), ("abc:12", "turn_abc_12")]
)  # fmt: skip
def test_its_name_is_made_of_the_turns(turn: str, name: str):
    assert name_of(turn) == name


# What someone might change in the agent, and how the rule is called that a recorded turn shows.
CHANGES = {
    "a sentence": "decide.REFUSALS['denied'] = 'No.'",
    "what a model is told": "context.WRAP_UP = context.Context.tail = lambda self, thread, wrap, recalled: 'Hurry!'",
    "what a result looks like": "thread.Thread._say = lambda self, message: None",
    "a decision": "decide._refusal = lambda thread, place, rules: None",
}


def run_pytest(file: Path, change: str = "") -> int:
    rooms = "from everloop.core import decide, thread; from everloop.runtime import context"
    (file.parent / "conftest.py").write_text(f"{rooms}\n{change}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={file.parent}", str(file)]
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.run(command, cwd=file.parent, env=environment, capture_output=True, check=False).returncode


@pytest.mark.shortened
def test_it_passes_as_it_is_and_fails_when_the_agent_changes(tmp_path: Path):
    file = tmp_path / "test_turn.py"
    file.write_text(source_of(cut(ASKED, 1), "abcdef:1", "0.1.0"))
    assert run_pytest(file) == 0
    tried = in_full([*CHANGES], ["a decision"])
    assert {name: run_pytest(file, CHANGES[name]) for name in tried} == dict.fromkeys(tried, 1)
