"""A form is shown as a stranger's words, and filled in by one line."""

import pytest

from everloop.readings.forms import fields_shown, filled_in, how_to_answer, quoted

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
USUAL = {"type": "object", "properties": {"a": {"type": "integer", "default": 1}, "b": {"type": "integer"}}}
ORDER = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 1, "description": "How large\nit is"},
        "gift": {"type": "boolean"},
        "price": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
        "to": {"type": "string", "oneOf": [{"const": "x", "title": "X"}, {"const": "y", "title": "Y"}]},
    },
    "required": ["size"],
}


@pytest.mark.parametrize(
    ("form", "line", "filled"),
    [
        (NAME, "Ada Lovelace", {"name": "Ada Lovelace"}),
        (NAME, 'name="Ada Lovelace"', {"name": "Ada Lovelace"}),
        (NAME, "no", {"name": "no"}),
        ({"type": "object", "properties": {"ok": {"type": "boolean"}}}, "no", {"ok": False}),
        (ORDER, "size=3", {"size": 3}),
        (ORDER, 'size=3 gift=yes tags="a, b"', {"size": 3, "gift": True, "tags": ["a", "b"]}),
        (ORDER, "size=3 price=1.5 to=x", {"size": 3, "price": 1.5, "to": "x"}),
        ({"type": "object", "properties": {}}, "yes", {}),
        (USUAL, "b=2", {"a": 1, "b": 2}),
        (USUAL, "a=3 b=2", {"a": 3, "b": 2}),
    ],
)  # fmt: skip
def test_a_line_fills_it_in(form, line, filled):
    assert filled_in(form, line) == filled


@pytest.mark.parametrize(
    ("form", "line", "why"),
    [
        (ORDER, "", "size is required"),
        (ORDER, "size=big", "size must be integer, not"),
        (ORDER, "size=0", "size must be at least 1"),
        (ORDER, "size=1 gift=maybe", "gift must be boolean"),
        (ORDER, "size=1 tags=c", "must be one of"),
        (ORDER, "size=1 more=2", "'more=2' is not understood: write size=… gift=… price=… tags=… to=…"),
        (ORDER, "three", "'three' is not understood"),
        (ORDER, 'size="1', "size must be integer"),
        ({"type": "object", "properties": {}}, "sure", "a yes alone"),
    ],
)
def test_what_does_not_fit_is_told_in_a_sentence(form, line, why):
    with pytest.raises(ValueError, match=why.replace("…", ".")):
        filled_in(form, line)


def test_every_line_of_it_is_marked_as_a_strangers():
    shown = [*fields_shown(ORDER), quoted("Hello\n\x1b[2Jthere\u2028and")]
    assert shown == [
        "> size: How large\n> it is (integer)",
        "> gift (boolean; may be left out)",
        "> price (number; may be left out)",
        "> tags (one of: a, b; may be left out)",
        "> to (one of: x, y; may be left out)",
        "> Hello\n> \\u001b[2Jthere\n> and",
    ]
    assert fields_shown(USUAL)[0] == "> a (integer; else 1)"
    assert how_to_answer(NAME) == "YOUR ANSWER"
    assert how_to_answer({}) == "yes"
