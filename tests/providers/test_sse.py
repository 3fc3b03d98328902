"""Server-sent events are the same however they are cut, and none is larger than is read."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.errors import AnswerOversized
from everloop.providers.dialects.openai_chat import decoder
from everloop.providers.dialects.sse import MOST_BYTES, Events, Lines

LINES = [
    b"data: a",
    b"data:b",
    b"data:",
    b"data",
    b": data: c",
    b"event: x",
    b"id: 1",
    b"",
    b"",
    b"\r",
    b"data: d\r",
    b"x",
]
STREAMS = st.lists(st.sampled_from(LINES), max_size=12).map(b"\n".join)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[here:there] for here, there in pairwise(edges)]


@given(data=STREAMS, places=st.lists(st.integers(0, 200)))
def test_events_and_strays_are_the_same_wherever_the_stream_is_cut(data: bytes, places: list[int]):
    whole, parts = Events(), Events()
    found = [event for piece in cut(data, places) for event in parts.feed(piece)] + parts.end()
    assert (found, parts.stray) == (whole.feed(data) + whole.end(), whole.stray)
    assert all(event.strip() for event in found)


@given(data=st.binary(max_size=60).map(lambda data: data.replace(b"\0", b"\n")), places=st.lists(st.integers(0, 200)))
def test_lines_are_the_same_wherever_they_are_cut(data: bytes, places: list[int]):
    lines = Lines()
    assert [line for piece in cut(data, places) for line in lines.split(piece)] + [lines.end()] == data.split(b"\n")


@pytest.mark.parametrize("places", [[], [1], [7, MOST_BYTES // 2], [MOST_BYTES - 1], list(range(0, MOST_BYTES, 2**16))])
@pytest.mark.parametrize("extra", [0, 1])
def test_a_line_is_taken_up_to_its_limit_however_it_is_cut(places: list[int], extra: int):
    lines, line = Lines(), b"x" * (MOST_BYTES + extra)
    pieces = cut(line + b"\nnext\n", places)
    if extra:
        with pytest.raises(AnswerOversized, match="a line of more than 16 MiB"):
            [lines.split(piece) for piece in pieces]
    else:
        assert [found for piece in pieces for found in lines.split(piece)] == [line, b"next"]


OBJECT = b'{\n "choices": [\n  {\n   "delta": {\n    "content": "a\xc3\xa4"\n   }\n  }\n ]\n}'


@pytest.mark.parametrize("between", [b"\n\n", b"\n"], ids=["a blank line", "none"])
@given(places=st.lists(st.integers(0, 400)))
def test_an_object_over_several_lines_is_one_event_with_or_without_a_blank_line(between: bytes, places: list[int]):
    event = b"\n".join(b"data: " + line for line in OBJECT.split(b"\n")) + between
    reading = decoder("host", "m")
    deltas = [reading.feed(piece) for piece in cut(event * 3 + b"data: [DONE]\n", places)]
    assert ("".join(delta.text for delta in deltas if delta), reading.done, reading.heard) == ("aä" * 3, True, 3)


def test_an_object_of_very_many_lines_is_read():
    many = (
        b"data: {\n"
        + b'data: "x": {}\ndata: ,\n' * 20_000
        + b'data: "choices": [{"delta": {"content": "a"}}]\ndata: }\n\n'
    )
    reading = decoder("host", "m")
    delta = reading.feed(many)
    assert delta is not None
    assert (delta.text, reading.heard) == ("a", 1)
