"""Tools of servers have names that every host can write, of which no two are the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.tools.mcp.names import tool_name, tool_names

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
names = st.text(st.sampled_from("ab_-é ."), min_size=1, max_size=8) | st.text(min_size=1, max_size=100)


def test_a_plain_name_says_server_and_tool():
    assert tool_name("time", "get_current_time") == "mcp_time_get_current_time"
    assert tool_name("my-files", "read") == "mcp_my-files_read"


@pytest.mark.parametrize(
    "server, tool", [("a", "x" * 100), ("a", "b.c"), ("a", "ünï"), ("a_b", "c"), ("a", ""), ("a", "\ud800")]
)
def test_what_is_cut_changed_or_unclear_ends_with_a_hash(server, tool):
    assert re.fullmatch(r"mcp_[a-zA-Z0-9_-]*_[0-9a-f]{10}", tool_name(server, tool))


@pytest.mark.parametrize("tool", ["exec", "read_file", "../../etc/passwd", "mcp_other_tool"])
def test_no_tool_of_a_server_is_called_as_a_built_in_one(tool):
    assert tool_name("evil", tool).startswith("mcp_evil_")


def test_two_that_could_be_read_in_two_ways_are_two():
    assert tool_names([("a", "b_c"), ("a_b", "c")]) == {
        ("a", "b_c"): "mcp_a_b_c",
        ("a_b", "c"): tool_name("a_b", "c"),
    }


def test_no_tool_can_be_called_as_a_hashed_one_of_another_server():
    theirs = tool_name("a_b", "c")
    forged = theirs.removeprefix("mcp_a_")
    assert tool_name("a", forged) != theirs


def test_a_name_that_somebody_has_is_given_to_nobody():
    assert tool_names([("exec", "x"), ("time", "now")], taken={"mcp_exec_x"}) == {("time", "now"): "mcp_time_now"}


@given(st.sets(st.tuples(names, names), max_size=20))
def test_all_names_can_be_written_and_are_different(tools):
    given = tool_names(tools)
    assert given.keys() == tools
    assert len(set(given.values())) == len(tools)
    assert all(NAME.fullmatch(name) and name.startswith("mcp_") for name in given.values())


@given(st.sets(st.tuples(names, names), max_size=20), st.tuples(names, names))
def test_another_tool_changes_no_name(tools, another):
    before, after = tool_names(tools), tool_names({*tools, another})
    assert {each: after[each] for each in tools} == before
