"""Short questions to the hosts that hand out tokens. No error repeats what was sent or answered."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from ...errors import HostFailed, RateLimited
from ...ports import Http

_SECONDS = 30.0
_LONGEST = 100_000
_JSON = {"Accept": "application/json"}
_NONE: Mapping[str, str] = {}


class LoginAnswer:
    """A JSON object with its status, which is a success or a refusal (4xx)."""

    def __init__(self, host: str, status: int, fields: dict[str, Any]) -> None:
        self.host = host
        self.status = status
        self._fields = fields

    @property
    def good(self) -> bool:
        return self.status < 300

    @property
    def error(self) -> str:
        """The code of a refusal, in any of the shapes in which it comes; "" if there is none."""
        match self._fields:
            case {"error": str(code)} | {"error": {"code": str(code)}} | {"code": str(code)}:
                return code if re.fullmatch(r"[a-z_]{1,60}", code) else ""
        return ""

    def word(self, *keys: str) -> str:
        """The text under the first of these keys that is there. Raises HostFailed if it could not be a token."""
        found = self.maybe(*keys)
        if not found:
            raise HostFailed(f"{self.host} has answered without the {keys[0]} that was asked for. Try again later.")
        return found

    def maybe(self, *keys: str) -> str:
        """Like `word`, but "" if there is none."""
        found = next((self._fields[key] for key in keys if self._fields.get(key)), "")
        return found if isinstance(found, str) and found.isascii() and found.isprintable() else ""

    def number(self, key: str, otherwise: float) -> float:
        """A positive number, which some hosts write as text."""
        try:
            found = float(self._fields.get(key, 0))
        except (TypeError, ValueError):
            return otherwise
        return found if 0 < found < 1e12 else otherwise


async def post_form(http: Http, url: str, fields: Mapping[str, str], headers: Mapping[str, str] = _NONE) -> LoginAnswer:
    """Raises ProviderError."""
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    return await _ask(http, "POST", url, urlencode(fields).encode(), {**_JSON, **kind, **headers})


async def post_json(http: Http, url: str, fields: Mapping[str, str]) -> LoginAnswer:
    """Raises ProviderError."""
    return await _ask(http, "POST", url, msgspec.json.encode(fields), {**_JSON, "Content-Type": "application/json"})


async def get(http: Http, url: str, headers: Mapping[str, str]) -> LoginAnswer:
    """Raises ProviderError."""
    return await _ask(http, "GET", url, b"", {**_JSON, **headers})


async def _ask(http: Http, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> LoginAnswer:
    host = urlsplit(url).netloc
    async with http.request(method, url, body=body, headers=headers, seconds=_SECONDS) as answer:
        status, wait = answer.status, answer.headers.get("Retry-After", "")
        content = await answer.read(_LONGEST)
    if status == 429:
        raise RateLimited(
            f"{host} accepts no more logins at the moment (429). Try again later.",
            float(wait) if re.fullmatch(r"\d{1,6}", wait) else None,
        )
    if not (200 <= status < 300 or 400 <= status < 500):
        raise HostFailed(f"{host} failed to answer a login ({status}). Try again later.")
    return LoginAnswer(host, status, _object(host, status, content))


def _object(host: str, status: int, content: bytes) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(content or b"{}")
    except (msgspec.DecodeError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise HostFailed(
            f"{host} has answered a login with something other than JSON ({status}), perhaps with a web page. "
            f"Check the network and its proxy, and try again later."
        )
    return fields
