"""Answers that a channel could not deliver: looked at, sent again, dropped; and what sends them, as it stands."""

from ..answers import Refused
from .route import Answer, Call
from .shapes import OutboxChanged, OutboxList, TaskList


async def list_undelivered(call: Call) -> Answer:
    return OutboxList(await call.desk.store.undelivered())


async def list_tasks(call: Call) -> Answer:
    return TaskList(call.desk.tasks())


async def retry(call: Call) -> Answer:
    if not await call.desk.store.send_again(int(call.path.id)):
        raise Refused(404, "not_found", "Nothing of that number waits to be sent again, or has been given up.")
    return OutboxChanged(int(call.path.id))


async def drop(call: Call) -> Answer:
    if not await call.desk.store.drop(int(call.path.id)):
        raise Refused(404, "not_found", "Nothing of that number waits to be sent again, or has been given up.")
    return OutboxChanged(int(call.path.id))
