"""Conversations: the list, what was said, going on elsewhere, taking turns back."""

from typing import Any

import msgspec
from msgspec import structs

from ...core.approval import approval_id
from ...core.log import Asked
from ...core.mail import Address, Inbound, Said
from ...core.message import said
from ...errors import MailRefused
from ...ports.channel import traits_of
from ...ports.conversation import ArchiveThread, Branch, Conversation, Deed, PinThread, Rename, Written
from ...readings.spans import deliver, keys_of, turns_of
from ...readings.visible import checked_name
from ..file_links import told_with_links
from ..http.errors import Refused
from ..http.repeats import WINDOW, came_before, event_of, next_event
from .route import ApiAnswer, ApiCall
from .shapes import Entries, FoundList, Moved, SessionDeleted, SessionList, SessionState, Traces

BUSY = "Something is still going on in this conversation. Stop it first, then try again."
LONGEST_TRACE = 2000  # entries
HIDDEN = ("opaque",)  # blocks that only their provider can read


async def list_sessions(call: ApiCall) -> ApiAnswer:
    asked = call.query
    if asked.file:
        return SessionList(await _telling_of(call, asked.file))
    found = await call.agent.store.conversations(
        call.principal.user, session=asked.session, archived=asked.archived, limit=asked.skip + asked.limit
    )
    return SessionList(found[asked.skip :])


async def _telling_of(call: ApiCall, file: str) -> list[Conversation]:
    threads = await call.agent.store.threads_of_file(call.principal.user, file)
    return [await call.agent.sessions.find(each, call.principal.user) for each in threads[: call.query.limit]]


async def search(call: ApiCall) -> ApiAnswer:
    return FoundList(await call.agent.store.search(call.principal.user, call.query.q, limit=call.query.limit))


async def show(call: ApiCall) -> ApiAnswer:
    found = await conversation_in(call)
    row = await call.agent.store.session(found.session)
    return SessionState(found, row.state if row and row.id == found.id else "resting")


async def entries(call: ApiCall) -> ApiAnswer:
    found = await conversation_in(call)
    first, limit = _window(found.head, call.query.after, call.query.before, call.query.limit)
    written = await call.agent.store.history(found.id, first, limit) if limit else []
    return Entries(found.id, found.head, [described(found.id, each) for each in written])


async def trace(call: ApiCall) -> ApiAnswer:
    found = await conversation_in(call)
    store = call.agent.store
    turns = turns_of(found.id, await store.history(found.id, max(0, found.head - LONGEST_TRACE), LONGEST_TRACE))
    arrivals = await store.arrivals([turn.mail for turn in turns if turn.mail])
    deliver(found.id, turns, arrivals, await store.deliveries(keys_of(found.id, turns)))
    return Traces(turns)


async def change(call: ApiCall) -> ApiAnswer:
    found = await conversation_in(call)
    if call.body.title is not None:
        title = _title(call.body.title)
        await call.agent.store.perform(call.principal.user, found.session, Rename(found.id, title))
    if call.body.archived is not None:
        await call.agent.store.perform(call.principal.user, found.session, ArchiveThread(found.id, call.body.archived))
    if call.body.pinned is not None:
        await call.agent.store.perform(call.principal.user, found.session, PinThread(found.id, call.body.pinned))
    return await show(call)


async def delete(call: ApiCall) -> ApiAnswer:
    """Asked twice: the whole id stands in the path, and again as what is confirmed."""
    found = await conversation_in(call)
    if not call.path.id == call.query.confirm == found.id:
        raise Refused(409, "not_confirmed", "Deleting is for good: name its whole id, and confirm=ID the same again.")
    deletion = await call.agent.deletions.delete(_user(call), found)
    return SessionDeleted(found.id, deletion.threads, deletion.entries, deletion.jobs, deletion.branches)


def _title(text: str) -> str:
    try:
        return checked_name(text, "A title")
    except MailRefused as error:
        raise Refused(409, "refused", f"{error}.") from error


