"""The tool `ask`: a message to the agent, as from any other door. Its turn is durable: a client that goes away finds
the answer in the conversation, and the same request again has it told once more."""

import secrets
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ...core.mail import Address, Inbound, Said
from ...core.message import Text
from ...core.people import OWNER
from ...core.wording import with_unknown
from ...ports.events import Answer, ToolCalled, ToolReturned
from ...readings.keys import escaped
from ..access.principal import Principal, lacking
from ..http.errors import Refused
from ..http.repeats import event_of
from ..http.streaming import AnswerDelta, SseEvent
from ..signed_links import Links
from .rpc import FORBIDDEN, INVALID_PARAMS, RpcId, RpcRefused, RpcRequest, notification, result, spoken

CHANNEL = "mcp"
ASK = "ask"
USUAL = "default"
LONGEST = 200_000  # characters of a message


class AskArguments(Struct, forbid_unknown_fields=True):
    message: Annotated[str, Meta(min_length=1, max_length=LONGEST, description="What to say to the agent")]
    conversation: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z0-9._-]{1,64}$",
            description="Which conversation it belongs to: each remembers what was said in it. A name of your own",
        ),
    ] = USUAL


DESCRIPTION = (
    "Say something to the everloop agent, and get its answer. It has tools, memory and files of its own, may work for "
    "minutes, and remembers the conversation: the next message with the same `conversation` goes on with it."
)
ANSWERED = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "session": {"type": "string", "description": "Under which everloop keeps the conversation"},
        "unknown": {"type": "array", "items": {"type": "string"}, "description": "Calls of which nobody knows"},
        "files": {"type": "array", "items": {"type": "object"}},
    },
    "required": ["answer", "session"],
}


def ask_tool() -> dict[str, Any]:
    schema = msgspec.json.schema_components([AskArguments])[1][AskArguments.__name__]
    hints = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
    return {
        "name": ASK,
        "title": "Ask everloop",
        "description": DESCRIPTION,
        "inputSchema": schema,
        "outputSchema": ANSWERED,
        "annotations": hints,
    }


def letter_for(request: RpcRequest, principal: Principal, arguments: dict[str, Any], *, unique: bool) -> Inbound:
    """`unique`: the connection is one client's, and each of its requests another; else the same request that comes
    again is meant once. Raises RpcRefused."""
    try:
        asked = msgspec.convert(arguments, AskArguments)
    except msgspec.ValidationError as error:
        raise RpcRefused(INVALID_PARAMS, f"The arguments of ask are not as they should be: {error}.") from error
    if asked.conversation.endswith("\n"):  # which `$` lets pass, and `\Z` is not known to every client
        raise RpcRefused(INVALID_PARAMS, "The conversation of ask is a name, without a newline.")
    if not asked.message.strip():
        raise RpcRefused(INVALID_PARAMS, "The message is empty.")
    address = address_of(asked.conversation, principal.user)
    # Who is not shown what waits for permission does not withdraw it by asking again.
    letter = Said((Text(asked.message),), principal.user, str(address), unattended=False, instead=())
    if scope := lacking(principal, letter):
        raise RpcRefused(FORBIDDEN, f"This needs the scope {scope}, which this client has not.")
    said = {"id": request.id, "message": asked.message}
    event = event_of(principal.user, principal.credential, CHANNEL, str(address), said)
    return Inbound(address, f"mcp:{secrets.token_hex(12)}" if unique else event, letter, principal.user)


def address_of(conversation: str, user: str) -> Address:
    """Everybody has their own conversations of any name."""
    return Address(CHANNEL, conversation if user == OWNER else f"{escaped(user)}/{conversation}")


class AskStream:
    """How a turn is told to whoever called `ask` (a StreamShape): progress, if that is wanted, and then the result."""

    def __init__(self, request: RpcRequest, session: str, links: Links | None) -> None:
        self._id: RpcId | None = request.id
        self._token = request.progress_token
        self._session = session
        self._links = links
        self._count = 0
        self._letters = 0

    def more(self, piece: AnswerDelta) -> list[SseEvent]:
        """Not each piece, but each few hundred characters: of an answer nothing is used before it is whole."""
        before, self._letters = self._letters // 400, self._letters + len(piece.text)
        return self._progress("writes its answer") if self._letters // 400 > before else []

    def work(self, event: ToolCalled | ToolReturned) -> list[SseEvent]:
        return self._progress(f"uses {event.tool}" if isinstance(event, ToolCalled) else f"has used {event.tool}")

    def beat(self) -> list[SseEvent]:
        return self._progress("is at work")

    async def end(self, answer: Answer, missing: AnswerDelta | None) -> list[SseEvent]:
        text = with_unknown(answer.content, answer.unknown)
        files = await self._links(answer.turn.partition(":")[0], answer.files) if self._links else []
        more = {"answer": text, "session": self._session, "unknown": list(answer.unknown), "files": files}
        return [(result(self._id, spoken(text, more=more)), "")]

    def fail(self, refused: Refused) -> list[SseEvent]:
        text = str(refused)
        if refused.code == "session_waits":
            text = f"{text} Whoever may allow it is asked; ask in this conversation later what came of it."
        return [(result(self._id, spoken(text, failed=True, more={"answer": text, "session": self._session})), "")]

    def _progress(self, message: str) -> list[SseEvent]:
        if self._token is None:
            return []
        self._count += 1
        told = {"progressToken": self._token, "progress": self._count, "message": f"everloop {message}"}
        return [(notification("notifications/progress", told), "")]
