"""What sub-agents work at for whoever asks, and what is in the background of their chats. What one has said is read as
any other conversation is."""

import secrets

from ...core.mail import Address, Inbound, Said
from ...core.message import said
from ...ports.tasks import TaskRow
from ..http.errors import Refused
from .route import ApiAnswer, ApiCall
from .shapes import Moved
from .subagent_shapes import BackgroundList, ShownTask, SubagentList, SubagentsStopped


async def list_subagents(call: ApiCall) -> ApiAnswer:
    return SubagentList(await call.agent.store.tasks(call.principal.user, under=call.query.session))


async def list_background(call: ApiCall) -> ApiAnswer:
    found = await call.agent.store.tasks(call.principal.user, under=call.query.session)
    shown = [ShownTask.of(each) for each in found[-call.query.limit :]]
    return BackgroundList(shown, sum(each.is_open for each in found))


async def stop_subagent(call: ApiCall) -> ApiAnswer:
    """The older name."""
    return await stop_task(call)


async def stop_task(call: ApiCall) -> ApiAnswer:
    task = await _task(call)
    stopped = await call.agent.stop_task(task.thread, call.principal.user)
    if not stopped:
        raise Refused(409, "over", "It is over already.")
    return SubagentsStopped(stopped)


async def bring_to_front(call: ApiCall) -> ApiAnswer:
    """As `/fg` does, said in its chat."""
    task, user = await _task(call), call.principal.user
    if not task.number:
        raise Refused(409, "refused", "A sub-agent works alone: only what is in the background can be taken back.")
    session = await call.agent.store.session_of(task.thread, user)
    address = Address.parse(session)
    letter = Said(said(f"/fg {task.number}"), user, session)
    receipt = await call.agent.tell(Inbound(address, f"front:{secrets.token_hex(8)}", letter, user))
    if receipt.thread != task.thread:
        raise Refused(409, "refused", receipt.reply or "It is not in the background any more.")
    return Moved(receipt.thread, session, receipt.reply or "")


async def _task(call: ApiCall) -> TaskRow:
    for each in await call.agent.store.tasks(call.principal.user, id=call.path.id):
        if each.thread == call.path.id:
            return each
    raise Refused(404, "not_found", "There is no task of that id.")
