"""Who gave an address or a word, and how much of what only strangers gave may leave in a turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from everloop.core.approval import Policy, PolicyRule, digest_of
from everloop.core.decide import Ask, Rules, RunCalls, decide
from everloop.core.exits import Exits, Sources, WayOut, Weighed
from everloop.core.given import Given, address_of, host_of, site_of, stem_of, words_in
from everloop.core.log import Answered, Asked, CallReturned, Compacted, ModelCalled, ModelSaid, UserSaid, decode, encode
from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Brought
from everloop.core.strangers import way_out
from everloop.core.thread import Thread
from everloop.core.tool import Effect, ToolCall, ToolSpec
from everloop.tools.web_fetch import risk_of_fetch
from everloop.tools.web_search import risk_of_search

ANY = {"type": "object", "properties": {}, "required": []}
RULES = Rules(
    {
        "web_fetch": ToolSpec("web_fetch", "", ANY, Effect.READ, risk=risk_of_fetch),
        "web_search": ToolSpec("web_search", "", ANY, Effect.READ, risk=risk_of_search),
        "read_file": ToolSpec("read_file", "", ANY, Effect.READ),
    }
)
WHY = "strangers' words were read here: "


def strangers(*texts: str) -> Given:
    found = Given()
    for text in texts:
        found.add(text)
    return found


def people(*texts: str) -> Given:
    found = Given(loosely=True)
    for text in texts:
        found.add(text)
    return found


def fetch(url: str, **more: object) -> ToolCall:
    extra = "".join(f', "{name}": {value}' for name, value in more.items())
    return ToolCall("1", "web_fetch", f'{{"url": "{url}"{extra}}}')


def search(query: str) -> ToolCall:
    return ToolCall("1", "web_search", f'{{"query": "{query}"}}')


def reading(said_by_person: str, page: str, *, public: bool = True) -> Thread:
    """A conversation in which a page has been read."""
    return Thread.of(
        UserSaid(said(said_by_person), "owner", "cli:direct"),
        ModelCalled("m"),
        ModelSaid("", (ToolCall("0", "read_file", "{}"),)),
        CallReturned(3, 0, page, origin="somewhere", public=public),
    )


def calling(thread: Thread, *calls: ToolCall) -> Thread:
    thread.extend((ModelCalled("m"), ModelSaid("", calls)))
    return thread


def run(thread: Thread, *calls: ToolCall) -> Thread:
    calling(thread, *calls)
    thread.extend(CallReturned(thread.answer, place, "x") for place in range(len(calls)))
    return thread


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "url"),
        [
            ("see https://a.example/x.", "https://a.example/x"),
            ("(https://a.example/x)", "https://a.example/x"),
            ("[more](https://a.example/x)", "https://a.example/x"),
            ('<a href="https://a.example/x">', "https://a.example/x"),
            ("https://a.example/wiki/B_(c) and", "https://a.example/wiki/B_(c)"),
            ("HTTPS://A.Example:443/x", "https://a.example/x"),
            ("http://a.example:80", "http://a.example/"),
            ("https://a.example/x#part", "https://a.example/x#other"),
            ("请看https://a.example/x。谢谢", "https://a.example/x"),
            ("**https://a.example/x**", "https://a.example/x"),
            ("https://a.example?q=1", "https://a.example/?q=1"),
            ("a | https://a.example/x | b", "https://a.example/x"),
        ],
    )
    def test_one_that_stands_there_as_a_whole_is_given(self, text: str, url: str):
        assert strangers(text).has_address(url)

    @pytest.mark.parametrize(
        ("text", "url"),
        [
            ("https://a.example/abcdef", "https://a.example/abc"),
            ("https://a.example/abcdef", "https://a.example/"),
            ("https://a.example/x?u=https://b.example/y", "https://b.example/y"),
            ("a.example/x?u=https://b.example/y", "https://b.example/y"),
            ("https://a.example/x", "https://a.example/X"),
            ("https://a.example/x", "https://a.example:8443/x"),
            ("https://a.example/x", "https://k@a.example/x"),
            ("https://a.example/x", "https://a.example/x?"),
            ("https://a.example/x", "https://a.example/x/"),
            ("https://a.example/x", "https://k.a.example/x"),
            ("https://a.example/x", "http://a.example/x"),
            ("a.example/x", "https://a.example/x"),
            ("https://a.example/%41", "https://a.example/A"),
            ("https://a.example/x", "https://a.example\\\\@b.example/x"),
            ("https://a.example/x", "https://a.example/x https://b.example"),
        ],
    )
    def test_a_part_or_another_spelling_of_it_is_not(self, text: str, url: str):
        assert not strangers(text).has_address(url)

    @pytest.mark.parametrize(
        "url", ["https://a.example/x", "http://a.example/x", "https://www.a.example/x/", "https://a.example/x#y"]
    )
    def test_people_leave_out_what_goes_without_saying(self, url: str):
        assert people("look at a.example/x, please").has_address(url, loosely=True)
        assert people("look at https://www.a.example/x/").has_address(url, loosely=True)

    @pytest.mark.parametrize("more", [" ", "\u3000", "\xa0\u2003", "\t", "\n", "//", "/%20", "%E3%80%80", "?", "#a b"])
    def test_what_would_be_sent_behind_an_address_makes_it_another(self, more: str):
        given = people("read https://a.example/x now")
        assert given.has_address("https://a.example/x")
        assert not given.has_address(f"https://a.example/x{more}", loosely=True)

    def test_other_spellings_of_what_a_person_gave_are_counted_as_choices(self):
        sources = Sources()
        sources.add("read https://a.example/x now")
        spelled = ["https://a.example/x", "http://a.example/x", "https://www.a.example/x", "https://a.example/x/"]
        assert [sources.giver_of(url) for url in spelled] == ["person", "stranger", "stranger", "stranger"]

    @pytest.mark.parametrize("url", ["https://a.example/xy", "https://a.example/", "https://b.a.example/x"])
    def test_but_a_part_is_no_more_given_by_them(self, url: str):
        assert not people("look at a.example/x, please").has_address(url)

    def test_an_address_for_letters_is_no_address(self):
        assert not people("write to bob@a.example").has_address("https://a.example/")

    @given(st.text(max_size=80))
    def test_any_text_is_read(self, text: str):
        for given_by in (strangers(text), people(text)):
            assert not given_by.has_address("https://nobody.example/said/this")
        assert address_of(text) == "" or address_of(address_of(text)) == address_of(text)

    @pytest.mark.parametrize(
        ("url", "site"),
        [
            ("https://a.example/x", "a.example"),
            ("http://k1.k2.a.example:8080/x", "a.example"),
            ("https://www.shop.co.uk/", "shop.co.uk"),
            ("https://a.b.com.au/", "b.com.au"),
            ("https://10.0.0.7:99/x", "10.0.0.7"),
            ("http://[::1]:80/x", "[::1]"),
            ("https://user:x@www.a.example/", "a.example"),
            ("https://a.example./", "a.example"),
        ],
    )
    def test_a_site_is_all_that_one_can_have_below_a_name(self, url: str, site: str):
        assert site_of(url) == site

    def test_the_host_is_named_without_its_port(self):
        assert [host_of("https://A.example:8443/x"), host_of("nonsense")] == ["a.example", ""]


class TestWords:
    @pytest.mark.parametrize(
        ("said", "word"),
        [
            ("Prices of bikes", "price"),
            ("running", "run"),
            ("Fahrräder", "fahrräder"),
            ("library", "libraries"),
            ("offers", "offer"),
        ],
    )
    def test_a_word_is_known_when_it_is_inflected_otherwise(self, said: str, word: str):
        assert people(said).has_word(word)

    @pytest.mark.parametrize(
        ("said", "word"), [("price", "pricey"), ("secret", "secretabc"), ("47", "4711"), ("a", "b")]
    )
    def test_another_word_is_not(self, said: str, word: str):
        assert not people(said).has_word(word)

    def test_where_words_are_not_spaced_neighbours_count(self):
        known = people("北京明天天气怎么样")
        assert [known.has_word(word) for word in ("北京天气", "北京", "北京股票", "京")] == [True, True, False, False]

    @given(st.text(max_size=30))
    def test_any_text_has_words_and_each_is_known_where_it_was_said(self, text: str):
        known = people(text)
        assert all(known.has_word(word) for word in words_in(text) if len(word) > 1 or word.isascii())

    def test_what_has_a_digit_in_it_is_not_inflected(self):
        assert [stem_of(word) for word in ("prices", "pricing", "4711s", "ab")] == ["~pric", "~pric", "", ""]


class TestWhatIsWeighed:
    def weighed(self, query: str) -> Weighed:
        sources = Sources()
        sources.add("Which e-bike should I buy for my commute in Graz?")
        sources.add("The Riese Nevo has a Bosch motor. 1. 2. 3. Costs 4200 or 3900 or 17.", public=True)
        return sources.weigh(query)

    def test_what_a_person_said_is_free(self):
        assert self.weighed("e-bike commute Graz") == Weighed()

    def test_words_of_searching_and_years_are_free(self):
        assert self.weighed("best commute bike review 2026") == Weighed(light=("best", "review", "2026"))

    def test_what_a_page_said_is_known_as_that(self):
        assert self.weighed("Riese Nevo Bosch e-bike") == Weighed(strange=("riese", "nevo", "bosch"))

    @pytest.mark.parametrize("query", ["IBAN", "at61", "hunter2", "c2VjcmV0"])
    def test_what_stands_only_in_ones_own_papers_or_nowhere_is_named(self, query: str):
        assert self.weighed(f"bike {query}") == Weighed(unsaid=(query.casefold(),))

    @pytest.mark.parametrize("query", ["bike 3 1 2", "bike k z y", "bike four seven"])
    def test_what_any_text_can_be_spelled_with_is_free_for_nobody(self, query: str):
        assert self.weighed(query).unsaid == tuple(words_in(query)[1:])

    @pytest.mark.parametrize(
        ("query", "odd"),
        [
            ("bike 4200 3900 17", "it has many words that only strangers gave: 4200, 3900, 17"),
            ("the of and at by bike", "it has words that nobody said: the, of, and, at, by"),
            ("bike " * 25, "it has more than 24 words"),
            ("... ---", "it has no words"),
        ],
    )
    def test_a_query_that_is_none_is_odd(self, query: str, odd: str):
        assert self.weighed(query).odd == odd

    def test_a_long_one_that_a_person_said_so_is_not(self):
        told = "please look up why it says " + "lorem " * 30
        sources = Sources()
        sources.add(told)
        assert sources.weigh("lorem " * 30) == Weighed()


class TestExits:
    PAGE = (
        " ".join(f"https://s{n % 3}.a.example/{n}" for n in range(9))
        + " "
        + " ".join(f"https://b{n}.example/" for n in range(20))
    )

    def test_three_of_a_site_are_free_in_a_turn_and_no_more(self):
        thread = reading("read it", self.PAGE)
        for number in range(3):
            url = f"https://s{number}.a.example/{number}"
            assert decide(calling(thread, fetch(url)), RULES) == RunCalls((0,))
            thread.add(CallReturned(thread.answer, 0, "x"))
        calling(thread, fetch("https://s0.a.example/3"))
        assert decide(thread, RULES) == Ask((0,))
        why = (
            "3 addresses of a.example that only strangers gave were fetched in this turn already; the choice among "
            "many may tell s0.a.example what the model knows"
        )
        assert RULES.tools["web_fetch"].risk({"url": "https://s0.a.example/3"}, thread.before(0)).why == why

    def test_calls_of_one_answer_count_before_they_have_run(self):
        thread = calling(reading("read it", self.PAGE), *(fetch(f"https://s{n % 3}.a.example/{n}") for n in range(9)))
        assert decide(thread, RULES) == RunCalls((0, 1, 2))
        thread.extend(CallReturned(thread.answer, place, "x") for place in range(3))
        assert decide(thread, RULES) == Ask((3, 7))  # a yes to the fourth makes three more free

    def test_a_no_frees_nothing_and_a_yes_as_many_again(self):
        for verdict, after in (("denied", Ask((4,))), ("allowed", RunCalls((3, 4, 5, 6)))):
            thread = calling(
                reading("read it", self.PAGE), *(fetch(f"https://s{n % 3}.a.example/{n}") for n in range(9))
            )
            thread.extend(CallReturned(thread.answer, place, "x") for place in range(3))
            asked = [
                Asked(thread.answer, place, digest_of(thread.open_calls[place], RULES.tools["web_fetch"]))
                for place in (3, 7)
            ]
            thread.extend((*asked, Answered(thread.answer, 3, verdict)))
            if verdict == "denied":
                thread.add(CallReturned(thread.answer, 3, "no", "denied"))
            assert decide(thread, RULES) == after

    def test_twelve_are_free_altogether(self):
        thread = calling(reading("read it", self.PAGE), *(fetch(f"https://b{n}.example/") for n in range(20)))
        assert decide(thread, RULES) == RunCalls(tuple(range(12)))

    def test_the_same_one_again_counts_again(self):
        thread = calling(reading("read it", "https://a.example/1"), *[fetch("https://a.example/1")] * 5)
        assert decide(thread, RULES) == RunCalls((0, 1, 2))

    def test_reading_on_does_not_count(self):
        thread = run(reading("read it", "https://a.example/1"), *[fetch("https://a.example/1", offset=7)] * 9)
        assert thread.turn.exits == Exits()
        assert decide(calling(thread, fetch("https://a.example/1", offset=9)), RULES) == RunCalls((0,))

    def test_what_a_person_gave_is_free_as_often_as_one_likes(self):
        thread = reading("read https://a.example/1", "https://a.example/1 orders")
        assert decide(calling(thread, *[fetch("https://a.example/1")] * 9), RULES) == RunCalls(tuple(range(9)))

    def test_failures_count_and_refusals_do_not(self):
        thread = calling(reading("go", self.PAGE), *(fetch(f"https://s0.a.example/{n}") for n in (0, 3)))
        thread.extend(
            (CallReturned(thread.answer, 0, "Error", "failed"), CallReturned(thread.answer, 1, "no", "denied"))
        )
        assert thread.turn.exits == Exits({"a.example": 1})

    def test_what_a_person_allowed_does_not_count(self):
        thread = calling(reading("go", self.PAGE), fetch("https://s0.a.example/0"))
        thread.extend((Asked(thread.answer, 0), Answered(thread.answer, 0, "allowed", "owner")))
        thread.add(CallReturned(thread.answer, 0, "x"))
        assert thread.turn.exits == Exits()

    def test_a_new_turn_begins_anew_and_a_word_in_between_does_not(self):
        thread = run(reading("go", self.PAGE), fetch("https://s0.a.example/0"))
        thread.add(UserSaid(said("faster"), "owner", "cli:direct"))
        assert thread.turn.exits == Exits({"a.example": 1})
        thread.extend((ModelCalled("m"), ModelSaid("done"), UserSaid(said("again"), "owner", "cli:direct")))
        assert thread.turn.exits == Exits()

    def test_a_summary_in_the_middle_of_a_turn_forgets_none(self):
        thread = run(reading("go", self.PAGE), fetch("https://s0.a.example/0"), search("riese"))
        later = Thread.of(decode(encode(Compacted("we read", standing=thread.standing))))
        assert (later.turn.exits, later.outside) == (Exits({"a.example": 1}), True)

    def test_three_searches_for_strangers_words_are_free(self):
        thread = reading("find me a bike", "Nevo Bosch Haibike Cube")
        calling(thread, *(search(f"bike {name}") for name in ("Nevo", "Bosch", "Haibike", "Cube")), search("a bike"))
        assert decide(thread, RULES) == RunCalls((0, 1, 2))
        thread.extend(CallReturned(thread.answer, place, "x") for place in range(3))
        assert decide(thread, RULES) == Ask((3,))
        why = (
            f"{WHY}only strangers said “cube” here, and after 3 such searches in this turn the choice of words may "
            "tell others what the model knows"
        )
        assert RULES.tools["web_search"].risk({"query": "bike Cube"}, thread.before(3)).why == why

    def test_so_are_a_few_with_words_of_no_weight(self):
        thread = calling(reading("find me a bike", "x"), *[search("best bike")] * 12, search("a bike"))
        assert decide(thread, RULES) == RunCalls(tuple(range(9)))

    def test_what_a_person_was_shown_and_allowed_they_have_said(self):
        for by, step in (("owner", RunCalls((0, 1))), ("grant:7", Ask((0,)))):
            thread = calling(reading("find me a bike", "x"), search("bike hunter2"))
            thread.extend((Asked(thread.answer, 0), Answered(thread.answer, 0, "allowed", by)))
            thread.add(CallReturned(thread.answer, 0, "x"))
            calling(thread, search("hunter2 bike"), search("bike"))
            assert decide(thread, RULES) == step

    def test_a_search_with_what_nobody_said_is_asked_about_and_the_words_are_named(self):
        thread = calling(reading("find me a bike", "Nevo"), search("bike hunter2 pin"))
        assert decide(thread, RULES) == Ask((0,))
        why = f"{WHY}no person said “hunter2”, “pin” here; the search would tell it to others"
        assert RULES.tools["web_search"].risk({"query": "bike hunter2 pin"}, thread.before(0)).why == why

    def test_where_no_stranger_was_heard_anything_is_searched_for(self):
        thread = Thread.of(UserSaid(said("hi"), "owner"))
        assert decide(calling(thread, search("hunter2"), fetch("https://a.example/?hunter2")), RULES) == RunCalls(
            (0, 1)
        )

    def test_the_owner_can_close_it_altogether(self):
        thread = calling(reading("go", "https://a.example/1"), fetch("https://a.example/1"))
        asks = Rules(RULES.tools, policy=Policy(rules=(PolicyRule("web_fetch", "ask"),)))
        assert (decide(thread, RULES), decide(thread, asks)) == (RunCalls((0,)), Ask((0,)))

    def test_a_call_that_is_none_leads_nowhere(self):
        calls = (ToolCall("", "web_fetch", "nonsense"), ToolCall("", "web_search", "{}"), ToolCall("", "exec", "{}"))
        assert [way_out(call) for call in calls] == [None] * 3
        assert way_out(search("x")) == WayOut(query="x")

    def test_how_a_call_leads_out_is_what_was_noted_with_it_whatever_its_tool_is_called(self):
        peek = ToolCall("", "peek", '{"url": "https://s0.a.example/0", "query": "q"}', "address")
        assert way_out(peek) == WayOut(url="https://s0.a.example/0")
        assert way_out(structs.replace(peek, exit="words")) == WayOut(query="q")
        assert way_out(structs.replace(peek, exit="")) is None
        thread = run(reading("go", self.PAGE), decode(encode(ModelSaid("", (peek,)))).calls[0])
        assert thread.turn.exits == Exits({"a.example": 1})

    def test_a_log_of_before_knows_it_by_the_name(self):
        old = decode(
            b'{"kind":"model_said","text":"","calls":[{"id":"1","name":"web_fetch",'
            b'"args":"{\\"url\\":\\"https://s0.a.example/0\\"}"}]}'
        )
        assert run(reading("go", self.PAGE), old.calls[0]).turn.exits == Exits({"a.example": 1})
        assert encode(old).endswith(b'example/0\\"}"}]}')  # and what is not noted is not written


class TestWhoSaidIt:
    def test_a_file_that_comes_with_a_message_is_nobodys_word(self):
        attached = Text("[a.txt, kept as file:0123456789ab]\nhunter2 https://a.example/1", "a.txt", public=True)
        thread = Thread.of(UserSaid((*said("sum it up"), attached), "owner"))
        assert thread.outside
        assert thread.strangers.sources.giver_of("https://a.example/1") == "stranger"
        assert thread.strangers.sources.weigh("hunter2") == Weighed(strange=("hunter2",))

    def test_an_older_log_knows_it_by_how_it_begins(self):
        attached = Text("[a.txt, kept as file:0123456789ab]\nhttps://a.example/1")
        thread = Thread.of(UserSaid((*said("sum it up"), attached), "owner"))
        assert (thread.outside, thread.strangers.sources.giver_of("https://a.example/1")) == (True, "")

    def test_what_the_model_can_have_put_there_itself_gives_nothing(self):
        thread = reading("go", "hunter2 https://a.example/?hunter2", public=False)
        assert (thread.outside, thread.strangers.sources.giver_of("https://a.example/?hunter2")) == (True, "")
        assert thread.strangers.sources.weigh("hunter2") == Weighed(unsaid=("hunter2",))

    def test_a_picture_counts_as_well(self):
        thread = Thread.of(UserSaid((*said("what is it?"), Media("file:0", "image/png", "a.png")), "owner"))
        assert thread.outside
        assert not Thread.of(UserSaid(said("what is it?"), "owner")).outside

    def test_to_each_of_two_who_speak_the_other_is_a_stranger(self):
        turns = [(UserSaid(said("hi"), author), ModelCalled("m"), ModelSaid("yes")) for author in ("ann", "ann", "bob")]
        marked = [Thread.of(*(entry for turn in turns[:count] for entry in turn)).outside for count in (1, 2, 3)]
        assert marked == [False, False, True]

    def test_so_does_one_that_a_client_says_came_before(self):
        before = (Message("user", (Media("file:0", "image/png"),)), Message("assistant", said("a cat")))
        assert Thread.of(UserSaid(said("hi"), "owner", before=before)).outside
        assert not Thread.of(UserSaid(said("hi"), "owner", before=before[1:])).outside

    def test_results_of_a_clients_tools_are_strangers_words(self):
        results = UserSaid(said("https://a.example/1"), "owner", brought=Brought(outside=True))
        thread = Thread.of(results)
        assert (thread.outside, thread.strangers.sources.giver_of("https://a.example/1")) == (True, "")

    def test_what_is_kept_over_a_summary_stays_whose_it_was(self):
        kept = (
            Message(
                "user", (Text("mine https://a.example/1"), Text("[b.txt] https://b.example/1", "b.txt", public=True))
            ),
            Message("tool", said("https://c.example/1", "https://c.example", public=True)),
            Message("tool", said("https://d.example/1")),
            Message("assistant", said("https://e.example/1")),
        )
        thread = Thread.of(decode(encode(Compacted("", kept))))
        givers = [thread.strangers.sources.giver_of(f"https://{name}.example/1") for name in "abcde"]
        assert (givers, thread.outside) == (["person", "stranger", "stranger", "", ""], True)
