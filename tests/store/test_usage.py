"""What was used, by person, channel, job, tool and day, on both databases."""

from tests.store.conftest import Home

from everloop.core.log import ModelSaid, UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.prompt import Usage
from everloop.core.tool import ToolCall
from everloop.ports import Store
from everloop.ports.conversation import Branch
from everloop.ports.rows import Commit, Lease, Spent, UsedRow

USED = Usage(input=100, output=10, cache_read=40)


async def turn(store: Store, session: str, owner: str, *tools: str, cost: float | None = 0.5) -> None:
    """An answer that calls these tools."""
    letter = Said(said("hi"), owner, session)
    receipt = await store.receive(Inbound(Address.parse(session), f"e-{session}-{len(tools)}", letter, owner))
    calls = tuple(ToolCall(str(n), name, "{}") for n, name in enumerate(tools))
    entries = (UserSaid(said("hi"), owner, session, receipt.id), ModelSaid("", calls, USED, model="m", cost=cost))
    head = (await store.open(receipt.thread)).row.head
    spent = Spent(head + 2, "m", USED, cost)
    commit = Commit(
        entries, absorbed=(receipt.id,), ended=[(receipt.id, head + 2)], usage=(spent,), release=True, state="resting"
    )
    await store.commit(Lease(receipt.thread, 0, head), commit)


def short(rows: list[UsedRow]) -> list[tuple[str, int, int, float, int]]:
    return [(row.name, row.calls, row.usage.input, row.cost, row.unpriced) for row in rows]


async def test_it_is_told_by_person_channel_job_and_tool(store: Store):
    await turn(store, "web:1", "anna", "exec", "exec", "grep")
    await turn(store, "web:1:trip", "anna", "exec")
    await turn(store, "cli:direct", "owner", cost=None)
    assert short(await store.used("person", 0)) == [("anna", 2, 200, 1.0, 0), ("owner", 1, 100, 0.0, 1)]
    assert short(await store.used("channel", 0)) == [("cli", 1, 100, 0.0, 1), ("web", 2, 200, 1.0, 0)]
    assert short(await store.used("job", 0)) == [("", 3, 300, 1.0, 1)]
    assert short(await store.used("model", 0)) == [("m", 3, 300, 1.0, 1)]
    assert short(await store.used("day", 0)) == [("", 3, 300, 1.0, 1)]
    # By tool: its calls, and what the answers cost that made them.
    assert short(await store.used("tool", 0)) == [("exec", 3, 200, 1.0, 0), ("grep", 1, 100, 0.5, 0)]


async def test_each_call_is_listed_once_with_whom_it_was_made_for(store: Store):
    await turn(store, "web:1", "anna")
    await store.add_spent("web:room", "", Spent(0, "m", USED, 0.25, requester="anna"), "")
    await store.add_spent("web:room", "", Spent(0, "m", USED), "titles")
    first = await store.calls_made(0, 2)
    rows = [*first, *await store.calls_made(first[-1][0], 2)]
    assert [who for _, who, *_ in rows] == ["anna", "anna", "web:room"]
    assert {len(row) for row in rows} == {2 + len(store.exported()["usage"])}


async def test_a_branch_tells_what_was_used_up_to_where_it_goes_on(store: Store):
    await turn(store, "web:1", "anna")
    row = await store.session("web:1")
    assert row is not None
    letter = Said(said("/session fork"), "anna", "web:1")
    await store.add_spent("anna", row.id, Spent(0, "m", USED, 0.5), "titles")  # of no entry
    inherited = []
    for id, created in ("copy", 0.0), ("from before the title", 1.0):
        branch = Branch(id, first=3, parent=row.id, at=2, created=created)
        await store.command(Inbound(Address.parse("web:1"), id, letter, "anna"), branch, "")
        inherited.append([(each.purpose, each.calls, each.usage.input) for each in await store.inherited(id)])
    assert inherited == [[("", 1, 100), ("titles", 1, 100)], [("", 1, 100)]]
    assert await store.inherited(row.id) == []


async def test_of_one_person_nothing_is_anothers(store: Store):
    await turn(store, "web:1", "anna", "exec")
    await turn(store, "web:2", "ben", "grep")
    assert short(await store.used("tool", 0, who="anna")) == [("exec", 1, 100, 0.5, 0)]
    assert short(await store.used("person", 0, who="ben")) == [("ben", 1, 100, 0.5, 0)]
    assert [row.calls for row in await store.spent(who="ben")] == [1]
    for by in ("day", "person", "model", "channel", "job", "tool"):
        assert await store.used(by, 0, who="nobody") == []


async def test_only_what_is_late_enough_is_told_and_what_was_deleted_has_no_channel(home: Home, store: Store):
    await turn(store, "web:1", "anna", "exec")
    await turn(store, "web:2", "anna", "grep")
    await home.write("UPDATE usage SET at = 86400.0 * 10 WHERE id = 1")
    assert (await store.used("day", 0))[0].day == 10
    assert [row.name for row in await store.used("tool", 86_400.0 * 11)] == ["grep"]
    assert (await store.used("day", 0, offset=-3600))[0].day == 9
    row = await store.session("web:2")
    assert row is not None
    await store.give_back(Lease(row.id, row.epoch, row.head))
    assert await store.delete("anna", [row.id])
    assert sorted(row.name for row in await store.used("channel", 0)) == ["", "web"]


async def test_what_was_paid_with_a_key_of_ones_own_is_told_apart(store: Store):
    await turn(store, "web:1", "anna", "exec")
    letter = Said(said("hi"), "anna", "web:1")
    receipt = await store.receive(Inbound(Address.parse("web:1"), "own", letter, "anna"))
    head = (await store.open(receipt.thread)).row.head
    calls = (ToolCall("1", "exec", "{}"),)
    entries = (
        UserSaid(said("hi"), "anna", "web:1", receipt.id),
        ModelSaid("", calls, USED, model="m", cost=2.0, own=True),
    )
    spent = Spent(head + 2, "m", USED, 2.0, own=True)
    commit = Commit(
        entries, absorbed=(receipt.id,), ended=[(receipt.id, head + 2)], usage=(spent,), release=True, state="resting"
    )
    await store.commit(Lease(receipt.thread, 0, head), commit)
    rows = [(await store.used(by, 0))[0] for by in ("person", "tool")]
    rows += [(await store.spent())[0]]  # type: ignore[list-item]
    assert [(row.calls, row.cost, row.unpriced, row.own_calls, row.own_cost) for row in rows] == [
        (2, 0.5, 0, 1, 2.0)
    ] * 3


async def test_whose_secrets_there_are_is_told_and_the_houses_are_nobodys(store: Store):
    for owner, name in (
        ("owner", "key:openai"),
        ("gateway", "links"),
        ("anna", "own-key:openai"),
        ("owner", "credential:x"),
    ):
        await store.keep_secret(owner, name, b"box")
    found = [(owner, name) for owner, name, at in await store.secrets_of_people() if at > 0]
    assert found == [("anna", "own-key:openai"), ("owner", "credential:x")]
