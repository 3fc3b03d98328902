"""What sub-agents work at for whoever asks. What one has said is read as any other conversation is."""

from ..http.errors import Refused
from .route import ApiAnswer, ApiCall
from .subagent_shapes import SubagentList, SubagentsStopped


async def list_subagents(call: ApiCall) -> ApiAnswer:
    return SubagentList(await call.agent.store.tasks(call.principal.user, under=call.query.session))


async def stop(call: ApiCall) -> ApiAnswer:
    if not any(each.thread == call.path.id for each in await call.agent.store.tasks(call.principal.user)):
        raise Refused(404, "not_found", "There is no task of that id.")
    stopped = await call.agent.stop_task(call.path.id, call.principal.user)
    if not stopped:
        raise Refused(409, "over", "It is over already.")
    return SubagentsStopped(stopped)
