"""Who has a key of their own for a provider is answered with it: nobody else pays, and nobody else's turn has it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.app import open_desk
from everloop.core.log import Compacted, ModelSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.core.prompt import Usage
from everloop.errors import MailRefused, TurnFailed
from everloop.ports.budgets import DOLLAR, HOUSE, Limit
from everloop.ports.events import TitleGiven
from everloop.ports.rows import UsedRow
from everloop.testing import Http, Say, Shown, Spend
from everloop.testing.model_server import ModelServer, shown_in

ANNA, BERT, GUEST = "discord:7", "discord:8", "discord:100"
ROLES = {ANNA: Role.USER, BERT: Role.USER}
SHARED, ANNAS, BERTS = "sk-canary-shared", "sk-canary-annas", "sk-canary-berts"
ONE = Spend(Usage(500, 1000))  # of which each costs a dollar
REFUSED = (
    "one refuses your own key, and nobody else was asked. Give another or remove it in the page, under Manage, Access."
)


class Town:
    """Two providers, `one` and `two`, that are asked with a key each; `one` is the usual one."""

    def __init__(self, one: ModelServer, two: ModelServer) -> None:
        self.one, self.two = one, two

    def keys(self) -> tuple[list[str], list[str]]:
        """With which each was asked for an answer, in order."""
        one, two = ([each.headers["Authorization"][7:] for each in server.requests] for server in (self.one, self.two))
        return one, two

    def settings(self, **defaults: Any) -> dict[str, Any]:
        accounts = {
            name: {"api_base": each.url, "api_key": SHARED} for name, each in (("one", self.one), ("two", self.two))
        }
        return {
            "agents": {"defaults": {"model": "one/m", "max_tokens": 1000, "context_window": 20_000, **defaults}},
            "providers": accounts,
            "prices": {"one/*": {"input": 0.0, "output": 1000.0}, "two/*": {"input": 0.0, "output": 1000.0}},
        }


@pytest.fixture
async def town() -> AsyncIterator[Town]:
    script = lambda shown: (Say("ok"), ONE)  # noqa: E731
    async with ModelServer(script, models=("m",)) as one, ModelServer(script, models=("m",)) as two:
        yield Town(one, two)


@asynccontextmanager
async def opened(home: Path, town: Town, settings: dict[str, Any] | None = None) -> AsyncIterator[everloop.Agent]:
    async with everloop.open(home, settings or town.settings(), roles=ROLES) as agent:
        yield agent


async def keep(agent: everloop.Agent, person: str, key: str, provider: str = "one") -> None:
    await agent.own_keys.keep(person, provider, key)


async def spent(agent: everloop.Agent, *owners: str) -> list[tuple[int, int]]:
    return [(row.money, row.held_money) for row in await agent.store.spending(owners)]


async def limit(agent: everloop.Agent, *owners: str, amount: int = 1) -> None:
    for owner in owners:
        await agent.budgets.assign(owner, "month", Limit(None, amount * DOLLAR))


async def by_person(agent: everloop.Agent) -> dict[str, UsedRow]:
    return {row.name: row for row in await agent.store.used("person", 0)}


async def test_a_key_of_ones_own_is_used_for_ones_own_calls_and_the_budgets_stay_as_they_are(
    tmp_path: Path, town: Town
):
    async with opened(tmp_path, town) as agent:
        await limit(agent, ANNA, BERT, HOUSE)
        await keep(agent, ANNA, ANNAS)
        for session in ("api:a", "api:a", "api:b"):
            await agent.ask("hello", session, author=ANNA)
        own = await spent(agent, ANNA, HOUSE)
        await agent.ask("hello", "api:c", author=BERT)
        after = await spent(agent, BERT, HOUSE)
        used = await by_person(agent)
    assert town.keys()[0] == [ANNAS, ANNAS, ANNAS, SHARED]
    assert (own, after) == ([], [(DOLLAR, 0), (DOLLAR, 0)])
    annas, berts = used[ANNA], used[BERT]
    assert (annas.calls, annas.cost, annas.own_calls, annas.own_cost) == (3, 0.0, 3, 3.0)
    assert (berts.calls, berts.cost, berts.own_calls, berts.own_cost) == (1, 1.0, 0, 0.0)


async def test_who_may_spend_nothing_is_answered_with_a_key_of_their_own_and_not_without_it(tmp_path: Path, town: Town):
    async with opened(tmp_path, town) as agent:
        await limit(agent, ANNA, HOUSE, amount=0)
        with pytest.raises(TurnFailed) as denied:
            await agent.ask("hello", "api:a", author=ANNA)
        await keep(agent, ANNA, ANNAS)
        answer = await agent.ask("hello", "api:a", author=ANNA)
        await agent.own_keys.forget(ANNA, "one")
        with pytest.raises(TurnFailed) as again:
            await agent.ask("hello", "api:a", author=ANNA)
    assert (denied.value.reason, answer.content, again.value.reason) == ("budget", "ok", "budget")
    assert town.keys() == ([ANNAS], [])


async def test_a_key_that_is_refused_is_told_in_a_sentence_and_nobody_else_is_asked(tmp_path: Path, town: Town):
    town.one.play(lambda shown: Http(401, {"error": {"message": f"no such key {ANNAS}"}}))
    async with opened(tmp_path, town, town.settings(fallbacks=["two/m"])) as agent:
        await keep(agent, ANNA, ANNAS)
        with pytest.raises(TurnFailed) as failed:
            await agent.ask("hello", "api:a", author=ANNA)
        berts = await agent.ask("hello", "api:b", author=BERT)
    assert (failed.value.reason, str(failed.value).partition(" (error")[0]) == ("own_key", REFUSED)
    assert berts.content == "ok"  # by the fallback, which is the house's to pay
    assert town.keys() == ([ANNAS, SHARED], [SHARED])


async def test_a_guest_is_told_the_same(tmp_path: Path, town: Town):
    town.one.play(lambda shown: Http(401))
    async with opened(tmp_path, town) as agent:
        await keep(agent, GUEST, ANNAS)
        with pytest.raises(TurnFailed) as failed:
            await agent.ask("hello", "api:a", author=GUEST)
        with pytest.raises(TurnFailed) as other:
            await agent.ask("hello", "api:b", author="discord:101")
    assert str(failed.value).partition(" (error")[0] == REFUSED
    assert "key" not in str(other.value)


async def test_a_fallback_that_one_has_a_key_for_is_never_asked_at_the_houses_expense(tmp_path: Path, town: Town):
    town.one.play(lambda shown: Http(402))
    async with opened(tmp_path, town, town.settings(fallbacks=["two/m"])) as agent:
        await keep(agent, ANNA, ANNAS, "two")
        with pytest.raises(TurnFailed) as failed:
            await agent.ask("hello", "api:a", author=ANNA)
        asked = town.keys()[1]
        berts = await agent.ask("hello", "api:b", author=BERT)
        await agent.ask("/model two/m", "api:a", author=ANNA)
        own = await agent.ask("hello", "api:a", author=ANNA)
    assert (failed.value.reason, asked, berts.content, own.content) == ("credit", [], "ok", "ok")
    assert town.keys()[1] == [SHARED, ANNAS]


async def test_in_a_group_each_turn_has_the_key_of_whoever_asks(tmp_path: Path, town: Town):
    async with opened(tmp_path, town) as agent:
        await keep(agent, ANNA, ANNAS)
        await keep(agent, BERT, BERTS)
        for who in (ANNA, BERT, "owner", ANNA):
            await agent.ask("hello", "api:room", author=who)
    assert town.keys()[0] == [ANNAS, BERTS, SHARED, ANNAS]


async def test_a_summary_is_written_with_the_key_of_whoever_asked_for_it(tmp_path: Path, town: Town):
    def script(shown: Shown) -> Any:
        return (Say("A summary." if "summarise" in shown.system else "word " * 300), ONE)

    town.one.play(script)
    town.two.play(script)
    async with opened(tmp_path, town, town.settings(small_model="two/m")) as agent:
        await limit(agent, ANNA, HOUSE, amount=0)
        await keep(agent, ANNA, ANNAS)
        await keep(agent, ANNA, BERTS, "two")
        for _ in range(4):
            await agent.ask("word " * 300, "api:a", author=ANNA)
        await agent.ask("/compact", "api:a", author=ANNA)
        await agent.ask("and now?", "api:a", author=ANNA)
        row = await agent.store.session("api:a")
        assert row is not None
        entries = await agent.store.read(row.id)
    made = [(type(each).__name__, each.own) for each in entries if isinstance(each, ModelSaid | Compacted)]
    assert ("Compacted", True) in made
    assert {own for _, own in made} == {True}
    assert (set(town.keys()[0]), town.keys()[1]) == ({ANNAS}, [BERTS])


async def test_a_key_is_sent_to_the_address_that_it_was_given_for_and_to_no_other(tmp_path: Path, town: Town):
    async with opened(tmp_path, town) as agent:
        await keep(agent, ANNA, ANNAS)
    moved = town.settings()
    moved["providers"]["one"]["api_base"] = town.two.url
    async with opened(tmp_path, town, moved) as agent:
        with pytest.raises(TurnFailed) as failed:
            await agent.ask("hello", "api:a", author=ANNA)
        shown = await agent.own_keys.keys(ANNA)
        await keep(agent, ANNA, ANNAS)
        again = await agent.ask("hello", "api:a", author=ANNA)
    assert str(failed.value).startswith("one is asked at another address than when you gave your own key")
    assert shown[0].problem.startswith("one is asked at another address")
    assert (again.content, town.keys()) == ("ok", ([], [ANNAS]))


async def test_nothing_that_the_owner_has_set_to_be_sent_goes_with_a_key_of_ones_own(tmp_path: Path, town: Town):
    settings = town.settings()
    settings["providers"]["one"]["headers"] = {"Authorization": "Bearer sk-canary-header", "X-Account": "the house"}
    async with opened(tmp_path, town, settings) as agent:
        await keep(agent, ANNA, ANNAS)
        await agent.ask("hello", "api:a", author=ANNA)
        await agent.ask("hello", "api:b", author=BERT)
    sent = [(each.headers["Authorization"], each.headers.get("X-Account")) for each in town.one.requests]
    assert sent == [(f"Bearer {ANNAS}", None), ("Bearer sk-canary-header", "the house")]


async def test_a_key_that_another_process_keeps_or_forgets_is_found(tmp_path: Path, town: Town):
    async with opened(tmp_path, town) as one, opened(tmp_path, town) as other:
        await keep(other, ANNA, ANNAS)
        await one.own_keys.look()  # as the watch does every two seconds
        await one.ask("hello", "api:a", author=ANNA)
        await other.own_keys.forget(ANNA, "one")
        await one.own_keys.look()
        await one.ask("hello", "api:a", author=ANNA)
        await keep(other, ANNA, BERTS)
        await one.own_keys.look()
        await one.ask("hello", "api:a", author=ANNA)
    assert town.keys()[0] == [ANNAS, SHARED, BERTS]


async def test_what_is_no_key_or_no_provider_is_refused_and_so_is_the_owner(tmp_path: Path, town: Town):
    refused = []
    async with opened(tmp_path, town) as agent:
        for person, provider, key in (
            (ANNA, "nowhere", ANNAS),
            (ANNA, "one", "two words"),
            (ANNA, "ollama", ANNAS),
            ("owner", "one", ANNAS),
        ):
            with pytest.raises(everloop.EverloopError) as error:
                await agent.own_keys.keep(person, provider, key)
            refused.append(str(error.value).partition(";")[0].partition(":")[0])
        with pytest.raises(MailRefused, match="no key of yours is kept for one"):
            await agent.own_keys.forget(ANNA, "one")
        kept = await agent.own_keys.keys(ANNA)
    assert (refused, kept) == (
        [
            "there is no provider 'nowhere'",
            "that is no key",
            "ollama takes no key of one's own here",
            "the owner's keys are the house's, which everyone is answered with",
        ],
        [],
    )


async def test_whoever_has_no_key_costs_a_turn_no_look_at_the_vault(tmp_path: Path, town: Town):
    async with opened(tmp_path, town) as agent:
        await keep(agent, ANNA, ANNAS)
        await agent.ask("hello", "api:b", author=BERT)
        asked: list[str] = []
        for name in ("secret", "secrets", "secret_times", "secrets_of_people"):
            there = getattr(agent.store, name)

            async def counted(*given: Any, _there: Any = there, _name: str = name) -> Any:
                asked.append(_name)
                return await _there(*given)

            setattr(agent.store, name, counted)
        await agent.ask("hello", "api:b", author=BERT)
        plain, asked[:] = [*asked], []
        for _ in range(2):
            await agent.ask("hello", "api:a", author=ANNA)
    assert (plain, asked) == ([], ["secret"])  # opened once, and kept ready


async def test_what_is_made_again_or_said_in_other_words_is_asked_with_the_same_key(tmp_path: Path, town: Town):
    async with opened(tmp_path, town) as agent:
        await keep(agent, "web:anna", ANNAS)
        anna = agent.user("web:anna")
        await anna.ask("hello")
        await anna.ask("/session regenerate")
        await anna.ask("/session edit hello again")
        await agent.user("web:bert").ask("hello")
    assert town.keys()[0][-1] == SHARED
    assert set(town.keys()[0][:-1]) == {ANNAS}
    assert len(town.keys()[0]) == 4


async def test_a_key_that_is_typed_in_a_chat_is_not_taken_and_not_kept(tmp_path: Path, town: Town):
    async with opened(tmp_path, town) as agent:
        none = await agent.user(ANNA.replace("discord", "web")).ask("/keys")
        typed = await agent.user(ANNA.replace("discord", "web")).ask("/keys openai sk-canary-typed")
        owner = await agent.ask("/keys", "cli:direct")
    assert none.content.startswith("You keep no key or credential of your own.")
    assert typed.content.startswith("A key is not taken in a chat")
    assert owner.content.startswith("The keys that you are answered with are the house's")
    # That it lies in no file is looked at by tests/canary.py.


async def test_a_title_is_given_with_the_key_of_whose_conversation_it_is(tmp_path: Path, town: Town):
    settings = town.settings(small_model="two/m", titles=True)
    async with open_desk(tmp_path, settings, roles=ROLES) as agent:
        await limit(agent, ANNA, amount=5)
        await keep(agent, ANNA, ANNAS, "two")
        with agent.events() as events:
            for who, session in ((ANNA, "page:annas"), (BERT, "page:berts")):
                letter = Said(said("Where do walruses live?"), who, session)
                await agent.tell(Inbound(Address.parse(session), session, letter, who))
                async for event in events:
                    if isinstance(event, TitleGiven):
                        break
        used = {row.name: row for row in await agent.store.used("job", 0)}
        left = await spent(agent, ANNA)
    assert town.keys() == ([SHARED, SHARED], [ANNAS, SHARED])
    assert (used["titles"].calls, used["titles"].own_calls, left) == (2, 1, [(DOLLAR, 0)])


async def test_of_many_who_ask_at_once_none_is_asked_with_anothers_key(tmp_path: Path, town: Town):
    people = {f"web:{n}": f"sk-canary-of-{n}" for n in range(20)}
    async with opened(tmp_path, town) as agent:
        for person, key in people.items():
            if int(person[4:]) % 3:  # some have none
                await keep(agent, person, key)
        at_once = [(person, f"{person}:{n}") for person in people for n in range(3)]
        await asyncio.gather(*(agent.user(person).ask(f"I am {person}", session) for person, session in at_once))
    asked = [(shown_in(each.raw).asked.split()[2], each.headers["Authorization"][7:]) for each in town.one.requests]
    right = {who: key if int(who[4:]) % 3 else SHARED for who, key in people.items()}
    assert (len(asked), set(asked)) == (60, set(right.items()))


async def test_where_somebodys_bot_says_who_speaks_it_is_its_owner_who_pays(tmp_path: Path, town: Town):
    async with opened(tmp_path, town) as agent:
        await keep(agent, ANNA, ANNAS)
        for owner in (BERT, ANNA):
            letter = Said(said("hello"), ANNA, f"platform:{owner[-1]}")
            await agent.answer(Inbound(Address.parse(f"platform:{owner[-1]}"), owner, letter, owner))
    assert town.keys()[0] == [SHARED, ANNAS]
