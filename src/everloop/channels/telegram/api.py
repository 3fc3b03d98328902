"""Calls of the Bot API, and what their failures mean. The token is part of every address: nothing that is raised or
logged here tells one, or repeats what a host says without looking for it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from ...errors import ChannelDown, ChannelRefused, HostFailed, HostHungUp, HostUnreachable, ProviderError, Undeliverable
from ...ports import Http
from ..wellformed import read_json
from .calls import Params, Upload, form
from .manifest import LARGEST_FETCHED

SECONDS = 20.0  # for a call
UPLOADING = 50.0  # for one with a file; the outbox waits a little longer
LARGEST = 1_000_000  # bytes of an answer
MANY = 32_000_000  # bytes of a hundred updates, each with what it replies to

NOTHING: Params = MappingProxyType({})

Value = TypeVar("Value")


class BotRefusal(Exception):
    """Telegram has understood the call, and does not do it."""

    def __init__(self, code: int, description: str, moved_to: int = 0) -> None:
        super().__init__(f"Telegram says: {description}")
        self.code = code
        self.description = description
        self.moved_to = moved_to  # the chat is a supergroup by now, which has another number

    def says(self, *words: str) -> bool:
        return any(word in self.description.lower() for word in words)


class _Parameters(Struct, frozen=True):
    retry_after: float | None = None
    migrate_to_chat_id: int = 0


class _Envelope(Struct):
    ok: bool = False
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: _Parameters = _Parameters()


class BotApi:
    def __init__(self, url: str, token: str, http: Http) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._http = http

    def __repr__(self) -> str:
        return "BotApi(…)"  # a proxy's password may stand in the address

    async def ask(
        self, method: str, params: Params = NOTHING, seconds: float = SECONDS, largest: int = LARGEST
    ) -> msgspec.Raw:
        """The result of a call that may be made twice. Raises ChannelDown, ChannelRefused for the token, BotRefusal."""
        try:
            return await self.call(method, params, seconds=seconds, largest=largest)
        except ProviderError as error:  # of the network: whatever has become of it
            raise ChannelDown(str(error)) from error

    async def call(
        self,
        method: str,
        params: Params = NOTHING,
        upload: Upload | None = None,
        seconds: float = SECONDS,
        largest: int = LARGEST,
    ) -> msgspec.Raw:
        """The result. Raises as `ask` where surely nothing was done, and HostFailed, HostTimeout, HostHungUp or
        StreamCut where something may have been."""
        status, headers, body = await self._post(method, params, upload, seconds, largest)
        envelope = _read(body)
        if envelope is None:
            raise _broken(status, _seconds_in(headers))
        if not envelope.ok:
            raise self._refused(status, envelope, headers)
        return envelope.result

    async def download(self, path: str, limit: int) -> bytes:
        """A file, by the path that `getFile` has told. Raises ChannelDown, Undeliverable."""
        if path.startswith("/") or ".." in path.split("/"):
            raise Undeliverable("the Bot API server keeps its files to itself (--local)")
        url, largest = f"{self._url}/file/bot{self._token}/{quote(path)}", min(limit, LARGEST_FETCHED)
        try:
            async with self._http.request("GET", url, seconds=SECONDS) as answer:
                if answer.status != 200:
                    gone = answer.status in (400, 403, 404, 410)
                    raise (Undeliverable if gone else ChannelDown)(f"Telegram answered {answer.status} for a file")
                data = await answer.read(largest + 1)
        except ProviderError as error:
            raise ChannelDown(self.without_token(str(error))) from error
        if len(data) > largest:
            raise Undeliverable(f"it has more than {largest:,} bytes")
        return data

    async def _post(
        self, method: str, params: Params, upload: Upload | None, seconds: float, largest: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        kind, body = form(params, upload) if upload else ("application/json", msgspec.json.encode(dict(params)))
        url, wait = f"{self._url}/bot{self._token}/{method}", UPLOADING if upload else seconds
        try:
            request = self._http.request("POST", url, body=body, headers={"content-type": kind}, seconds=wait)
            async with request as answer:
                return answer.status, answer.headers, await answer.read(largest)
        except HostHungUp:
            raise  # it may have arrived
        except HostUnreachable as error:
            raise ChannelDown(self.without_token(str(error))) from error

    def _refused(self, status: int, envelope: _Envelope, headers: Mapping[str, str]) -> Exception:
        code = envelope.error_code or status
        said = self.without_token(envelope.description) or f"error {code}"
        match code:
            case 429:
                after = envelope.parameters.retry_after
                return ChannelDown(f"Telegram says: {said}", _seconds_in(headers) if after is None else after)
            case 401 | 404 if "method" not in said.lower():
                return ChannelRefused(
                    "Telegram does not know this token; ask @BotFather for it (/token), and set channels.telegram.token"
                )
            case _ if code >= 500:
                return _broken(code, _seconds_in(headers))
        return BotRefusal(code, said, envelope.parameters.migrate_to_chat_id)

    def without_token(self, said: str) -> str:
        """What a host says, in a line."""
        for secret in (self._token, quote(self._token, safe=""), self._token.partition(":")[2]):
            said = said.replace(secret, "[token]")
        return " ".join(said.split())[:300]


def decoded(result: msgspec.Raw, type: type[Value]) -> Value:
    """Raises HostFailed."""
    try:
        return msgspec.json.decode(result, type=type)
    except msgspec.DecodeError as error:
        raise HostFailed("Telegram's answer is not what its Bot API says.") from error


def _read(body: bytes) -> _Envelope | None:
    try:
        return read_json(body, _Envelope)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _broken(status: int, after: float | None) -> Exception:
    """503 is said by what stands before the Bot API, and has not passed the call on; of any other nobody knows."""
    if status in (429, 503):
        return ChannelDown(f"Telegram answered {status}", after)
    return HostFailed(f"Telegram answered {status}, and not as its Bot API does.")


def _seconds_in(headers: Mapping[str, str]) -> float | None:
    text = {name.lower(): value for name, value in headers.items()}.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None
