"""Deleting a conversation for good through the API and in a chat: confirmed, by whom it belongs to, and gone."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.errors import TurnFailed
from everloop.ports.events import ConversationDeleted, PermissionAsked
from everloop.ports.jobs import DELETE
from tests.gateway.api.test_api import OWNER, READER, USER, Client, get, only_session, opened

GUEST = {"Authorization": "Bearer guest"}
WORD = "canaryword"


async def delete(client: Client, id: str, confirm: str = "", who: dict[str, str] = OWNER) -> tuple[int, Any]:
    answer = await client.delete(f"/api/sessions/{id}", params={"confirm": confirm} if confirm else {}, headers=who)
    return answer.status, await answer.json()


async def cleared(agent: Any) -> None:
    """Here, or by the scheduler, which may have been quicker to claim it."""
    while [row for row in await agent.store.jobs("owner") if row.job.kind == DELETE]:
        await agent.deletions.finish()
        await asyncio.sleep(0.01)


def is_in(home: Path) -> bool:
    return any(WORD.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


async def test_one_that_is_confirmed_is_gone_and_everyone_hears_of_it(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask(f"where is {WORD}", "page:one")
        await agent.ask("something else", "page:two")
        _, told = await get(client, "/api/search?q=canaryword")
        id = told["found"][0]["thread"]
        with agent.events() as feed:
            status, deleted = await delete(client, id, id)
            event = await anext(aiter(feed))
        again = await delete(client, id, id)
        found = [await get(client, path) for path in (f"/api/sessions/{id}", f"/api/sessions/{id}/entries")]
        _, searched = await get(client, "/api/search?q=canaryword")
        await cleared(agent)
        assert not is_in(tmp_path)
        assert (await agent.ask("and on", "page:one")).content == "you said: and on"
    assert (status, deleted) == (200, {"id": id, "threads": [id], "entries": 3, "jobs": 0, "branches": []})
    assert event == ConversationDeleted(id, 0, "page:one", "owner")
    assert [again[0], *(status for status, _ in found), searched["found"]] == [404, 404, 404, []]


async def test_what_is_not_confirmed_by_its_whole_id_stays(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        id = await only_session(client)
        tried = [(id, ""), (id, "yes"), (id, "0" * 16), (id, id[:8]), (id[:8], id[:8]), (id[:8], id)]
        answers = [await delete(client, *each) for each in tried]
        assert await only_session(client) == id
    statuses = [(status, told["error"]["code"]) for status, told in answers]
    assert statuses == [(400, "bad_request")] * 2 + [(409, "not_confirmed")] * 4


async def test_nobody_deletes_anothers_or_without_the_scopes(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask("hello", "page:one")
        id = await only_session(client)
        answers = [await delete(client, id, id, who) for who in (READER, USER, GUEST, {})]
        nothing = await delete(client, "0" * 16, "0" * 16, USER)
        assert await only_session(client) == id
    assert [status for status, _ in answers] == [403, 404, 403, 401]
    assert answers[1] == nothing  # as if it were not there


async def test_one_that_waits_for_permission_goes_with_its_question_and_its_client_is_told(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        letter = Said(said("send it"), "owner", "page:one")
        with agent.events() as feed:
            await agent.tell(Inbound(Address.parse("page:one"), "m1", letter))
            await anext(event async for event in feed if isinstance(event, PermissionAsked))
        id = await only_session(client)
        status, _ = await delete(client, id, id)
        assert (status, await agent.approvals()) == (200, [])
        receipt = await agent.tell(Inbound(Address.parse("page:one"), "m1", letter))  # a client that tries again
        assert (receipt.fresh, receipt.reply) == (False, "This conversation was deleted.")
        _, told = await get(client, "/api/sessions")
    assert told == {"sessions": []}


async def test_in_a_chat_it_is_said_twice(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.ask(f"hello {WORD}", "api:default")
        id = await only_session(client)
        asked = await agent.ask("/session delete")
        short = await agent.ask("/session delete 12")
        wrong = await agent.ask("/session delete 00000000")
        assert await only_session(client) == id
        done = await agent.ask(f"/session delete {id[:8]}", event="e1")
        again = await agent.ask(f"/session delete {id[:8]}", event="e1")
        _, told = await get(client, "/api/sessions?archived=true")
        await cleared(agent)
        assert not is_in(tmp_path)
    assert asked.content.startswith(f"“hello {WORD}” (2 messages) would be deleted for good")
    assert asked.content.endswith(f"say: /session delete {id[:8]}")
    assert short.content == "To delete a conversation, say at least 8 characters of its id."
    assert wrong.content == "No conversation has an id that begins with '00000000'."
    assert (done.content, again.content) == ("This conversation is deleted for good.",) * 2
    assert told == {"sessions": []}


async def test_a_guest_deletes_their_own_and_not_what_is_said_in_anothers_place(tmp_path: Path):
    async with opened(tmp_path) as (agent, _):
        anna = agent.user("web:anna")
        await anna.ask("hello")
        [mine] = await agent.store.conversations("web:anna")
        assert (await anna.ask(f"/session delete {mine.id}")).content == "This conversation is deleted for good."
        assert await agent.store.conversations("web:anna", archived=True) == []


async def test_in_a_group_it_is_for_the_owner_and_admins_and_in_a_place_of_two_for_its_user(tmp_path: Path):
    roles = {"slack:user": Role.USER, "slack:admin": Role.ADMIN}
    refused = "Deleting this conversation is for its owner, or an admin."

    async def deleting(agent: Any, place: str, author: str) -> str:
        address = Address.parse(place)
        await agent.answer(Inbound(address, f"{place}{author}1", Said(said("hello"), author, place)))
        letter = Said(said("/session delete"), author, place)
        receipt = await agent.tell(Inbound(address, f"{place}{author}2", letter))
        return refused if receipt.reply == refused else str(receipt.reply)[:22]

    async with opened(tmp_path, roles=roles) as (agent, _):
        told = {
            (place, author): await deleting(agent, f"platform:slack/{place}", f"slack:{author}")
            for place in ("general", "@user")
            for author in ("bob", "user", "admin")
        }
    assert {who for who, answer in told.items() if answer == refused} == {
        ("general", "bob"),
        ("general", "user"),
        ("@user", "bob"),
    }
    assert {answer[:9] for answer in told.values() if answer != refused} == {"“hello” ("}


async def test_whoever_waits_for_its_answer_is_told_that_it_was_deleted(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        with agent.events() as feed:
            asking = asyncio.ensure_future(agent.ask("send it", "page:one", attended=True))
            await anext(event async for event in feed if isinstance(event, PermissionAsked))
        id = await only_session(client)
        assert (await delete(client, id, id))[0] == 200
        with pytest.raises(TurnFailed, match="this conversation was deleted"):
            await asking


async def test_a_message_that_was_edited_goes_with_the_conversation_that_stands_for_it(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        for text in (f"first {WORD}", "second"):
            await agent.ask(text, "page:one")
        id = await only_session(client)
        body = {"at": 0, "session": "page:one", "replaces": True}
        moved = await (await client.post(f"/api/sessions/{id}/fork", json=body, headers=OWNER)).json()
        await agent.ask("first, in other words", "page:one")
        status, deleted = await delete(client, moved["thread"], moved["thread"])
        _, told = await get(client, "/api/sessions?archived=true")
        await cleared(agent)
        assert not is_in(tmp_path)
    assert (status, set(deleted["threads"]), told) == (200, {id, moved["thread"]}, {"sessions": []})
