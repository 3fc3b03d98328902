"""What a person allows ahead when asked about a call: the like of it, and no more.

Without a word on which calls are alike, it is the very same call (by its digest). A person can choose more: commands
that fit a pattern, the addresses of a host, anything of the tool. What else is chosen (a folder, this conversation)
must hold beside it. Nobody needs to look at a file for that: what the folder is, was looked at when it was asked.
"""

import re
from fnmatch import fnmatchcase

from ..core.tool import Ground, Risk
from ..errors import GrantRefused
from ..ports.permission import HOUR, Allowance, Grant, WantedCall

DAY = 24 * HOUR
LONGEST = 10_000 * DAY
MANY, MOST_RUNS = 1_000_000, 10_000  # runs that nobody counts; and that can be counted
LEVELS = ("low", "medium", "high")
CHOICES = ("for", "runs", "here", "any", "argv", "folder", "host")  # the words by which a person chooses

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_HOST = re.compile(r"(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*(:\d{1,5})?|\[[0-9a-f:.]+\](:\d{1,5})?", re.ASCII)


def choices_of(wanted: WantedCall) -> tuple[str, ...]:
    """The words that can be said of a call."""
    risk = wanted.risk
    cannot = {"argv": not risk.argv or not wanted.grounds, "folder": not wanted.grounds, "host": not risk.host}
    return tuple(word for word in CHOICES if wanted.definition and not cannot.get(word))


def covers(grant: Grant, wanted: WantedCall) -> bool:
    """Whether a call is one of those that were allowed ahead."""
    bound = grant.any or grant.digest or grant.argv or grant.host
    return bool(bound) and _is_for(grant, wanted) and _is_alike(grant, wanted)


def _is_for(grant: Grant, wanted: WantedCall) -> bool:
    return (
        (grant.tool, grant.user, grant.definition) == (wanted.tool, wanted.user, wanted.definition)
        and grant.thread in ("", wanted.thread)
        and LEVELS.index(wanted.risk.level) <= LEVELS.index(grant.risk)
    )


def _is_alike(grant: Grant, wanted: WantedCall) -> bool:
    return (
        grant.digest in ("", wanted.digest)
        and (not grant.argv or _is_such_a_command(grant, wanted.risk))
        and (not grant.host or _is_of(wanted.risk.host, grant.host))
        and (not grant.ground or any(each.identity == grant.ground for each in wanted.grounds))
    )


def _is_such_a_command(grant: Grant, risk: Risk) -> bool:
    alike = risk.background == grant.background and risk.seconds <= grant.seconds
    return alike and _fits(risk.argv, grant.argv)


