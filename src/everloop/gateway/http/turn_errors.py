"""What a client is told when its turn has failed after something was done: a status that no client takes for "try
again", where to look, and what has run.

openai-python, openai-node, litellm and the AI SDK ask again after 408, 409, 429 and 5xx, some also after 425. The first
two obey `x-should-retry`; the others do not know it.
"""

from collections.abc import Sequence
from typing import Protocol

from aiohttp import web

from ...core.log import MANY, Entry, TakenBack, Undoing, UserSaid
from ...core.mail import Inbound
from ...errors import StoreError, TurnFailed
from ...ports import Arrivals, Log
from ...ports.rows import Came
from ...readings.calls import calls_in
from .errors import Refused, refused_at_http_door

LOOKS_BACK = 2000  # entries; what a longer turn has done is not listed
DONE_ALREADY = 424  # Failed Dependency: the nearest to it that nobody takes for an invitation
_LISTED = 10


class TurnStore(Log, Arrivals, Protocol):
    """What is kept of turns, and of the letters that made them."""


class ShowsAnswers(Protocol):
    def note_shown(self, key: str) -> None: ...


def note_told(agent: ShowsAnswers, request: web.Request, error: Exception) -> None:
    """Why there is no answer is told now, if anybody is there; else it stays for whoever fetches it."""
    if isinstance(error, TurnFailed) and error.key and is_there(request):
        agent.note_shown(error.key)


def is_there(request: web.Request) -> bool:
    """Whether whoever sent it still listens."""
    transport = request.transport
    return transport is not None and not transport.is_closing()


def is_retried(status: int) -> bool:
    """Whether some client asks again by itself after this."""
    return status in (408, 409, 425, 429) or status >= 500


async def explain_turn(store: TurnStore, inbound: Inbound, error: Exception) -> Refused:
    """Why there is no answer to a letter that may have been taken."""
    refused = refused_at_http_door(error)
    try:
        came = await store.newest(inbound.address.channel, inbound.event, inbound.event)
        ran = await what_ran(store, came) if came else ()
    except StoreError:
        came, ran = None, None
    if ran == ():
        return refused
    told = {"session": str(inbound.address), "thread": came.thread if came else "", "ran": list(ran or ())}
    status = DONE_ALREADY if is_retried(refused.status) else refused.status
    why = str(refused).replace("Try again later.", "").rstrip(" .")  # not this request
    text = f"{why}. {_described(ran, told['session'], told['thread'])}"
    return Refused(status, refused.code, text, param=refused.param, told=told)


def _described(ran: tuple[str, ...] | None, session: object, thread: object) -> str:
    if ran is None:
        done = "What has been done by then cannot be looked up now."
    else:
        more = f" and {len(ran) - _LISTED} more" if len(ran) > _LISTED else ""
        done = f"This had been run by then and stays done: {', '.join(ran[:_LISTED])}{more}."
    where = f"session {session}" + (f", conversation {thread}" if thread else "")
    return f"{done} Look into {where} before you ask again."


async def what_ran(store: TurnStore, came: Came) -> tuple[str, ...] | None:
    """The tools with an effect that have been started for a letter, in their order; None when nobody can say."""
    last = came.ended if came.ended > 0 else (await store.open(came.thread, MANY)).row.head
    first = max(0, last - LOOKS_BACK)
    entries = await store.read(came.thread, first, LOOKS_BACK)
    return effects_in(entries, first, came.mail)


def effects_in(entries: Sequence[Entry], first: int, mail: int) -> tuple[str, ...] | None:
    """What was started after a letter came in; `first` is the seq before that of the first entry."""
    numbered = list(enumerate(entries, first + 1))
    heard = next((seq for seq, each in numbered if isinstance(each, UserSaid | Undoing) and each.mail == mail), 0)
    if not heard:
        return None if first else ()
    calls = calls_in(first + 1, entries)
    ran = [(each.started, each.call.name if each.call else "a tool") for each in calls if each.started > heard]
    ran += [(seq, "undo") for seq, each in numbered if isinstance(each, TakenBack) and seq > heard]
    return tuple(name for _, name in sorted(ran))
