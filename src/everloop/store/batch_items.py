"""What is written, as it travels to the function of batch_function.py, and what comes back of it."""

import secrets
import struct
from collections.abc import Collection, Sequence

import msgspec
from msgspec import Struct

from ..core.mail import Decision, Inbound
from ..core.overrun import Account
from ..ports.audit import AuditLine
from ..ports.budgets import Reservation
from ..ports.rows import Commit, Lease, OutboxState, Spent, Untaint
from .batch_function import CALL, NAME, VALUES
from .budgets import accounts_of, in_order, most_of
from .codec import bodies_of, body_of, fold_in, kind_of
from .wire import Statement, text_at, texts

# The columns of CALL before the texts: none is null, so that each is where it always is, after its length.
_NUMBERS = struct.Struct("!7x 4x? 4xq 4xq 4xq 4x? 4x? 4xq")
_NO_TEXTS = b"\xff" * 8
_BOOLEAN = {None: None, False: b"\0", True: b"\1"}

_encode = msgspec.json.Encoder().encode

_Texts = Collection[str]
Question = tuple[
    int | None, _Texts, _Texts, _Texts, _Texts, bytes | None, bytes | None, bool | None, bytes | None, _Texts
]  # arguments of the function


class Item(Struct):
    """One write as it travels, and the sessions and threads that have to be locked for it."""

    json: bytes  # an object, but for its number in the batch
    commits: bool = False
    sessions: tuple[tuple[str, str], ...] = ()  # keys and owners
    threads: tuple[str, ...] = ()
    accounts: tuple[Account | None, ...] = ()  # in which something is reserved or charged; None: nobody knows which
    reserve: Reservation | None = None


class WriteResult(Struct):
    """What became of one write."""

    ok: bool
    number: int
    head: int
    epoch: int
    started: bool
    released: bool
    came: int
    thread: str | None = None
    answer: str | None = None


class _Receive(Struct, tag_field="kind", tag="receive"):
    key: str
    channel: str
    event: str
    owner: str
    letter: str
    body: str
    thread: str | None = None  # when the letter names it


class _Settle(Struct, tag_field="kind", tag="settle"):
    id: int
    state: str
    unsure: int
    receipt: str
    again_in: float


class _Queued(Struct):
    key: str
    channel: str
    chat: str
    body: str


class _UsageItem(Struct):
    seq: int
    model: str
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: float | None
    reasoning: int
    requester: str
    own: int


def _usage_item(spent: Spent) -> _UsageItem:
    used = spent.usage
    return _UsageItem(
        seq=spent.seq,
        model=spent.model,
        input=used.input,
        output=used.output,
        cache_read=used.cache_read,
        cache_write=used.cache_write,
        cost=spent.cost,
        reasoning=used.reasoning,
        requester=spent.requester,
        own=int(spent.own),
    )


class _TimerItem(Struct):
    key: str
    session: str
    due: float
    body: str


class _Posted(Struct):
    key: str
    channel: str
    event: str
    owner: str
    letter: str
    body: str
    thread: str | None  # when it is named
    spawned_by: str
    title: str


class _Tainted(Struct):
    key: str
    place: str
    began: float
    ended: float | None
    outside: int
    command: str


class _Charged(Struct):
    key: str
    tokens: int | None
    money: int | None


class _BoundItem(Struct):
    owner: str
    per: str
    scope: str
    most_tokens: int
    most_money: int


class _Wanted(_BoundItem):
    tokens: int = 0
    money: int = 0


class _Reserve(Struct):
    key: str
    owner: str
    tokens: int
    money: int
    bounds: list[_BoundItem]
    accounts: str