def _fits(words: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if pattern[-1] == "*":
        words, pattern = words[: len(pattern) - 1], pattern[:-1]
    return bool(words) and len(words) == len(pattern) and all(map(fnmatchcase, words, pattern))


def _is_of(host: str, pattern: str) -> bool:
    """Whether it is this host, at the same port; or below it."""
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def granted(wanted: WantedCall, chosen: Allowance, *, id: str, by: str, now: float, call: str = "") -> Grant:
    """What an answer allows ahead. Raises GrantRefused when it would not fit the very call that it is given with."""
    if not wanted.definition:
        raise GrantRefused("this question was asked by an older everloop, and can only be answered with yes or no")
    if not 0 < chosen.seconds <= LONGEST or not 0 <= chosen.runs <= MOST_RUNS:
        raise GrantRefused(f"it is allowed for some time, up to {LONGEST / DAY:.0f} days, and up to {MOST_RUNS} times")
    argv, host, ground = _argv(wanted, chosen), _host(wanted, chosen.host), _ground(wanted, chosen)
    bound = chosen.any or argv or host
    return Grant(
        id=id,
        user=wanted.user,
        by=by,
        tool=wanted.tool,
        definition=wanted.definition,
        digest="" if bound else wanted.digest,
        argv=argv,
        background=wanted.risk.background,
        seconds=wanted.risk.seconds,
        host=host,
        folder=ground.name,
        ground=ground.identity,
        thread=wanted.thread if chosen.here else "",
        any=chosen.any and not argv and not host,
        risk=wanted.risk.level,
        runs=chosen.runs or MANY,
        until=now + chosen.seconds,
        call=call,
    )


def _argv(wanted: WantedCall, chosen: Allowance) -> tuple[str, ...]:
    same = chosen.folder and not chosen.any and not chosen.host  # then it is the same command, elsewhere
    words, pattern = wanted.risk.argv, tuple(chosen.argv.split())
    if not pattern and not same:
        return ()
    if not words:
        raise GrantRefused(
            "this is no plain command (it has a pipe, a variable, a second command), and no pattern fits such; "
            "allow it once, or the same call again, with a time alone"
        )
    if pattern and not _fits(words, pattern):
        raise GrantRefused(
            f"the pattern {' '.join(pattern)!r} does not fit the command that waits ({' '.join(words)}); nothing was "
            "decided"
        )
    return pattern or tuple(re.sub(r"([*?[])", r"[\1]", word) for word in words)


def _host(wanted: WantedCall, chosen: str) -> str:
    host = chosen.lower()
    if not host:
        return ""
    if not wanted.risk.host:
        raise GrantRefused(f"this call of {wanted.tool} names no host that could be allowed; nothing was decided")
    if not _HOST.fullmatch(host) or (host.startswith("*.") and host.count(".") < 2):
        raise GrantRefused(f"{chosen!r} is no host; say one as {wanted.risk.host} or *.example.com")
    if not _is_of(wanted.risk.host, host):
        raise GrantRefused(f"{host} is not the host that waits ({wanted.risk.host}); nothing was decided")
    return host


_ANYWHERE = Ground("", "")


def _ground(wanted: WantedCall, chosen: Allowance) -> Ground:
    """The folder that a grant is for: the one that was chosen, or of a command the one that it runs in."""
    if not chosen.folder and not chosen.argv:
        return _ANYWHERE
    if not wanted.grounds:
        raise GrantRefused("which folder this runs in is not known, so that none can be allowed; nothing was decided")
    own = wanted.grounds[-1]
    if not chosen.folder:
        return own
    name = "/".join(part for part in chosen.folder.split("/") if part not in ("", "."))
    for ground in wanted.grounds:
        if ground.name == name and not chosen.folder.startswith("/"):
            return ground
    raise GrantRefused(
        f"it runs in {own.name or 'the workspace itself'}, which is not in {chosen.folder!r}; name a folder by its "
        "path in the workspace, without links. Nothing was decided"
    )


def read_words(words: list[str], wanted: WantedCall) -> Allowance | None:
    """What the words after a yes allow ahead; None without any. Raises GrantRefused for what nobody can mean."""
    said: dict[str, str | float | bool] = {}
    left = list(words)
    while left:
        word = left.pop(0).lower()
        if word not in CHOICES or word in said:
            why = "is said twice" if word in said else "is not understood"
            raise GrantRefused(f"{word!r} {why}; say yes alone, or with {SAID}. Nothing was decided")
        said[word] = _value(word, left, wanted)
    if not said:
        return None
    named = {"for": "seconds"}
    return Allowance(**{named.get(word, word): value for word, value in said.items()})  # type: ignore[arg-type]


SAID = "`for 1h`, `runs 5`, `here`, `host [HOST]`, `folder [PATH]`, `any`, and last `argv PATTERN`"


def _value(word: str, left: list[str], wanted: WantedCall) -> str | float | bool:
    """What belongs to a word, taken from those that follow it."""
    match word:
        case "for":
            return seconds_of(left.pop(0) if left else "")
        case "runs":
            return runs_of(left.pop(0) if left else "")
        case "argv":
            pattern = " ".join(left)
            left.clear()
            if not pattern:
                raise GrantRefused("argv is followed by a pattern, as in: argv git push *. Nothing was decided")
            return pattern
        case "host" | "folder":
            own = wanted.risk.host if word == "host" else wanted.grounds[-1].name if wanted.grounds else ""
            named = left.pop(0) if left and left[0].lower() not in CHOICES else own
            return named or "."
        case _:
            return True


def seconds_of(text: str) -> float:
    """A time as people type it. Raises GrantRefused."""
    if not (match := re.fullmatch(r"(\d{1,4})([smhd])", text, re.ASCII)) or not int(match[1]):
        raise GrantRefused(f"{text!r} is no time; say one such as 30m, 8h or 7d")
    return float(int(match[1]) * _UNITS[match[2]])


def time_of(seconds: float) -> str:
    """The same for people to read, in the largest unit. What is nearly a day is called one: "24h" and "1d" would be
    the same to a person, a second apart."""
    left = max(0, round(seconds))
    size, unit = next((size, unit) for unit, size in reversed(_UNITS.items()) if left >= 0.99 * size or unit == "s")
    return f"{round(left / size)}{unit}"


def runs_of(text: str) -> int:
    """How often. Raises GrantRefused."""
    if not re.fullmatch(r"\d{1,5}", text, re.ASCII) or not 1 <= int(text) <= MOST_RUNS:
        raise GrantRefused(f"{text!r} is no number from 1 to 10000")
    return int(text)


def described(grant: Grant, thread: str = "") -> str:
    """All that it allows, and on what conditions, to whoever is in this thread."""
    what = "the same call" if grant.digest else "nothing"
    what = "anything" if grant.any else what
    if grant.argv:
        limit = f", up to {grant.seconds} s" if grant.seconds else ""
        what = f"{' '.join(grant.argv)} ({'in the background' if grant.background else 'not in the background'}{limit})"
    parts = [what] if not grant.host else [*([what] if grant.argv else []), f"addresses of {grant.host}"]
    if grant.ground:
        parts.append(f"in {grant.folder or 'the workspace'} and below")
    if grant.thread:
        parts.append(f"only in {'this conversation' if grant.thread == thread else f'conversation {grant.thread}'}")
    return ", ".join(parts)


def extent(grant: Grant, now: float) -> str:
    """For how long it still holds, and how often."""
    runs = "" if grant.runs > MANY // 2 else f", {grant.runs} more time{'s' * (grant.runs > 1)}"
    return f"for {time_of(grant.until - now)}{runs}"
