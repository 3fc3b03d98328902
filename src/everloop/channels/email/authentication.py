"""What the receiving server found out about a mail's sender: the header Authentication-Results (RFC 8601).

Anyone can write such a header into a mail. Those count that bear the name of our own server (authserv-id), which takes
away what others have written in its name, and of these the topmost, which it wrote last.
"""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from .addresses import BadAddress, domain_of
from .comments import uncommented

Verdict = Literal["pass", "fail", "none"]
MOST_HEADERS = 20  # that are looked through for ours
LONGEST_RESULTS = 10_000  # characters of one; what is cut off says nothing
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s;"]+)|(;)', re.DOTALL)


class Finding(Struct, frozen=True):
    """`method` (dmarc, dkim, spf …) came to this `result`, for what `properties` say."""

    method: str
    result: str
    properties: dict[str, str]


class AuthResults(Struct, frozen=True):
    server: str
    findings: tuple[Finding, ...]


def read_results(header: str) -> AuthResults:
    """What a header says; of one that cannot be understood, nothing."""
    try:
        words = _words(uncommented(" ".join(header[:LONGEST_RESULTS].split())))
    except ValueError:
        return AuthResults("", ())
    clauses: list[list[str]] = [[]]
    for word in words:
        if word == ";":
            clauses.append([])
        else:
            clauses[-1].append(word)
    server = clauses[0][0].lower() if clauses[0] else ""
    return AuthResults(server, tuple(found for clause in clauses[1:] if (found := _finding(clause))))


def judge(headers: Sequence[str], servers: Sequence[str], domain: str) -> Verdict:
    """Whether our server says that a mail of this domain is from there. `headers` are all of the mail's, topmost first;
    `servers` are the names by which ours calls itself."""
    ours = [found for header in headers[:MOST_HEADERS] if (found := read_results(header)).server in servers]
    if not ours:
        return "none"
    findings = ours[0].findings
    if any(each.method == "dmarc" and each.result == "fail" for each in findings):
        return "fail"
    return "pass" if any(_vouches(each, domain) for each in findings) else "none"


def _vouches(finding: Finding, domain: str) -> bool:
    if finding.result != "pass":
        return False
    said = finding.properties
    match finding.method:
        case "dmarc":
            return _domain(said.get("header.from", "")) == domain
        case "dkim":
            return _speaks_for(_domain(said.get("header.d", "") or said.get("header.i", "")), domain)
        case "spf":
            return _speaks_for(_domain(said.get("smtp.mailfrom", "")), domain)
    return False


def _speaks_for(signer: str, domain: str) -> bool:
    """A domain speaks for itself and what is below it, never for what is above: that may be someone else's."""
    return bool(signer) and (signer == domain or ("." in signer and domain.endswith(f".{signer}")))


def _domain(value: str) -> str:
    try:
        return domain_of(value.rpartition("@")[2])
    except BadAddress:
        return ""


def _finding(clause: Sequence[str]) -> Finding | None:
    pairs = [(name.lower(), value) for name, equals, value in (word.partition("=") for word in clause) if equals]
    if not pairs or "." in pairs[0][0]:
        return None
    (method, result), *properties = pairs
    told: dict[str, str] = {}
    for name, value in properties:
        told.setdefault(name, value)
    return Finding(method.partition("/")[0], result.lower(), told)


def _words(text: str) -> list[str]:
    """What stands between spaces; a quoted string is a part of the word that it stands in."""
    words: list[str] = []
    glued, end = False, 0
    for match in _TOKEN.finditer(text):
        quoted, plain, semicolon = match.groups()
        glued = bool(words) and match.start() == end and words[-1] != ";" and not semicolon
        # what was quoted is a value, whatever it looks like: an = in it begins nothing
        piece = semicolon or plain or (quoted or "").replace("=", "\ufffd").replace(";", "\ufffd")
        if glued:
            words[-1] += piece
        else:
            words.append(piece)
        end = match.end()
    return words