class _Commit(Struct, omit_defaults=True):
    thread: str
    head: int
    epoch: int
    entries: list[str]
    starts: list[str]
    absorbed: Sequence[int]
    release: bool
    state: str
    seen: int
    fold: int
    ended_mail: list[int] | None = None
    ended_seq: list[int] | None = None
    outbox: list[_Queued] | None = None
    usage: list[_UsageItem] | None = None
    timers: list[_TimerItem] | None = None
    posts: list[_Posted] | None = None
    taints: list[_Tainted] | None = None
    untaints: Sequence[Untaint] | None = None
    charges: "list[_Charged] | None" = None
    reserve: "_Reserve | None" = None
    audit: Sequence[AuditLine] | None = None
    audit_starts: Sequence[AuditLine] | None = None
    works_for: str | None = None
    key: str | None = None  # and the following: a letter that comes in with it
    channel: str | None = None
    event: str | None = None
    owner: str | None = None
    letter: str | None = None
    body: str | None = None


def receive(inbound: Inbound) -> Item:
    thread = _named(inbound)
    item = _Receive(*_post(inbound), thread)
    if thread:
        return Item(_encode(item), threads=(thread,))
    return Item(_encode(item), sessions=((item.key, item.owner),))


def settle(row: int, state: OutboxState, receipt: str, again_in: float) -> Item:
    unsure = state == "unsure"
    return Item(_encode(_Settle(row, "pending" if unsure else state, int(unsure), receipt, again_in)))


def commit(lease: Lease, commit: Commit) -> Item:
    item = _Commit(
        lease.thread,
        lease.head,
        lease.epoch,
        bodies_of(commit.entries),
        bodies_of(commit.starts),
        commit.absorbed,
        commit.release,
        commit.state,
        commit.seen,
        fold_in(commit.entries),
    )
    if commit.ended:
        item.ended_mail, item.ended_seq = [mail for mail, _ in commit.ended], [seq for _, seq in commit.ended]
    if commit.outbox:
        item.outbox = [_Queued(o.key, o.address.channel, str(o.address), body_of(o)) for o in commit.outbox]
    if commit.usage:
        item.usage = [_usage_item(each) for each in commit.usage]
    if commit.timers:
        item.timers = [_TimerItem(t.key, str(t.inbound.address), t.due, body_of(t.inbound)) for t in commit.timers]
    if commit.taints:
        item.taints = [_Tainted(t.key, t.place, t.began, t.ended, int(t.outside), t.command) for t in commit.taints]
    if commit.untaints:
        item.untaints = commit.untaints
    if commit.charges:
        charges = {each.key: each for each in reversed(commit.charges)}  # what is charged twice counts as it was first
        item.charges = [_Charged(each.key, each.tokens, each.money) for each in charges.values()]
    if commit.reserve:
        item.reserve = _reserved(commit.reserve)
    if commit.audit or commit.audit_starts:
        item.audit, item.audit_starts = commit.audit, commit.audit_starts
    if commit.works_for is not None:
        item.works_for = commit.works_for
    if commit.letter:
        item.key, item.channel, item.event, item.owner, item.letter, item.body = _post(commit.letter)
    accounts = _accounts_of(commit) if commit.charges or commit.reserve else ()
    if not commit.posts:
        return Item(_encode(item), commits=True, threads=(lease.thread,), accounts=accounts, reserve=commit.reserve)
    item.posts = [
        _Posted(*_post(each.inbound), each.thread or _named(each.inbound), each.spawned_by, each.title)
        for each in commit.posts
    ]
    sessions = tuple((post.key, post.owner) for post in item.posts if post.thread is None)
    threads = tuple(post.thread for post in item.posts if post.thread is not None)
    return Item(
        _encode(item),
        commits=True,
        sessions=sessions,
        threads=(lease.thread, *threads),
        accounts=accounts,
        reserve=commit.reserve,
    )


def statement(holder: str, lease_seconds: float) -> Statement[Question, WriteResult]:
    """What is asked over and over, each time about the `values_of` some items."""
    same = holder, lease_seconds
    packed = holder.encode(), struct.pack("!d", lease_seconds)
    return Statement(NAME, CALL, VALUES, same, packed, _pack, _plain, _read_row, WriteResult)


