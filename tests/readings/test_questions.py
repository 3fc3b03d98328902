"""A question shows the whole call, and nothing that cannot be seen."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.core.tool import ToolCall
from everloop.readings.questions import shown
from tests.effort import examples

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
arguments = st.dictionaries(st.text(), json_values, max_size=4)


class TestShowing:
    @examples(100)
    @given(arguments, arguments)
    def test_calls_that_differ_look_different(self, one: dict[str, object], other: dict[str, object]):
        looks = [shown(ToolCall("", "t", json.dumps(args))) for args in (one, other)]
        assert (looks[0] == looks[1]) == (json.dumps(one) == json.dumps(other))

    @examples(100)
    @given(arguments)
    def test_nothing_in_it_is_invisible(self, args: dict[str, object]):
        text = shown(ToolCall("", "t", json.dumps(args)))
        assert text.replace("\n", "").replace("\t", "").isprintable()

    @pytest.mark.parametrize(
        ("args", "looks"),
        [
            ({}, "t"),
            ({"command": "rm -rf  x ", "n": 2}, 't\n  command: "rm -rf  x "\n  n: 2'),
            ({"command": "ls\nrm x\n"}, "t\n  command: \n    | ls\n    | rm x\n    | "),
            ({"command": "ls \u202e#\nmr"}, 't\n  command: "ls \\u202e#\\nmr"'),
            ({"command": "ls\r\nrm x"}, 't\n  command: "ls\\r\\nrm x"'),
            ({"a\nb": "\U000e0041"}, 't\n  a\\nb: "\\udb40\\udc41"'),
        ],
    )
    def test_it_is_shown_whole(self, args: dict[str, object], looks: str):
        assert shown(ToolCall("", "t", json.dumps(args))) == looks

    def test_it_is_never_shortened(self):
        assert "x" * 64_000 in shown(ToolCall("", "t", json.dumps({"command": "x" * 64_000})))
