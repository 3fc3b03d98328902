"""Files, in and out. Slack's files are fetched with the bot's token, which nobody but Slack is ever shown."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ...errors import ChannelDown, ProviderError, Undeliverable
from ...ports import Http
from ...ports.channel import FileRef, OutgoingFile
from .api import SlackApi
from .codec import SlackFileRef
from .refusals import SlackRefused, to_send

SECONDS = 55.0
SLACKS = ("slack.com", "slack-files.com")


class SlackFiles:
    """`url` is where Slack keeps them."""

    def __init__(self, http: Http, api: SlackApi, url: str, bot_token: str) -> None:
        self._http = http
        self._api = api
        self._homes = (url, api.url)
        self._bot_token = bot_token

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        """Raises ChannelDown, Undeliverable."""
        file = msgspec.json.decode(ref, type=SlackFileRef)
        if not is_slacks(file.url, self._homes):
            raise Undeliverable(f"{file.name} is not kept by Slack")
        if file.size > limit:
            raise Undeliverable(f"{file.name} has more than {limit:,} bytes")
        headers = {"Authorization": f"Bearer {self._bot_token}"}
        try:
            async with self._http.request("GET", file.url, headers=headers, seconds=SECONDS) as answer:
                status, kind = answer.status, _kind(answer.headers)
                data = await answer.read(limit + 1) if status == 200 else b""
        except ProviderError as error:
            raise ChannelDown(str(error)) from error
        return file.name, _checked(file, status, kind, data, limit)

    async def send(self, file: OutgoingFile, place: dict[str, Any]) -> str:
        """Returns its id. Raises as a channel's `send` does."""
        if not file.data:
            raise Undeliverable(f"Slack takes no empty file ({file.name})")
        slot = await self._before("files.getUploadURLExternal", filename=file.name, length=len(file.data))
        url, id = str(slot.get("upload_url", "")), str(slot.get("file_id", ""))
        if not is_slacks(url, self._homes):
            raise ChannelDown("Slack names an address for the file that is not its own")
        await self._upload(url, file)
        files = [{"id": id, "title": file.name}]
        await self._api.send(
            "files.completeUploadExternal", files=files, channel_id=place["channel"], thread_ts=place["thread_ts"]
        )
        return f"file:{id}"

    async def withdraw(self, id: str) -> None:
        try:
            await self._api.call("files.delete", file=id)
        except SlackRefused as error:
            if error.word not in ("file_not_found", "file_deleted"):
                raise to_send(error) from error

    async def _before(self, method: str, **given: Any) -> Any:
        """Nobody sees anything of it, whatever goes wrong."""
        try:
            return await self._api.send(method, **given)
        except ProviderError as error:
            raise ChannelDown(str(error)) from error

    async def _upload(self, url: str, file: OutgoingFile) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        try:
            async with self._http.request("POST", url, body=file.data, headers=headers, seconds=SECONDS) as answer:
                status = answer.status
        except ProviderError as error:
            raise ChannelDown(str(error)) from error
        if status != 200:
            raise ChannelDown(f"Slack answers {status} to a file")


def is_slacks(url: str, homes: Sequence[str]) -> bool:
    """Whether the token may be shown there: at one of Slack's `homes`, or, if these are in the real Slack, at any host
    of its own."""
    try:
        origin, host = _origin(url), urlsplit(url).hostname or ""
        ours = {_origin(each) for each in homes}
        is_real = any(urlsplit(each).hostname in SLACKS for each in homes)
    except ValueError:
        return False
    theirs = origin == f"https://{host}" and any(host == each or host.endswith(f".{each}") for each in SLACKS)
    return origin in ours or (is_real and theirs)


def _checked(file: SlackFileRef, status: int, kind: str, data: bytes, limit: int) -> bytes:
    if status in (404, 410):
        raise Undeliverable(f"{file.name} is not there any more")
    if status != 200:
        raise ChannelDown(f"Slack answers {status} to a file")
    if kind == "text/html" and file.mime != "text/html":  # which is the page to sign in
        raise Undeliverable(f"Slack does not hand out {file.name}: the app lacks the scope files:read")
    if len(data) > limit:
        raise Undeliverable(f"{file.name} has more than {limit:,} bytes")
    return data


def _kind(headers: Any) -> str:
    told = {name.lower(): value for name, value in headers.items()}.get("content-type", "")
    return str(told).partition(";")[0].strip().lower()


def _origin(url: str) -> str:
    """Raises ValueError. Without a name and a password, which stand before the host and may look like one."""
    parts = urlsplit(url)
    if parts.username is not None or "\\" in url:
        raise ValueError("an address with a name in it")
    port = f":{parts.port}" if parts.port not in (None, {"https": 443, "http": 80}.get(parts.scheme)) else ""
    return f"{parts.scheme}://{parts.hostname}{port}"
