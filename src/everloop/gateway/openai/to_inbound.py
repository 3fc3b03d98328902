"""From what a client asks to a letter: which session it is for, what it holds, and whether it has come before."""

from functools import partial
from hashlib import sha256

import msgspec
from aiohttp import web
from msgspec import structs

from ...core.log import UserSaid
from ...core.mail import Address, Inbound, Said
from ...core.message import Message, Part, Text
from ...core.people import Role
from ...core.prompt import Brought
from ...ports.channel import ASIDE, traits_of
from ...ports.rows import Receipt
from ...readings.commands import COMMANDS
from ...readings.keys import escaped, exact
from ..access.principal import Principal, lacking, principal_of
from ..http.blobs import Blob, enclosed
from ..http.errors import Refused
from ..http.repeats import event_of, token_of
from ..ports import Admit, LetterStore, TurnAgent
from .request import ClientMessage, ClientRequest, TextOrFile, check, check_calls, model_of, results_of, tidy

CHANNEL = ASIDE.rstrip(":")  # of conversations that their clients keep
SESSION = "X-Everloop-Session"
KEY = "Idempotency-Key"
LONGEST_KEY = 255
LONGEST_SESSION = 500


async def write(
    agent: TurnAgent, request: web.Request, asking: ClientRequest, plain: object
) -> tuple[Inbound, Admit | None]:
    """The letter for a request, which says `plain`, and what is to be asked before it is posted; with an
    Idempotency-Key it has been, and is already committed.

    Raises Refused, ModelMissing."""
    principal, key = principal_of(request), _key(request)
    user = principal.user
    session = asking.previous or request.headers.get(SESSION, "")
    _check_key(session)
    admit = partial(_check_session, agent, session, principal) if session else None
    if admit and key:
        await admit()
    check(asking.turns)
    brought = await _with_model(agent, asking.brought, principal.role)
    if key:
        brought = structs.replace(brought, digest=_digest(request.path, session, plain))
    sender = user, principal.credential
    event = f"key:{escaped(user)}:{key}" if key else event_of(*sender, request.path, session, plain)
    token = "" if session and not asking.named else _named(user, key) if key else token_of(event)
    if asking.named:
        brought = structs.replace(brought, id=token)
    place = session or f"{CHANNEL}:{token}"
    address = _address(place)  # which is written as the place is
    letter = await (_next if session else _whole)(agent, asking.turns, user, place, brought)
    if not letter.literal and (scope := lacking(principal, letter)):
        raise Refused(403, "forbidden", f"This needs a token of the scope {scope}.")
    inbound = Inbound(address, event, letter, user)
    if key:
        await _claim(agent, inbound, brought.digest)
        return inbound, None
    return inbound, admit


async def _whole(agent: TurnAgent, turns: tuple[ClientMessage, ...], user: str, address: str, brought: Brought) -> Said:
    """All that was said, as the beginning of a new thread. It may be any program's users who speak: no commands."""
    check_calls(turns)
    messages = [await _message(agent, turn, user) for turn in tidy(turns)]
    parts: tuple[Part, ...] = ()
    if messages[-1].role == "user":
        parts = messages.pop().parts
    return Said(parts, user, address, unattended=True, before=tuple(messages), brought=brought, literal=True)


async def _next(agent: TurnAgent, turns: tuple[ClientMessage, ...], user: str, address: str, brought: Brought) -> Said:
    """What the last message adds to a session, which remembers the others itself."""
    last = turns[-1]
    if last.role == "tool":
        told: tuple[TextOrFile, ...] = (results_of(turns),)
        last, brought = ClientMessage("user", told), structs.replace(brought, outside=True)
    message = await _message(agent, last, user)
    return Said(message.parts, user, address, unattended=True, brought=brought)


async def _message(agent: TurnAgent, turn: ClientMessage, user: str) -> Message:
    parts: list[Part] = []
    for piece in turn.pieces:
        if isinstance(piece, Blob):
            parts.append(await enclosed(agent, piece, user))
        elif piece.strip():
            parts.append(Text(piece))
    return Message(turn.role, tuple(parts) or (Text(""),), turn.calls, turn.answers)


async def _with_model(agent: TurnAgent, brought: Brought, role: Role) -> Brought:
    name, bare = model_of(brought.model)
    if name and role < (least := COMMANDS["/model"].right_to(name).least):  # what it costs is not a guest's to choose
        raise Refused(403, "forbidden", f"Choosing a model needs the role {least.name.lower()}.", param="model")
    return structs.replace(brought, model=await agent.find_model(name), bare=bare)


def _address(session: str) -> Address:
    try:
        return exact(session)
    except ValueError as error:
        raise Refused(400, "invalid_session", f"{error}.", param=SESSION) from error


def _check_key(session: str) -> None:
    if len(session) > LONGEST_SESSION or not session.isprintable():
        raise Refused(400, "invalid_session", f"A session key has at most {LONGEST_SESSION} letters.", param=SESSION)


async def _check_session(agent: TurnAgent, session: str, principal: Principal) -> None:
    """Whose session it is, before a letter is posted; the commit of one that begins a turn at once looks itself."""
    row = await agent.store.session(session)
    if row is None:
        principal.check_begins(traits_of(session, agent.traits))
    elif row.owner != principal.user:
        raise Refused(404, "session_not_found", "There is no such session.", param=SESSION)


def _key(request: web.Request) -> str:
    key = request.headers.get(KEY, "")
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise Refused(400, "invalid_idempotency_key", f"An {KEY} has at most {LONGEST_KEY} letters.", param=KEY)
    return key


def _named(user: str, key: str) -> str:
    return sha256(msgspec.json.encode((user, key))).hexdigest()[:24]


def _digest(path: str, session: str, plain: object) -> str:
    return sha256(msgspec.json.encode((path, session, plain), order="sorted")).hexdigest()[:32]


async def _claim(agent: TurnAgent, inbound: Inbound, digest: str) -> None:
    """The same key is one turn. Raises Refused when it has come before with another request."""
    receipt = await agent.post(inbound)
    if receipt.fresh:
        return
    kept = await _kept_digest(agent.store, receipt)
    if kept not in ("", digest):
        raise Refused(409, "idempotency_key_reused", f"This {KEY} was used before with another request.", param=KEY)


async def _kept_digest(store: LetterStore, receipt: Receipt) -> str:
    """The digest of the request that a letter came with: it lies in the inbox, or else in the log."""
    for mail in await store.mail(receipt.thread):
        if mail.id == receipt.id and isinstance(mail.letter, Said) and mail.letter.brought:
            return mail.letter.brought.digest
    for entry in reversed(await store.read(receipt.thread)):
        if isinstance(entry, UserSaid) and entry.mail == receipt.id and entry.brought:
            return entry.brought.digest
    return ""
