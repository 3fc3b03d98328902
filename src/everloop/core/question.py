"""A question that a person is asked before a call runs, or before a change of a prompt file is believed."""

import re
from typing import Literal

from msgspec import Struct

from .errors import GrantRefused
from .grant import Allowance, Wanted, read_words
from .held import Held
from .mail import Decision
from .tool import Risk

NOTHING_ALIKE = "this can only be answered with yes or no; nothing was decided"


class Approval(Struct, frozen=True):
    """A question that waits for an answer. `text` is the whole call as it would run, `choices` are the words by which
    the like of it can be allowed ahead."""

    id: str
    session: str
    requester: str
    tool: str
    text: str
    risk: Risk
    until: float  # Unix time
    decision: Decision  # with everything but the verdict and who gave it
    address: str
    wanted: Wanted | None = None  # the call as it is compared with what was allowed ahead; None: it is about no call
    held: Held | None = None  # it is about no call but this change of a file, which waits as long as it takes

    @property
    def kind(self) -> Literal["call", "file"]:
        """What is asked about: a call that is to run, or a change of a file that stands in prompts."""
        return "file" if self.held else "call"

    @property
    def choices(self) -> tuple[str, ...]:
        return self.wanted.choices if self.wanted else ()

    def chosen(self, words: list[str]) -> Allowance | None:
        """What the words after a yes allow ahead; None without any. Raises GrantRefused."""
        if words and self.wanted is None:
            raise GrantRefused(NOTHING_ALIKE)
        return read_words(words, self.wanted) if self.wanted else None

    @property
    def summary(self) -> str:
        """The whole call or change, and what is known of its risk."""
        return "\n".join((self.text, *_described(self.risk)))

    @property
    def asks(self) -> str:
        if self.held:
            return f"{self.tool} was changed, and the change is held back. May it stay?\n{self.summary}"
        return f"May I run {self.summary}"

    @property
    def question(self) -> str:
        how = f"Answer with /approve {self.id} or /approve {self.id} no."
        return "\n".join((self.asks, how, *self.offers))

    @property
    def offers(self) -> tuple[str, ...]:
        """The words that can follow a yes, with what they mean, on a line."""
        told = {
            "for": "for 8h (how long; else an hour)",
            "here": "here (only in this conversation)",
            "host": f"host (all of {_plain(self.risk.host) or 'this host'})",
            "argv": f"argv {_plain(' '.join(self.risk.argv[:1])) or 'WORD'} * (such commands)",
            "any": f"any (anything of {self.tool})",
        }
        words = [told[word] for word in self.choices if word in told]
        if not words:
            return ()
        wider = " or ".join(word for word in ("host", "argv", "any") if word in self.choices)
        return (f"To allow the like too, add: {'; '.join(words)}. Without {wider} it is the same call again.",)


def _plain(word: str) -> str:
    """A word of the call's, if it cannot be taken for more of the question than it is."""
    return word if re.fullmatch(r"[\w./:-]{1,40}", word, re.ASCII) else ""


def _described(risk: Risk) -> list[str]:
    traits = [f"risk: {risk.level}"]
    traits += ["changes something"] if risk.mutates else []
    traits += ["leaves the sandbox"] if risk.leaves else []
    traits += ["wants to be privileged"] if risk.privileged else []
    return [f"({', '.join(traits)})", *([f"Why: {risk.why}"] if risk.why else [])]
