"""HEARTBEAT.md: what it asks for, whether there is a reason to ask a model about it, and what that is told.

Headings, comments and items that are ticked off ask for nothing. A line `watch: reports/*.csv` names files, a line
`check: ./ci.sh` a command; every other line is open. One that begins with `every 4h:` comes up so often, others once
a day; and a line that was not there before comes up at once.
"""

import re
from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct, structs

from ..core.turn import Finished
from ..ports.heartbeat import (
    HEARTBEAT_FILE,
    HEARTBEAT_SOURCE,
    SILENCE,
    BeatDecision,
    FileStamp,
    HeartbeatState,
)

SLACK = 60.0  # seconds by which a beat may come early
LONGEST = 8000  # characters of the file, and of what a check has said, that are told
NAMED = 20  # files that are told by their names
CHECKS = 5
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_NAMES = re.compile(r"(watch|check):[ \t]*(.*)", re.IGNORECASE)
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+")
_DONE = re.compile(r"\[[xX]\]")
_BOX = re.compile(r"\[ ?\]\s*")
_EVERY = re.compile(r"every\s+((?:\d{1,6}\s*(?:min|[smhdw])\s*)+):", re.IGNORECASE)
_PART = re.compile(r"(\d{1,6})\s*(min|[smhdw])", re.IGNORECASE)
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_NOTHING = re.compile(r"[-=*_`\s]*")  # rules, and what frames front matter
_AROUND = " \t\r\n`*\"'.!"

TOLD = """\
This is your heartbeat: nobody has written, and it is time to look. The reason:
{reasons}

What {file} in the workspace says:

{text}

Look at what is meant, with your tools where that is needed. Tick off (`- [x]`) what is done for good; note nothing else
in it. Then answer with what your person should be told now, as a message to them. If there is nothing that is worth a
message, answer with exactly {silence}, and they are not disturbed."""


class Instructions(Struct, frozen=True):
    """What a HEARTBEAT.md asks for. `open` are its open lines, each with how many seconds lie between two times that it
    comes up; 0: as often as the settings say."""

    text: str = ""
    open: tuple[tuple[str, float], ...] = ()
    watch: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        return bool(self.open or self.watch or self.checks)


class HeartbeatLook(Struct, frozen=True):
    """What was found at a beat. `said` is what checks have said, by the command; those that could not be run are in
    `failed`, with why. `outside` are those whose words may be strangers'."""

    instructions: Instructions
    files: Mapping[str, FileStamp] = {}
    said: Mapping[str, str] = {}
    failed: Mapping[str, str] = {}
    outside: frozenset[str] = frozenset()


class BeatOutcome(Struct, frozen=True):
    """What comes of a beat: the state that is kept then, and what the model is told, if it is asked."""

    state: HeartbeatState
    text: str = ""


def instructions_in(text: str) -> Instructions:
    """Text in comments is for people, and not read."""
    plain = _COMMENT.sub("", text).strip()
    open_lines, watch, checks = [], [], []
    for line in map(str.strip, plain.splitlines()):
        if named := _NAMES.fullmatch(line):
            word, rest = named[1].lower(), named[2].strip()
            if word == "watch":
                watch += [each.strip() for each in rest.split(",") if each.strip()]
            elif rest:
                checks.append(rest)
        elif (item := _open_item(line)) is not None:
            open_lines.append((item, _interval(item)))
    return Instructions(plain, tuple(open_lines), tuple(watch), tuple(checks[:CHECKS]))


def _open_item(line: str) -> str | None:
    """None of a line that asks for nothing."""
    if line.startswith("#") or _NOTHING.fullmatch(line):
        return None
    item = _ITEM.sub("", line, count=1)
    if _DONE.match(item):
        return None
    return _BOX.sub("", item, count=1).strip() or None


def _interval(item: str) -> float:
    found = _EVERY.match(item)
    parts = _PART.findall(found[1]) if found else []
    return float(sum(int(count) * _UNITS[unit.lower()] for count, unit in parts))


