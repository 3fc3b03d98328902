"""Going beyond a budget, which somebody may be asked about.

A yes is for the turn that asked, and for so many model calls of it: each of them uses one up with its intent, so that
whoever takes the turn over after a crash has as many left as the log says, and no other turn has any.
"""

from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from .people import Role

OVERRUN = -1  # in the place of a call: what is asked is whether a model may be
CALLS = 10  # that a yes lets through

Per = Literal["month", "day", "session", "job"]


class Account(Struct, frozen=True):
    """What is counted: by whom, per which period and, where that is a conversation or a job, in which."""

    owner: str
    per: Per
    scope: str = ""


class Overrun(Struct, frozen=True, omit_defaults=True, gc=False):
    """A turn that needs more than is left in these accounts. `question` is what is asked, `refusal` what is said after
    a no. `least` is the role that may answer, and `answerer` a person who may nevertheless."""

    accounts: tuple[Account, ...]
    question: str
    refusal: str
    calls: int = CALLS
    least: int = Role.OWNER
    answerer: str = ""

    @property
    def digest(self) -> str:
        """The same for two only if a yes to either lets the same through."""
        return sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def may_answer(self, person: str, role: Role) -> bool:
        return role >= self.least or (role >= Role.USER and bool(person) and person == self.answerer)
