"""Who did what, when, by which authority: the lines of the audit, each bound to the one before it by a hash.

A line names people by their ids alone, and things by their numbers or keys: what was said, what somebody is called and
what is secret never stands in one, so that a line can stay when all else of a person is gone.

Whoever lets somebody in (a request, a chat, a terminal) says for whom it acts (`acting_as`); what is done then is noted
where it is done, in the same transaction.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ..core.log import MANY

# What is noted, and what it says of its subject. docs/audit.md lists them.
DEEDS: Mapping[str, str] = {
    "person.added": "somebody was introduced",
    "person.paired": "the code of somebody who waited was used",
    "person.role": "somebody was given another role",
    "person.blocked": "somebody is heard nowhere any more",
    "person.unblocked": "somebody is heard again",
    "person.renamed": "somebody is called otherwise",
    "person.exported": "all that is somebody's was written to files",
    "person.erased": "all that is somebody's was removed",
    "account.linked": "an account became somebody's",
    "account.unlinked": "an account is nobody's any more",
    "budget.changed": "what somebody may spend was changed",
    "approval.allowed": "a call was allowed by a person",
    "approval.denied": "a call was denied by a person",
    "approval.expired": "nobody answered, and the call was not run",
    "approval.granted": "a call was allowed by what had been allowed ahead",
    "grant.made": "calls were allowed ahead",
    "grant.revoked": "what had been allowed ahead was taken back",
    "file.accepted": "a change of a file that stands in prompts was accepted",
    "file.refused": "a change of a file that stands in prompts was refused",
    "persona.files": "files of a persona were about to be written",
    "skill.installed": "a skill was installed for somebody",
    "skill.removed": "a skill that somebody had installed was removed",
    "tool.started": "a tool that has effects was about to run",
    "import.done": "what another agent or service has kept was taken over",
    "settings.changed": "settings were about to be written",
    "settings.failed": "they could not be, and are as they were",
    "channel.added": "a channel was about to be set up, or to be given other settings",
    "channel.removed": "a channel was about to be taken out of the settings",
    "mcp.added": "an MCP server was about to be set up, or to be set up otherwise",
    "mcp.removed": "an MCP server was about to be taken out of the settings",
    "mcp.allowed": "tools of an MCP server were allowed, as they are described now",
    "mcp.denied": "tools of an MCP server are not allowed any more",
    "mcp.tested": "a tool of an MCP server was called by a person, to try it",
    "mcp.login": "somebody has logged in to an MCP server",
    "mcp.logout": "a login to an MCP server was forgotten",
    "secret.kept": "a key, login or credential was put into the vault",
    "secret.forgotten": "a key, login or credential was removed from the vault",
    "token.made": "a token for the gateway was made",
    "token.revoked": "a token for the gateway was revoked",
    "password.set": "a password for the page was set",
    "password.removed": "a password for the page was removed",
    "link.made": "a link was made that lets somebody into the page once",
    "login.ok": "a browser was let in",
    "login.failed": "a password was wrong",
    "login.ended": "browsers were logged out",
    "conversation.deleted": "a conversation was deleted for good",
    "conversation.exported": "a conversation was written to a file",
    "outbox.retried": "an answer that was given up is sent again",
    "outbox.dropped": "an answer is never sent",
    "backup.created": "all that is kept was copied into a backup",
    "backup.downloaded": "a backup was handed out by the gateway",
    "backup.restored": "this is restored from a backup",
    "backup.adopted": "what was restored became the one that goes on",
    "house.exported": "all that is kept was written to files",
}

LONGEST, LONGEST_DETAIL = 200, 4000  # characters
ITEMS = 50  # of a list that a detail holds


class Authority(Struct, frozen=True):
    """For whom something is done, and what lets them: `admin by token 3f2a…`, `owner at the terminal`."""

    person: str
    by: str


THE_PROGRAM = Authority("", "the program itself")
AT_THE_TERMINAL = Authority("owner", "owner at the terminal")

acting: ContextVar[Authority] = ContextVar("acting", default=THE_PROGRAM)


@contextmanager
def acting_as(person: str, by: str) -> Iterator[None]:
    """What is done in this block is done for that person."""
    token = acting.set(Authority(person, by))
    try:
        yield
    finally:
        acting.reset(token)


def speaking_for(person: str, role: str = "") -> Authority:
    """What lets this person do what they do now: what they came in by, or else only that somebody speaks for them."""
    now = acting.get()
    return now if now.person == person else Authority(person, f"{role}, says {now.by}" if role else now.by)


class AuditLine(Struct, frozen=True, gc=False):
    """A line that is to be written; `detail` is JSON."""

    deed: str
    subject: str
    detail: str
    actor: str
    authority: str


def line_of(deed: str, subject: str = "", detail: Mapping[str, Any] = {}, by: Authority | None = None) -> AuditLine:
    """What has been done to whom or what, `by` whoever acts now unless it is said otherwise.

    `deed` is one of DEEDS, `subject` and what `detail` holds are ids, keys and numbers.
    """
    if deed not in DEEDS:
        raise ValueError(f"{deed} is not one of the DEEDS")
    by = by or acting.get()
    whole = msgspec.json.encode({_plain(key): _short(value) for key, value in detail.items()}, order="sorted").decode()
    told = whole if len(whole) <= LONGEST_DETAIL else '{"long":true}'
    return AuditLine(deed, _plain(subject), told if detail else "", _plain(by.person), _plain(by.by))


class AuditRow(Struct, frozen=True):
    """A line as it is kept: `at` in milliseconds since 1970, `previous` the hash of the line before."""

    id: int
    at: int
    actor: str
    authority: str
    deed: str
    subject: str
    detail: str
    previous: str
    hash: str


def hash_of(*fields: object) -> str:
    """Of all of a line's fields and the hash before it, each with its length, so that none can pass for another."""
    return hashlib.sha256(b"".join(_measured(str(field).encode()) for field in fields)).hexdigest()


