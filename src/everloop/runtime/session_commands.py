"""`/session …`: where a chat is, what else there is, and going there.

Whoever is not the owner sees the conversations of this very session, and no others.
"""

from datetime import datetime
from typing import Literal

from ..core.conversation import Conversation, Deed, Rename, SearchHit
from ..core.errors import MailRefused
from ..core.mail import Inbound, Said
from ..core.people import Role
from ..core.ports import Archive
from ..core.rows import ThreadRow
from ..readings.commands import COMMANDS, split, words_described
from ..readings.visible import checked_name
from .sessions import Sessions

LISTED = 15
FOUND = 8
NOTHING = "nothing has been said here yet"

Outcome = tuple[Deed | None, str]


def sentence(error: MailRefused) -> str:
    text = str(error)
    return f"{text[0].upper()}{text[1:]}."


class SessionCommands:
    def __init__(self, store: Archive, sessions: Sessions) -> None:
        self._store = store
        self._sessions = sessions

    async def work_out(
        self, words: str, inbound: Inbound, letter: Said, role: Role = Role.OWNER
    ) -> tuple[Deed | Literal["none"], str]:
        """What the words after /session come to: something to do, or nothing, and what is said about it."""
        word, rest = split(words)
        try:
            deed, reply = await self._understand(word, rest, inbound, letter)
        except MailRefused as error:
            deed, reply = None, sentence(error)
        return deed or "none", reply or ("" if deed else help_for(role))

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


def help_for(role: Role) -> str:
    return "\n".join(words_described(COMMANDS["/session"], "where you are", role))


def _row(each: Conversation) -> str:
    return f"{each.id[:8]} {clock(each.active)}, {each.messages} messages"


def _mark(each: Conversation, here: ThreadRow | None, inbound: Inbound) -> str:
    if here and each.id == here.id:
        return " (here)"
    return f" ({each.session})" if each.session != str(inbound.address) else ""


def _told(found: SearchHit) -> str:
    return f"{found.thread[:8]} entry {found.seq}, {clock(found.at)}, {found.who}: {found.text}"


def clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"