async def fork(call: ApiCall) -> ApiAnswer:
    found = await conversation_in(call)
    session = call.body.session or found.session
    branch = await call.agent.sessions.fork(found, session, _user(call), call.body.at)
    return await _go(call, found, session, structs.replace(branch, replaces=call.body.replaces))


async def resume(call: ApiCall) -> ApiAnswer:
    found = await conversation_in(call)
    session = call.body.session or found.session
    return await _go(call, found, session, await call.agent.sessions.go_to(found, session, _user(call)))


async def background(call: ApiCall) -> ApiAnswer:
    return await _command(call, "/bg")


async def undo(call: ApiCall) -> ApiAnswer:
    return await _command(call, "/undo")


async def edit(call: ApiCall) -> ApiAnswer:
    return await _command(call, f"/session edit {call.body.content}")


async def regenerate(call: ApiCall) -> ApiAnswer:
    return await _command(call, "/session regenerate")


def described(thread: str, written: Written) -> dict[str, Any]:
    """An entry as docs/log.md has it, with its place and time; a question with the name by which it is answered,
    and files with their links."""
    entry = {key: value for key, value in msgspec.to_builtins(written.entry).items() if key not in HIDDEN}
    if isinstance(asked := written.entry, Asked):
        entry["approval"] = approval_id(thread, asked.answer, asked.place, asked.digest)
    return {"seq": written.seq, "at": written.at, **entry, **told_with_links(thread, written.seq, written.entry)}


def _window(head: int, after: int | None, before: int | None, limit: int) -> tuple[int, int]:
    """The entry after which to read, and how many."""
    if after is not None:
        return after, limit
    end = head if before is None else max(0, min(before - 1, head))
    return max(0, end - limit), min(limit, end)


async def conversation_in(call: ApiCall) -> Conversation:
    """The one whose id begins so. Whoever may not read must know all of it: a beginning could be guessed."""
    missing = Refused(404, "not_found", "There is no conversation of that name.")
    try:
        found = await call.agent.sessions.find(call.path.id, _user(call))
    except MailRefused as error:
        raise missing from error
    if found.id != call.path.id and not call.principal.may("read"):
        raise missing
    return found


async def _go(call: ApiCall, found: Conversation, session: str, deed: Deed) -> ApiAnswer:
    if session.endswith("\n"):  # which the $ of a pattern lets through
        raise Refused(400, "bad_request", "A session key holds no line break.")
    row = await call.agent.store.session(session)
    if row is not None and row.owner != _user(call):
        raise Refused(409, "refused", "That session belongs to someone else.")
    if row is None:
        call.principal.check_begins(traits_of(session, call.agent.traits))
    if not await call.agent.store.perform(_user(call), session, deed):
        raise Refused(409, "busy", BUSY)
    return Moved(deed.id if isinstance(deed, Branch) else found.id, session)


async def _command(call: ApiCall, text: str) -> ApiAnswer:
    """Whatever also can be typed in a chat is done as if it had been, so that it is committed and answered once."""
    found = await conversation_in(call)
    address = Address.parse(found.session)
    event = await _event(call, found, address.channel, event_of(_user(call), found.id, text))
    letter = Said(said(text), _user(call), found.session)
    receipt = await call.agent.tell(Inbound(address, event, letter, _user(call)))
    if receipt.reply and receipt.thread == found.id:
        raise Refused(409, "refused", receipt.reply)
    return Moved(receipt.thread, found.session, receipt.reply or "")


async def _event(call: ApiCall, found: Conversation, channel: str, event: str) -> str:
    """What the inbox is to know this command by. All of them lead away from their conversation, so that whoever asks
    again where that has happened (a second click, an answer that was lost) is told of the first. Raises Refused."""
    store = call.agent.store
    came = await came_before(store, channel, event)
    row = await store.session(found.session)  # looked up after it: what it has done is to be seen
    if row is not None and row.id == found.id:
        return next_event(came.event) if came else event
    if came is None or call.agent.clock.now() - came.at > WINDOW:
        why = "This is an older version: the conversation has gone on from another one. Continue from here first."
        raise Refused(409, "not_current", why)
    return came.event


def _user(call: ApiCall) -> str:
    return call.principal.user
