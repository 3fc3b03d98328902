"""Who asks, and what the model that answers is told: both are fixed when a turn begins."""

from msgspec import Struct

from .decide import Rules
from .people import Role
from .personas import PersonaChoice, PersonaWish
from .prompt import Section, Terms


class Situation(Struct, frozen=True):
    """Who asks, where, whose memory, files and workspace are theirs here (`principal`), what the conversation may do at
    most, which persona was chosen in it, and how much of it is a summary."""

    person: str
    role: Role
    principal: str
    address: str
    thread: str
    terms: Terms | None = None
    wish: PersonaWish = PersonaWish()
    server: str = ""
    covered: int = 0  # the last entry that a summary stands for


class Briefing(Struct, frozen=True):
    """What a model is told before the conversation, whichever it is: who it is, what people have written for it, which
    tools there are, by which rules it works."""

    identity: str
    rules: Rules = Rules()
    files: tuple[Section, ...] = ()
    brief: str = ""  # the identity as the embedded model is told it; "": the same
    large: frozenset[str] = frozenset()  # tools that a small model is not shown
    place: str = ""  # the folder that the tools work in
    persona: PersonaChoice = PersonaChoice()
    prompt: str = ""  # of the persona: never cut, as files are
    model: str = ""  # who answers where nobody has chosen another; "": the usual
    max_tokens: int = 0  # that an answer may have at most; 0: as many as the model's
