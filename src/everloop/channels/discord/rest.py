"""Calls of the REST API: what they raise, how long they wait, and files as multipart forms."""

import asyncio
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...errors import (
    ChannelDown,
    ChannelRefused,
    HostFailed,
    HostHungUp,
    HostTimeout,
    HostUnreachable,
    StreamCut,
    Undeliverable,
)
from ...ports import Http
from ...ports.channel import OutgoingFile
from ..wellformed import read_json
from .limits import RateLimits, seconds_of

SECONDS = 30.0  # for an answer
PATIENCE = 5.0  # seconds that a call waits for a limit by itself
LARGEST = 16_000_000  # bytes of an answer
AGENT = "DiscordBot (https://pypi.org/project/everloop, 1)"  # Discord turns away what does not call itself so
REFUSED = (
    "Discord refuses the bot's token. Make a new one (https://discord.com/developers/applications, Bot, Reset Token) "
    "and set it as channels.discord.token."
)
_ID = re.compile(r"\d{5,25}")


class DiscordRefused(Undeliverable):
    """A call that would be refused again. `code` is Discord's own."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(f"Discord refuses it: {message} ({status}, code {code})")
        self.status = status
        self.code = code


class RestError(Struct):
    message: str = ""
    code: int = 0
    retry_after: float = 0.0
    is_global: bool = msgspec.field(default=False, name="global")


class DiscordRest:
    def __init__(self, http: Http, api_url: str, token: str) -> None:
        self._http = http
        self._api = api_url
        self._token = token
        self._limits = RateLimits(lambda: asyncio.get_running_loop().time())

    def wait(self, method: str, path: str) -> float:
        """Seconds until this may be called."""
        return self._limits.wait(*_route(method, path))

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        files: Sequence[OutgoingFile] = (),
        patience: float = PATIENCE,
        as_bot: bool = True,
    ) -> Any:
        """What the API answers; None for nothing. A limit that is known of is waited for, if it ends within `patience`
        seconds.

        Raises ChannelDown when surely nothing was done, or when it may be done again; DiscordRefused; ChannelRefused
        for the token. A POST of which nobody knows what became of it raises whatever broke it off.
        """
        await self._wait(method, path, patience)
        content, type = _body(body, files)
        headers = {"User-Agent": AGENT} | ({"Content-Type": type} if content else {})
        if as_bot:  # what is signed by an address of its own is told no token
            headers["Authorization"] = f"Bot {self._token}"
        try:
            async with self._http.request(
                method, f"{self._api}/{path}", body=content, headers=headers, seconds=SECONDS
            ) as answer:
                told = {name.lower(): value for name, value in answer.headers.items()}
                self._limits.heed(*_route(method, path), told)
                data = await answer.read(LARGEST)
        except (HostHungUp, HostTimeout, StreamCut, HostFailed) as error:
            if method == "POST":
                raise
            raise ChannelDown(str(error)) from error
        except HostUnreachable as error:
            raise ChannelDown(str(error)) from error
        return self._judged(method, path, answer.status, told, data)

    async def _wait(self, method: str, path: str, patience: float) -> None:
        if seconds := self.wait(method, path):
            if seconds > patience:
                raise ChannelDown("Discord wants fewer calls", seconds)
            await asyncio.sleep(seconds)

    def _judged(self, method: str, path: str, status: int, headers: Mapping[str, str], data: bytes) -> Any:
        if 200 <= status < 300:
            return _decoded(data) if data else None
        try:
            error = msgspec.json.decode(data, type=RestError)
        except msgspec.DecodeError:  # of something between Discord and us
            error = None
        if status == 429:
            seconds = error.retry_after if error else seconds_of(headers.get("retry-after")) or 60.0
            everywhere = error is None or error.is_global
            self._limits.refuse(*_route(method, path), seconds_of(seconds), everywhere=everywhere)
            raise ChannelDown("Discord answered 429: too many calls", seconds_of(seconds))
        if status == 401:
            raise ChannelRefused(REFUSED)
        if error is None or status >= 500 or status < 400:
            raise ChannelDown(f"Discord answered {status}", seconds_of(headers.get("retry-after")) or None)
        raise DiscordRefused(status, error.code, " ".join(error.message.split())[:300].replace(self._token, "…"))


def _decoded(data: bytes) -> Any:
    try:
        return read_json(data)
    except msgspec.DecodeError as error:
        raise HostFailed("Discord answered with something that is no JSON") from error


def _route(method: str, path: str) -> tuple[str, str]:
    """A call's route, and the channel, server or interaction that it is about: Discord counts by both."""
    path = path.partition("?")[0]
    first, _, rest = path.partition("/")
    major, _, rest = rest.partition("/")
    about = major if first in ("channels", "guilds", "interactions") else ""
    return f"{method} {first}/{'' if about else _ID.sub(':', major)}/{_minor(rest)}", about


def _minor(rest: str) -> str:
    """Without what is different in each call: ids, emoji, tokens."""
    named = rest.partition("/reactions/")[0] + ("/reactions" if "/reactions/" in rest else "")
    return "callback" if rest.endswith("/callback") else _ID.sub(":", named)


def _body(body: Any, files: Sequence[OutgoingFile]) -> tuple[bytes, str]:
    if body is None:
        return b"", ""
    said = msgspec.json.encode(body)
    if not files:
        return said, "application/json"
    boundary = secrets.token_hex(16)
    parts = [_part(boundary, 'name="payload_json"', "application/json", said)]
    for number, file in enumerate(files):
        name = re.sub(r'[\x00-\x1f\x7f"\\]', "_", file.name)
        parts.append(_part(boundary, f'name="files[{number}]"; filename="{name}"', file.mime, file.data))
    return b"".join([*parts, f"--{boundary}--\r\n".encode()]), f"multipart/form-data; boundary={boundary}"


def _part(boundary: str, name: str, mime: str, data: bytes) -> bytes:
    mime = mime if re.fullmatch(r"[\w.+-]+/[\w.+-]+", mime, re.ASCII) else "application/octet-stream"
    head = f"--{boundary}\r\nContent-Disposition: form-data; {name}\r\nContent-Type: {mime}\r\n\r\n"
    return head.encode("utf-8", "replace") + data + b"\r\n"
