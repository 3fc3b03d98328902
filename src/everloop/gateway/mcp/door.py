"""/mcp: everloop as a server of the Model Context Protocol, over streamable HTTP, with the tokens of the gateway.

No session is kept: each request says all that is needed, so that any process of a fleet may answer it. The id of one
only tells the clients of one token apart. What takes long is answered as a stream of events, on which progress is told.
Names and pages (DNS rebinding) are checked for every route, before any of this.
"""

from secrets import token_hex

from aiohttp import web

from ...errors import EverloopError
from ...ports.events import Answer
from ..access.principal import Principal, principal_of
from ..http.bodies import read_body
from ..http.errors import Refused, refused_at_http_door, respond
from ..http.repeats import Repeats
from ..http.streaming import stream
from ..http.whole_answer import give
from ..ports import McpAgent
from ..signed_links import signing
from .asking import AskStream, letter_for
from .rpc import FORBIDDEN, INTERNAL_ERROR, INVALID_REQUEST, VERSIONS, RpcRefused, RpcRequest, error, read
from .service import McpService, arguments_of, is_ask

VERSION_HEADER = "MCP-Protocol-Version"
SESSION_HEADER = "Mcp-Session-Id"
LARGEST = 2_000_000  # bytes of a request
STREAM = "text/event-stream"


class McpDoor:
    def __init__(self, agent: McpAgent, version: str) -> None:
        self._agent = agent
        self._service = McpService(agent, version)
        self._repeats = Repeats(agent.clock)
        self._links = signing(agent)

    async def refuse(self, request: web.Request) -> web.StreamResponse:
        """There is nothing to listen to, and no session to end: every answer comes with its request."""
        response = respond(error(None, INVALID_REQUEST, "Send messages to /mcp with POST."), 405)
        response.headers["Allow"] = "POST"
        return response

    async def post(self, request: web.Request) -> web.StreamResponse:
        id = None
        try:
            _check_version(request)
            said = read(await read_body(request, LARGEST))
            if said is None or said.id is None:
                if said:
                    await self._service.note(said, principal_of(request), _client_of(request))
                return web.Response(status=202)
            id = said.id
            return await self._answer(request, said, principal_of(request))
        except RpcRefused as refused:
            return respond(refused.told(id), 400 if id is None else 200)
        except (Refused, EverloopError) as problem:
            told = refused_at_http_door(problem)
            code = FORBIDDEN if told.status == 403 else INTERNAL_ERROR
            return respond(error(id, code, str(told)), told.status if id is None else 200)

    async def _answer(self, request: web.Request, said: RpcRequest, principal: Principal) -> web.StreamResponse:
        if not is_ask(said):
            response = respond(await self._service.answer(said, principal))
            if said.method == "initialize":
                response.headers[SESSION_HEADER] = token_hex(16)
            return response
        principal.need("chat")
        inbound = letter_for(said, principal, arguments_of(said), unique=False)
        shape = AskStream(said, str(inbound.address), self._links)
        with (
            self._repeats.attempt(self._agent.store, request, inbound) as attempt,
            self._service.cancellable(said, principal, inbound, _client_of(request)),
        ):
            try:
                if STREAM in request.headers.get("Accept", STREAM):
                    return await stream(self._agent, request, attempt, shape)
                return await give(self._agent, request, attempt, lambda answer: _whole(shape, answer))
            except Refused as refused:  # a tool that has failed is a result, which models read
                [(told, _)] = shape.fail(refused)
                return respond(told)


async def _whole(shape: AskStream, answer: Answer) -> web.Response:
    [(told, _)] = await shape.end(answer, None)
    return respond(told)


def _client_of(request: web.Request) -> str:
    """What it was called when it introduced itself; "" if it does not say."""
    return request.headers.get(SESSION_HEADER, "")


def _check_version(request: web.Request) -> None:
    """Raises RpcRefused for a version that is said to have been agreed upon, and cannot have been."""
    version = request.headers.get(VERSION_HEADER, VERSIONS[0])
    if version not in VERSIONS:
        raise RpcRefused(
            INVALID_REQUEST, f"{VERSION_HEADER} {version[:40]!r} is not spoken here: {', '.join(VERSIONS)}."
        )
