"""What `make test` does in a short form, `make torture` does in full."""

import re
from pathlib import Path

from tests.effort import FULL, THOROUGH, examples, in_full

TESTS = Path(__file__).parent


def unmarked(sources: dict[str, str]) -> list[str]:
    """Test files that have a short form and no test that `make torture` would run."""
    return [name for name, text in sources.items() if "in_full(" in text and "mark.shortened" not in text]


def test_whatever_has_a_short_form_is_marked():
    sources = {str(path.relative_to(TESTS)): path.read_text() for path in TESTS.rglob("test_*.py")}
    del sources["test_effort.py"]
    assert unmarked(sources) == []
    assert unmarked({"a": "for n in range(in_full(9, 1))", "b": "@pytest.mark.shortened\nin_full(9, 1)"}) == ["a"]


def test_make_torture_runs_what_is_marked_and_every_property_in_full():
    (recipe,) = re.findall(r"^torture:.*\n((?:\t.*\n)+)", (TESTS.parent / "Makefile").read_text(), re.M)
    assert "EVERLOOP_FULL=1 $(PYTEST) -m 'shortened or hypothesis'" in recipe


def test_a_property_has_few_examples_in_its_room_more_in_make_test_and_all_in_make_torture():
    expected = [4, 20, 800] if FULL else [4, 6, 200] if THOROUGH else [4, 6, 6]
    assert [examples(count).max_examples for count in (4, 20, 800)] == expected
    assert in_full("all", "some") == ("all" if FULL else "some")
