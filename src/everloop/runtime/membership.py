"""Who belongs to the house: people are introduced, paired, given roles, linked and blocked, whoever asks for it."""

import secrets
from hashlib import sha256

from ..core.people import OWNER, ROLES_GIVEN, Role, is_chat
from ..errors import MailRefused
from ..ports import Directory
from ..ports.directory import Person, StandingCode

LINK_SECONDS = 600.0
LONGEST_NAME = 100


class Membership:
    """Every method that changes something raises MailRefused, with a sentence that says why not."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    async def find(self, who: str) -> Person:
        """By id, account, or a name that one person alone has. Raises MailRefused."""
        people = await self._directory.people()
        found = [each for each in people if who == each.id or who in each.accounts]
        found = found or [each for each in people if each.name.casefold() == who.casefold()]
        if len(found) > 1:
            raise MailRefused(
                f"{len(found)} people are called {who!r}: say which by id ({', '.join(e.id for e in found)})"
            )
        if not found:
            raise MailRefused(f"there is nobody {who!r}; see: everloop users list")
        return found[0]

    async def everybody(self) -> list[Person]:
        return await self._directory.people()

    async def waiting(self) -> list[StandingCode]:
        """Strangers who have been told a code."""
        return await self._directory.codes("pair")

    async def add(self, name: str, role: Role, by: Role, account: str = "") -> Person:
        check_given(role, by)
        check_name(name)
        if account:
            check_account(account)
        await self._check_free(name, account)
        if account and await self._directory.known_by(account):
            raise MailRefused(f"{account} is somebody already; see: everloop users show {account}")
        id = account or f"p{secrets.token_hex(4)}"
        person = Person(id, name.strip(), role, accounts=(account,) if account else ())
        if not await self._directory.introduce(person):
            raise MailRefused(f"{id} is somebody already; see: everloop users show {id}")
        return person

    async def pair(self, code: str, role: Role, by: Role, name: str = "") -> Person:
        """Let in who was told this code."""
        check_given(role, by)
        check_name(name or "x")
        if name:  # before the code is used up
            await self._check_free(name)
        asked = await self._directory.use_code("pair", code)
        if asked is None:
            raise MailRefused(f"nobody waits with the code {code!r}; see: everloop users pair")
        return await self.add(name or await self._named_after(asked.account), role, by, asked.account)

    async def change(
        self, who: str, by: Role, *, name: str | None = None, role: Role | None = None, blocked: bool | None = None
    ) -> Person:
        """What is not said stays. Who is blocked keeps what they have, and is heard nowhere while it lasts."""
        person = await self._below(who, by)
        if person.id == OWNER and (role is not None or blocked is not None):
            raise MailRefused("the owner stays the owner")
        if role is not None:
            check_given(role, by)
        if name is not None:
            check_name(name)
            await self._check_free(name, person.id)
        await self._directory.change_person(person.id, name=name and name.strip(), role=role, blocked=blocked)
        return person

    async def link(self, who: str, account: str, by: Role) -> Person:
        check_account(account)
        _check_owner(by)
        person = _standing(await self.find(who))
        if why := await self._directory.link(account, person.id):
            raise MailRefused(why)
        return person

    async def unlink(self, account: str, by: Role, of: str = "") -> None:
        person = await self._directory.known_by(account)
        if person is None or of not in ("", person.id):
            raise MailRefused(f"{account} belongs to nobody; see: everloop users list")
        await self._below(person.id, by)
        await self._directory.unlink(account)

    async def invitable(self, who: str, by: Role) -> Person:
        """Somebody who may be given a link to the page."""
        _check_owner(by)
        person = await self.find(who)
        if person.role < Role.USER or person.blocked:
            raise MailRefused(f"{person.name} is {'blocked' if person.blocked else 'a guest'}: the page is for users")
        return person

    async def link_code(self, person: str, session: str, event: str) -> str:
        """What someone says from another account, to be known there too."""
        return (await self._directory.ask_code("link", person, session, event, LINK_SECONDS)).code

    async def _named_after(self, account: str) -> str:
        """What somebody is called of whom nobody has said it: not as another is, who would then not come in by their
        name. Accounts may be longer than names are."""
        name, digest = account.partition(":")[2].strip(), sha256(account.encode()).hexdigest()[:8]
        everybody = await self._directory.people()
        taken = {known for each in everybody for known in _names_of(each)}
        wanted = (name[:LONGEST_NAME], account[:LONGEST_NAME], f"{account[: LONGEST_NAME - 9]} {digest}")
        return next((each for each in wanted if each.casefold() not in taken), wanted[-1])

    async def _check_free(self, name: str, of: str = "") -> None:
        """Nobody is called as another is, nor as another's id or account: both would then be taken for one another, and
        neither come in by their name. `of` is who is to be called so. Raises MailRefused."""
        wanted = name.strip().casefold()
        for each in await self._directory.people():
            if each.id != of and wanted in _names_of(each):
                raise MailRefused(f"{each.id} is called {name.strip()!r} already; choose another name")

    async def _below(self, who: str, by: Role) -> Person:
        """The owner changes everybody; anybody else those of a lower role."""
        person = _standing(await self.find(who))
        if by is not Role.OWNER and person.role >= by:
            raise MailRefused(f"{person.name} is {_a(person.role)}: only the owner changes that")
        return person


def _standing(person: Person) -> Person:
    if person.erasing:
        raise MailRefused(f"{person.name} is being erased")
    return person


def _names_of(person: Person) -> set[str]:
    """All that they can be found by, as it is compared."""
    return {each.casefold() for each in (person.name, person.id, *person.accounts)}


def _check_owner(by: Role) -> None:
    """Who could give themselves the account of another, or a browser of theirs, would read all that they have."""
    if by is not Role.OWNER:
        raise MailRefused("only the owner gives somebody an account or a way into the page")


def check_given(role: Role, by: Role) -> None:
    if role is Role.OWNER:
        raise MailRefused("there is one owner; the highest role that can be given is admin")
    if by is not Role.OWNER and role >= by:
        raise MailRefused(f"only the owner makes somebody {_a(role)}")


def check_name(name: str) -> None:
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise MailRefused(f"a name is 1 to {LONGEST_NAME} characters that can be shown")


def check_account(account: str) -> None:
    platform, _, name = account.partition(":")
    if not platform or not name or not account.isprintable() or is_chat(account):  # who is named so is a group
        raise MailRefused(f"an account looks like telegram:12345, not {account!r}")


def role_given(text: str) -> Role:
    """Raises MailRefused."""
    if text.lower() not in ROLES_GIVEN:
        raise MailRefused(f"a role is {', '.join(ROLES_GIVEN)}, not {text!r}")
    return ROLES_GIVEN[text.lower()]


def _a(role: Role) -> str:
    return f"{'an' if role in (Role.ADMIN, Role.OWNER) else 'a'} {role.name.lower()}"
