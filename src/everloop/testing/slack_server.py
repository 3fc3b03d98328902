"""Slack on loopback: the Web API, Socket Mode, and events that are signed and posted. Its ways to fail are methods.

    async with SlackServer() as slack:
        …  # slack.api_url is http://127.0.0.1:PORT/api/; the tokens are slack.bot_token and slack.app_token
        stamp = await slack.say("hello", user="U0ANNA", chat="D0ANNA")
        await slack.acknowledged(stamp)
        slack.workspace.shown("D0ANNA")  # what people read there

slack_sdk's AsyncWebClient and SocketModeClient work with it (`base_url=slack.api_url`). What was not acknowledged is
told again, on whichever connection there is. With `post` events are posted there instead, as (headers, body).
"""

import asyncio
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from aiohttp import web
from msgspec import Struct

from .slack_methods import SlackMethods
from .slack_workspace import APP, BOT_USER, TEAM, Fields, SlackFile, SlackRefusal, SlackWorkspace

SCOPES = (
    "app_mentions:read,assistant:write,channels:history,channels:read,chat:write,commands,files:read,files:write,"
    "groups:history,groups:read,im:history,im:read,im:write,mpim:history,mpim:read,reactions:write,users:read"
)
Post = Callable[[Mapping[str, str], bytes], Awaitable[int]]


class SlackFault(Struct, frozen=True):
    """What the next call of a method is answered with. `arrives`: it was done all the same. `cut`: the connection is
    closed without an answer. `half`: and in the middle of one."""

    status: int = 200
    error: str = ""
    retry_after: float = 0.0
    arrives: bool = False
    cut: bool = False
    half: bool = False


