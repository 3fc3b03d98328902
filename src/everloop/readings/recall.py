"""What stood in the part of a conversation that is a summary now, and is meant by what was just said: its lines, word
for word.

No prompt can hold every detail of a conversation that never ends; but each can hold those that its question is about.
They are found by rule, by the words that are rare in the conversation, so that no model has to think of looking for
them. They stand in the tail of the prompt, which is kept with the call: what was recalled can be seen in the log, and
what stands before it in the prompt stays the same to the byte.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from ..core.log import Entry
from ..core.wording import FENCE, STRANGER
from ..ports.conversation import Recalled
from .compaction import AGENT, LOOKED_AT, RESULT, STRANGE, USER
from .spoken import spoken
from .words import best_of, folded, is_question, placed, uncommon, words_of

RECALLED = "Earlier in this conversation, word for word, found by the words that were just said:"
ENTRIES = 20  # that are looked at
_LINES = 12
_ROUNDS = 4  # of lines that hold the same words
_LOOKS = 20  # for lines that are not shown yet, in the place of those that are
_SHORTEST = 3  # letters of a word that is looked for; a shorter one stands everywhere
_LONGEST = 300  # characters of a line
_AROUND = 120  # of a longer one, what stands before and after what was found
_NEAR = 180  # characters in which words stand together
_ANNOUNCING = (":", "=", "?")  # what belongs to such a line stands in the next
_RARE = 10.0  # what words weigh together that are worth a line; see `rarity`


class _Line(Struct, frozen=True):
    seq: int
    whose: str
    text: str
    words: frozenset[str]  # of those that are looked for

    @property
    def asks(self) -> bool:
        return self.whose == USER and is_question(self.text)

    def __str__(self) -> str:
        return f"[{self.seq}] {self.whose.removeprefix(STRANGER)}{self.text}"


def asked_for(texts: Sequence[str]) -> list[str]:
    """The words to look for in what people have just said: of the last message first, names with digits before all."""
    words = dict.fromkeys(word for text in reversed(texts) for word in uncommon(words_of(text)))
    long = [word for word in words if len(word) >= _SHORTEST or not word.isascii() or word.isdigit()]
    return sorted(long, key=lambda word: not any(letter.isdigit() for letter in word))


def told_again(found: Recalled, shown: str, room: int) -> str:
    """The lines that are meant, in so many characters; "" if there is none. What is shown already is left out."""
    lines = sorted(_meant(found), key=lambda line: -line.seq)
    there = set(map(str.strip, shown.splitlines()))
    lines = [line for line in lines if line.text not in there]
    meant = _best(lines, found.weights)
    for _ in range(_LOOKS):
        if not (known := {line for line in meant if line.text in shown}):
            break
        lines = [line for line in lines if line not in known]
        meant = _best(lines, found.weights)
    meant = [line for line in meant if line.text not in shown]
    picked: list[_Line] = []
    room -= len(RECALLED) + sum(len(mark) + 1 for mark in FENCE)
    for line in meant:
        if len(str(line)) < room:
            picked.append(line)
            room -= len(str(line)) + 1
    return _rendered(sorted(picked, key=lambda line: line.seq))


def _best(lines: Sequence[_Line], weights: Mapping[str, float]) -> list[_Line]:
    def enough(words: AbstractSet[str], round: int) -> bool:
        if sum(weights[word] for word in words) < _RARE or round > _ROUNDS:
            return False
        return round == 1 or len(words) > 1 or len(weights) == 1

    answers = best_of([(line, line.words) for line in lines if not line.asks], weights, _LINES, enough)
    asked = best_of([(line, line.words) for line in lines if line.asks], weights, _LINES, enough)
    return [*answers, *asked][:_LINES]


def _rendered(lines: Sequence[_Line]) -> str:
    known = [str(line) for line in lines if line.whose != STRANGER]
    strange = [str(line) for line in lines if line.whose == STRANGER]
    fenced = [FENCE[0], *strange, FENCE[1]] if strange else []
    return "\n".join((RECALLED, *known, *fenced)) if lines else ""


def _meant(found: Recalled) -> Iterator[_Line]:
    told: set[str] = set()
    for written in found.entries:
        whose, text = _told(written.entry)
        lines = text[:LOOKED_AT].splitlines()
        for place, line in enumerate(lines):
            plain = folded(line)
            if any(word in plain for word in found.weights):
                following = lines[place + 1] if place + 1 < len(lines) else ""
                meant = _around(written.seq, whose, line.strip(), following.strip(), found.weights)
                if meant and meant.text not in told:
                    told.add(meant.text)
                    yield meant


def _around(seq: int, whose: str, line: str, following: str, weights: dict[str, float]) -> _Line | None:
    """A line if it holds enough of what is looked for; of a long one the part where most of it stands."""
    held = [(at, word) for at, spelled in placed(line) for word in spelled if word in weights]
    if not held:
        return None
    first, last, words = max(_clusters(held), key=lambda near: sum(weights[word] for word in near[2]))
    if len(line) > _LONGEST:
        line = _part(line, first, last)
    elif line.endswith(_ANNOUNCING) and following:
        line = f"{line} {following[:_AROUND]}"
    # Neither the mark of what strangers wrote, nor anything that would pass for it.
    return None if whose == STRANGER and "untrusted" in line.lower() else _Line(seq, whose, line, words)


def _clusters(held: Sequence[tuple[int, str]]) -> Iterator[tuple[int, int, frozenset[str]]]:
    """From each place where a word stands, up to where the last stands that is near: which words these are."""
    end = 0
    for number, (start, _) in enumerate(held):
        while end < len(held) and held[end][0] < start + _NEAR:
            end += 1
        yield start, held[end - 1][0], frozenset(word for _, word in held[number:end])


def _part(line: str, first: int, last: int) -> str:
    """What stands around these places, in whole words."""
    begin, end = max(0, first - _AROUND), min(len(line), last + _AROUND)
    if begin:
        begin = line.find(" ", begin, first) + 1 or begin
    if end < len(line):
        cut = line.rfind(" ", last, end)
        end = cut if cut > last else end
    return line[begin:end].strip()


_WHOSE = {"user": USER, "assistant": AGENT, "house": AGENT, "tool": RESULT}


def _told(entry: Entry) -> tuple[str, str]:
    """Whose words an entry holds, and which."""
    said = spoken(entry)
    if said is None:
        return "", ""
    strange = said.strange or (said.who == "tool" and STRANGE in said.text)
    return (STRANGER if strange else _WHOSE[said.who]), said.with_calls("called ")


def room_for(limit: int) -> int:
    """Characters: 2 % of what can be read, and not more than 600 tokens."""
    return min(1800, max(300, limit * 3 // 50))
