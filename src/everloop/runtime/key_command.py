"""`/keys`: what somebody keeps for themselves, by name. A key that is typed here is not taken, nor kept anywhere."""

from collections.abc import Callable, Sequence

from msgspec import structs

from ..core.mail import Inbound, Said
from ..core.message import said
from ..core.people import OWNER
from .typed_command import CommandEffect, TypedCommand

ALONE = "What you keep is nobody else's business, so I say it only where we are alone."
WHERE = (
    "in the page, under Manage, Access. Who has no way in there asks whoever runs this: everloop users invite lets "
    "somebody in, and everloop secrets keeps it for them"
)
NOT_HERE = (
    "A key is not taken in a chat: what is typed there may be read by others, and stays. If that was one, change it "
    f"where it is from, and give the new one {WHERE}."
)

NOTHING = f"You keep no key or credential of your own. Give one {WHERE}."
THE_HOUSES = "The keys that you are answered with are the house's: everloop models key list."

Kept = Callable[[str], tuple[Sequence[str], Sequence[str]]]
"""The providers that somebody keeps a key for, and the names of their credentials."""


class KeyCommand:
    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        kept, reply = self.tell(typed.rest, typed.inbound, typed.letter)
        return CommandEffect(kept, "none", reply)

    def tell(self, rest: str, inbound: Inbound, letter: Said) -> tuple[Inbound, str]:
        """The letter as it may be kept, and the reply."""
        if rest:
            return structs.replace(inbound, letter=structs.replace(letter, parts=said("/keys …"))), NOT_HERE
        if letter.principal:
            return inbound, ALONE
        keys, credentials = self._kept(letter.author)
        told = f"Models are asked with your own keys at {', '.join(keys)}, and you pay there yourself."
        lines = [told] if keys else []
        lines += [f"Your tools may use, by name: {', '.join(credentials)}."] if credentials else []
        lines += [f"Change that {WHERE}."] if lines else []
        return inbound, "\n".join(lines) or (THE_HOUSES if letter.author == OWNER else NOTHING)