class SlackServer:
    """`calls` are the methods that were called, with what was given; `judge` may answer any of them with a fault."""

    def __init__(self, *, post: Post | None = None, again: float = 3.0, scopes: str = SCOPES) -> None:
        self.workspace = SlackWorkspace()
        self.bot_token, self.app_token, self.signing_secret = "xoxb-fake-bot", "xapp-fake-app", "8f742231b10e8888abcd99"
        self.calls: list[tuple[str, Fields]] = []
        self.judge: Callable[[str, Fields], SlackFault | None] = lambda method, given: None
        self.sockets: list[web.WebSocketResponse] = []
        self.opened = self.together = 0  # sockets that were ever open, and that were at the same time
        self.echoes = True  # whether the bot is told what it has written itself
        self.strangers: list[str] = []  # who has asked for a file without the bot's token
        self.again, self.scopes = again, scopes
        self._post = post
        self._tickets: set[str] = set()
        self.waiting: dict[str, Fields] = {}  # envelopes that nobody has acknowledged, by their id
        self.told: dict[str, set[str]] = {}  # the envelopes of an event, by what the test knows it as
        self.acked: set[str] = set()
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._faults: dict[str, list[SlackFault]] = {}
        self._methods = SlackMethods(self.workspace, lambda: self.url, self._echo)
        self.url = self.api_url = ""
        app = web.Application(client_max_size=200_000_000)
        app.router.add_route("*", "/api/{method}", self._answer)
        app.router.add_get("/link/", self._link)
        app.router.add_post("/upload/v1/{file}", self._upload)
        app.router.add_get("/files-pri/{file}/{name}", self._download)
        app.router.add_get("/login", self._login)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.api_url = f"{self.url}/api/"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for socket in [*self.sockets]:
            await socket.close()
        await self._runner.cleanup()

    def fail(self, method: str, *faults: SlackFault) -> None:
        """Answer the next calls of a method so, one after the other."""
        self._faults[method] = [*faults]

    # What happens in the workspace.

    async def say(
        self, text: str, *, user: str = "U0ANNA", chat: str = "D0ANNA", stamp: str = "", **fields: Any
    ) -> str:
        """Somebody writes something; the same `stamp` again is the same message, told once more."""
        stamp = stamp or self.workspace.stamp()
        files = fields.pop("files", ())
        more = {"files": [self.workspace.file_fields(each, self.url) for each in files]} if files else {}
        message = {"type": "message", "user": user, "ts": stamp, "text": text, "team": TEAM, **more, **fields}
        self.workspace.chats[chat].setdefault(stamp, message)
        kind = {"D": "im", "G": "group"}.get(chat[0], "channel")
        event = {**message, "channel": chat, "channel_type": kind, "event_ts": stamp}
        if more:
            event["subtype"] = "file_share"
        await self.tell(event, name=stamp)
        if f"<@{BOT_USER}>" in text and kind != "im":
            mention = {key: value for key, value in event.items() if key not in ("channel_type", "subtype")}
            await self.tell({**mention, "type": "app_mention"}, name=stamp)
        return stamp

    def miss(self, text: str, *, user: str = "U0ANNA", chat: str = "D0ANNA", **fields: Any) -> str:
        """Somebody writes something, and nobody is told: there was nobody to tell for too long."""
        stamp = self.workspace.stamp()
        self.workspace.chats[chat][stamp] = {"type": "message", "user": user, "ts": stamp, "text": text, **fields}
        return stamp

    async def edit(self, chat: str, stamp: str, text: str) -> str:
        before = self.workspace.chats[chat][stamp]
        edited = self.workspace.stamp()
        after = {**before, "text": text, "edited": {"user": before["user"], "ts": edited}}
        self.workspace.chats[chat][stamp] = after
        await self._change(chat, edited, message=after, previous_message=before, subtype="message_changed")
        return edited

    async def delete(self, chat: str, stamp: str) -> str:
        before, at = self.workspace.chats[chat].pop(stamp), self.workspace.stamp()
        await self._change(chat, at, previous_message=before, deleted_ts=stamp, subtype="message_deleted")
        return at

    async def _change(self, chat: str, at: str, **fields: Any) -> None:
        kind = "im" if chat.startswith("D") else "channel"
        event = {"type": "message", "channel": chat, "channel_type": kind, "ts": at, "event_ts": at, **fields}
        await self.tell(event, name=at)

    async def press(self, chat: str, stamp: str, action: str, *, user: str = "U0ANNA") -> str:
        """A button of a message that the bot has sent, by its action_id."""
        message, at = self.workspace.chats[chat][stamp], self.workspace.stamp()
        [button] = [
            each for block in message["blocks"] for each in block.get("elements", ()) if each.get("action_id") == action
        ]
        thread = {"thread_ts": message["thread_ts"]} if "thread_ts" in message else {}
        payload = {
            "type": "block_actions",
            "team": {"id": TEAM},
            "user": {"id": user, "username": self.workspace.people[user].lower(), "team_id": TEAM},
            "channel": {"id": chat},
            "message": message,
            "container": {"type": "message", "message_ts": stamp, "channel_id": chat, **thread},
            "actions": [{**button, "action_ts": at}],
            "trigger_id": f"trigger.{at}",
        }
        await self._send("interactive", payload, at, urlencode({"payload": json.dumps(payload)}).encode())
        return at

    async def command(self, text: str, *, user: str = "U0ANNA", chat: str = "D0ANNA") -> str:
        """Somebody types `/everloop TEXT`."""
        at = self.workspace.stamp()
        payload = {
            "command": "/everloop",
            "text": text,
            "user_id": user,
            "user_name": self.workspace.people[user].lower(),
            "team_id": TEAM,
            "channel_id": chat,
            "channel_name": "directmessage" if chat.startswith("D") else "general",
            "trigger_id": f"trigger.{at}",
        }
        await self._send("slash_commands", payload, at, urlencode(payload).encode())
        return at

    async def tell(self, event: Fields, *, name: str = "", **payload: Any) -> None:
        """Any event. `name` is what `acknowledged` waits for."""
        told = {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": APP,
            "event": event,
            "event_id": f"Ev{self.workspace.number():08d}",
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
            **payload,
        }
        await self._send("events_api", told, name, json.dumps(told).encode())

    async def acknowledged(self, name: str) -> None:
        """Wait until all that was told by this name is acknowledged."""
        await self.until(lambda: self.told.get(name, {""}) <= self.acked)

    async def linked(self, sockets: int = 1) -> None:
        """Wait until so many sockets have ever been open."""
        await self.until(lambda: self.opened >= sockets)

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Looked at after each call, and whenever something else happens."""
        async with self._changed:
            await self._changed.wait_for(is_so)

    # How it is told.

    async def _send(self, kind: str, payload: Fields, name: str, body: bytes) -> None:
        id = f"envelope-{self.workspace.number()}"
        self.told.setdefault(name, set()).add(id)
        self.waiting[id] = {"envelope_id": id, "type": kind, "payload": payload, "accepts_response_payload": False}
        if self._post is None:
            await self._hand_over(id)
            return
        is_json = body.startswith(b"{")
        form = "application/json" if is_json else "application/x-www-form-urlencoded"
        if 200 <= await self._post({"content-type": form, **self.signed(body)}, body) < 300:
            await self._ack(id)

    def signed(self, body: bytes, at: float | None = None, secret: str = "") -> dict[str, str]:
        stamp = str(int(time.time() if at is None else at))
        digest = hmac.new((secret or self.signing_secret).encode(), f"v0:{stamp}:".encode() + body, sha256)
        return {"x-slack-request-timestamp": stamp, "x-slack-signature": f"v0={digest.hexdigest()}"}

    async def _hand_over(self, id: str) -> None:
        """On the newest connection; once more after a while, if nobody acknowledges it."""
        if id in self.waiting and self.sockets:
            with suppress(ConnectionError):
                await self.sockets[-1].send_str(json.dumps(self.waiting[id]))
            self._later(self._tell_again(id))

    async def _tell_again(self, id: str) -> None:
        await asyncio.sleep(self.again)
        if envelope := self.waiting.get(id):
            envelope["retry_attempt"] = envelope.get("retry_attempt", 0) + 1
            envelope["retry_reason"] = "timeout"
            await self._hand_over(id)
            await self._note()

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _ack(self, id: str) -> None:
        self.waiting.pop(id, None)
        self.acked.add(id)
        await self._note()

    async def _note(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _echo(self, kind: str, event: Fields) -> None:
        if self.echoes:
            self._later(self.tell({"channel_type": "im", **event, "type": kind}, name="echo"))

    async def disconnect(self, reason: str = "refresh_requested") -> None:
        """Ask the newest connection to make room for another."""
        told = {"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}}
        await self.sockets[-1].send_str(json.dumps(told))

    async def cut(self) -> None:
        for socket in [*self.sockets]:
            await socket.close(code=1011)

    async def _link(self, request: web.Request) -> web.StreamResponse:
        ticket = request.query.get("ticket", "")
        if ticket not in self._tickets:
            return web.Response(status=403, text="this address was used before")
        self._tickets.discard(ticket)
        socket = web.WebSocketResponse(heartbeat=30)
        await socket.prepare(request)
        hello = {"type": "hello", "num_connections": len(self.sockets) + 1, "connection_info": {"app_id": APP}}
        await socket.send_str(json.dumps({**hello, "debug_info": {"approximate_connection_time": 18060}}))
        self.sockets.append(socket)
        self.opened += 1
        self.together = max(self.together, len(self.sockets))
        await self._note()
        for id in [*self.waiting]:
            await self._hand_over(id)
        try:
            async for message in socket:
                if isinstance(message.data, str) and message.data.startswith("{"):
                    await self._ack(json.loads(message.data)["envelope_id"])
        finally:
            self.sockets.remove(socket)
            await self._note()
        return socket

    # The Web API.

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        given = await _given(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ") or given.pop("token", "")
        self.calls.append((method, given))
        fault = self._faults[method].pop(0) if self._faults.get(method) else self.judge(method, given)
        if fault and not fault.arrives:
            return await _broken(request, fault)
        result = self._result(method, given, token)
        await self._note()
        if fault:
            return await _broken(request, fault)
        return web.json_response(result, headers={"x-oauth-scopes": self.scopes})

    def _result(self, method: str, given: Fields, token: str) -> Fields:
        wanted = self.app_token if method == "apps.connections.open" else self.bot_token
        if token != wanted:
            return {"ok": False, "error": "invalid_auth" if token else "not_authed"}
        if method == "apps.connections.open":
            ticket = f"ticket-{self.workspace.number()}"
            self._tickets.add(ticket)
            return {"ok": True, "url": f"{self.url.replace('http', 'ws')}/link/?ticket={ticket}&app_id={APP}"}
        try:
            return {"ok": True, **self._methods.call(method, given)}
        except SlackRefusal as error:
            return {"ok": False, "error": str(error)}
        except KeyError as error:
            return {"ok": False, "error": "invalid_arguments", "response_metadata": {"messages": [str(error)]}}

    async def _upload(self, request: web.Request) -> web.Response:
        file = self.workspace.files[request.match_info["file"]]
        file.data = await request.read()
        return web.Response(text=f"OK - {len(file.data)}")

    async def _download(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.bot_token}":
            self.strangers.append(request.headers.get("Authorization", ""))
            raise web.HTTPFound("/login")
        file: SlackFile = self.workspace.files[request.match_info["file"].rpartition("-")[2]]
        return web.Response(body=file.data, content_type=file.mime)

    async def _login(self, request: web.Request) -> web.Response:
        return web.Response(text="<!DOCTYPE html><title>Sign in</title>", content_type="text/html")


async def _given(request: web.Request) -> Fields:
    given: Fields = dict(request.query)
    if request.content_type == "application/json":
        return {**given, **(await request.json() or {})}
    return {**given, **{key: value for key, value in (await request.post()).items() if isinstance(value, str)}}


async def _broken(request: web.Request, fault: SlackFault) -> web.StreamResponse:
    if fault.cut or fault.half:
        if fault.half:
            answer = web.StreamResponse(headers={"content-type": "application/json", "content-length": "100"})
            await answer.prepare(request)
            await answer.write(b'{"ok":')
        if request.transport:
            request.transport.close()
        return web.Response()
    headers = {"Retry-After": f"{fault.retry_after:g}"} if fault.retry_after else {}
    told = {"ok": False, "error": fault.error or ("ratelimited" if fault.status == 429 else "internal_error")}
    return web.json_response(told, status=fault.status, headers=headers)
