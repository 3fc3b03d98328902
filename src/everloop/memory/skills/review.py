"""What a skill of a stranger asks for, in plain lines, before it counts: what its words would have the agent do, and
what a person would not see in them. Nothing of it is run to find that out."""

import re
from collections.abc import Iterator

from ...readings.visible import in_one_line
from .skill import FILE, Skill
from .unpack import Tree

MOST = 12  # lines of a kind that are shown
LONGEST = 160
LOOKED_AT = 500_000  # bytes of one file
IN_ALL = 1_000_000  # bytes of all of them: to look at all that may be in one could take a minute
_SHELLS = {"", "sh", "bash", "shell", "console", "zsh", "terminal", "shell-session", "powershell", "bat", "cmd"}
_ADDRESS = re.compile(r"\b(?:https?|ftp|wss?|ssh|git)://[^\s<>\"'`)\]}|]+", re.IGNORECASE)
_SCRIPTS = (".sh", ".bash", ".py", ".js", ".mjs", ".ts", ".rb", ".pl", ".ps1", ".bat", ".cmd", ".exe", ".so", ".dll")
_TEXTS = (".md", ".txt", ".json", ".yaml", ".yml", ".csv", ".html", ".png", ".jpg", ".svg")
# What has no width, turns the order of letters around, or is a tag: joiners too, for here a person looks for tricks.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0000-\U000e01ef]"
)
_BLOB = re.compile(
    r"(?<![A-Za-z0-9+/=_-])(?:[A-Za-z0-9+/_-]{120,}={0,2}|(?:[A-Za-z0-9+/]{60,}\n){2,}|(?:\\x[0-9a-f]{2}){20,})"
)
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_FETCHES = re.compile(r"\b(?:curl|wget|iwr|invoke-webrequest)\b", re.IGNORECASE)
_SHELL = re.compile(r"\b(?:ba|z|da)?sh\b")
_EVALUATES = re.compile(r"\b(?:eval|source)\s{1,9}[\"']?\$?[<(]")
_GUARDED = re.compile(
    r"\b(?:AGENTS|SOUL|USER|TOOLS|IDENTITY|HEARTBEAT|MEMORY|HISTORY)\.md\b|~/\.ssh|\bid_rsa\b|\.aws/|(?<!\w)\.env\b|/etc/passwd|"
    r"\bcrontab\b|\.bashrc|\.profile|\.everloop\b|\bconfig\.toml\b|\bsudo\b|\bchmod \+?[0-7]*s|keychain|\bcookies?\b",
    re.IGNORECASE,
)


def asked_for(skill: Skill, tree: Tree) -> list[str]:
    """A line for each kind of thing that it asks for."""
    texts = dict(_texts(tree))
    prose = "\n".join(texts.values())
    found = (
        ("tools that it wants (this allows nothing)", skill.allowed_tools),
        ("programs", skill.bins),
        ("variables", skill.env),
        ("needs", (skill.compatibility,) if skill.compatibility else ()),
        ("commands", _commands(prose)),
        ("addresses", _ADDRESS.findall(prose)),
        ("scripts", [path for path, file in tree.items() if _is_script(path, file.content, file.executable)]),
    )
    lines = [f"{what}: {_listed(each)}" for what, each in found if each]
    if skill.always:
        lines.insert(0, "always: all of its text would stand in every prompt")
    return lines or ["nothing beside being read"]


def warnings_of(tree: Tree) -> list[str]:
    """What a person should look at first."""
    texts = dict(_texts(tree))
    found = [f"{path}: {in_one_line(said)}" for path, text in texts.items() for said in _strange_in(text)][: 3 * MOST]
    long = [path for path in texts if len(tree[path].content) > LOOKED_AT]
    unseen = [path for path, file in tree.items() if path not in texts and _is_text(file.content)]
    return [
        *found,
        *(f"{path}: only its first {LOOKED_AT:,} bytes were looked at" for path in long[:MOST]),
        *([f"{len(unseen)} file(s) were not looked at, for there is so much: {_listed(unseen)}"] if unseen else ()),
    ]


def _strange_in(text: str) -> Iterator[str]:
    if unseen := _UNSEEN.findall(text):
        codes = ", ".join(sorted({f"U+{ord(each):04X}" for each in unseen})[:6])
        yield f"{len(unseen)} letter(s) in it cannot be seen ({codes})"
    if hidden := [each.strip() for each in _COMMENT.findall(text) if each.strip()]:
        yield f"text in a comment, which readers of the page do not see: {_cut(hidden[0])}"
    if blobs := _BLOB.findall(text):
        yield f"{len(blobs)} long string(s) that say nothing to a person (base64?): {_cut(blobs[0], 40)}"
    if piped := next(filter(_runs_what_it_fetches, text.split("\n")), ""):
        yield f"runs what it fetches: {_cut(piped)}"
    if guarded := sorted({each.group(0) for each in _GUARDED.finditer(text)}):
        yield f"speaks of {', '.join(guarded[:6])}"


def _runs_what_it_fetches(line: str) -> bool:
    """`curl … | sh`; step by step, for one pattern for all of it could take hours on a line that is made for that."""
    fetches = _FETCHES.search(line)
    pipe = line.find("|", fetches.end()) if fetches else -1
    return (pipe >= 0 and _SHELL.search(line, pipe) is not None) or _EVALUATES.search(line) is not None


def _texts(tree: Tree) -> Iterator[tuple[str, str]]:
    """What is looked at: SKILL.md in any case, and the others from the shortest on, so that none hides many."""
    room = IN_ALL
    for path, file in sorted(tree.items(), key=lambda each: (each[0] != FILE, len(each[1].content))):
        looked_at = file.content[:LOOKED_AT]
        if _is_text(looked_at) and len(looked_at) <= room:
            room -= len(looked_at)
            yield path, looked_at.decode("utf-8", "replace")


def _is_text(content: bytes) -> bool:
    return b"\0" not in content[:8192]


def _commands(text: str) -> list[str]:
    """Lines of blocks that are a shell's, or nobody's."""
    fence, is_shells, found = "", False, dict[str, None]()
    for line in map(str.strip, text.split("\n")):
        marks = line[: len(line) - len(line.lstrip(line[:1]))] if line[:3] in ("```", "~~~") else ""
        if marks and not fence:
            fence, is_shells = marks, line[len(marks) :].strip().lower().split(" ")[0] in _SHELLS
        elif marks and marks.startswith(fence) and marks == line:
            fence = ""
        elif fence and is_shells and line and not line.startswith("#"):
            found[line.removeprefix("$ ")] = None
    return list(found)


def _is_script(path: str, content: bytes, executable: bool) -> bool:
    called = executable and not path.lower().endswith(_TEXTS)
    return called or path.lower().endswith(_SCRIPTS) or content.startswith((b"#!", b"\x7fELF", b"MZ"))


def _listed(found: "tuple[str, ...] | list[str]") -> str:
    distinct = list(dict.fromkeys(found))
    more = f" … and {len(distinct) - MOST} more" if len(distinct) > MOST else ""
    return "; ".join(_cut(each) for each in distinct[:MOST]) + more


def _cut(text: str, longest: int = LONGEST) -> str:
    line = in_one_line(" ".join(text.split()))
    return line if len(line) <= longest else f"{line[:longest]}…"
