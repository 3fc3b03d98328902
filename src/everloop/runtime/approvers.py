"""Who may answer a question that its requester may not, and where each of them is reached."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from ..core.decide import APPROVER
from ..core.people import OWNER, Role
from ..ports import Archive, Arrivals, Directory, Polled
from ..ports.channel import Traits, traits_of
from ..readings.keys import direct_place

LATELY = 20  # conversations of theirs that are looked at
LATEST = 300.0  # seconds since a bot has fetched something: after that, nobody is reached by it


class ReachedApprover(Struct, frozen=True):
    """`session` is a conversation of theirs alone on a channel; "": they find the question in the page, and with
    `everloop approvals`."""

    person: str
    role: Role
    session: str = ""


class ApproverStore(Directory, Archive, Arrivals, Polled, Protocol):
    """Who is known, where they have spoken, and where bots come."""


class Approvers:
    def __init__(self, store: ApproverStore, traits: Mapping[str, Traits], given: Mapping[str, Role] = {}) -> None:
        """`given` are those of whom a program has said who they are."""
        self._store = store
        self._traits = traits
        self._given = given

    async def reached(self) -> list[ReachedApprover]:
        """The owner first."""
        people = {each.id: each for each in await self._store.people()}
        known = {each.id: Role.BLOCKED if each.blocked else each.role for each in people.values()}
        roles = {**known, **self._given, OWNER: Role.OWNER}
        able = sorted((person for person, role in roles.items() if role >= APPROVER), key=lambda each: each != OWNER)
        accounts = {id: (id, *people[id].accounts) if id in people else (id,) for id in able}
        return [ReachedApprover(id, roles[id], await self._session_of(id, accounts[id])) for id in able]

    async def name_of(self, person: str) -> str:
        """What whoever is asked calls them."""
        known = await self._store.person(person)
        return known.name if known else person

    async def _session_of(self, person: str, accounts: Sequence[str]) -> str:
        """Where they have last spoken on a channel, alone: a group's conversations are not theirs. Not through a door
        that sends nothing by itself, or at whose addresses others speak in conversations of theirs; and not where an
        account speaks that was theirs and is no longer."""
        for each in await self._store.conversations(person, limit=LATELY):
            traits = traits_of(each.session, self._traits)
            known = each.session.partition(":")[0] in self._traits
            if not known or traits.private or traits.self_delivering or traits.places:
                continue
            spoken = await self._store.account_at(each.session) or ":".join(each.session.split(":")[:2])
            if spoken in accounts:
                return each.session
        return await self._place_of(accounts)

    async def _place_of(self, accounts: Sequence[str]) -> str:
        """Where a bot of the owner's speaks with one of them alone, and fetches what is said there."""
        doors = [name for name, traits in self._traits.items() if traits.polled]
        for key in [str(direct_place(door, each)) for door in doors for each in accounts if ":" in each]:
            row = await self._store.session(key)
            if row is not None and row.owner == OWNER and await self._store.is_polled(key, LATEST):
                return key
        return ""


def _way_to(session: str) -> str:
    """A channel; of what a bot passes on, the platform, as people know that one."""
    channel, _, place = session.partition(":")
    return place.partition("/")[0] if traits_of(channel).polled else channel


def who_was_asked(reached: Sequence[ReachedApprover]) -> str:
    """For whoever has to wait: by role and where, and nothing that leads to somebody."""
    counted = Counter((each.role is Role.OWNER, _way_to(each.session)) for each in reached)
    told = [
        f"{'the owner' if owner else 'an administrator' if count == 1 else f'{count} administrators'} "
        f"{f'on {channel}' if channel else 'in the page'}"
        for (owner, channel), count in counted.items()
    ]
    return f"That is not yours to allow. I have asked {' and '.join(told)}, and go on when one of them has answered."
