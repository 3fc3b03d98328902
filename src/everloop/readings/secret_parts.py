"""Which parts of a setting are secrets: of a command's arguments, of a variable or a header, of an address.

A value is cut into parts. Joined again they are the value; with another text in the place of those that are secret,
they are the value as it may be shown, or as it may be written into a file that refers to a vault.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from .masks import BEARER, KEY_SHAPE

SHOWN = "…"


class SecretPart(NamedTuple):
    """A piece of a value. `name` says of which option, variable or parameter it is the secret; "" where it is none."""

    text: str
    name: str = ""


Parts = tuple[SecretPart, ...]

_REFERENCE = re.compile(r"\$\{[^}]+\}")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# The last word of a name says what it holds: --token a secret, --max-tokens, --token-file and --tokenizer none.
_LAST = {
    *("token", "secret", "secrets", "password", "passwd", "pwd", "passphrase", "passcode", "apikey", "credential"),
    *("credentials", "auth", "authorization", "cookie", "pat", "bearer", "jwt", "authtoken", "accesstoken", "pass"),
}
_KEYS = {"api", "access", "secret", "private", "auth", "account", "app", "master", "license", "service", "encryption"}
_SIGNS = {"sig", "signature", "code", "key"}  # of a parameter of an address
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(=|:)(.+)", re.DOTALL)
_PAIR = re.compile(r"([A-Za-z_][\w.-]{0,99})(=|:\s*)(.+)", re.DOTALL)
_ADDRESS = re.compile(r"(?:\b[a-zA-Z][\w+.-]{0,30}:)?//[^\s\"'<>]+")
# Within an argument: a command for a shell, what a database is opened with, JSON. A name is bounded, for the argument
# may be one that a stranger has made to be slow to search.
_INSIDE = re.compile(
    r"(?P<head>(?:--?(?P<option>[A-Za-z][\w.-]{0,99})(?:\s+|=)|(?P<name>[A-Za-z_][\w.-]{0,99})(?:=|[\"']\s*:\s*))[\"']?)"
    r"(?P<value>[^\s;,\"'&}$-][^\s;,\"'&}]*)"
)
_LOGIN = re.compile(r"(?P<before>(?:[a-zA-Z][\w+.-]*:)?//)(?P<login>[^/?#]*)@")
# A key in base64 may begin with a / as well; so a path is one that begins as paths of machines do, or names a file.
_PATH = re.compile(
    r"(?:~|\.{1,2})/\S*|[A-Za-z]:\\\S*|file:\S*|\S+\.(?:pem|key|crt|json|toml|ya?ml|txt|env|pub)"
    r"|/(?:app|data|dev|etc|home|mnt|opt|private|root|run|secrets|srv|tmp|usr|Users|var|Volumes|work|workspace)/\S*"
)
_PLAIN = {"true", "false", "none", "null", "yes", "no", "on", "off", "env", "stdin", "file", "auto", "basic", "oauth"}


def names_secret(name: str) -> bool:
    """Whether an option, a variable or a header of this name holds a secret, by its last word."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    return words[-1] in _LAST or (words[-1] == "key" and (len(words) == 1 or words[-2] in _KEYS))


def argument_parts(arguments: Sequence[str]) -> list[Parts]:
    """Those of each argument of a command, in their order."""
    found: list[Parts] = []
    option = ""  # that wants its value next
    for argument in arguments:
        if option and not argument.startswith("-") and _is_value(argument):
            found.append((SecretPart(argument, _plain_name(option)),))
        else:
            found.append(_one_argument(argument))
        option = argument if re.fullmatch(r"--?[A-Za-z][\w.-]*", argument) and names_secret(argument) else ""
    return found


def value_parts(value: str, name: str = "") -> Parts:
    """Those of a value that stands under a name, as of a variable or a header."""
    if name and names_secret(name) and _is_value(value):
        return _with_scheme(value, name)
    return text_parts(value)


def text_parts(text: str) -> Parts:
    """Those of any text: addresses in it, and keys that are known by how they begin."""
    return tuple(_merged(_cut(text, _ADDRESS, _address)))


def is_secret(parts: Parts) -> bool:
    return any(part.name for part in parts)


def replaced(parts: Parts, place: Callable[[SecretPart], str] = lambda part: SHOWN) -> str:
    """The value with something else in the place of each secret."""
    return "".join(place(part) if part.name else part.text for part in parts)


def shown_arguments(arguments: Sequence[str]) -> list[str]:
    return [replaced(parts) for parts in argument_parts(arguments)]


