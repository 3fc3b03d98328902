"""`/session …`: where a chat is, what else there is, and going there.

Whoever is not the owner sees the conversations of this very session, and no others.
"""

from datetime import datetime
from typing import Literal, Protocol

from ..core.mail import Inbound, Said
from ..core.people import Role
from ..errors import MailRefused
from ..ports import Archive, Arrivals, Log
from ..ports.conversation import Conversation, Deed, Rename, SearchHit
from ..ports.rows import ThreadRow
from ..readings.commands import COMMANDS, split, words_described
from ..readings.family import family
from ..readings.keys import is_of_two
from ..readings.last_words import LOOKED, last_words
from ..readings.visible import checked_name
from .deletions import Deletions
from .sessions import BUSY, Sessions
from .typed_command import CommandEffect, TypedCommand

LISTED = 15
FOUND = 8
TREE = 1000  # conversations that are looked through for branches
NOTHING = "nothing has been said here yet"
CONFIRMED = 8  # characters of an id, by which it is said that this one is meant

Outcome = tuple[Deed | None, str]


def sentence(error: MailRefused) -> str:
    text = str(error)
    return f"{text[0].upper()}{text[1:]}."


class SessionCommandStore(Archive, Arrivals, Log, Protocol):
    """Conversations, what was said in them, and the letters that have come."""