class Broken(Struct, frozen=True):
    """The first line that is not as it was written: its number, and how that shows."""

    line: int
    why: str


def first_broken(rows: Sequence[AuditRow], before: AuditRow | None) -> Broken | None:
    """Whether these lines follow one another, the first the one `before` it."""
    for row in rows:
        expected = before.id + 1 if before else 1
        if row.id != expected:
            return Broken(expected, "it is missing")
        if row.previous != (before.hash if before else ""):
            return Broken(row.id, "it does not follow the line before it: one of the two was changed or replaced")
        fields = (row.actor, row.authority, row.deed, row.subject, row.detail, row.previous)
        if row.hash != hash_of(row.id, row.at, *fields):
            return Broken(row.id, "it was changed after it was written")
        before = row
    return None


class AuditCheck(Struct, frozen=True):
    """How many lines are sound, the number and hash of the last of them, and the first that is not."""

    lines: int
    head: str
    broken: Broken | None = None


def _measured(field: bytes) -> bytes:
    return b"%d:%s" % (len(field), field)


def _plain(text: str) -> str:
    """What either database can hold, and a line can show."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:LONGEST]


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return _plain(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_short(each) for each in sorted(value)[:ITEMS]]
    return value


class Audit(Protocol):
    """Lines are only ever added. What the store does itself it notes in the transaction that does it. Raises
    StoreError."""

    async def note(self, line: AuditLine) -> None:
        """Write a line of something that is done outside of the store."""

    async def audit(
        self, *, since: float = 0, who: str = "", what: str = "", before: int = MANY, limit: int = 100
    ) -> list[AuditRow]:
        """The latest lines first: since a time, of what somebody did or was done to them, of one deed or of all that
        begin so (`person`), and before a number."""

    async def audit_head(self) -> AuditRow | None:
        """The last line."""

    async def check_audit(self, against: str = "") -> AuditCheck:
        """Whether every line is as it was written; also the one whose number and hash were noted elsewhere
        (`against`, as `head` says it). Reads all of them."""
