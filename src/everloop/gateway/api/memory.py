"""What is remembered for whoever asks: read, edited, taken back, forgotten. Nobody sees anybody else's."""

from collections.abc import Sequence

from ...errors import MailRefused
from ...ports.memory import Fact
from ..http.errors import Refused, sentence
from .memory_shapes import (
    DifferenceShown,
    DocumentShown,
    FactList,
    FactShown,
    ForgottenShown,
    MemoryChanged,
    MemoryShown,
    MemoryVersions,
)
from .route import ApiAnswer, ApiCall

NUL = "A text cannot hold NUL characters."


async def show_memory(call: ApiCall) -> ApiAnswer:
    found = await call.agent.memory.overview(call.principal.user)
    return MemoryShown(
        version=found.version,
        facts=found.facts,
        ended=found.ended,
        marked=found.marked,
        left_out=found.left_out,
        problems=found.problems,
        recall=found.recall,
        changed=found.changed,
    )


async def remembered_facts(call: ApiCall) -> ApiAnswer:
    memory, who, asked = call.agent.memory, call.principal.user, call.query
    if asked.search.strip():
        hits = await memory.search(who, asked.search, asked.limit)
        return FactList(await _shown(call, [hit.fact for hit in hits]))
    return FactList(await _shown(call, await memory.facts(who, ended=asked.ended, limit=asked.limit, skip=asked.skip)))


async def memory_versions(call: ApiCall) -> ApiAnswer:
    asked = call.query
    return MemoryVersions(await call.agent.memory.versions(call.principal.user, limit=asked.limit, before=asked.before))


async def memory_document(call: ApiCall) -> ApiAnswer:
    asked = call.query
    return DocumentShown(asked.document, await _text(call, asked.document, asked.version))


async def memory_difference(call: ApiCall) -> ApiAnswer:
    asked = call.query
    try:
        told = await call.agent.memory.difference(call.principal.user, asked.document, asked.old, asked.new)
    except MailRefused as error:
        raise Refused(404, "not_found", sentence(error)) from error
    return DifferenceShown(told)


async def edit_memory(call: ApiCall) -> ApiAnswer:
    who, asked = call.principal.user, call.body
    if "\0" in asked.text:
        raise Refused(400, "bad_request", NUL)
    return MemoryChanged(await call.agent.memory.edit(who, who, asked.document, asked.text, asked.base))


async def restore_memory(call: ApiCall) -> ApiAnswer:
    who = call.principal.user
    return MemoryChanged(await call.agent.memory.restore(who, who, call.body.version, call.body.document))


async def forget_facts(call: ApiCall) -> ApiAnswer:
    who = call.principal.user
    forgotten = await call.agent.memory.forget(who, who, call.body.ids)
    return ForgottenShown(len(forgotten.facts), forgotten.told(), forgotten.said_in)


async def _text(call: ApiCall, name: str, version: int) -> str:
    try:
        return await call.agent.memory.text(call.principal.user, name, version)
    except MailRefused as error:
        raise Refused(404, "not_found", sentence(error)) from error


async def _shown(call: ApiCall, found: Sequence[Fact]) -> list[FactShown]:
    threads = {fact.source.thread for fact in found if fact.source.thread}
    sessions = {thread: await call.agent.store.session_of(thread, call.principal.user) for thread in threads}
    return [_fact(fact, sessions.get(fact.source.thread, "")) for fact in found]


def _fact(fact: Fact, session: str) -> FactShown:
    source = fact.source
    return FactShown(
        id=fact.id,
        text=fact.text,
        topic=fact.topic,
        importance=fact.importance,
        thread=source.thread if session else "",
        session=session,
        seq=source.seq if session else 0,
        person=source.person,
        at=source.at or fact.at,
        since=fact.since,
        until=fact.until,
        replaced_by=fact.replaced_by,
        marked=fact.marked,
        deleted=bool(source.thread and not session),
    )
