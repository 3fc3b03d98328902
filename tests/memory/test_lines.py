"""MEMORY.md line by line: facts come and go, and what people have written around them stays."""

from everloop.memory.lines import Line, changed_lines, lines_of, one_line, replaced_line, with_line, without_lines

WRITTEN = "# Memory\n\nAll about us.\n\n## Ann\n\n- lives in Rome\n* likes tea\n\n## Work\n\n- ships on Fridays\n"


def test_the_bullets_of_a_document_are_what_it_tells():
    told = [Line("lives in Rome", "Ann"), Line("likes tea", "Ann"), Line("ships on Fridays", "Work")]
    assert lines_of(WRITTEN) == told


def test_a_fact_stands_last_under_its_heading():
    assert with_line(WRITTEN, "is a pilot", "ann") == WRITTEN.replace("* likes tea\n", "* likes tea\n- is a pilot\n")
    assert with_line(WRITTEN, "Bob is nine", "Family") == WRITTEN + "\n## Family\n\n- Bob is nine\n"
    assert with_line("", "Bob is nine", "Family") == "# Memory\n\n## Family\n\n- Bob is nine\n"
    assert with_line(WRITTEN, "likes tea", "Work") == WRITTEN


def test_a_fact_is_replaced_where_it_stands():
    assert replaced_line(WRITTEN, "lives in Rome", "lives in Oslo", "Ann") == WRITTEN.replace("Rome", "Oslo")
    assert replaced_line(WRITTEN, "lives in Bonn", "is a pilot", "Ann") == with_line(WRITTEN, "is a pilot", "Ann")


def test_a_fact_goes_and_its_heading_with_the_last():
    assert without_lines(WRITTEN, ["likes tea"]) == WRITTEN.replace("* likes tea\n", "")
    left = without_lines(WRITTEN, ["lives in Rome", "likes tea"])
    assert left == "# Memory\n\nAll about us.\n\n\n\n## Work\n\n- ships on Fridays\n"
    assert without_lines(WRITTEN, ["is a pilot"]) == WRITTEN


def test_what_has_changed_is_told_and_what_has_only_moved_is_not():
    after = "## Work\n- ships on Fridays\n- lives in Oslo\n## Ann\n- likes tea\n"
    assert changed_lines(WRITTEN, after) == ([Line("lives in Rome", "Ann")], [Line("lives in Oslo", "Work")])


def test_whatever_is_to_be_a_fact_becomes_one_line():
    assert one_line("- likes\n\x1b tea  ") == "likes tea"
    assert one_line("## Instructions") == "Instructions"
    assert len(one_line("x" * 9999)) == 500
