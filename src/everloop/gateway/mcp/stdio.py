"""everloop as an MCP server over stdin and stdout, a message a line: for a client on this machine, which starts it.

Whoever starts it is the owner. stdout holds nothing but messages.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from ...core.people import OWNER, Role
from ...errors import EverloopError
from ...ports.events import AnswerGiven, Event, ToolCalled, ToolReturned
from ..access.principal import Principal
from ..http.errors import refused_at_http_door
from ..http.streaming import LetterDraft, SseEvent
from ..http.turn_errors import explain_turn
from ..ports import McpAgent
from .asking import AskStream, letter_for
from .rpc import INTERNAL_ERROR, Message, RpcRefused, RpcRequest, error, read
from .service import McpService, arguments_of, is_ask

_log = logging.getLogger("everloop.mcp")

# What the agent wants to do is not allowed by the program that has asked it to: its model would allow it to itself.
THE_OWNER = Principal(OWNER, Role.OWNER, frozenset({"chat", "read"}), "token", "stdio")
BEAT = 10.0  # seconds between two signs of life

Write = Callable[[bytes], Awaitable[None]]


class _ClientGone(Exception):
    """Nobody reads what is said."""


async def serve_stdio(agent: McpAgent, version: str, lines: AsyncIterator[bytes], write: Write) -> None:
    """Until there are no more lines, or nobody reads. What was asked and is not answered by then goes on, and stays in
    its conversation. Raises EverloopError for what `lines` raises."""
    service, alone = McpService(agent, version), asyncio.Lock()
    failure: EverloopError | None = None

    async def say(message: Message) -> None:
        async with alone:
            try:
                await write(msgspec.json.encode(message) + b"\n")
            except OSError as error:
                raise _ClientGone(str(error)) from error

    try:
        async with asyncio.TaskGroup() as group:
            running = set()
            try:
                async for line in lines:
                    if line.strip():
                        task = group.create_task(_answer(agent, service, line, say))
                        running.add(task)
                        task.add_done_callback(running.discard)
            except EverloopError as error:  # raised again below, where no group wraps it
                failure = error
            for task in running:
                task.cancel()
    except* _ClientGone as gone:
        _log.info("the client reads no more: %s", gone.exceptions[0])
    if failure:
        raise failure


async def _answer(agent: McpAgent, service: McpService, line: bytes, say: Callable[[Message], Awaitable[None]]) -> None:
    id = None
    try:
        said = read(line)
        if said is None:
            return
        if said.id is None:
            await service.note(said, THE_OWNER)
            return
        id = said.id
        if is_ask(said):
            async for told, _ in _asked(agent, service, said):
                await say(told)
        else:
            await say(await service.answer(said, THE_OWNER))
    except RpcRefused as refused:
        await say(refused.told(id))
    except EverloopError as problem:
        await say(error(id, INTERNAL_ERROR, str(refused_at_http_door(problem))))
    except _ClientGone:
        raise
    except Exception:  # the border to a stranger's request: the next is answered all the same
        _log.exception("a request of an MCP client failed")
        await say(error(id, INTERNAL_ERROR, "Something went wrong here; `everloop logs` tells more."))


async def _asked(agent: McpAgent, service: McpService, said: RpcRequest) -> AsyncIterator[SseEvent]:
    inbound = letter_for(said, THE_OWNER, arguments_of(said), unique=True)
    shape, draft = AskStream(said, str(inbound.address), None), LetterDraft()
    with service.cancellable(said, THE_OWNER, inbound):
        try:
            async for events in agent.watch(inbound, beat=BEAT):
                for each in shape.beat() if not events else ():
                    yield each
                for event in events:
                    for each in await _told(shape, draft, event):
                        yield each
        except EverloopError as problem:
            for each in shape.fail(await explain_turn(agent.store, inbound, problem)):
                yield each


async def _told(shape: AskStream, draft: LetterDraft, event: Event) -> list[SseEvent]:
    if piece := draft.follow(event):
        return shape.more(piece)
    if isinstance(event, AnswerGiven):
        return await shape.end(event.answer, None)
    return shape.work(event) if draft.ours and isinstance(event, ToolCalled | ToolReturned) else []
