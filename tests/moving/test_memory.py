"""How a memory of elsewhere is joined with ours."""

from everloop.app.moving_memory import joined

THEIRS = "# Memory\n\n## Garden\n\n- grows tomatoes\n- waters at eight\n\n## Home\n\n- lives in Graz"


def test_where_nothing_is_remembered_all_of_theirs_is_taken():
    assert joined("", THEIRS) == f"{THEIRS}\n"


def test_what_both_remember_stands_once_and_the_rest_under_its_heading():
    ours = "# Mine\n\n- lives in Graz\n\n## Garden\n\n- grows beans\n\n## Work\n\n- paints\n"
    assert joined(ours, THEIRS) == (
        "# Mine\n\n- lives in Graz\n\n## Garden\n\n- grows beans\n- grows tomatoes\n- waters at eight\n\n"
        "## Work\n\n- paints\n"
    )


def test_a_heading_that_ours_has_not_is_made_once():
    assert joined("- a\n", THEIRS) == (
        "- a\n\n## Garden\n\n- grows tomatoes\n- waters at eight\n\n## Home\n\n- lives in Graz\n"
    )


def test_the_same_again_changes_nothing():
    once = joined("- a\n", THEIRS)
    assert joined(once, THEIRS) == once
    assert joined(f"{THEIRS}\n", THEIRS) == f"{THEIRS}\n"
    assert joined("## Empty\n", "## Empty\n- x") == "## Empty\n\n- x\n"