def secrets_of(parts: Parts) -> list[str]:
    return [part.text for part in parts if part.name]


def _one_argument(argument: str) -> Parts:
    """What stands behind a name may be a name with its value again, as often as somebody likes."""
    head, rest = "", argument
    while found := _named_value(rest):
        name, rest = found[1], found[3]
        head += name + found[2]
        # -p=… is how some write a password; a port, a path or a package behind it is none.
        short = name == "-p" and not re.match(r"[@\d]", rest)
        if (short or names_secret(name)) and _is_value(rest):
            return (SecretPart(head), *_with_scheme(rest, _plain_name(name) if not short else "password"))
    parts = text_parts(rest) if _ADDRESS.fullmatch(rest) else _inside(rest)
    return tuple(_merged((SecretPart(head), *parts)))


def _named_value(text: str) -> re.Match[str] | None:
    found = (shape.fullmatch(text) for shape in (_OPTION, _PAIR))
    return next((each for each in found if each and not each[3].startswith("//")), None)


def _inside(text: str) -> Iterator[SecretPart]:
    """As of a text, with what stands in it behind the name of a secret."""
    at = look = 0
    while found := _INSIDE.search(text, look):
        name, look = found["option"] or found["name"], found.end("head")
        if name != "key" and names_secret(name) and _is_value(found["value"]):  # key='a' is a column's name in SQL
            yield from text_parts(text[at : found.start()])
            yield SecretPart(found["head"])
            yield SecretPart(found["value"], name)
            at = look = found.end()
    yield from text_parts(text[at:])


def _with_scheme(value: str, name: str) -> Parts:
    """`Bearer` and the like are no secret, and say how it is sent."""
    found = re.match(r"(?i)(?:bearer|basic|token)\s+", value)
    return (SecretPart(found[0]), SecretPart(value[found.end() :], name)) if found else (SecretPart(value, name),)


def _is_value(text: str) -> bool:
    """What may be a secret: neither a reference to one, nor a path, nor a word that switches something."""
    refers = _REFERENCE.search(text) or _PATH.fullmatch(text)
    return bool(text.strip()) and not refers and text.lower() not in _PLAIN


def _plain_name(option: str) -> str:
    return option.lstrip("-")


def _address(address: str) -> Iterator[SecretPart]:
    rest = address
    if found := _LOGIN.match(rest):
        user, colon, password = found["login"].partition(":")
        yield SecretPart(found["before"])
        yield from ((SecretPart(user + colon), *_secret(password, "password")) if colon else _secret(user, "password"))
        yield SecretPart("@")
        rest = rest[found.end() :]
    before, asked, query = rest.partition("?")
    yield from _keys(before)
    for number, pair in enumerate(query.split("&") if asked else ()):
        name, given, value = pair.partition("=")
        yield SecretPart(("&" if number else "?") + name + given)
        known = names_secret(name) or name.lower().replace("-", "_").split("_")[-1] in _SIGNS
        yield from _secret(value, name) if known else _keys(value)


def _secret(text: str, name: str) -> Iterator[SecretPart]:
    yield SecretPart(text, name if text and not _REFERENCE.search(text) else "")


def _keys(text: str) -> Iterator[SecretPart]:
    """Keys as their hosts write them, and what follows `Bearer`."""
    at = 0
    for found in _known().finditer(text):
        begin = found.end("scheme") if found["scheme"] else found.start()
        yield SecretPart(text[at:begin])
        yield SecretPart(text[begin : found.end()], "key")
        at = found.end()
    yield SecretPart(text[at:])


@cache
def _known() -> re.Pattern[str]:
    bearer = BEARER.removeprefix("(?i)").replace("(", "(?P<scheme>", 1)
    return re.compile(f"(?i:{bearer})|{KEY_SHAPE}")


def _cut(text: str, shape: re.Pattern[str], cut: Callable[[str], Iterator[SecretPart]]) -> Iterator[SecretPart]:
    at = 0
    for found in shape.finditer(text):
        yield from _keys(text[at : found.start()])
        yield from cut(found[0])
        at = found.end()
    yield from _keys(text[at:])


def _merged(parts: Iterator[SecretPart] | Sequence[SecretPart]) -> Iterator[SecretPart]:
    """What is none, in one piece."""
    open_text = ""
    for part in parts:
        if not part.name:
            open_text += part.text
            continue
        if open_text:
            yield SecretPart(open_text)
        open_text = ""
        yield part
    if open_text:
        yield SecretPart(open_text)
