"""While which calls could write in a folder: both stores keep it with the commits of the calls."""

import pytest
from msgspec import structs
from tests.store.conftest import Home
from tests.store.test_store import CHAT, START, append, heard, letter, received, stop

from everloop.core.log import CallReturned, ModelSaid
from everloop.core.mail import Address, Outbound
from everloop.core.tool import ToolCall
from everloop.ports import Store
from everloop.ports.permission import FileState, Held, PromptFile
from everloop.ports.rows import Commit, Lease, Taint, Untaint

HERE = "/home/ann/workspace"
FIRST, SECOND = Taint("t:2:0", HERE, 100.0), Taint("t:2:1", HERE, 200.0)
CALLED = ModelSaid("", (ToolCall("a", "exec", "{}"),))


@pytest.fixture
async def lease(store: Store) -> Lease:
    receipt = await received(store)
    lease = Lease(receipt.thread)
    await append(store, lease, heard(receipt.id), CALLED, absorbed=[receipt.id])
    return lease


async def test_a_taint_begins_with_the_start_of_its_call_and_ends_with_its_result(store: Store, lease: Lease):
    await append(store, lease, starts=[START], taints=[FIRST])
    assert await store.taints(HERE) == [FIRST]
    await append(store, lease, CallReturned(2, 0, "ok"), untaints=[Untaint(FIRST.key, 101.0)])
    assert await store.taints(HERE) == []
    assert await store.taints(HERE, 100.5) == [Taint("t:2:0", HERE, 100.0, 101.0)]


async def test_a_taint_does_not_begin_when_a_stop_keeps_its_call_from_starting(store: Store, lease: Lease):
    await store.receive(stop("s1"))
    committed = await append(store, lease, starts=[START], taints=[FIRST])
    assert (committed.started, await store.taints(HERE)) == (False, [])


async def test_a_taint_without_a_start_begins_in_any_case(store: Store, lease: Lease):
    await append(store, lease, taints=[FIRST])
    assert await store.taints(HERE) == [FIRST]


async def test_one_taint_ends_and_the_next_begins_in_one_commit(store: Store, lease: Lease):
    await append(store, lease, starts=[START], taints=[FIRST])
    over = Untaint(FIRST.key, 150.0)
    await append(store, lease, CallReturned(2, 0, "ok"), starts=[START], taints=[SECOND], untaints=[over])
    assert await store.taints(HERE) == [SECOND]


async def test_a_call_that_is_run_again_is_tainted_from_its_first_attempt_on(store: Store, lease: Lease):
    await append(store, lease, starts=[START], taints=[FIRST])
    again = Taint(FIRST.key, HERE, 300.0)
    await append(store, lease, starts=[START], taints=[again])
    assert await store.taints(HERE) == [FIRST]


async def test_a_moment_lies_in_a_taint_give_or_take_the_coarse_clock_of_files(store: Store, lease: Lease):
    await append(store, lease, taints=[FIRST, SECOND])
    await append(store, lease, untaints=[Untaint(FIRST.key, 101.0)])
    found = {at: [taint.key for taint in await store.taints(HERE, at)] for at in (99.9, 99.99, 101.01, 150.0, 999.0)}
    assert found == {99.9: [], 99.99: [FIRST.key], 101.01: [FIRST.key], 150.0: [], 999.0: [SECOND.key]}


async def test_a_taint_goes_on_with_a_command_in_the_background_until_that_is_over(store: Store, lease: Lease):
    await append(store, lease, taints=[FIRST])
    await append(store, lease, untaints=[Untaint(FIRST.key, 101.0, "b2-0")])
    assert await store.taints(HERE) == [Taint("t:2:0", HERE, 100.0, None, command="b2-0")]
    await store.end_taint(FIRST.key, 140.0)
    assert (await store.taints(HERE), len(await store.taints(HERE, 139.0))) == ([], 1)


async def test_nothing_is_left_of_a_taint_in_which_no_stranger_had_a_say(store: Store, lease: Lease, home: Home):
    mine = Taint("t:2:0", HERE, 100.0, outside=False)
    await append(store, lease, taints=[mine])
    assert (await store.taints(HERE), await store.taints(HERE, 100.0)) == ([mine], [])
    await append(store, lease, untaints=[Untaint(mine.key, 101.0)])
    assert await home.rows("SELECT * FROM taints") == []


async def test_nothing_is_left_of_a_command_in_the_background_in_which_no_stranger_had_a_say(
    store: Store, lease: Lease, home: Home
):
    mine = Taint("t:2:0", HERE, 100.0, outside=False)
    await append(store, lease, taints=[mine])
    await append(store, lease, untaints=[Untaint(mine.key, 101.0, "b2-0")])
    assert [taint.command for taint in await store.taints(HERE)] == ["b2-0"]
    await store.end_taint(mine.key, 140.0)
    assert await home.rows("SELECT * FROM taints") == []


