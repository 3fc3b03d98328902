"""Answers that a channel could not deliver: looked at, sent again, dropped; and what sends them, as it stands."""

from ..http.errors import Refused
from .route import ApiAnswer, ApiCall
from .shapes import OutboxChanged, OutboxList, TaskList


async def list_undelivered(call: ApiCall) -> ApiAnswer:
    return OutboxList(await call.agent.store.undelivered())


async def list_tasks(call: ApiCall) -> ApiAnswer:
    return TaskList(call.agent.tasks())


async def retry(call: ApiCall) -> ApiAnswer:
    if not await call.agent.store.send_again(int(call.path.id)):
        raise Refused(404, "not_found", "Nothing of that number waits to be sent again, or has been given up.")
    return OutboxChanged(int(call.path.id))


async def drop(call: ApiCall) -> ApiAnswer:
    if not await call.agent.store.drop(int(call.path.id)):
        raise Refused(404, "not_found", "Nothing of that number waits to be sent again, or has been given up.")
    return OutboxChanged(int(call.path.id))
