"""A slash command that somebody has typed, and what it comes to."""

from typing import Protocol

from msgspec import Struct

from ..core.mail import Inbound, Said
from ..core.people import Role
from ..ports.conversation import Deed
from ..ports.permission import Grant
from ..ports.rows import Action


class CommandEffect(Struct, frozen=True):
    """What a command does: an action of the store's, the letter that goes with it, and what is said about it."""

    inbound: Inbound
    action: Action | Deed
    reply: str
    otherwise: str = ""
    decision: Inbound | None = None  # on a question of another conversation, which is posted first
    grant: Grant | None = None  # kept with the decision that is posted, if that counts
    stopped: tuple[str, ...] = ()  # threads that are told to stop, beside the session's own
    says: bool = False  # the letter is said to the model, as any other


class TypedCommand(Struct, frozen=True):
    """`rest` is what stands behind the name; whoever typed it may use it."""

    name: str
    rest: str
    inbound: Inbound
    letter: Said
    role: Role

    @property
    def session(self) -> str:
        return str(self.inbound.address)

    def told(self, reply: str) -> CommandEffect:
        """It is answered, and nothing else happens."""
        return CommandEffect(self.inbound, "none", reply)


class WorksOutCommand(Protocol):
    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        """What it comes to; nothing has happened yet."""
        ...