async def test_one_folder_knows_nothing_of_the_taints_of_another(store: Store, lease: Lease):
    await append(store, lease, taints=[FIRST])
    assert (await store.taints("/elsewhere"), await store.taints("/elsewhere", 100.0)) == ([], [])


async def test_taints_do_not_grow_without_end_and_cover_no_less_than_before(store: Store, lease: Lease):
    many = [Taint(f"t:2:{n}", HERE, 1000.0 * n) for n in range(12)]
    await append(store, lease, taints=[*many, Taint("open", HERE, 99_000.0)])
    await append(store, lease, untaints=[Untaint(taint.key, taint.began + 10) for taint in many])
    await store.merge_taints(HERE, 20)
    assert await store.taints(HERE, 1500.0) == []
    await store.merge_taints(HERE, 10)
    assert all([await store.taints(HERE, taint.began + moment) for taint in many for moment in (0.0, 5.0, 10.0)])
    left = {taint.key for taint in many for taint in await store.taints(HERE, taint.began)}
    assert (len(left), [taint.key for taint in await store.taints(HERE)]) == (5, ["open"])


async def test_an_untaint_of_what_never_began_is_nothing(store: Store, lease: Lease, home: Home):
    await store.commit(lease, Commit(untaints=[Untaint("t:9:9", 1.0)]))
    assert await home.rows("SELECT * FROM taints") == []


async def test_a_call_that_turns_out_to_have_worked_with_strangers_words_has_tainted_its_folder(
    store: Store, lease: Lease
):
    """Also when what comes next in the same commit is kept from starting."""
    unseen = Taint(FIRST.key, HERE, 100.0, outside=False)
    await append(store, lease, starts=[START], taints=[unseen])
    await store.receive(stop("s1"))
    found_out = Taint(FIRST.key, HERE, 100.5, 101.0)
    committed = await append(store, lease, CallReturned(2, 0, "ok"), starts=[START], taints=[found_out, SECOND])
    assert (committed.started, await store.taints(HERE)) == (False, [])
    assert await store.taints(HERE, 100.2) == [Taint(FIRST.key, HERE, 100.0, 101.0)]


async def test_one_that_goes_on_in_the_background_is_known_as_that(store: Store, lease: Lease):
    found_out = Taint(FIRST.key, HERE, 100.0, command="b2-0")
    await append(store, lease, taints=[found_out])
    assert await store.taints(HERE, 500.0) == [found_out]


ROW = PromptFile("USER.md", FileState(b"\x00\xff mine"))
HELD = Held("abc", "USER.md", ROW.accepted, FileState(b"theirs"), "t1", str(CHAT))


async def test_what_was_accepted_is_kept_to_the_byte(store: Store):
    assert await store.keep_watched(HERE, [ROW, PromptFile("SOUL.md", FileState())])
    assert await store.watched(HERE) == [PromptFile("SOUL.md", FileState()), ROW]
    assert await store.watched("/elsewhere") == []


async def test_who_comes_second_with_a_version_changes_nothing(home: Home, store: Store):
    other = await home.connect()
    await store.keep_watched(HERE, [ROW])
    second = structs.replace(ROW, version=2, accepted=FileState(b"second"))
    late = structs.replace(ROW, version=2, accepted=FileState(b"late"))
    done = [await store.keep_watched(HERE, [each]) for each in (second, late, ROW)]
    assert (done, await other.watched(HERE)) == ([True, False, False], [second])


async def test_nothing_is_accepted_freely_while_a_taint_lasts(store: Store, lease: Lease):
    await store.keep_watched(HERE, [ROW])
    await append(store, lease, taints=[FIRST])
    second = structs.replace(ROW, version=2)
    assert not await store.keep_watched(HERE, [second], free=True)
    await append(store, lease, untaints=[Untaint(FIRST.key, 101.0)])
    assert await store.keep_watched(HERE, [second], free=True)


async def test_a_question_is_sent_with_the_row_and_once(store: Store, lease: Lease):
    held = structs.replace(ROW, version=2, held=structs.replace(HELD, thread=lease.thread))
    question = Outbound("held:abc", CHAT, "May it stay?", kind="question", approval="abc")
    await store.keep_watched(HERE, [ROW])
    done = [await store.keep_watched(HERE, [held], question=question) for _ in range(2)]
    assert (done, await store.unshown(str(CHAT))) == ([True, False], [question])


async def test_only_the_owners_conversations_are_told_of_the_owners_files(store: Store, lease: Lease):
    bobs = await store.receive(letter("b1", address=Address("test", "bob"), owner="bob"))
    assert (await store.session_of(lease.thread), await store.session_of(bobs.thread)) == (str(CHAT), "")
