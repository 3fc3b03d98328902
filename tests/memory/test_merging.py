"""Two have changed one document: what either has added stays, what either has removed is gone."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from everloop.memory.merging import COMPARED, merged, prints_of

LINES = st.lists(st.sampled_from(["- a", "- b", "- c", "", "## One", "## Two", "x"]), max_size=12)
OLD = "# Memory\n\n## Ann\n\n- lives in Rome\n- likes tea\n\n## Work\n\n- ships on Fridays\n"


def three(base: str, ours: str, theirs: str) -> str:
    return merged(prints_of(base), ours, theirs)


def test_changes_in_different_places_are_both_there():
    ours = OLD.replace("- likes tea\n", "- likes tea\n- is a pilot\n")
    theirs = OLD.replace("Fridays", "Mondays").replace("- lives in Rome\n", "")
    assert three(OLD, ours, theirs) == (
        "# Memory\n\n## Ann\n\n- likes tea\n- is a pilot\n\n## Work\n\n- ships on Mondays\n"
    )


def test_what_both_have_changed_is_kept_of_both():
    assert three(OLD, OLD.replace("Rome", "Oslo"), OLD.replace("Rome", "Bonn")) == OLD.replace(
        "- lives in Rome", "- lives in Oslo\n- lives in Bonn"
    )
    same = OLD.replace("Rome", "Oslo")
    assert three(OLD, same, same) == same


def test_what_is_added_under_the_last_heading_stays_under_it_beside_a_new_heading():
    ours, theirs = OLD + "\n## Family\n\n- Bob is nine\n", OLD + "- rests on Sundays\n"
    merged = three(OLD, ours, theirs)
    assert merged.index("- rests on Sundays") < merged.index("## Family") < merged.index("- Bob is nine")


def test_what_is_written_where_nothing_was_stays_as_it_is():
    assert merged((), "", OLD) == three("", "", OLD) == OLD


def test_from_nothing_known_all_of_both_is_kept():
    ours, theirs = "# Memory\n\n## Ann\n\n- a\n", "# Memory\n\n## Bob\n\n- b\n"
    assert merged((), ours, theirs) == "# Memory\n\n## Ann\n\n- a\n\n## Bob\n- b"


@given(LINES, LINES, LINES)
def test_no_line_that_either_has_added_is_lost_and_what_both_kept_stands(base: list[str], a: list[str], b: list[str]):
    first, ours, theirs = Counter(base), Counter(a), Counter(b)
    found = Counter(three("\n".join(base), "\n".join(a), "\n".join(b)).split("\n"))
    for line in {*a, *b} - {""}:
        added = max(ours[line] - first[line], theirs[line] - first[line])
        assert found[line] >= added, line
    for line in set(base) - {""}:
        if not ours[line] or not theirs[line]:  # one has removed it, and the other may have written it anew
            more = max(ours[line], theirs[line])
            assert found[line] <= more


@given(LINES, LINES)
def test_where_only_one_has_changed_it_is_what_they_made_of_it(base: list[str], a: list[str]):
    before, after = "\n".join(base), "\n".join(a)
    assert three(before, before, after) == after
    assert three(before, after, before) == after
    assert three(before, after, after) == after


@given(LINES)
def test_a_line_that_one_removes_is_gone_though_the_other_has_changed_another(base: list[str]):
    before = "\n".join(["- first", *base, "- last"])
    ours, theirs = "\n".join([*base, "- last"]), "\n".join(["- first", *base, "- last", "- more"])
    assert three(before, ours, theirs) == "\n".join([*base, "- last", "- more"])


def test_long_documents_are_merged_by_counting_and_nothing_is_lost():
    base = "".join(f"- line {number}\n" for number in range(COMPARED))
    ours = base.replace("- line 7\n", "") + "- ours\n"
    theirs = "- theirs\n" + base.replace("- line 9\n", "")
    kept = base.replace("- line 7\n", "").replace("- line 9\n", "")
    assert three(base, ours, theirs) == kept + "- ours\n- theirs\n"
    backwards = "".join(reversed(base.splitlines(keepends=True)))
    assert Counter(three(base, ours, backwards).split("\n")) == Counter(ours.split("\n"))
