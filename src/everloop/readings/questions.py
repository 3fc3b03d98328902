"""A question that a person is asked before a call runs, or before a change of a prompt file is believed."""

import re
from typing import Any

import msgspec

from ..core.tool import Risk, ToolCall, parse_args
from ..core.wording import one_line
from ..errors import GrantRefused
from ..ports.permission import Allowance, Approval
from .grants import read_words

NOTHING_ALIKE = "this can only be answered with yes or no; nothing was decided"


def chosen(approval: Approval, words: list[str]) -> Allowance | None:
    """What the words after a yes allow ahead; None without any. Raises GrantRefused."""
    if words and approval.wanted is None:
        raise GrantRefused(NOTHING_ALIKE)
    return read_words(words, approval.wanted) if approval.wanted else None


def question_of(approval: Approval) -> str:
    """All that is asked, and how it is answered, where one can type a command."""
    how = f"Answer with /approve {approval.id} or /approve {approval.id} no."
    return "\n".join((asked_of(approval), how, *offered_of(approval)))


def asked_of(approval: Approval) -> str:
    if approval.held:
        return f"{approval.tool} was changed, and the change is held back. May it stay?\n{summary_of(approval)}"
    if approval.overrun:
        return approval.text
    return f"May I run {summary_of(approval)}"


def summary_of(approval: Approval) -> str:
    """The whole call or change, and what is known of its risk; of what goes beyond a budget, what it would cost."""
    if approval.overrun:
        return approval.text
    return "\n".join((approval.text, *_described(approval.risk)))


def offered_of(approval: Approval) -> tuple[str, ...]:
    """The words that can follow a yes, with what they mean, on a line."""
    told = {
        "for": "for 8h (how long; else an hour)",
        "here": "here (only in this conversation)",
        "host": f"host (all of {_plain(approval.risk.host) or 'this host'})",
        "argv": f"argv {_plain(' '.join(approval.risk.argv[:1])) or 'WORD'} * (such commands)",
        "any": f"any (anything of {approval.tool})",
    }
    words = [told[word] for word in approval.choices if word in told]
    if not words:
        return ()
    wider = " or ".join(word for word in ("host", "argv", "any") if word in approval.choices)
    return (f"To allow the like too, add: {'; '.join(words)}. Without {wider} it is the same call again.",)


def answers_to(approval: Approval) -> tuple[str, ...]:
    """What can be said to it, each as it is typed: the words of `offered_of` with a value that is often meant."""
    first = _plain(" ".join(approval.risk.argv[:1]))
    typed = {
        "for": "y for 8h",
        "here": "y here",
        "host": "y host",
        "argv": f"y argv {first} *" if first else "",
        "any": "y any",
    }
    return ("y", "n", *(typed[word] for word in approval.choices if typed.get(word)))


def _plain(word: str) -> str:
    """A word of the call's, if it cannot be taken for more of the question than it is."""
    return word if re.fullmatch(r"[\w./:-]{1,40}", word, re.ASCII) else ""


def _described(risk: Risk) -> list[str]:
    traits = [f"risk: {risk.level}"]
    traits += ["changes something"] if risk.mutates else []
    traits += ["leaves the sandbox"] if risk.leaves else []
    traits += ["wants to be privileged"] if risk.privileged else []
    return [f"({', '.join(traits)})", *([f"Why: {risk.why}"] if risk.why else [])]


def shown(call: ToolCall) -> str:
    """The whole of a call, so that two that differ look different, and with nothing in it that a person cannot see."""
    args = parse_args(call)
    return "\n".join((call.name, *(f"  {_as_json(name)[1:-1]}: {_as_seen(value)}" for name, value in args.items())))


def _as_seen(value: Any) -> str:
    """As JSON; but a text of several lines as these lines, if every letter of it can be seen."""
    if isinstance(value, str) and "\n" in value and value.replace("\n", "").replace("\t", "").isprintable():
        return "".join(f"\n    | {line}" for line in value.split("\n"))
    return _as_json(value)


def _as_json(value: Any) -> str:
    return one_line(msgspec.json.encode(value).decode())