def values_of(items: Sequence[Item], patience: int | None = None) -> Question:
    """With how many milliseconds to wait for each lock, if it is not as long as the session says."""
    sessions: dict[str, str] = {}
    threads: set[str] = set()
    posts: list[bytes] = []
    commits: list[bytes] = []
    accounts: set[Account | None] = set()
    reserved: list[Reservation] = []
    for number, item in enumerate(items):
        if item.sessions:
            sessions.update(item.sessions)
        threads.update(item.threads)
        if item.accounts:
            accounts.update(item.accounts)
            if item.reserve:
                reserved.append(item.reserve)
        (commits if item.commits else posts).append(b'{"n":%d,' % number + item.json[1:])
    fresh = [secrets.token_hex(8) for _ in sessions] if sessions else ()
    named = sessions, sessions.values(), fresh, threads
    several = (None in accounts or len(accounts) > 1) if accounts else None
    wanted = _wanted(reserved) if reserved else None
    calls = [each.key for each in reserved]
    return (patience, *named, _array_of(posts), _array_of(commits), several, wanted, calls)


def _pack(question: Question) -> Sequence[bytes | None]:
    patience, keys, owners, fresh, threads, posts, commits, several, wanted, calls = question
    waits = None if patience is None else b"%d" % patience
    names = texts(keys), texts(owners), texts(fresh), texts(threads)
    return (waits, *names, posts, commits, _BOOLEAN[several], wanted, texts(calls))


def _plain(question: Question) -> Sequence[object]:
    patience, *names, posts, commits, several, wanted, calls = question
    waits = None if patience is None else str(patience)
    return (
        waits,
        *(list(texts) or None for texts in names),
        *(json and json.decode() for json in (posts, commits)),
        several,
        wanted and wanted.decode(),
        list(calls) or None,
    )


def _read_row(data: bytes, at: int) -> WriteResult:
    ok, number, head, epoch, started, released, came = _NUMBERS.unpack_from(data, at)
    at += _NUMBERS.size
    if data.startswith(_NO_TEXTS, at):  # as for each commit
        return WriteResult(ok, number, head, epoch, started, released, came)
    thread, at = text_at(data, at)
    answer, _ = text_at(data, at)
    return WriteResult(ok, number, head, epoch, started, released, came, thread, answer)


def _reserved(reservation: Reservation) -> _Reserve:
    bounds = [
        _BoundItem(bound.account.owner, bound.account.per, bound.account.scope, *most_of(bound.limit))
        for bound in in_order(reservation)
    ]
    r = reservation
    return _Reserve(r.key, r.owner, r.tokens, r.money, bounds, accounts_of(r))


def _accounts_of(commit: Commit) -> tuple[Account | None, ...]:
    """Two that lock several must do so in one order; whoever needs but one waits in no ring."""
    known = [each.reserved for each in commit.charges]
    reservations = [*known, commit.reserve] if commit.reserve else known
    return tuple({account: None for each in reservations for account in _held_by(each)})


def _wanted(reservations: Sequence[Reservation]) -> bytes:
    """How much is reserved of each account by all of them."""
    found: dict[Account, _Wanted] = {}
    for each in reservations:
        for bound in each.bounds:
            a, (tokens, money) = bound.account, most_of(bound.limit)
            wanted = found.setdefault(a, _Wanted(a.owner, a.per, a.scope, tokens, money))
            wanted.tokens += each.tokens
            wanted.money += each.money
            if tokens < wanted.most_tokens or money < wanted.most_money:  # as it was set meanwhile
                wanted.most_tokens, wanted.most_money = min(tokens, wanted.most_tokens), min(money, wanted.most_money)
    return _encode([*found.values()])


def _held_by(reservation: Reservation | None) -> Sequence[Account | None]:
    return [bound.account for bound in reservation.bounds] if reservation else [None]


def _named(inbound: Inbound) -> str | None:
    """The thread that a letter names itself."""
    return inbound.letter.thread if isinstance(inbound.letter, Decision) else None


def _array_of(objects: list[bytes]) -> bytes | None:
    return b"[" + b",".join(objects) + b"]" if objects else None


def _post(inbound: Inbound) -> tuple[str, str, str, str, str, str]:
    letter = inbound.letter
    return (
        *(str(inbound.address), inbound.address.channel, inbound.event, inbound.owner),
        *(kind_of(letter), body_of(letter)),
    )
