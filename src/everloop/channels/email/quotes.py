"""What a person wrote, apart from what their mail program put below it: the mail that they answer, and a signature."""

import re

LONGEST_QUOTE = 4000  # characters that are kept of what a mail is a reply to
_ATTRIBUTION = re.compile(
    r"^(on|am|le|el|il|op|em|den|dne|w dniu|\d{4}[-./]\d\d?[-./]\d\d?)\b.{3,400}"
    r"(wrote|schrieb|writes|a écrit|escribió|ha scritto|schreef|escreveu|skrev|napsal\(a\)|napisał\(a\)|>)\s?.{0,80}:$",
    re.IGNORECASE | re.DOTALL,
)
_SEPARATOR = re.compile(
    r"^(-{2,} ?(original message|ursprüngliche nachricht|message d'origine|mensaje original|messaggio originale|"
    r"oorspronkelijk bericht) ?-{2,}|_{20,})$",
    re.IGNORECASE,
)
_HEADER = re.compile(r"^\*?(from|von|de|da|van|från|fra)\s?:\*?\s.+", re.IGNORECASE)
_NEXT_HEADER = re.compile(
    r"^\*?(sent|date|gesendet|datum|envoyé|enviado|inviato|verzonden|skickat)\s?:\*?\s.+", re.IGNORECASE
)
_FORWARD = re.compile(r"^\s*(fwd?|wg|tr|rv|i)\s*:", re.IGNORECASE)
_DECISION = re.compile(r"^/(approve|deny)\b", re.IGNORECASE)


def is_forward(subject: str) -> bool:
    return bool(_FORWARD.match(subject))


def parted(text: str, *, forward: bool = False) -> tuple[str, str]:
    """What was written, and what it is a reply to. Of a forwarded mail nothing is taken away but the signature above:
    it is what it was sent for."""
    lines = [line.rstrip().replace("\xa0", " ") for line in text.replace("\r\n", "\n").split("\n")]
    written, quoted = (lines, []) if forward else _parted(lines)
    said = _without_signature(written)
    first = said.partition("\n")[0]
    return first if _DECISION.match(first) else said, "\n".join(quoted).strip()[:LONGEST_QUOTE]


def _parted(lines: list[str]) -> tuple[list[str], list[str]]:
    written: list[str] = []
    quoted: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if _SEPARATOR.match(line.strip()) or _is_header_block(lines, at):
            return written, quoted + lines[at:]
        if skipped := _attribution(lines, at):
            at += skipped
            continue
        if line.lstrip().startswith(">"):
            quoted.append(line.lstrip().removeprefix(">").removeprefix(" "))
        else:
            written.append(line)
        at += 1
    return written, quoted


def _attribution(lines: list[str], at: int) -> int:
    """How many lines say that what follows is quoted: one, or two where a mail program has broken it."""
    for count in (1, 2, 3):
        together = " ".join(line.strip() for line in lines[at : at + count])
        below = [line for line in lines[at + count : at + count + 3] if line.strip()][:1]
        if below and below[0].lstrip().startswith(">") and _ATTRIBUTION.match(together.lstrip("> ")):
            return count
    return 0


def _is_header_block(lines: list[str], at: int) -> bool:
    """Outlook's way: the headers of the other mail."""
    return bool(_HEADER.match(lines[at].strip())) and any(
        _NEXT_HEADER.match(line.strip()) for line in lines[at + 1 : at + 3]
    )


def _without_signature(lines: list[str]) -> str:
    for at, line in enumerate(lines):
        if line in ("--", "-- "):
            lines = lines[:at]
            break
    return "\n".join(lines).strip()
