"""One list of answers that every dialect must read alike, from recorded streams in `recordings/<dialect>/`.

A recording is the body of an answer as the host sends it. What it must come to is written here, once.
"""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.errors import ContextOverflow, HostFailed, KeyRefused, ProviderError, RateLimited, StreamCut
from everloop.ports.provider import Delta, Reply
from everloop.providers import dialects
from everloop.providers.dialects.quirks import Quirks

RECORDINGS = Path(__file__).parent / "recordings"
DIALECTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")
READS_CACHE = Usage(input=1000, output=50, cache_read=800)
ALL_USAGE = replace(READS_CACHE, cache_write=100, reasoning=20)


class Call(Struct, frozen=True):
    """A call as far as dialects agree on it: ids are the host's own."""

    name: str
    args: str


class Read(Struct, frozen=True):
    """An answer as far as dialects agree on it. The usage counts only where the case is about it."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = "stop"
    reasoning: str = ""


CASES: dict[str, Read] = {
    "text": Read("Hello there."),
    "one_call": Read("", (Call("look", '{"path":"a.txt"}'),), "calls"),
    "text_and_call": Read("Let me look.", (Call("look", '{"path":"a.txt"}'),), "calls"),
    "parallel_calls": Read("", (Call("look", '{"path":"a.txt"}'), Call("look", '{"path":"b.txt"}')), "calls"),
    "call_without_arguments": Read("", (Call("now", "{}"),), "calls"),
    "reasoning": Read("Four.", reasoning="Two and two."),
    "reasoning_and_call": Read("", (Call("look", '{"path":"a.txt"}'),), "calls", "I should look."),
    "empty": Read(),
    "unicode": Read("Grüße, 你好 👩‍🚀🎉!"),
    "length": Read("Once upon a", finish="length"),
    "refusal": Read("I can't help with that.", finish="refused"),
}
# Which counts a host of each dialect reports.
USAGE: dict[str, Usage] = {
    "openai_chat": ALL_USAGE,
    "openai_responses": replace(READS_CACHE, reasoning=20),
    "anthropic_messages": replace(READS_CACHE, cache_write=100),
    "gemini": replace(READS_CACHE, reasoning=20),
}
BROKEN: dict[str, type[ProviderError]] = {
    "cut": StreamCut,
    "error_overloaded": HostFailed,
    "error_rate_limit": RateLimited,
}
REFUSED: dict[str, type[ProviderError]] = {
    "refused_key": KeyRefused,
    "refused_overflow": ContextOverflow,
    "refused_rate_limit": RateLimited,
}
STATUS = {"refused_key": 401, "refused_overflow": 400, "refused_rate_limit": 429}


def recording(dialect: str, case: str) -> bytes:
    return next((RECORDINGS / dialect).glob(f"{case}.*")).read_bytes()


def read(dialect: dialects.Name, body: bytes, cuts: tuple[int, ...] = ()) -> tuple[Reply, list[Delta]]:
    decoder = dialects.load(dialect).decoder("host", "m")
    edges = [0, *sorted({cut % (len(body) + 1) for cut in cuts}), len(body)]
    pieces = [body[start:end] for start, end in pairwise(edges) if start < end]
    deltas = [decoder.feed(piece) for piece in [*pieces, b""]]
    return decoder.reply(), [delta for delta in deltas if delta]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_is_read(dialect: dialects.Name, case: str):
    body = recording(dialect, case)
    whole, _ = read(dialect, body)
    calls = tuple(Call(call.name, call.args.replace('": "', '":"')) for call in whole.calls)
    assert Read(whole.text, calls, whole.finish, whole.reasoning) == CASES[case]
    assert all(call.id for call in whole.calls)
    assert len({call.id for call in whole.calls}) == len(whole.calls)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dialect", DIALECTS)
@given(cuts=st.lists(st.integers(0, 10_000), max_size=8).map(tuple))
def test_it_is_the_same_wherever_the_network_cuts_it(dialect: dialects.Name, case: str, cuts: tuple[int, ...]):
    body = recording(dialect, case)
    whole, deltas = read(dialect, body, cuts)
    assert whole == read(dialect, body)[0]
    assert "".join(delta.text for delta in deltas) == whole.text
    assert "".join(delta.reasoning for delta in deltas).strip() == whole.reasoning


@pytest.mark.parametrize("dialect", DIALECTS)
def test_usage_is_counted_with_what_came_from_the_cache(dialect: dialects.Name):
    assert read(dialect, recording(dialect, "usage"))[0].usage == USAGE[dialect]


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_that_breaks_off_is_no_answer(dialect: dialects.Name, case: str):
    with pytest.raises(BROKEN[case]):
        read(dialect, recording(dialect, case))


@pytest.mark.parametrize("dialect", DIALECTS)
@given(share=st.floats(0, 0.8))
def test_no_beginning_of_an_answer_is_taken_for_a_whole_one(dialect: dialects.Name, share: float):
    body = recording(dialect, "one_call")
    with pytest.raises(StreamCut):
        read(dialect, body[: int(len(body) * share)])


@pytest.mark.parametrize("case", ["text", "reasoning_and_call", "parallel_calls", "error_rate_limit"])
@pytest.mark.parametrize("dialect", DIALECTS)
@given(place=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_spoilt_answer_is_read_or_refused_and_can_be_sent_back(
    dialect: dialects.Name, case: str, place: int, byte: int
):
    body = bytearray(recording(dialect, case))
    body[place % len(body)] = byte
    try:
        whole, _ = read(dialect, bytes(body))
    except ProviderError:
        return
    answer = Message("assistant", said(whole.text), whole.calls, "", whole.reasoning, whole.opaque)
    sent = dialects.load(dialect).encode(Prompt("m", "", Transcript((answer,))), Quirks(), "host")
    assert isinstance(msgspec.json.decode(sent), dict)


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_has_its_kind(dialect: dialects.Name, case: str):
    body = recording(dialect, case)
    error = dialects.load(dialect).error_from("host", "m", STATUS[case], {"Retry-After": "7"}, body)
    assert type(error) is REFUSED[case]
    if isinstance(error, RateLimited):
        assert error.retry_after == 7
