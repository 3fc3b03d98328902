"""Which part of a conversation becomes a summary, and what of it is kept word for word, by rule.

A unit is one message of a person, or one answer with all results of its calls; it is covered or kept whole. What people
have said in the turn that runs is never covered. From what is covered, lines that hold what a summary would get wrong
(numbers, paths, addresses, identifiers, decisions, tasks, failures) are kept as they stand: `facts`.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from .message import Message

_LONGEST = 300  # characters of a fact
_OF_A_RESULT = 6  # facts of one tool result
_FAILURES = 3  # of the last ones that are kept

HEAD = (
    "[Earlier parts of this conversation have been summarised to save room. Every word of them is still there: "
    "search_history finds it, read_history shows it.]"
)
DETAILS = "Exact details from those parts, word for word:"


class Plan(Struct, frozen=True):
    """`began` is the place of the running turn's first message among the kept ones; -1 if no turn runs."""

    covered: tuple[Message, ...]
    kept: tuple[Message, ...]
    began: int = -1


def plan(messages: Sequence[Message], began: int, room: int, size: Callable[[Message], int]) -> Plan | None:
    """What to cover so that what is kept fits into `room` tokens; None if that cannot be, or nothing is left to cover.

    `began` is where the running turn's first message stands, -1 if no turn runs.
    """
    said_now = {at for at, each in enumerate(messages) if began >= 0 and at >= began and each.role == "user"}
    left = room - sum(size(messages[at]) for at in said_now)
    if left < 0:
        return None  # a summary of the rest would not help
    keep = set(said_now)
    for unit in reversed(units(messages)):
        needed = sum(size(messages[at]) for at in unit if at not in said_now)
        if needed > left:
            break
        left -= needed
        keep.update(unit)
    covered = tuple(each for at, each in enumerate(messages) if at not in keep)
    if not covered:
        return None
    kept = tuple(messages[at] for at in sorted(keep))
    return Plan(covered, kept, sorted(keep).index(began) if began in keep else -1)


def units(messages: Sequence[Message]) -> list[list[int]]:
    """The places of the messages that belong together."""
    found: list[list[int]] = []
    for at, message in enumerate(messages):
        if message.role == "tool" and found:
            found[-1].append(at)
        else:
            found.append([at])
    return found


def rendered(summary: str, facts: Sequence[str]) -> str:
    """What the model is shown in place of what was covered."""
    parts = [HEAD, summary.strip()]
    if facts:
        parts.append("\n".join((DETAILS, *(f"- {fact}" for fact in facts))))
    return "\n\n".join(filter(None, parts))


_WEIGHTY = re.compile(
    r"\b(must|never|always|don'?t|do not|remember|decid\w*|agree[ds]?|deadline|due|todo|to do|prefer\w*|instead of|"
    r"chose|chosen|promis\w*|password|name is|called|allergic|budget|by (?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"still (?:to|need|open)|next step|open question|not yet|failed|blocked)\b",
    re.IGNORECASE,
)
_PAIR = re.compile(r"\s*[\w \"'./-]{1,60}[:=|]\s*\S")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=[A-Z\"“(\[`*-])|\n+")
_QUOTES = '`"“”«»'


def _is_exact(text: str) -> bool:
    """Whether it names something that other words would get wrong: a number, a path, an address, an identifier."""
    return any(map(_is_exact_word, text.split()))


def _is_exact_word(word: str) -> bool:
    bare = word.strip(".,;:!?()[]{}<>'*")
    inner = bare[1:]
    return (
        any(letter.isdigit() for letter in bare)
        or any(mark in bare for mark in "/\\@_=#")
        or any(quote in word for quote in _QUOTES)
        or "." in bare
        or (any(map(str.isupper, inner)) and any(map(str.isalpha, inner)))
    )


def facts_of(messages: Iterable[Message]) -> list[str]:
    """The lines of these messages that have to stay as they are, each once, in order."""
    facts: dict[str, None] = {}
    failures: list[str] = []
    for message in messages:
        if message.role == "tool":
            text = message.text
            if text.startswith("Error"):
                failures.append(_line(f"failed: {text.partition(chr(10))[0]}"))
            facts.update(dict.fromkeys(_in_result(text)))
            continue
        who = "user: " if message.role == "user" else ""
        facts.update(dict.fromkeys(_line(who + each) for each in _in_speech(message.text)))
        facts.update(
            dict.fromkeys(_line(f"called {call.name} {call.args}") for call in message.calls if _acts(call.args))
        )
    facts.update(dict.fromkeys(failures[-_FAILURES:]))
    return list(facts)


def _in_speech(text: str) -> Iterable[str]:
    for sentence in _SENTENCE.split(text):
        bare = sentence.strip()
        if bare and (_is_exact(bare) or _WEIGHTY.search(bare)):
            yield from _pieces(bare)


def _in_result(text: str) -> Iterable[str]:
    """Of what a tool has told, the first lines that name a value."""
    found = [line.strip() for line in text.split("\n")[:400] if _PAIR.match(line) and _is_exact(line)]
    return [_line(line) for line in found if len(line) <= _LONGEST][:_OF_A_RESULT]


def _acts(args: str) -> bool:
    return '"path"' in args or '"command"' in args or '"url"' in args


def _pieces(text: str) -> Iterable[str]:
    """A long sentence in parts, so that none of it is lost."""
    while len(text) > _LONGEST:
        at = text.rfind(" ", 0, _LONGEST)
        at = at if at > 0 else _LONGEST
        yield text[:at]
        text = text[at:].lstrip()
    yield text


def _line(text: str) -> str:
    return " ".join(text.split())[: _LONGEST + 20]


def fitting(facts: Sequence[str], chars: int) -> tuple[str, ...]:
    """As many as there is room for: what people said goes last, what is oldest goes first."""
    if sum(len(fact) + 3 for fact in facts) <= chars:
        return tuple(facts)
    order = sorted(range(len(facts)), key=lambda at: (not facts[at].startswith("user: "), -at))
    kept: set[int] = set()
    for at in order:
        chars -= len(facts[at]) + 3
        if chars < 0:
            break
        kept.add(at)
    return tuple(fact for at, fact in enumerate(facts) if at in kept)


def told_plainly(messages: Iterable[Message], chars: int) -> str:
    """A summary without a model: who said what, in short; the beginning and the end if it is too much."""
    lines = []
    for message in messages:
        called = ", ".join(call.name for call in message.calls)
        text = " ".join(message.text.split())[:200]
        if message.role == "tool":
            continue
        lines.append(f"{message.role}: {text}" + (f" [called {called}]" if called else ""))
    text = "\n".join(lines)
    if len(text) <= chars:
        return text
    half = chars // 2 - 10
    return f"{text[:half]}\n…\n{text[-half:]}"


def spelled_out(messages: Iterable[Message]) -> str:
    """The messages as a text that a model can summarise."""
    lines = []
    for message in messages:
        lines.append(f"{message.role}: {message.text}")
        lines += [f"  called {call.name} with {call.args}" for call in message.calls]
    return "\n".join(lines)
