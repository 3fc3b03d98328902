"""Keeps what was sent to a host in confidence out of what is told about its answer: some hosts repeat it."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import parse_qsl, unquote

from ..errors import ProviderError
from .encodings import forms_of

SHORTEST = 8  # characters; a shorter word is no secret ("ollama", "none"), and would be found in any text
_HARMLESS = {
    "accept", "anthropic-beta", "anthropic-version", "content-type", "copilot-integration-id", "editor-plugin-version",
    "editor-version", "http-referer", "openai-beta", "originator", "user-agent", "x-title",
}  # fmt: skip
_LOGIN = re.compile(r"//([^/:@?#]*):([^/@?#]*)@")


def hide_secrets(error: ProviderError, url: str, headers: Mapping[str, str]) -> None:
    """Take the secrets of a request out of the error's text, also one of which an excerpt has cut off the end."""
    error.args = (without_secrets(str(error), secrets_in(url, headers)),)


def secrets_in(url: str, headers: Mapping[str, str]) -> tuple[str, ...]:
    """What a request says in confidence."""
    return (*_words_in(headers), *_password_in(url), *_query_in(url))


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    words = [word for word in secrets if len(word) >= SHORTEST]
    begun = {form: form[: SHORTEST * max(1, len(form) // len(word))] for word in words for form in forms_of(word)}
    return _without(begun, text) if begun else text


def _words_in(headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in headers.items():
        if name.lower() not in _HARMLESS:
            yield from value.split()


def _query_in(url: str) -> Iterator[str]:
    """The values of its query: some hosts want their key there."""
    _, _, query = url.partition("#")[0].partition("?")
    for _, value in parse_qsl(query):
        yield value


def _password_in(url: str) -> tuple[str, ...]:
    """Alone, and as it is sent."""
    found = _LOGIN.search(url)  # not urlsplit, which raises where an address is none
    if found is None:
        return ()
    user, password = unquote(found[1]), unquote(found[2])
    return password, b64encode(f"{user}:{password}".encode()).decode()


def _without(secrets: Mapping[str, str], text: str) -> str:
    """`secrets` are what is taken out, each with the beginning by which it is known."""
    beginning = re.compile("|".join({re.escape(each) for each in secrets.values()}))
    while found := beginning.search(text):
        before, rest = text[: found.start()], text[found.start() :]
        # Several may begin alike; taking away the beginning of the wrong one would leave the end of the right one.
        length = max(_shared(secret, rest) for secret in secrets)
        text = f"{before}…{rest[length:]}"
    return text


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
