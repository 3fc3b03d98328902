"""Telegram's Bot API on loopback, for tests: a bot's account, what people write to it, and what goes wrong.

    async with TelegramServer() as telegram:
        …  # telegram.url in place of https://api.telegram.org, telegram.token
        await telegram.say("hello")
        await telegram.shown(1)
        assert telegram.account.seen() == ["you said hello"]

It hands out updates and calls webhooks as the Bot API does, reads the HTML that it is sent, and refuses what that
refuses; python-telegram-bot works with it (tests/channels/telegram). `spoil` has the next calls fail.
"""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import web
from msgspec import Struct

from ..errors import ProviderError
from ..ports import Http
from .script import Tally
from .telegram_bot import BotError, Params, TelegramAccount, UploadedFile
from .telegram_queue import PollConflict, UpdateQueue

ANNA: Mapping[str, Any] = {"id": 1001, "is_bot": False, "first_name": "Anna", "username": "anna"}
RETRY = 0.05  # seconds after which a webhook that failed is called again
KEPT = 5_000  # calls
_STRUCTURED = {
    "reply_markup", "reply_parameters", "link_preview_options", "reaction", "commands", "allowed_updates", "entities",
}  # fmt: skip


class Spoiled(Struct, frozen=True, kw_only=True):
    """What happens to a call: it is answered with `status`, or as `how` says; with `done`, after it took effect."""

    status: int = 500
    how: Literal["refused", "hung up", "half", "garbage", "redirected"] = "refused"
    done: bool = False
    retry_after: float | None = None
    says: str = ""


