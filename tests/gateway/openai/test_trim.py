"""Stop words and fences, in whole answers and in pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.gateway.http.streaming import AnswerDelta
from everloop.gateway.openai.trim import StreamTrimmer, trimmed

JSON = '{"a": "``` in a string"}'
FENCED = [f"```json\n{JSON}\n```", f"```\n{JSON}\n```\n", f"  ```JSON\r\n{JSON}```"]
ODD = [JSON, *FENCED, "", "```", "plain", "``", "a``b```"]
STOPS = [(), ("END",), ("\n\n", "ENDE"), ("{",)]


def in_pieces(texts: list[str], json: bool, stops: tuple[str, ...]) -> str:
    trimming = StreamTrimmer(json, stops)
    pieces = [piece for text in texts for piece in trimming.pieces(AnswerDelta(1, text))]
    return "".join(piece.text for piece in [*pieces, *trimming.rest()])


def cut_up(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


@given(st.sampled_from([*ODD, "one END two", "one EN two", "xENDEND", "a\n\nb"]), st.lists(st.integers(0, 99)))
@pytest.mark.parametrize("stops", STOPS)
@pytest.mark.parametrize("json", [True, False])
def test_an_answer_in_pieces_shows_what_the_whole_does(json: bool, stops: tuple[str, ...], text: str, cuts: list[int]):
    assert in_pieces(cut_up(text, cuts), json, stops) == trimmed(text, json, stops)


def test_a_lone_fence_is_taken_off_where_json_was_asked_for_and_only_there():
    fenced = f"```json\n{JSON}\n```"
    assert [trimmed(fenced, json, ()) for json in (True, False)] == [JSON, fenced]
    assert trimmed(f"Here: {fenced}", True, ()) == f"Here: {fenced}"
    assert trimmed(f"{fenced}\nI hope it helps", True, ()) == f"{fenced}\nI hope it helps"
    assert trimmed("```python\nx\n```", True, ()) == "```python\nx\n```"


def test_an_answer_ends_before_the_first_of_its_stop_words():
    assert trimmed("one two three", False, ("three", "two")) == "one "
    assert in_pieces(["one t", "w", "o three"], False, ("three", "two")) == "one "
    assert in_pieces(["one t", "w", "ice"], False, ("three", "two")) == "one twice"
