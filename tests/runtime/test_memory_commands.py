"""`/memory` in a chat: one's own where one is alone, the chat's in a group."""

import secrets
from contextlib import AbstractAsyncContextManager

import everloop
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.ports.memory import MEMORY, Fact, FactSource, MemoryChange, MemoryDocument
from everloop.testing import Say, ScriptedModel

BODY = "# Memory\n\n## Ann\n\n- Ann lives in Rome\n- Ann likes tea\n"
ROME = Fact("aaaa1111", "Ann lives in Rome", FactSource(person="web:ann", at=1.0), "Ann", 5)
TEA = Fact("bbbb1111", "Ann likes tea", FactSource(person="web:bob", at=1.0), "Ann")
ROLES = {"web:ann": Role.USER, "web:bob": Role.GUEST, "web:ada": Role.ADMIN}


def opened(house) -> AbstractAsyncContextManager[everloop.Agent]:
    return house(ScriptedModel(lambda shown: Say("ok")), roles=ROLES)


async def remember(agent: everloop.Agent, owner: str) -> None:
    change = MemoryChange("", "consolidated", facts=(ROME, TEA), documents=(MemoryDocument(MEMORY, BODY),))
    assert await agent.store.change_memory(owner, change)


async def test_a_person_reads_and_changes_their_own_and_nobody_elses(house):
    async with opened(house) as agent:
        await remember(agent, "web:ann")
        ann, bob = agent.user("web:ann"), agent.user("web:bob")

        async def say(user: everloop.User, text: str) -> str:
            return (await user.ask(text)).content

        assert "2 facts are remembered; version 1." in await say(ann, "/memory")
        assert await say(ann, "/memory show") == BODY
        assert await say(bob, "/memory") == await say(bob, "/memory show") == "Nothing is remembered here yet."
        assert await say(bob, "/memory search Rome") == "Nothing like that is remembered."
        assert await say(bob, "/memory forget aaaa1111") == "There is nothing such to forget."
        assert (await say(ann, "/memory search rome")).startswith("aaaa1111  Ann lives in Rome (1970-01-01")
        assert "consolidated" in await say(ann, "/memory log")
        asked = await say(ann, "/memory forget Rome")
        assert asked.endswith("Nothing is forgotten yet. To forget it: /memory forget aaaa1111")
        assert len(await agent.store.facts("web:ann")) == 2
        assert "1 fact is forgotten" in await say(ann, "/memory forget aaaa1111")
        assert [fact.id for fact in await agent.store.facts("web:ann")] == ["bbbb1111"]
        assert await say(ann, "/memory restore 1") == "It is so already."  # there, too, it is forgotten
        await say(ann, "/memory forget bbbb1111")
        await say(ann, "/memory restore 1")
        assert "tea" not in await say(ann, "/memory show")
        assert await say(ann, "/memory restore 99") == "There is no version 99 of this memory."
        assert "/memory restore VERSION" in await say(ann, "/memory help")


async def test_in_a_group_all_look_administrators_change_and_who_said_it_has_it_forgotten(house):
    async with opened(house) as agent:
        group = "chat:web/room"
        await remember(agent, group)

        async def say(author: str, text: str) -> str:
            at = Address("web", "room")
            letter = Said(said(text), author, str(at), principal=group)
            return (await agent.answer(Inbound(at, secrets.token_hex(4), letter, group))).content

        assert "lives in Rome" in await say("web:bob", "/memory show")
        assert "an administrator" in await say("web:ann", "/memory restore 1")
        assert "an administrator" in await say("web:bob", "/memory forget aaaa1111")  # which Ann has said
        assert "1 fact is forgotten" in await say("web:ann", "/memory forget aaaa1111")
        assert "1 fact is forgotten" in await say("web:ada", "/memory forget bbbb1111")
        assert await agent.store.facts(group) == []


async def test_a_conversation_keeps_what_it_was_told_but_for_what_is_forgotten(house):
    """What stands before it stays the same to the byte; to forget is another matter."""
    model = ScriptedModel(lambda shown: Say("ok"))
    async with house(model, roles=ROLES) as agent:
        await remember(agent, "web:ann")
        ann = agent.user("web:ann")
        await ann.ask("hi")
        await agent.memory.edit("web:ann", "web:ann", MEMORY, BODY + "- Ann is a pilot\n", BODY)
        await ann.ask("go on")
        await ann.ask("/memory forget aaaa1111")
        await ann.ask("and now?")
        await ann.ask("/new")
        await ann.ask("hi")
    told = [("Rome" in each.system, "tea" in each.system, "pilot" in each.system) for each in model.prompts]
    assert told == [(True, True, False), (True, True, False), (False, True, True), (False, True, True)]
    assert model.prompts[0].system == model.prompts[1].system
