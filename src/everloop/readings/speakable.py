"""What a model writes, as words to be read aloud: code, pictures and formulas are announced, not spelled. The page does
the same with what it shows (speakable.js), for the voices of the browser."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

_MOST = 200_000  # characters that are looked at
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,}) *([\w+#.-]{0,30})")
_RULE = re.compile(r"\s{0,3}(?:[-*_=] ?){3,}\s*")
_UNDER_TITLES = re.compile(r"[\s:|-]*")  # of a table
_MARK = re.compile(r"\s{0,20}(?:>\s{0,3}){0,9}(?:#{1,6}\s+|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,9}[.)]\s+)?")
_CODE = re.compile(r"(`{1,3})([^`\n]{1,2000}?)\1")
# None begins within another: else each beginning of a line of them would be looked for an end.
_FORMULA = re.compile(r"\$\$[^$]{1,2000}\$\$|\\\((?:(?!\\\()[^\n]){1,2000}?\\\)|\\\[(?:(?!\\\[)[^\n]){1,2000}?\\\]")
_PICTURE = re.compile(r"!\[([^\[\]\n]{0,500})\]\([^()\n]{0,2000}\)")
_LINK = re.compile(r"\[([^\[\]\n]{1,500})\]\([^()\n]{0,2000}\)")
_ADDRESS = re.compile(r"<?https?://[^\s()<>]{1,2000}>?")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,200}>")
_STRESS = re.compile(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}|~~|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
_SENTENCE = re.compile(r"[.!?…。！？](?=[^.!?…。！？]*\Z)")
_WORD = re.compile(r"[^\W_]")


def speakable(markdown: str) -> str:
    """A sentence or more in each line; "" where there is nothing to say."""
    said = (" ".join(line.split()) for line in _lines(markdown[:_MOST]))
    return "\n".join(_ended(line) for line in said if _WORD.search(line))


def _lines(markdown: str) -> Iterator[str]:
    lines = iter(markdown.splitlines())
    for line in lines:
        if fence := _FENCE.match(line):
            yield _announced(fence[2], _skip(lines, fence[1]))
        elif line.strip() in ("$$", r"\["):
            _skip(lines, "$$" if line.strip() == "$$" else r"\]")
            yield "A formula."
        elif not _is_rule(line):
            yield _words(line)


def _is_rule(line: str) -> bool:
    """A line is as long as a model likes, so each of its characters is looked at but a few times."""
    if "|" in line and _UNDER_TITLES.fullmatch(line):
        return -1 < line.find("-") < line.rfind("|")
    return _RULE.fullmatch(line) is not None


def _skip(lines: Iterator[str], end: str) -> int:
    """How many lines there were before the end."""
    count = 0
    for line in lines:
        if line.strip().startswith(end):
            break
        count += 1
    return count


def _announced(language: str, lines: int) -> str:
    return f"A block of {language + ' ' if language else ''}code, {'1 line' if lines == 1 else f'{lines} lines'}."


def _words(line: str) -> str:
    line = _MARK.sub("", line, count=1)
    line = _PICTURE.sub(_picture, _FORMULA.sub("a formula", line))
    line = _ADDRESS.sub(_host, _LINK.sub(r"\1", line))
    pieces = _CODE.split(line)  # what stands between, its ticks, and the code
    pieces[0::3] = [_STRESS.sub("", _TAG.sub("", each)) for each in pieces[0::3]]
    del pieces[1::3]
    return _row("".join(pieces))


def _row(line: str) -> str:
    """Of a table, as a list."""
    return ", ".join(cell for each in line.split("|") if (cell := each.strip())) if "|" in line else line


def _picture(found: re.Match[str]) -> str:
    return f"A picture: {found[1]}." if found[1] else "A picture."


def _host(found: re.Match[str]) -> str:
    try:
        host = urlsplit(found[0].strip("<>")).hostname
    except ValueError:
        host = ""
    return f"a link to {host}{'.' if found[0].endswith('.') else ''}" if host else "a link"


def _ended(line: str) -> str:
    """A heading or a line of a list is a sentence of its own."""
    return f"{line}." if line[-1].isalnum() or line[-1] in ')]"”’' else f"{line[:-1]}." if line[-1] == "," else line


def cut_to_parts(text: str, size: int) -> list[str]:
    """In order, none longer than `size`, cut where a line, a sentence or at least a word ends."""
    parts = []
    while len(text) > size:
        head = text[:size]
        end = max(head.rfind("\n") + 1, _after_sentence(head)) or head.rfind(" ") + 1 or size
        parts.append(text[:end].strip())
        text = text[end:]
    return [part for part in [*parts, text.strip()] if part]


def _after_sentence(head: str) -> int:
    found = _SENTENCE.search(head)
    return found.end() if found else 0
