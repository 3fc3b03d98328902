"""Which persona answers: a table of cases, and what is true of all of them."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.core import log
from everloop.core.decide import admit, heard
from everloop.core.log import Compacted, UserSaid
from everloop.core.mail import ChoosePersona, Mail, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.core.personas import HERE, PersonaChoice, PersonaWish
from everloop.core.thread import Thread
from everloop.readings.personas import Persona, Personas, is_name, is_place, places_of

ALL = ("thread:tg:42:7", "chat:tg:42", "server:tg/acme", "channel:tg", "default")


def one_for_each(*places: str) -> Personas:
    """A persona for each place, called p0, p1, … in the order of `ALL`."""
    named = {f"p{ALL.index(place)}": place for place in places}
    return Personas({name: Persona(name, places=(place,)) for name, place in named.items()})


def chosen(personas: Personas, address: str, server: str = "") -> PersonaChoice:
    return personas.choose(PersonaWish(), person="ann", role=Role.USER, address=address, server=server)


@pytest.mark.parametrize(
    ("address", "server", "expected"),
    [
        ("tg:42:7", "acme", ("p0", "thread:tg:42:7")),
        ("tg:42:8", "acme", ("p1", "chat:tg:42")),
        ("tg:42", "acme", ("p1", "chat:tg:42")),
        ("tg:43", "acme", ("p2", "server:tg/acme")),
        ("tg:43:7", "acme", ("p2", "server:tg/acme")),
        ("tg:43", "other", ("p3", "channel:tg")),
        ("tg:43", "", ("p3", "channel:tg")),
        ("dc:42", "acme", ("p4", "default")),  # a server of that name on another channel is another server
        ("dc:42:7", "", ("p4", "default")),
        ("", "", ("p4", "default")),
    ],
)
def test_the_most_specific_place_decides(address, server, expected):
    assert chosen(one_for_each(*ALL), address, server) == PersonaChoice(*expected)


def test_without_a_persona_for_any_of_its_places_the_agent_is_itself():
    assert chosen(one_for_each("channel:tg"), "dc:42") == PersonaChoice()
    assert chosen(Personas(), "dc:42") == PersonaChoice()


def test_at_the_platform_door_each_platform_is_a_channel_of_its_own():
    assert places_of("platform:discord/1/9:7", "discord/1") == [
        "thread:platform:discord/1/9:7",
        "chat:platform:discord/1/9",
        "server:platform/discord/1",
        "channel:platform/discord",
        "channel:platform",
        "default",
    ]
    assert places_of("tg:a/b") == ["chat:tg:a/b", "channel:tg", "default"]  # elsewhere a / tells nothing


OPEN = {"free": Persona("free", open_to=Role.USER), "strict": Persona("strict", places=("channel:tg",))}


@pytest.mark.parametrize(
    ("wish", "role", "expected"),
    [
        (PersonaWish("free", "ann"), Role.USER, PersonaChoice("free", HERE)),
        (PersonaWish("free", "bob"), Role.GUEST, PersonaChoice("free", HERE)),  # of a group, by its administrator
        (PersonaWish("", "ann"), Role.USER, PersonaChoice("strict", "channel:tg")),
        (
            PersonaWish("free", "ann"),
            Role.GUEST,
            PersonaChoice("strict", "channel:tg", "free was chosen here, and is no longer open to guests."),
        ),
        (
            PersonaWish("gone", "ann"),
            Role.OWNER,
            PersonaChoice("strict", "channel:tg", "gone was chosen here, and is no longer there."),
        ),
    ],
)
def test_what_is_chosen_in_a_conversation_holds_while_it_is_there_and_open_to_who_chose_it(wish, role, expected):
    assert Personas(OPEN).choose(wish, person="ann", role=role, address="tg:42") == expected


def test_a_choice_is_told_in_a_sentence():
    told = [PersonaChoice(), PersonaChoice("a", HERE), PersonaChoice("a", "default"), PersonaChoice("", "", "It went.")]
    assert [each.sentence for each in told] == [
        "The agent answers as itself, without a persona.",
        "a answers, chosen in this conversation.",
        "a answers, by default.",
        "It went. The agent answers as itself, without a persona.",
    ]


@given(st.sets(st.sampled_from(ALL)), st.permutations(ALL), st.sampled_from(["tg:42:7", "tg:42", "tg:9", "dc:1:2"]))
def test_whatever_there_is_the_first_place_that_has_one_decides_and_order_never_does(has, order, address):
    given_in = {
        f"p{ALL.index(place)}": Persona(f"p{ALL.index(place)}", places=(place,)) for place in order if place in has
    }
    there = [place for place in places_of(address, "acme") if place in has]
    expected = PersonaChoice(f"p{ALL.index(there[0])}", there[0]) if there else PersonaChoice()
    assert chosen(Personas(given_in), address, "acme") == expected
    assert chosen(Personas(dict(reversed(given_in.items()))), address, "acme") == expected


@given(st.sampled_from(ALL), st.sets(st.sampled_from(ALL)))
def test_who_answers_when_a_place_has_none_is_who_would_be_found_by_the_next_one(place, has):
    address = {"thread:tg:42:7": "tg:42:7", "chat:tg:42": "tg:42"}.get(place, "tg:9")
    server = "acme" if place == "server:tg/acme" else ""
    left = one_for_each(*(has - {place}))
    if place != "default":
        assert left.after(place) == chosen(left, address, server).name
    else:
        assert left.after(place) == ""


@pytest.mark.parametrize(
    ("personas", "sentence"),
    [
        (
            {"a": Persona("a", places=("default",)), "b": Persona("b", places=("default",))},
            "personas.a and personas.b both have the place default",
        ),
        ({"A": Persona("A")}, "personas.A: a persona's name has up to 40 small letters, digits, - and _"),
        (
            {"a": Persona("a", places=("telegram",))},
            "personas.a.places has 'telegram': a place is default, channel:NAME",
        ),
        ({"a": Persona("a", prompt="x" * 20_001)}, "personas.a.prompt has more than 20,000 characters"),
    ],
)
def test_what_could_be_mistaken_is_refused(personas: Mapping[str, Persona], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        Personas(personas)


def test_the_same_place_twice_in_one_persona_is_the_same_place():
    assert Personas({"a": Persona("a", places=("default", "default"))}).at == {"default": "a"}


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "default", "none", "-a", "a" * 41, "ä", "a b", "a\n"])
def test_what_is_no_name_is_none(name):
    assert (is_name(name), is_name("support-2_x")) == (False, True)


@pytest.mark.parametrize(
    "place", ["", "channel:", "server:tg", "chat:tg", "thread:tg:1", "who:tg", "channel:a b", "chat:tg:1:2"]
)
def test_what_is_no_place_is_none(place):
    assert (is_place(place), all(map(is_place, ALL))) == (False, True)


def test_a_persona_leaves_the_tools_that_it_names_and_without_a_list_all():
    web = Persona("a", tools=("web_*", "read_file"))
    assert [tool for tool in ("web_fetch", "read_file", "exec") if web.leaves(tool)] == ["web_fetch", "read_file"]
    assert (Persona("a").leaves("exec"), Persona("a", tools=()).leaves("exec")) == (True, False)


def test_the_choice_and_the_server_are_read_from_the_log_also_after_a_compaction():
    said_there = UserSaid(said("hi"), "ann", "tg:42", server="acme")
    thread = Thread.of(log.PersonaChosen("a", "ann"), said_there)
    assert (thread.persona, thread.server) == (PersonaWish("a", "ann"), "acme")
    again = Thread.of(Compacted("They spoke.", standing=thread.standing), UserSaid(said("go on"), "ann", "tg:42"))
    assert (again.persona, again.server) == (PersonaWish("a", "ann"), "acme")
    again.add(log.PersonaChosen("", "ann"))
    assert again.persona == PersonaWish("", "ann")


def test_a_choice_becomes_an_entry_at_any_time_and_a_letter_keeps_its_server():
    busy = Thread.of(UserSaid(said("hi"), "ann"))
    for thread in (Thread(), busy):
        assert admit(thread, Mail(1, ChoosePersona("a", "ann"))).entries == (log.PersonaChosen("a", "ann"),)
    assert heard(Said(said("hi"), "ann", "tg:42", server="acme")).server == "acme"
