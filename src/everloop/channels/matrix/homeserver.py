"""Calls to a homeserver. What it refuses is told by its error code alone: no sentence of a stranger's gets into a log,
where it might repeat the token."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from ...errors import ChannelDown, ChannelRefused, HostHungUp, HostUnreachable, Undeliverable
from ...ports import Http

CLIENT = "/_matrix/client/v3"
SECONDS = 30.0
LARGEST = 8_000_000  # bytes of an answer, unless somebody says otherwise
REFUSED = (
    "the homeserver does not accept the access token (channels.matrix.access_token): it has been logged out. Log in "
    "again with `everloop channels login matrix`"
)
_CODE = re.compile(r"[A-Za-z0-9_.]{1,60}")


class HomeserverRefused(Exception):
    """It answered with an error. `code` is the error's name (M_FORBIDDEN), "" if it was no homeserver that spoke."""

    def __init__(self, status: int, code: str, retry_after: float | None = None) -> None:
        super().__init__(f"the homeserver answered {status} {code}".rstrip())
        self.status = status
        self.code = code
        self.retry_after = retry_after

    @property
    def is_final(self) -> bool:
        """Whether it would be refused again. A 404 without a code is some proxy's, whose homeserver is away."""
        return self.status in (400, 403, 404, 405, 413) and bool(self.code) and self.code != "M_LIMIT_EXCEEDED"

    @property
    def is_login(self) -> bool:
        return self.status == 401 or self.code in ("M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED")


class OversizedReply(Exception):
    """More bytes than were to be taken."""


class Homeserver:
    """With an access token. Calls raise HomeserverRefused, and what `Http` raises."""

    def __init__(self, address: str, token: str, http: Http) -> None:
        self._address = address
        self._token = token
        self._http = http

    async def get(
        self, path: str, query: Mapping[str, str] = {}, *, seconds: float = SECONDS, limit: int = LARGEST
    ) -> Any:
        """Raises OversizedReply for an answer with more bytes than the limit, too."""
        return _read(await self.fetch(path, query, seconds=seconds, limit=limit))

    async def fetch(self, path: str, query: Mapping[str, str], *, seconds: float, limit: int) -> bytes:
        asked = f"{path}?{urlencode(query)}" if query else path
        return await self._ask("GET", asked, b"", {}, seconds, limit)

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        return _read(await self._ask("PUT", path, _written(body), _JSON, SECONDS, LARGEST))

    async def post(self, path: str, body: Mapping[str, Any], *, seconds: float = SECONDS) -> Any:
        return _read(await self._ask("POST", path, _written(body), _JSON, seconds, LARGEST))

    async def upload(self, name: str, mime: str, data: bytes) -> str:
        """The mxc: address of a file that is there from now on."""
        path = f"/_matrix/media/v3/upload?{urlencode({'filename': name})}"
        said = _read(await self._ask("POST", path, data, {"Content-Type": mime}, 2 * SECONDS, LARGEST))
        return str(said["content_uri"])

    async def _ask(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str], seconds: float, limit: int
    ) -> bytes:
        sent = {**headers, "Authorization": f"Bearer {self._token}"} if self._token else headers
        async with self._http.request(
            method, f"{self._address}{path}", body=body, headers=sent, seconds=seconds
        ) as answer:
            if not 200 <= answer.status < 300:
                asked = {name.lower(): value for name, value in answer.headers.items()}.get("retry-after", "")
                raise _refusal(answer.status, await answer.read(20_000), asked)
            data = await answer.read(limit + 1)
        if len(data) > limit:
            raise OversizedReply(f"the homeserver answered with more than {limit} bytes")
        return data


_JSON = {"Content-Type": "application/json"}


def path_of(*names: str) -> str:
    """Below the client-server API; each name is escaped by itself."""
    return "/".join((CLIENT, *(quote(name, safe="") for name in names)))


def _written(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _read(data: bytes) -> Any:
    """Not by msgspec: somebody's half of a surrogate pair would keep us from hearing anything."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise HomeserverRefused(502, "") from error


def _refusal(status: int, body: bytes, retry_after: str) -> HomeserverRefused:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    code, after = said.get("errcode"), said.get("retry_after_ms")
    seconds = after / 1000 if isinstance(after, int) and 0 <= after < 10**9 else None
    if seconds is None and retry_after.isascii() and retry_after.isdigit():
        seconds = float(retry_after[:9])
    return HomeserverRefused(status, code if isinstance(code, str) and _CODE.fullmatch(code) else "", seconds)


def unsent(error: Exception) -> Exception:
    """What an error of a call means for what was to be sent with it."""
    match error:
        case HomeserverRefused() if error.is_login:
            return ChannelDown(REFUSED)
        case HomeserverRefused() if error.is_final:
            return Undeliverable(str(error))
        case HomeserverRefused():  # also after a 5xx: the same transaction id again is the same message
            return ChannelDown(str(error), error.retry_after)
        case HostUnreachable() if not isinstance(error, HostHungUp):
            return ChannelDown(str(error))
    return error


def unheard(error: HomeserverRefused) -> Exception:
    """What a refusal means for whoever listens."""
    return ChannelRefused(REFUSED) if error.is_login else ChannelDown(str(error), error.retry_after)