class TelegramServer:
    def __init__(
        self,
        token: str = "123456:AAE-a_token_for_tests",
        username: str = "ever_bot",
        port: int = 0,
        http: Http | None = None,
    ) -> None:
        """With `http` it calls webhooks."""
        self.token = token
        self._http = http
        self.port = port
        self.account = TelegramAccount(int(token.partition(":")[0]), username)
        self.queue = UpdateQueue()
        self.calls: deque[tuple[str, Params]] = deque(maxlen=KEPT)
        self.webhook: dict[str, Any] = {}
        self.last_error = ""
        self._spoiled: dict[str, list[Spoiled | None]] = {}
        self._sent = Tally()
        self._tried = Tally()
        self._called: defaultdict[str, Tally] = defaultdict(Tally)
        self._runner: web.AppRunner | None = None
        self._calling: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=80_000_000)
        app.router.add_route("*", "/bot{token}/{method}", self._answer)
        app.router.add_get("/file/bot{token}/{path:.*}", self._download)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop_calling()
        if self._runner:
            await self._runner.cleanup()

    async def say(
        self, text: str = "", *, chat: Mapping[str, Any] | None = None, user: Mapping[str, Any] = ANNA, **more: Any
    ) -> dict[str, Any]:
        """Somebody writes, in their chat of two with the bot unless another is given; returns the message."""
        words = {"text": text} if text else {}
        where = chat or {"id": user["id"], "type": "private", "first_name": user["first_name"]}
        message = self.account.write(where, **{"from": {**user}}, **words, **more)
        await self.queue.put({"message": {**message}})
        return message

    async def edit(self, message: dict[str, Any], text: str) -> None:
        message.update(text=text, edit_date=message["date"])
        await self.queue.put({"edited_message": {**message}})

    async def press(
        self, message: Mapping[str, Any], data: str, user: Mapping[str, Any] = ANNA, id: str = "q1"
    ) -> None:
        """Somebody presses a button under a message of the bot's."""
        query = {"id": id, "from": {**user}, "message": {**message}, "chat_instance": "c", "data": data}
        await self.queue.put({"callback_query": query})

    def spoil(self, *spoiled: Spoiled | None, method: str = "send") -> None:
        """What happens to the next calls of the methods that begin like this, one after the other."""
        self._spoiled[method] = [*spoiled]

    async def called(self, method: str, times: int = 1) -> None:
        """Wait until this method has been called so often in all."""
        await self._called[method].reached(times)

    async def shown(self, messages: int) -> None:
        """Wait until so many messages have arrived in all (`send…`, drafts and actions apart)."""
        await self._sent.reached(messages)

    async def tried(self, messages: int) -> None:
        """Wait until so many have been sent, whatever became of them."""
        await self._tried.reached(messages)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["token"] != self.token:
            return _refusal(BotError(401, "Unauthorized"))
        method = request.match_info["method"]
        params, files = await _read(request)
        self.calls.append((method, params))
        spoiled = self._next_for(method)
        try:
            done = await self._do(method, params, files) if not spoiled or spoiled.done else None
        except BotError as error:
            return _refusal(error)
        finally:
            self._called[method].add()
            if _is_message(method):
                self._tried.add()
        return await self._spoil(request, spoiled) if spoiled else web.json_response({"ok": True, "result": done})

    def _next_for(self, method: str) -> Spoiled | None:
        for start, spoiled in self._spoiled.items():
            if method.startswith(start) and (start != "send" or _is_message(method)) and spoiled:
                return spoiled.pop(0)
        return None

    async def _do(self, method: str, params: Params, files: Mapping[str, UploadedFile]) -> Any:
        match method:
            case "getUpdates":
                return await self._updates(params)
            case "setWebhook":
                return await self._set_webhook(params)
            case "deleteWebhook":
                return await self._set_webhook({"drop_pending_updates": params.get("drop_pending_updates")})
            case "getWebhookInfo":
                told = {"last_error_message": self.last_error, "last_error_date": 1} if self.last_error else {}
                where = {"url": self.webhook.get("url", ""), "has_custom_certificate": False}
                return {**where, "pending_update_count": self.queue.pending, **told}
        result = self.account.do(method, params, files)
        if _is_message(method):
            self._sent.add()
        return result

    async def _updates(self, params: Params) -> list[dict[str, Any]]:
        if self.webhook:
            raise BotError(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the "
                "webhook first",
            )
        limit, seconds = int(params.get("limit", 100)), float(params.get("timeout", 0))
        try:
            return await self.queue.take(int(params.get("offset", 0)), min(100, limit), seconds)
        except PollConflict as error:
            raise BotError(
                409,
                "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
            ) from error

    async def _set_webhook(self, params: Params) -> bool:
        await self._stop_calling()
        if params.get("drop_pending_updates") in (True, "true"):
            await self.queue.drop_all()
        self.webhook, self.last_error = ({**params} if params.get("url") else {}), ""
        if self.webhook:
            self._calling = asyncio.create_task(self._call_webhook())
        return True

    async def _stop_calling(self) -> None:
        if self._calling:
            self._calling.cancel()
            await asyncio.wait([self._calling])
            self._calling = None

    async def _call_webhook(self) -> None:
        """One after the other, each until it was taken."""
        while True:
            await self.queue.is_filled()
            if await self._is_taken():
                await self.queue.drop_first()
            else:
                await asyncio.sleep(RETRY)

    async def _is_taken(self) -> bool:
        assert self._http, "a server that calls webhooks is given an Http to call them with"
        secret = {"X-Telegram-Bot-Api-Secret-Token": self.webhook.get("secret_token", "")}
        headers, body = {"content-type": "application/json", **secret}, json.dumps(self.queue.first).encode()
        try:
            async with self._http.request(
                "POST", self.webhook["url"], body=body, headers=headers, seconds=60
            ) as answer:
                taken = 200 <= answer.status < 300
                self.last_error = "" if taken else f"Wrong response from the webhook: {answer.status}"
        except ProviderError:
            taken, self.last_error = False, "Connection refused"
        return taken

    async def _download(self, request: web.Request) -> web.StreamResponse:
        if request.match_info["token"] != self.token:
            return _refusal(BotError(401, "Unauthorized"))
        if spoiled := self._next_for("download"):
            return await self._spoil(request, spoiled)
        held = dict(self.account.files.values())
        if request.match_info["path"] not in held:
            return _refusal(BotError(404, "Not Found"))
        return web.Response(body=held[request.match_info["path"]])

    async def _spoil(self, request: web.Request, spoiled: Spoiled) -> web.StreamResponse:
        match spoiled.how:
            case "hung up":
                assert request.transport
                request.transport.close()
                return web.Response()
            case "half":
                half = web.StreamResponse(headers={"Content-Length": "900"})
                await half.prepare(request)
                await half.write(b'{"ok": true, "result": {"mess')
                assert request.transport
                request.transport.close()
                return half
            case "garbage":
                return web.Response(status=spoiled.status, text=f"<html>nginx {request.path}</html>")
            case "redirected":
                return web.Response(status=302, headers={"Location": f"{request.path}?again={spoiled.says}"})
        after = {} if spoiled.retry_after is None else {"retry_after": spoiled.retry_after}
        return _refusal(BotError(spoiled.status, spoiled.says or f"Error {spoiled.status}", **after))


def _is_message(method: str) -> bool:
    return method.startswith("send") and method not in ("sendChatAction", "sendMessageDraft")


def _refusal(error: BotError) -> web.Response:
    told = {"ok": False, "error_code": error.code, "description": error.description}
    parameters = {"parameters": error.parameters} if error.parameters else {}
    return web.json_response({**told, **parameters}, status=error.code)


async def _read(request: web.Request) -> tuple[Params, dict[str, UploadedFile]]:
    params: Params = {**request.query}
    files: dict[str, UploadedFile] = {}
    if request.content_type == "application/json":
        params |= json.loads(await request.read() or b"{}")
    else:
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField):
                files[name] = UploadedFile(value.filename, value.content_type, value.file.read())
            else:
                params[name] = value
    decoded = {name: json.loads(params[name]) for name in _STRUCTURED & params.keys() if isinstance(params[name], str)}
    return {**params, **decoded}, files
