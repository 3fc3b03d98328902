"""Introducing, pairing, roles and blocking: who may do what to whom, and what is said when not."""

import pytest

from everloop.core.people import Role
from everloop.errors import MailRefused
from everloop.ports.directory import Person
from everloop.runtime.membership import Membership


@pytest.fixture
async def members(house):
    from everloop.testing import ScriptedModel

    async with house(ScriptedModel([])) as agent:
        for id, name, role in (("p1", "Anna", Role.USER), ("p2", "Ben", Role.ADMIN), ("p3", "anna", Role.GUEST)):
            await agent.store.introduce(Person(id, name, role))
        yield Membership(agent.store)


async def test_people_are_found_by_id_account_or_a_name_of_theirs_alone(members):
    await members.link("p2", "web:7", Role.OWNER)
    assert [(await members.find(who)).id for who in ("p2", "web:7", "ben", "owner")] == ["p2", "p2", "p2", "owner"]
    with pytest.raises(MailRefused, match=r"2 people are called 'Anna': say which by id \(p1, p3\)"):
        await members.find("Anna")
    with pytest.raises(MailRefused, match="there is nobody 'Carl'"):
        await members.find("Carl")


@pytest.mark.parametrize(
    "who, role, by, why",
    [
        ("owner", Role.USER, Role.OWNER, "the owner stays the owner"),
        ("p1", Role.OWNER, Role.OWNER, "there is one owner"),
        ("p1", Role.ADMIN, Role.ADMIN, "only the owner makes somebody an admin"),
        ("p2", Role.USER, Role.ADMIN, "Ben is an admin: only the owner changes that"),
        ("p1", Role.GUEST, Role.USER, "Anna is a user: only the owner changes that"),
    ],
)
async def test_nobody_gives_more_than_they_have_nor_changes_their_equals(members, who, role, by, why):
    before = await members.find(who)
    with pytest.raises(MailRefused, match=why):
        await members.change(who, by, role=role)
    assert await members.find(who) == before


async def test_the_owner_gives_roles_up_to_admin_and_admins_below_them(members):
    await members.change("p1", Role.OWNER, role=Role.ADMIN)
    await members.change("p3", Role.ADMIN, role=Role.USER)
    assert [(await members.find(id)).role for id in ("p1", "p3")] == [Role.ADMIN, Role.USER]


async def test_an_admin_does_not_become_the_owner_by_linking_an_account(members):
    for who in ("owner", "p1"):
        with pytest.raises(MailRefused, match="only the owner gives somebody an account or a way into the page"):
            await members.link(who, "web:666", Role.ADMIN)
        with pytest.raises(MailRefused, match="only the owner gives somebody an account or a way into the page"):
            await members.invitable(who, Role.ADMIN)
    with pytest.raises(MailRefused, match="only the owner makes somebody an admin"):
        await members.add("Eve", Role.ADMIN, Role.ADMIN)
    assert (await members.link("owner", "web:1", Role.OWNER)).id == "owner"
    assert (await members.invitable("p1", Role.OWNER)).id == "p1"


async def test_the_owner_cannot_be_blocked(members):
    with pytest.raises(MailRefused, match="the owner stays the owner"):
        await members.change("owner", Role.OWNER, blocked=True)


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "a\nb", "\x1b[31m"])
async def test_a_name_can_be_shown(members, name):
    with pytest.raises(MailRefused, match="a name is 1 to 100 characters"):
        await members.add(name, Role.USER, Role.OWNER)


async def test_an_account_is_introduced_once(members):
    assert (await members.add("Dora", Role.USER, Role.OWNER, "web:9")).id == "web:9"
    with pytest.raises(MailRefused, match="web:9 is somebody already"):
        await members.add("Dora", Role.USER, Role.OWNER, "web:9")
    with pytest.raises(MailRefused, match="an account looks like telegram:12345, not 'web'"):
        await members.link("p1", "web", Role.OWNER)


@pytest.mark.parametrize("account", ["chat:telegram/-100", "chat:platform/discord/1/2", "chat:p1:x/y"])
async def test_nobody_is_introduced_as_a_group(members, account):
    """They would be invited into the page, and find there what others have said in it."""
    for introduce in (members.add("Eve", Role.USER, Role.ADMIN, account), members.link("p1", account, Role.OWNER)):
        with pytest.raises(MailRefused, match="an account looks like telegram:12345"):
            await introduce
    assert (await members.add("Eve", Role.USER, Role.ADMIN, "chat:5")).id == "chat:5"  # the control: no group's


async def test_who_waits_with_a_long_account_is_let_in(members):
    account = f"matrix:@{'x' * 200}:example.org"
    asked = await members._directory.ask_code("pair", account, "matrix:1", "e1", 100)
    person = await members.pair(asked.code, Role.USER, Role.ADMIN)
    assert (person.id, person.name) == (account, account[7:107])


@pytest.mark.parametrize(
    "account, called",
    [("web:ben", "web:ben"), ("web:BEN", "web:BEN"), ("web:owner", "web:owner"), ("web:carl", "carl")],
)
async def test_a_stranger_does_not_take_a_name_by_which_another_comes_in(members, account, called):
    asked = await members._directory.ask_code("pair", account, "web:1", "e1", 100)
    assert (await members.pair(asked.code, Role.USER, Role.ADMIN)).name == called
    assert [(await members.find(name)).id for name in ("Ben", "owner")] == ["p2", "owner"]


@pytest.mark.parametrize("name", ["Ben", "bEN ", "p2", "owner", "OWNER", "web:7", "WEB:7"])
async def test_nobody_is_called_as_another_is_by_whichever_way(members, name):
    await members.link("p2", "web:7", Role.OWNER)
    asked = await members._directory.ask_code("pair", "web:9", "web:1", "e1", 100)
    for attempt in (
        members.add(name, Role.USER, Role.OWNER),
        members.add(name, Role.USER, Role.OWNER, "web:8"),
        members.change("p1", Role.OWNER, name=name),
        members.pair(asked.code, Role.USER, Role.OWNER, name),
    ):
        with pytest.raises(MailRefused, match=r"(p2|owner) is called '\S+' already; choose another name"):
            await attempt
    assert (await members.pair(asked.code, Role.USER, Role.OWNER, "Carl")).name == "Carl"  # the code is not used up
    await members.change("p2", Role.OWNER, name="BEN")  # their own name is theirs
    assert (await members.find("p2")).name == "BEN"
