"""The head of a SKILL.md: the part of YAML that people write there, and no more.

Read strictly and by hand: a parser of all of YAML makes objects, follows aliases and reads `no` as false. What is not
read here (anchors, tags, several documents) is said in a sentence.
"""

import json
import re
from typing import Any, NoReturn

LONGEST = 20_000  # characters
DEEPEST = 5
LINES = 200  # over which something in quotes or brackets may go on
_KEY = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]{0,79})\s*:(?:\s+(.*)|)\Z")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "r": "\r", "0": "", " ": " "}
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None}


class FrontmatterError(ValueError):
    """What is wrong with it, in a sentence."""


def split(text: str) -> tuple[str | None, str]:
    """The head, None if there is none, and the rest. Raises FrontmatterError for a head without an end."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith("---\n"):
        return None, text
    head, found, body = text[4:].partition("\n---\n") if not text.startswith("---\n---\n") else ("", "-", text[8:])
    if not found:
        if not text.endswith("\n---"):
            raise FrontmatterError("the frontmatter that begins with --- has no closing ---")
        head, body = text[4:-4], ""
    if len(head) > LONGEST:
        raise FrontmatterError(f"the frontmatter has more than {LONGEST:,} characters")
    return head, body


def read(head: str) -> dict[str, Any]:
    """What stands in a head. Raises FrontmatterError."""
    return _HeaderReader(head).mapping(0, 0)


class _HeaderReader:
    def __init__(self, head: str) -> None:
        self._lines = head.split("\n")
        self._at = 0

    def mapping(self, indent: int, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if depth > DEEPEST:
            self._refuse("it is nested too deeply")
        while (line := self._next()) is not None and _indent(line) >= indent:
            if _indent(line) > indent:
                self._refuse("it is indented more than what it belongs to")
            match = _KEY.fullmatch(line.strip())
            if match is None:
                self._refuse(f"{line.strip()[:60]!r} is no `key: value`")
            key, value = match[1], (match[2] or "").strip()
            if key in found:
                self._refuse(f"{key} stands there twice")
            self._at += 1
            found[key] = self._value(value, indent, depth)
        return found

    def _value(self, value: str, indent: int, depth: int) -> Any:
        if value[:1] in ("|", ">"):
            return self._block(value, indent)
        if not value or value.startswith("#"):
            return self._nested(indent, depth)
        if value[0] in "&*!%@`":
            self._at -= 1
            self._refuse(f"{value[0]} (an anchor, an alias or a tag) is not read here; put the value in quotes")
        if value[0] in "\"'[{":
            return self._closed(value)
        return _plain(" ".join([_uncommented(value), *map(_uncommented, self._continued(indent))]))

    def _nested(self, indent: int, depth: int) -> Any:
        line = self._next()
        if line is None or (_indent(line) <= indent and not (_indent(line) == indent and _is_item(line))):
            return None
        if _is_item(line):
            return self._items(_indent(line))
        return self.mapping(_indent(line), depth + 1)

    def _items(self, indent: int) -> list[Any]:
        items = []
        while (line := self._next()) is not None and _indent(line) == indent and _is_item(line):
            self._at += 1
            value = line.strip()[1:].strip()
            items.append(self._closed(value) if value[:1] in ("'", '"') else _plain(_uncommented(value)))
        return items

    def _block(self, marks: str, indent: int) -> str:
        if not re.fullmatch(r"[|>][+-]?(\s+#.*)?", marks):
            self._refuse(f"{marks[:20]!r} is not read here; write | or >")
        lines: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and _indent(line) <= indent:
                break
            lines.append(line)
            self._at += 1
        inner = min((_indent(line) for line in lines if line.strip()), default=0)
        text = "\n".join(line[inner:] for line in lines).strip("\n")
        return text if marks[0] == "|" else re.sub(r"(?<!\n)\n(?!\n)", " ", text)

    def _closed(self, value: str) -> Any:
        """In quotes or brackets, which may go on over lines."""
        begin = self._at
        while not (found := _read_closed(value))[0]:
            if self._at >= len(self._lines) or self._at - begin > LINES:
                self._refuse(f"{value[:40]!r} is not closed")
            value += " " + self._lines[self._at].strip()
            self._at += 1
        if isinstance(found[1], FrontmatterError):
            raise found[1]
        return found[1]

    def _continued(self, indent: int) -> list[str]:
        """The lines in which a plain text goes on."""
        more = []
        while self._at < len(self._lines) and (line := self._lines[self._at]).strip() and _indent(line) > indent:
            more.append(line.strip())
            self._at += 1
        return more

    def _next(self) -> str | None:
        """The next line that says something."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and not line.lstrip().startswith("#"):
                if "\t" in line[: len(line) - len(line.lstrip())]:
                    self._refuse("a line begins with a tab; indent with spaces")
                return line
            self._at += 1
        return None

    def _refuse(self, why: str) -> NoReturn:
        raise FrontmatterError(f"line {self._at + 2} of the frontmatter: {why}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_item(line: str) -> bool:
    return line.strip() == "-" or line.lstrip().startswith("- ")


def _uncommented(text: str) -> str:
    return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].strip()


def _plain(text: str) -> Any:
    return _WORDS.get(text.lower(), text)


def _read_closed(value: str) -> tuple[bool, Any]:
    """Whether it is closed, and what it says."""
    if value[0] in "\"'":
        return _read_quoted(value)
    if not _is_balanced(value):
        return False, None
    try:
        return True, json.loads(_uncommented_json(value))
    except (ValueError, RecursionError):
        pass
    inner = value.strip().rstrip()
    if inner.startswith("[") and inner.endswith("]") and not re.search(r"[\[\]{}]", inner[1:-1]):
        return True, [_unquoted(each.strip()) for each in inner[1:-1].split(",") if each.strip()]
    return True, FrontmatterError(f"{value[:60]!r} is neither a list of words nor JSON")


def _uncommented_json(value: str) -> str:
    return re.sub(r"(?<=[\]}])\s+#.*\Z", "", value)


def _unquoted(word: str) -> Any:
    if word[:1] in ("'", '"') and word[-1:] == word[:1] and len(word) > 1:
        return word[1:-1]
    return _plain(word)


def _is_balanced(value: str) -> bool:
    bare = re.sub(r'"(?:\\.|[^"\\])*"', "", value)
    return bare.count("[") == bare.count("]") and bare.count("{") == bare.count("}")


def _read_quoted(value: str) -> tuple[bool, Any]:
    quote = value[0]
    pattern = r"'((?:[^']|'')*)'(.*)\Z" if quote == "'" else r'"((?:\\.|[^"\\])*)"(.*)\Z'
    match = re.fullmatch(pattern, value, re.DOTALL)
    if match is None:
        return False, None
    if rest := _uncommented(match[2]):
        return True, FrontmatterError(f"{rest[:40]!r} stands after what is in quotes")
    if quote == "'":
        return True, match[1].replace("''", "'")
    return True, re.sub(r"\\u([0-9a-fA-F]{4})|\\(.)", _escape, match[1])


def _escape(found: "re.Match[str]") -> str:
    if found[1]:
        letter = chr(int(found[1], 16))
        return letter if not 0xD800 <= ord(letter) <= 0xDFFF else "\ufffd"
    return _ESCAPES.get(found[2], found[2])
