"""Who pays for a turn: who has asked for it, which its letter says, whosever words are answered."""

from pathlib import Path
from typing import Any

import pytest

from everloop.core.decide import WAIT, admit
from everloop.core.log import Compacted, CompactionAsked, UserSaid
from everloop.core.mail import Address, CompactRequest, Inbound, Mail, Notice, Said
from everloop.core.message import said
from everloop.core.thread import Thread
from everloop.errors import TurnFailed
from everloop.ports.budgets import DOLLAR
from tests.runtime.test_budgets import ADMIN, ANNA, BERT, ROOM, costly, dollars, opened

JOBS = "api:jobs"


async def paid(agent: Any, *people: str) -> dict[str, float]:
    return {
        row.account.owner: row.money / DOLLAR for row in await agent.store.spending() if row.account.owner in people
    }


async def requesters(agent: Any) -> list[str]:
    return [row[0] for row in await agent.store._ask("SELECT requester FROM usage ORDER BY at, seq")]


@pytest.mark.parametrize(("by", "expected"), [(ADMIN, {ANNA: 1, ADMIN: 1}), (ANNA, {ANNA: 2})])
async def test_who_wants_somebodys_words_answered_again_pays_for_that(tmp_path: Path, by: str, expected: Any):
    async with opened(tmp_path, costly()) as agent:
        for who in (ANNA, ADMIN):
            await agent.budgets.assign(who, "month", dollars(5))
        await agent.ask("hello", ROOM, author=ANNA)
        await agent.ask("/session regenerate", ROOM, author=by)
        await agent.finish(ROOM)
        row = await agent.store.session(ROOM)
        (asked,) = [each for each in await agent.store.read(row.id) if isinstance(each, UserSaid)]
        told = await paid(agent, ANNA, ADMIN), await requesters(agent)
    assert told == (expected, [ANNA, by])
    assert (asked.author, asked.payer) == (ANNA, "" if by == ANNA else by)  # the words stay hers


async def test_who_has_no_room_left_gets_nobodys_words_answered_again(tmp_path: Path):
    model = costly()
    async with opened(tmp_path, model) as agent:
        await agent.budgets.assign(ADMIN, "month", dollars(0))
        await agent.ask("hello", ROOM, author=ANNA)
        with pytest.raises(TurnFailed) as failure:
            await agent.ask("/session regenerate", ROOM, author=ADMIN)
        assert len(model.prompts) == 1
        await agent.ask("hello", ROOM, author=ANNA)
    assert (str(failure.value), len(model.prompts)) == ("What you may spend here is used up.", 2)  # she reads it, too


async def test_who_wants_a_job_done_again_pays_for_that_and_not_whose_job_it_is(tmp_path: Path):
    async with opened(tmp_path, costly()) as agent:
        for who in (ADMIN, BERT):
            await agent.budgets.assign(who, "month", dollars(5))
        await agent.tell(Inbound(Address.parse(JOBS), "job:1", Notice("look", "cron", BERT, JOBS, unattended=True)))
        await agent.finish(JOBS)
        await agent.ask("/session regenerate", JOBS, author=ADMIN)
        await agent.finish(JOBS)
        assert await paid(agent, ADMIN, BERT) == {ADMIN: 1, BERT: 1}


def test_what_its_author_adds_to_a_turn_that_another_pays_for_waits_for_a_turn_of_its_own():
    said_by_her = Said(said("and this?"), ANNA, ROOM)
    paid_by_admin = Thread.of(UserSaid(said("hello"), ANNA, ROOM, payer=ADMIN))
    her_own = Thread.of(UserSaid(said("hello"), ANNA, ROOM))
    assert admit(paid_by_admin, Mail(1, said_by_her)) == WAIT
    assert admit(her_own, Mail(1, said_by_her)).taken  # the control


def test_who_pays_is_known_after_a_summary_too():
    thread = Thread.of(UserSaid(said("hello"), ANNA, ROOM, payer=ADMIN))
    again = Thread.of(Compacted("what was said", standing=thread.standing))
    plain = Thread.of(Compacted("what was said", standing=Thread.of(UserSaid(said("hello"), ANNA, ROOM)).standing))
    assert (again.turn.requester, again.turn.payer, plain.turn.payer) == (ANNA, ADMIN, ANNA)


def test_a_summary_is_paid_by_who_wants_it_or_whose_bot_brings_them():
    thread = Thread.of(UserSaid(said("hello"), ANNA, ROOM))
    wants = [admit(thread, Mail(1, CompactRequest(BERT, payer))).entries for payer in ("", ADMIN)]
    assert wants == [(CompactionAsked(BERT),), (CompactionAsked(BERT, ADMIN),)]
    assert [Thread.of(*entries).wants_room for entries in wants] == [BERT, ADMIN]