def decide_beat(before: HeartbeatState, look: HeartbeatLook, now: float, again: float) -> BeatOutcome:
    """Whether the model is asked, and about what. `again` are the seconds after which an open line comes up again, 0:
    never."""
    asked = look.instructions
    if not asked.asks:
        return BeatOutcome(not_asked(before, now, "empty", f"nothing in {HEARTBEAT_FILE} is to be done"))
    reasons = [
        *_new_lines(before, asked),
        *_due_lines(before, asked, now, again),
        *_changed_files(before, look),
        *_news_of_checks(before, look),
    ]
    why = "; ".join(f"{command} could not be run: {error}" for command, error in look.failed.items())
    if not reasons:
        quiet = not_asked(before, now, "unchanged", why or "nothing has changed")
        lines = {*map(_digest, (line for line, _ in asked.open))}
        kept = tuple(line for line in before.lines if line in lines)
        return BeatOutcome(_seen(structs.replace(quiet, lines=kept), look))
    state = _seen(
        not_asked(before, now, "asked", "; ".join([*map(_first_line, reasons), *([why] if why else [])])), look
    )
    state = structs.replace(state, asked=now, lines=tuple(_digest(line) for line, _ in asked.open))
    told = "\n".join(f"- {each}" for each in reasons)
    text = TOLD.format(reasons=told, file=HEARTBEAT_FILE, text=asked.text[:LONGEST], silence=SILENCE)
    return BeatOutcome(state, text)


def not_asked(before: HeartbeatState, now: float, decided: BeatDecision, why: str) -> HeartbeatState:
    """The same, with what was decided: what has changed is still to be asked about."""
    return structs.replace(before, looked=now, decided=decided, why=why[:500])


def _seen(state: HeartbeatState, look: HeartbeatLook) -> HeartbeatState:
    said = {command: _digest(text) if text else "" for command, text in look.said.items()}
    checks = {command: state.checks[command] for command in look.failed if command in state.checks} | said
    watching = _digest("\n".join(look.instructions.watch))
    return structs.replace(state, watching=watching, files=dict(look.files), checks=checks)


def _new_lines(before: HeartbeatState, asked: Instructions) -> list[str]:
    new = [line for line, _ in asked.open if _digest(line) not in before.lines]
    return [f"new in {HEARTBEAT_FILE}: {line[:200]}" for line in new[:NAMED]]


def _due_lines(before: HeartbeatState, asked: Instructions, now: float, again: float) -> list[str]:
    waited = now - before.asked + SLACK
    old = [(line, every or again) for line, every in asked.open if _digest(line) in before.lines]
    return [f"it is time again for: {line[:200]}" for line, every in old if every and waited >= every][:NAMED]


def _changed_files(before: HeartbeatState, look: HeartbeatLook) -> list[str]:
    """Of files that are watched since this beat, nobody knows what they were before."""
    if before.watching != _digest("\n".join(look.instructions.watch)):
        return []
    names = sorted(
        name
        for name in before.files.keys() | look.files.keys()
        if _content(before.files, name) != _content(look.files, name)
    )
    words = {(False, True): "new", (True, True): "changed", (True, False): "gone"}
    told = [f"{words[name in before.files, name in look.files]}: {name!r}" for name in names[:NAMED]]
    return [*told, f"and {len(names) - NAMED} more files"] if len(names) > NAMED else told


def _content(files: Mapping[str, FileStamp], name: str) -> str:
    return files[name].digest if name in files else ""


def _news_of_checks(before: HeartbeatState, look: HeartbeatLook) -> list[str]:
    """What may be strangers' words stands in no instructions: the model looks for itself."""
    news = [command for command, text in look.said.items() if text and before.checks.get(command) != _digest(text)]
    return [
        f"`{command}` says something else now; run it to see what"
        if command in look.outside
        else f"`{command}` says: {look.said[command][:LONGEST]}"
        for command in news
    ]


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def checks_digest(instructions: Instructions) -> str:
    """By which an approver allows these checks, and no others; "" where there are none."""
    return _digest("\n".join(instructions.checks)) if instructions.checks else ""


def is_heartbeat(source: str) -> bool:
    return source.startswith(HEARTBEAT_SOURCE)


def is_silence(text: str) -> bool:
    return text.strip(_AROUND) == SILENCE


def may_become_silence(text: str) -> bool:
    """Whether a draft may still turn out to say nothing."""
    return SILENCE.startswith(text.strip(_AROUND)) or is_silence(text)


def hushed(turn: Finished) -> Finished:
    """The same; but a turn of the heartbeat that had nothing to tell delivers nothing. Not where a person has spoken in
    the middle of it: they wait for an answer."""
    alone = is_heartbeat(turn.source) and len(turn.mails) == 1
    if not alone or turn.reason or turn.unknown or not is_silence(turn.text or ""):
        return turn
    return structs.replace(turn, text=None, files=())