class SessionCommands:
    def __init__(self, store: SessionCommandStore, sessions: Sessions, deletions: Deletions) -> None:
        self._store = store
        self._sessions = sessions
        self._deletions = deletions

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        if typed.name == "/undo":
            deed, reply = await self._undo(typed.inbound, typed.letter)
        elif typed.name == "/session":
            deed, reply = await self._answered(typed.rest, typed.inbound, typed.letter, typed.role)
        else:
            deed, reply = await self._go(typed.name, typed.rest, typed.inbound, typed.letter, typed.role)
        return CommandEffect(typed.inbound, deed, reply, BUSY)

    async def _answered(
        self, words: str, inbound: Inbound, letter: Said, role: Role = Role.OWNER
    ) -> tuple[Deed | Literal["none"], str]:
        """What the words after /session come to: something to do, or nothing, and what is said about it. What is to be
        deleted is deleted with that, for the command cannot be kept in a conversation that goes."""
        word, rest = split(words)
        try:
            if word == "delete":
                return "none", await self._delete(rest, inbound, letter, role)
            deed, reply = await self._understand(word, rest, inbound, letter)
        except MailRefused as error:
            deed, reply = None, sentence(error)
        return deed or "none", reply or ("" if deed else help_for(role))

    async def _go(
        self, name: str, rest: str, inbound: Inbound, letter: Said, role: Role
    ) -> tuple[Deed | Literal["none"], str]:
        """/resume, /fork and /tree: the same as words of /session, by names that one finds."""
        if name == "/fork":
            return await self._answered(f"fork {rest}", inbound, letter, role)
        if rest:
            return await self._answered(f"resume {rest}", inbound, letter, role)
        try:
            told = await (self._list if name == "/resume" else self._tree)(inbound, letter)
        except MailRefused as error:
            return "none", sentence(error)
        return "none", f"{told}\nGo on with another by {name} ID."

    async def _undo(self, inbound: Inbound, letter: Said) -> tuple[Deed | Literal["none"], str]:
        row = await self._store.session(str(inbound.address))
        if row is None:
            return "none", "Nothing has been said here yet."
        try:
            return await self._sessions.undo(row, letter.author), ""
        except MailRefused as error:
            return "none", sentence(error)

    async def _tree(self, inbound: Inbound, letter: Said) -> str:
        """This conversation's first ancestor, and all that has branched from it."""
        within = self._sessions.scope(letter.author, inbound)
        here = await self._here(inbound)
        known = await self._store.conversations(inbound.owner, session=within, archived=True, limit=TREE)
        return "\n".join([await self._branch(deep, each, here) for deep, each in family(here, known)])

    async def _branch(self, deep: int, each: Conversation, here: Conversation) -> str:
        """Copies have one title: where each was cut off, and what was said last in it, tell them apart."""
        last = last_words(await self._store.read(each.id, after=max(0, each.head - LOOKED)))
        where = f"{' (here)' if each.id == here.id else ''}{_cut(each)}"
        return f"{'  ' * deep}{_row(each)}: {each.title}{where}{f', last: “{last}”' if last else ''}"

    async def _understand(self, word: str, rest: str, inbound: Inbound, letter: Said) -> Outcome:
        match word, bool(rest):
            case "", _:
                return None, await self._where(inbound)
            case "list", False:
                return None, await self._list(inbound, letter)
            case "search", True:
                return None, await self._search(rest, inbound, letter)
            case "resume", True:
                return await self._resume(rest, inbound, letter)
            case "rename", True:
                title = checked_name(rest, "a title")
                return Rename((await self._here(inbound)).id, title), f"This conversation is called “{title}” now."
            case "fork", _:
                return await self._fork(rest, inbound, letter)
            case "snapshot", True:
                mark = self._sessions.snapshot(await self._here(inbound), rest)
                return mark, f"Come back to this place with /session restore {rest}"
            case "restore", True:
                return await self._restore(rest, inbound, letter)
            case "edit", True:
                row = await self._row(inbound)
                return await self._sessions.say_instead(row, letter, rest), ""
            case "regenerate", False:
                row = await self._row(inbound)
                return await self._sessions.say_instead(row, letter), ""
        return None, ""  # what there is

    async def _where(self, inbound: Inbound) -> str:
        here = await self._sessions.current(str(inbound.address), inbound.owner)
        if here is None:
            return f"This is the session {inbound.address}; {NOTHING}."
        lines = [f"“{here.title}”", f"{_row(here)}, session {here.session}, {here.head} entries"]
        if here.parent:
            lines.append(f"It branched from {here.parent[:8]} after its entry {here.parent_seq}.")
        return "\n".join([*lines, "/session help tells what you can do."])

    async def _list(self, inbound: Inbound, letter: Said) -> str:
        within = self._sessions.scope(letter.author, inbound)
        found = await self._store.conversations(inbound.owner, session=within, limit=LISTED + 1)
        here = await self._store.session(str(inbound.address))
        lines = [f"{_row(each)}: {each.title}{_mark(each, here, inbound)}" for each in found[:LISTED]]
        if len(found) > LISTED:
            lines.append("… and more; /session search WORDS finds them")
        return "\n".join(lines) or "There is no conversation yet."

    async def _search(self, words: str, inbound: Inbound, letter: Said) -> str:
        within = self._sessions.scope(letter.author, inbound)
        found = await self._store.search(inbound.owner, words, session=within, limit=FOUND)
        return "\n".join(map(_told, found)) or f"Nobody has said {words!r}."

    async def _resume(self, id: str, inbound: Inbound, letter: Said) -> Outcome:
        wanted = await self._find(id, inbound, letter)
        deed = await self._sessions.go_to(wanted, str(inbound.address), letter.author)
        told = [f"{each.who}: {each.text}" for each in await self._sessions.said_last(wanted)]
        return deed, "\n\n".join([f"Here we go on with “{wanted.title}” ({wanted.messages} messages).", *told])

    async def _fork(self, at: str, inbound: Inbound, letter: Said) -> Outcome:
        if at and not (at.isascii() and at.isdigit() and len(at) < 16):
            raise MailRefused(f"an entry is named by its number, not {at!r}")
        here = await self._here(inbound)
        branch = await self._sessions.fork(here, str(inbound.address), letter.author, int(at) if at else None)
        return branch, f"This is a copy now ({branch.id[:8]}); go back with /session resume {here.id[:8]}"

    async def _restore(self, name: str, inbound: Inbound, letter: Said) -> Outcome:
        within = self._sessions.scope(letter.author, inbound)
        session = str(inbound.address)
        branch = await self._sessions.restore(name, inbound.owner, session, letter.author, within)
        return branch, f"Here we go on from {name!r} (conversation {branch.id[:8]})."

    async def _delete(self, id: str, inbound: Inbound, letter: Said, role: Role) -> str:
        _check_may_delete(inbound, letter, role)
        if not id:
            here = await self._here(inbound)
            return (
                f"“{here.title}” ({here.messages} messages) would be deleted for good: what was said, its files, and "
                "earlier versions of it. There is no way back. To delete it, say: "
                f"/session delete {here.id[:CONFIRMED]}"
            )
        if len(id) < CONFIRMED:
            raise MailRefused(f"to delete a conversation, say at least {CONFIRMED} characters of its id")
        if await self._store.came(inbound.address.channel, inbound.event):
            return ""  # it was answered then, and is not done again
        found = await self._find(id, inbound, letter)
        await self._deletions.delete(inbound.owner, found)
        return "This conversation is deleted for good."  # without its title, which is of what was said in it

    async def _find(self, id: str, inbound: Inbound, letter: Said) -> Conversation:
        return await self._sessions.find(id, inbound.owner, self._sessions.scope(letter.author, inbound))

    async def _here(self, inbound: Inbound) -> Conversation:
        here = await self._sessions.current(str(inbound.address), inbound.owner)
        if here is None:
            raise MailRefused(NOTHING)
        return here

    async def _row(self, inbound: Inbound) -> ThreadRow:
        row = await self._store.session(str(inbound.address))
        if row is None:
            raise MailRefused(NOTHING)
        return row


def _check_may_delete(inbound: Inbound, letter: Said, role: Role) -> None:
    """Everyone their own. In a group nobody has the words of the others deleted but those who answer for it; and what a
    guest has said in a place that is somebody else's is for that person to delete. Raises MailRefused."""
    if letter.author == inbound.owner or role >= Role.ADMIN:
        return
    if role < Role.USER or not is_of_two(inbound.address):
        raise MailRefused("deleting this conversation is for its owner, or an admin")


def help_for(role: Role) -> str:
    return "\n".join(words_described(COMMANDS["/session"], "where you are", role))


def _row(each: Conversation) -> str:
    return f"{each.id[:8]} {clock(each.active)}, {each.messages} messages"


def _mark(each: Conversation, here: ThreadRow | None, inbound: Inbound) -> str:
    if here and each.id == here.id:
        return " (here)"
    return f" ({each.session})" if each.session != str(inbound.address) else ""


def _cut(each: Conversation) -> str:
    return f" (from entry {each.parent_seq})" if each.parent else ""


def _told(found: SearchHit) -> str:
    return f"{found.thread[:8]} entry {found.seq}, {clock(found.at)}, {found.who}: {found.text}"


def clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"
