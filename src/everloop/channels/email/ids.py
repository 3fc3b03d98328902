"""Message-IDs: those that others give their mails, and ours, which say of which conversation and of which answer."""

import re
from collections.abc import Sequence
from hashlib import sha256

_ID = re.compile(r"<([!-;=?-~]{1,240})>")  # ASCII without spaces and brackets
_THREAD = re.compile(r"[0-9a-f]{20}")
_NO_THREAD = "-"
MOST = 20  # that are named again in an answer


def ids_in(header: str) -> list[str]:
    """Those that a header names, in its order."""
    return _ID.findall(header)


def thread_of(root: str) -> str:
    """The conversation that began with this Message-ID."""
    return sha256(root.encode()).hexdigest()[:20]


def our_id(key: str, thread: str, domain: str) -> str:
    """The same at each attempt, so that a mailbox may drop what it has."""
    return f"ev.{thread if _THREAD.fullmatch(thread) else _NO_THREAD}.{sha256(key.encode()).hexdigest()[:32]}@{domain}"


def thread_in(id: str, domain: str) -> str | None:
    """The conversation of one of our own mails ("" for one that has no thread), or None for another's."""
    found = re.fullmatch(rf"ev\.([0-9a-f]{{20}}|-)\.[0-9a-f]{{32}}@{re.escape(domain)}", id)
    return None if found is None else found[1].removeprefix(_NO_THREAD)


def conversation(named: Sequence[str], own: str, domain: str) -> str:
    """Where a mail belongs: where our mail does that it answers, else to the first mail of its thread, which may be
    itself."""
    ours = [thread for id in named if (thread := thread_in(id, domain)) is not None]
    return ours[-1] if ours else thread_of((*named, own)[0])


def shortened(ids: Sequence[str]) -> list[str]:
    """As many as an answer names again: the first, by which the thread is known, and the last ones."""
    return [*ids] if len(ids) <= MOST else [ids[0], *ids[-MOST + 1 :]]
