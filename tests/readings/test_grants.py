"""What is allowed ahead is the like of what was asked, as a person has chosen, and never more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json, structs

from everloop.core.people import Role
from everloop.core.tool import Effect, Ground, Risk
from everloop.errors import GrantRefused
from everloop.ports.permission import HOUR, Allowance, Grant, WantedCall
from everloop.readings.definitions import definition_of
from everloop.readings.grants import (
    DAY,
    MANY,
    choices_of,
    covers,
    described,
    extent,
    granted,
    read_words,
    seconds_of,
    time_of,
)
from tests.core.makers import SPECS
from tests.effort import examples

ROOT, SITE, BLOG = Ground("", "1:2:r"), Ground("site", "1:7:s"), Ground("site/blog", "1:8:b")
SECRET = Ground("secret", "1:9:x")
PLACES = ((ROOT,), (ROOT, SITE), (ROOT, SITE, BLOG), (ROOT, SECRET))

PUSH = WantedCall(
    *("exec", "ann", "t1", "d1", "exec-1"),
    Risk("medium", argv=("git", "push", "origin"), folder="site/blog", seconds=60),
    (ROOT, SITE, BLOG),
)
FETCH = WantedCall("web_fetch", "ann", "t1", "d1", "fetch-1", Risk("medium", leaves=True, host="evil.example"))


def give(wanted: WantedCall, **chosen: object) -> Grant:
    return granted(wanted, Allowance(**chosen), id="g", by="ann", now=1000.0)


def like(wanted: WantedCall, **changes: object) -> WantedCall:
    """The same call but for this; what is of its risk changes that."""
    of_risk = {name: value for name, value in changes.items() if name in Risk.__struct_fields__}
    rest = {name: value for name, value in changes.items() if name not in of_risk}
    return structs.replace(wanted, risk=structs.replace(wanted.risk, **of_risk), **rest)


commands = st.sampled_from([(), ("git",), ("git", "push"), ("git", "push", "origin"), ("git", "pull"), ("rm", "x")])
hosts = st.sampled_from(
    ["", "evil.example", "www.evil.example", "other.example", "evil.example:8080", "notevil.example"]
)
risks = st.builds(
    Risk,
    st.sampled_from(["low", "medium", "high"]),
    argv=commands,
    host=hosts,
    background=st.booleans(),
    seconds=st.sampled_from([0, 30, 60, 600]),
)
calls = st.builds(
    WantedCall,
    st.sampled_from(["exec", "web_fetch"]),
    st.sampled_from(["ann", "bob"]),
    st.sampled_from(["t1", "t2"]),
    st.sampled_from(["d1", "d2"]),
    st.sampled_from(["x1", "x2"]),
    risks,
    st.sampled_from(PLACES) | st.just(()),
)
CHOSEN = [
    Allowance(here=here, any=any, host=host, argv=argv, folder=folder)
    for here in (False, True)
    for any in (False, True)
    for host in ("", "evil.example", "*.evil.example")
    for argv in ("", "git *", "git push", "g* push *", "git p* *", "*")
    for folder in ("", ".", "site", "./site/", "site/blog", "secret")
]


@st.composite
def nearly(draw: st.DrawFn, first: WantedCall) -> WantedCall:
    """A call that differs from another in some of it."""
    other, names = draw(calls), draw(st.sets(st.sampled_from(WantedCall.__struct_fields__)))
    traits = draw(st.sets(st.sampled_from(["level", "argv", "host", "background", "seconds"])))
    changes = {name: getattr(other, name) for name in names - {"risk"}}
    return like(first, **changes, **{name: getattr(other.risk, name) for name in traits})


@st.composite
def given_with(draw: st.DrawFn) -> tuple[WantedCall, Allowance, Grant, WantedCall]:
    """A call, what a person chose with it, the grant that came of it, and a further call."""
    first = draw(calls)
    fitting = [each for each in CHOSEN if _is_granted(first, each)]
    chosen = draw(st.sampled_from(fitting))
    return first, chosen, granted(first, chosen, id="g", by="ann", now=0.0), draw(nearly(first))


def _is_granted(first: WantedCall, chosen: Allowance) -> bool:
    try:
        granted(first, chosen, id="g", by="ann", now=0.0)
    except GrantRefused:
        return False
    return True


def does_match(words: tuple[str, ...], pattern: str) -> bool:
    """Said once more, by spelling out what each pattern above stands for."""
    match pattern:
        case "git *":
            return words[:1] == ("git",)
        case "git push":
            return words == ("git", "push")
        case "g* push *":
            return words[:2] == ("git", "push")
        case "git p* *":
            return words[:1] == ("git",) and len(words) > 1
        case _:
            return False


def is_alike(first: WantedCall, chosen: Allowance, other: WantedCall) -> bool:
    """What a person means by a choice, in the words of docs/approvals.md."""
    levels = ["low", "medium", "high"]
    same = (first.tool, first.user, first.definition) == (other.tool, other.user, other.definition)
    if not same or levels.index(other.risk.level) > levels.index(first.risk.level):
        return False
    if chosen.here and other.thread != first.thread:
        return False
    if chosen.host.startswith("*.") and not other.risk.host.endswith(".evil.example"):
        return False
    if chosen.host and not chosen.host.startswith("*.") and other.risk.host != "evil.example":
        return False
    if chosen.argv and not does_match(other.risk.argv, chosen.argv):
        return False
    same_command = chosen.folder and not (chosen.any or chosen.host or chosen.argv)
    if same_command and other.risk.argv != first.risk.argv:
        return False
    if chosen.argv or same_command:
        if other.risk.background != first.risk.background or other.risk.seconds > first.risk.seconds:
            return False
        where = chosen.folder.strip("./") if chosen.folder else first.grounds[-1].name
        return where in [ground.name for ground in other.grounds]
    if chosen.folder and chosen.folder.strip("./") not in [ground.name for ground in other.grounds]:
        return False
    return bool(chosen.any or chosen.host) or other.digest == first.digest


class TestFitting:
    @examples(800)
    @given(given_with())
    def test_a_grant_fits_what_is_alike_and_nothing_else(self, case: tuple[WantedCall, Allowance, Grant, WantedCall]):
        first, chosen, grant, other = case
        assert covers(grant, other) is is_alike(first, chosen, other)

    @examples(300)
    @given(given_with())
    def test_what_is_given_fits_the_call_that_it_is_given_with(
        self, case: tuple[WantedCall, Allowance, Grant, WantedCall]
    ):
        first, _, grant, _ = case
        assert covers(grant, first)

    @examples(300)
    @given(given_with())
    def test_whoever_says_here_as_well_allows_no_more(self, case: tuple[WantedCall, Allowance, Grant, WantedCall]):
        first, chosen, grant, other = case
        narrow = granted(first, structs.replace(chosen, here=True), id="g", by="ann", now=0.0)
        assert covers(narrow, other) is (covers(grant, other) and other.thread == first.thread)

    @examples(200)
    @given(calls, st.booleans())
    def test_with_a_time_alone_it_is_the_same_call(self, other: WantedCall, here: bool):
        grant = give(PUSH, here=here)
        assert covers(grant, PUSH)
        assert not covers(grant, structs.replace(other, digest="d2", tool="exec", user="ann", definition="exec-1"))

    @examples(200)
    @given(calls)
    def test_a_grant_that_says_nothing_allows_nothing(self, wanted: WantedCall):
        """As one of an older everloop, which has none of these fields, would read."""
        old = Grant("g", wanted.user, "ann", wanted.tool)
        assert not covers(old, wanted)
        assert not covers(structs.replace(old, definition=wanted.definition), wanted)
        assert covers(structs.replace(old, definition=wanted.definition, any=True), wanted)

    def test_an_old_row_is_read_as_allowing_nothing(self):
        row = (
            b'{"id":"g","user":"ann","by":"ann","tool":"exec","argv":["git","push","*"],"folder":"site","risk":"high"}'
        )
        assert not covers(json.decode(row, type=Grant), PUSH)

    @pytest.mark.parametrize(
        ("changes", "fits"),
        [
            ({}, True),
            ({"digest": "d2"}, True),
            ({"argv": ("git", "push", "origin", "--force")}, True),
            ({"argv": ("git", "pull")}, False),
            ({"argv": ()}, False),
            ({"background": True}, False),
            ({"seconds": 59}, True),
            ({"seconds": 61}, False),
            ({"grounds": (ROOT, SITE, BLOG, Ground("site/blog/x", "1:44:y"))}, True),
            ({"grounds": (ROOT, SITE)}, False),
            ({"grounds": (ROOT, SITE, Ground("site/blog", "1:8:made later"))}, False),
            ({"grounds": (ROOT, SITE, Ground("site/renamed", BLOG.identity))}, True),
            ({"grounds": (ROOT, SECRET)}, False),
            ({"grounds": ()}, False),
            ({"user": "bob"}, False),
            ({"tool": "run_python"}, False),
            ({"definition": "exec-2"}, False),
            ({"level": "high"}, False),
            ({"level": "low"}, True),
            ({"thread": "t2"}, True),
        ],
    )
    def test_a_pattern_holds_where_and_how_the_first_one_ran(self, changes: dict[str, object], fits: bool):
        assert covers(give(PUSH, argv="git push *"), like(PUSH, **changes)) is fits

    @pytest.mark.parametrize(
        ("pattern", "words", "fits"),
        [
            ("git push", "git push", True),
            ("git push", "git push origin", False),
            ("git push", "git", False),
            ("git push *", "git push", True),
            ("git push *", "git", False),
            ("git push *", "git pull x", False),
            ("g* pu?h", "git push", True),
            ("git pus", "git push", False),
            ("*", "git push", False),
            ("* *", "git push", True),
            ("* *", "", False),
        ],
    )
    def test_a_pattern_fits_word_for_word(self, pattern: str, words: str, fits: bool):
        grant = structs.replace(give(PUSH, argv="git *"), argv=tuple(pattern.split()))
        assert covers(grant, like(PUSH, argv=tuple(words.split()))) is fits

    @pytest.mark.parametrize(
        ("pattern", "host", "fits"),
        [
            ("evil.example", "evil.example", True),
            ("evil.example", "other.example", False),
            ("evil.example", "www.evil.example", False),
            ("evil.example", "notevil.example", False),
            ("evil.example", "evil.example.net", False),
            ("evil.example", "evil.example:8080", False),
            ("evil.example", "", False),
            ("*.example", None, False),
            ("*.evil.example", "www.evil.example", True),
            ("*.evil.example", "a.b.evil.example", True),
            ("*.evil.example", "evil.example", False),
            ("*.evil.example", "notevil.example", False),
            ("*.evil.example", "www.evil.example:8080", False),
        ],
    )
    def test_a_host_is_this_host(self, pattern: str, host: str | None, fits: bool):
        first = like(FETCH, host="www.evil.example") if pattern.startswith("*") else FETCH
        if host is None:
            with pytest.raises(GrantRefused, match="is no host"):
                give(first, host=pattern)
        else:
            assert covers(give(first, host=pattern), like(FETCH, digest="d2", host=host)) is fits

    def test_anything_is_anything_of_this_tool(self):
        grant = give(PUSH, any=True)
        assert covers(grant, like(PUSH, digest="d2", argv=(), background=True, seconds=600, grounds=()))
        assert not covers(grant, like(PUSH, tool="message"))

    def test_here_is_this_conversation(self):
        grant = give(FETCH, here=True, any=True)
        assert [covers(grant, like(FETCH, digest="d2", thread=thread)) for thread in ("t1", "t2")] == [True, False]

    @pytest.mark.parametrize(
        "change",
        [
            {"scene": "/other"},
            {"description": "x"},
            {"schema": {}},
            {"effect": Effect.READ},
            {"permission": Role.GUEST},
            {"name": "other"},
        ],
    )
    def test_a_tool_that_is_another_now_was_not_allowed(self, change: dict[str, object]):
        assert definition_of(SPECS["ask"]) != definition_of(structs.replace(SPECS["ask"], **change))


@pytest.mark.parametrize(
    ("wanted", "chosen", "sentence"),
    [
        (like(PUSH, argv=("sudo", "ls")), {"argv": "git push *"}, r"the pattern 'git push \*' does not fit .*sudo ls"),
        (PUSH, {"argv": "*"}, "does not fit"),
        (like(PUSH, argv=()), {"argv": "git *"}, "no plain command"),
        (like(PUSH, argv=()), {"folder": "site"}, "no plain command"),
        (like(PUSH, grounds=()), {"argv": "git *"}, "which folder this runs in is not known"),
        (like(PUSH, grounds=()), {"any": True, "folder": "site"}, "which folder"),
        (PUSH, {"folder": "secret"}, "it runs in site/blog, which is not in 'secret'"),
        (PUSH, {"folder": "/site"}, "which is not in '/site'"),
        (PUSH, {"folder": "site/../site"}, "which is not in"),
        (like(PUSH, grounds=(ROOT,)), {"folder": "site"}, "it runs in the workspace itself"),
        (PUSH, {"host": "evil.example"}, "exec names no host"),
        (FETCH, {"host": "other.example"}, "other.example is not the host that waits"),
        (FETCH, {"host": "http://evil.example"}, "is no host"),
        (FETCH, {"host": "*"}, "is no host"),
        (FETCH, {"argv": "curl *"}, "no plain command"),
        (structs.replace(FETCH, definition=""), {"any": True}, "an older everloop"),
        *((FETCH, {"seconds": seconds}, "for some time") for seconds in (0, -1, float("inf"), float("nan"), 1e12)),
        *((FETCH, {"runs": runs}, "up to 10000 times") for runs in (-1, 10_001)),
    ],
)
def test_what_does_not_fit_is_refused_with_a_sentence(wanted: WantedCall, chosen: dict[str, object], sentence: str):
    with pytest.raises(GrantRefused, match=sentence):
        give(wanted, **chosen)


def test_a_command_whose_words_look_like_a_pattern_is_no_pattern():
    grant = give(like(PUSH, argv=("rm", "*")), folder="site")
    assert [covers(grant, like(PUSH, argv=("rm", word))) for word in ("*", "x")] == [True, False]


class TestWords:
    @pytest.mark.parametrize(
        ("words", "chosen"),
        [
            ("", None),
            ("for 8h", Allowance(seconds=8 * HOUR)),
            ("FOR 8h Here", Allowance(seconds=8 * HOUR, here=True)),
            ("runs 5", Allowance(runs=5)),
            ("any here runs 2 for 1d", Allowance(any=True, here=True, runs=2, seconds=DAY)),
            ("host", Allowance(host="evil.example")),
            ("host for 30m", Allowance(host="evil.example", seconds=1800.0)),
            ("host *.evil.example here", Allowance(host="*.evil.example", here=True)),
            ("folder", Allowance(folder="site/blog")),
            ("folder site any", Allowance(folder="site", any=True)),
            ("here argv git push * for", Allowance(here=True, argv="git push * for")),
        ],
    )
    def test_they_say_what_is_alike(self, words: str, chosen: Allowance | None):
        wanted = like(PUSH, host="evil.example")
        assert read_words(words.split(), wanted) == chosen

    @pytest.mark.parametrize(
        "words",
        ["perhaps", "no", "for", "for ever", "for 0h", "for 8", "for ８h", "runs", "runs 0", "runs x", "runs 10001",
         "here here", "argv", "always", "for 1h please", "any everything", "runs -1"],
    )  # fmt: skip
    def test_what_nobody_can_mean_is_refused(self, words: str):
        with pytest.raises(GrantRefused):
            read_words(words.split(), PUSH)

    def test_what_the_call_does_not_have_cannot_be_chosen(self):
        for word, wanted in (("host", PUSH), ("folder", FETCH)):
            chosen = read_words([word], wanted)
            assert chosen is not None
            with pytest.raises(GrantRefused):
                granted(wanted, chosen, id="g", by="ann", now=0.0)

    def test_the_words_that_are_offered_are_those_that_can_be_said(self):
        assert choices_of(PUSH) == ("for", "runs", "here", "any", "argv", "folder")
        assert choices_of(FETCH) == ("for", "runs", "here", "any", "host")
        assert choices_of(structs.replace(FETCH, definition="")) == ()


class TestTelling:
    @pytest.mark.parametrize(
        ("wanted", "chosen", "told"),
        [
            (PUSH, {}, "the same call"),
            (PUSH, {"any": True}, "anything"),
            (PUSH, {"any": True, "folder": "site"}, "anything, in site and below"),
            (PUSH, {"argv": "git *"}, "git * (not in the background, up to 60 s), in site/blog and below"),
            (PUSH, {"folder": "."}, "git push origin (not in the background, up to 60 s), in the workspace and below"),
            (FETCH, {"host": "evil.example", "here": True}, "addresses of evil.example, only in this conversation"),
            (
                like(PUSH, background=True, seconds=0),
                {"argv": "git *"},
                "git * (in the background), in site/blog and below",
            ),
        ],
    )
    def test_it_is_told_what_is_allowed(self, wanted: WantedCall, chosen: dict[str, object], told: str):
        assert described(give(wanted, **chosen), "t1") == told

    def test_elsewhere_a_conversation_is_told_by_its_name(self):
        assert described(give(FETCH, here=True)) == "the same call, only in conversation t1"

    def test_it_is_told_for_how_long(self):
        assert extent(give(FETCH, runs=2, seconds=8 * HOUR), 1000.0) == "for 8h, 2 more times"
        assert extent(give(FETCH, runs=1), 1000.0) == "for 1h, 1 more time"
        assert (extent(give(FETCH), 1000.0), give(FETCH).runs) == ("for 1h", MANY)

    def test_a_time_is_read_as_it_is_told(self):
        assert [time_of(seconds_of(text)) for text in ("30s", "30m", "8h", "7d")] == ["30s", "30m", "8h", "7d"]
