"""A Discord of one's own, on loopback: its REST API, its gateway and its CDN, as far as a bot needs them. discord.py
speaks with it as with the real one.

    async with DiscordServer("token") as server:
        anna = server.world.user("anna")
        await server.say(server.world.dm(anna), anna, "hello")
        …  # server.api and server.cdn are addresses, server.gateway.url is that of the gateway
        server.seen(channel)  # what people read there

The next calls can be made to fail (`fail`), and `judge` decides what becomes of each message that the bot sends, by its
nonce and its text.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from aiohttp import web
from msgspec import Struct

from .channel import Trouble
from .discord_world import DM, DiscordWorld, Json
from .event_gateway import EventGateway

PLENTY = {
    "X-RateLimit-Bucket": "b",
    "X-RateLimit-Limit": "50",
    "X-RateLimit-Remaining": "49",
    "X-RateLimit-Reset": "1",
    "X-RateLimit-Reset-After": "0.01",
}
LONGEST, MOST_FILES, LARGEST_FILE = 2_000, 10, 10 * 1024 * 1024


class DiscordFault(Struct, frozen=True, kw_only=True):
    """What becomes of a call: it is answered with a status, or with half a body."""

    status: int = 500
    retry_after: float = 1.0
    is_global: bool = False
    half: bool = False
    of: str = ""  # what its method and path must hold ("POST channels/"), "" for any


class DiscordCall(Struct, frozen=True):
    method: str
    path: str
    said: Any = None
    files: tuple[tuple[str, bytes], ...] = ()


class _Refused(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class DiscordServer:
    """`calls` are those that were made, `commands` those that are registered, `callbacks` what interactions were
    answered with. `headers` come with each answer. While it `remembers` nonces, a second message of one is none."""

    def __init__(self, token: str = "token", heartbeat: float = 10.0) -> None:
        self.world = DiscordWorld()
        self.gateway = EventGateway(token, heartbeat)
        self.calls: list[DiscordCall] = []
        self.callbacks: dict[str, Json] = {}
        self.commands: list[Json] = []
        self.reactions: list[tuple[str, str]] = []
        self.typed: list[str] = []
        self.headers: Mapping[str, str] = PLENTY
        self.remembers = True
        self.starts_left = 1000
        self.judge: Callable[[str, str], Trouble | None] = lambda nonce, content: None
        self.retry_after = 1.0  # what a Trouble.LIMITED says
        self.api = self.cdn = ""
        self._token = token
        self._faults: deque[DiscordFault] = deque()
        self._nonces: dict[str, str] = {}
        self._interactions: dict[str, Json] = {}
        self._changed = asyncio.Condition()
        app = web.Application(client_max_size=30_000_000)
        app.router.add_get("/cdn/{path:.*}", self._download)
        app.router.add_route("*", "/api/v10/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)

    async def __aenter__(self) -> Self:
        await self.gateway.__aenter__()
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        here = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.api, self.cdn = f"{here}/api/v10", f"{here}/cdn"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.gateway.__aexit__(kind, error, trace)
        await self._runner.cleanup()

    def fail(self, *faults: DiscordFault) -> None:
        """Let the next calls fail, one after the other."""
        self._faults.extend(faults)

    def seen(self, channel: str) -> list[str]:
        """What the bot has written there, as people see it now."""
        ours = [each for each in self.world.messages[channel].values() if each["author"]["id"] == self.world.bot["id"]]
        return [each["content"] for each in ours]

    def sent(self, channel: str) -> list[Json]:
        ours = self.world.messages[channel].values()
        return [each for each in ours if each["author"]["id"] == self.world.bot["id"]]

    async def until(self, met: Callable[[], object]) -> None:
        """Until calls that were made have made this so."""
        async with self._changed:
            await self._changed.wait_for(met)

    async def say(self, channel: str, author: Json, text: str, **more: Any) -> Json:
        """Somebody writes; with the `id` of a message that there is, it is told once more."""
        message = self.world.messages[channel].get(more.get("id", "")) or self.world.message(
            channel, author, text, more
        )
        await self._meet()
        await self.gateway.emit("MESSAGE_CREATE", self.world.event(message))
        return message

    async def edit(self, message: Json, text: str) -> None:
        message |= {"content": text, "edited_timestamp": datetime.now(UTC).isoformat()}
        await self.gateway.emit("MESSAGE_UPDATE", self.world.event(message))

    async def delete(self, *messages: Json) -> None:
        (channel,) = {each["channel_id"] for each in messages}
        for each in messages:
            del self.world.messages[channel][each["id"]]
        where = {"channel_id": channel, "guild_id": self.world.channels[channel].get("guild_id")}
        ids = [each["id"] for each in messages]
        if len(ids) == 1:
            await self.gateway.emit("MESSAGE_DELETE", {"id": ids[0], **where})
        else:
            await self.gateway.emit("MESSAGE_DELETE_BULK", {"ids": ids, **where})

    def attach(self, name: str, data: bytes, **more: Any) -> Json:
        """A file, to be given to `say` among its `attachments`."""
        id = self.world.new_id()
        self.world.files[f"attachments/{id}/{name}"] = data
        url = f"{self.cdn}/attachments/{id}/{name}?ex=1&hm=signed-canary"
        return {"id": id, "filename": name, "size": len(data), "url": url, "proxy_url": url, **more}

    async def press(self, message: Json, custom_id: str, user: Json) -> str:
        """Somebody presses a button; returns the id of the interaction."""
        data = {"custom_id": custom_id, "component_type": 2}
        return await self._interact(message["channel_id"], user, {"type": 3, "data": data, "message": message})

    async def command(self, channel: str, user: Json, name: str, **options: str) -> str:
        """Somebody uses a slash command."""
        given = [{"name": each, "type": 3, "value": value} for each, value in options.items()]
        data = {"id": "1", "name": name, "type": 1, "options": given}
        return await self._interact(channel, user, {"type": 2, "data": data})

    async def _interact(self, channel: str, user: Json, more: Json) -> str:
        place = self.world.channels[channel]
        id, who = self.world.new_id(), {"user": user}
        if guild := place.get("guild_id"):
            who = {"guild_id": guild, "member": {"user": user, "roles": [], "nick": None}}
        told = {"id": id, "application_id": self.world.application["id"], "token": f"itoken-canary-{id}", "version": 1}
        told |= {"channel_id": channel, "channel": place, "attachment_size_limit": LARGEST_FILE, **who, **more}
        self._interactions[id] = told
        await self._meet()
        await self.gateway.emit("INTERACTION_CREATE", told)
        return id

    async def _meet(self) -> None:
        """What a client is told that comes from now on."""
        guilds = self.world.guilds
        self.gateway.ready = {
            "v": 10,
            "user": self.world.bot,
            "guilds": [{"id": id, "unavailable": True} for id in guilds],
            "application": self.world.application,
            "private_channels": [],
        }
        self.gateway.welcome = [("GUILD_CREATE", self.world.guild_event(id)) for id in guilds]

    async def _download(self, request: web.Request) -> web.Response:
        if "Authorization" in request.headers:
            return web.Response(status=400, text="the CDN is told no token")
        data = self.world.files.get(request.match_info["path"])
        return web.Response(status=404) if data is None else web.Response(body=data)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """What was asked for is done, though who asked has gone meanwhile."""
        call = await _read(request)
        self.calls.append(call)
        return await asyncio.shield(asyncio.ensure_future(self._settled(request, call)))

    async def _settled(self, request: web.Request, call: DiscordCall) -> web.StreamResponse:
        try:
            answer = await self._judged(request, call)
        except _Refused as error:
            answer = self._json(error.status, {"code": error.code, "message": str(error)})
        async with self._changed:
            self._changed.notify_all()
        return answer

    async def _judged(self, request: web.Request, call: DiscordCall) -> web.StreamResponse:
        if self._faults and self._faults[0].of in f"{call.method} {call.path}":
            return await self._failed(request, self._faults.popleft())
        if not call.path.startswith("interactions/") and request.headers.get("Authorization") != f"Bot {self._token}":
            raise _Refused(401, 0, "401: Unauthorized")
        await self._meet()
        parts = [unquote(each) for each in call.path.split("/")]
        if call.method == "POST" and parts[0] == "channels" and parts[2:] == ["messages"]:
            return await self._create(request, call, parts[1])
        status, told = await self._route(parts[0])(call, parts[1:], request.query)
        return self._json(status, told)

    def _route(self, root: str) -> Callable[[DiscordCall, list[str], Mapping[str, str]], Awaitable[tuple[int, Any]]]:
        routes = {"channels": self._channel, "users": self._users, "guilds": self._guilds, "gateway": self._gateway}
        known = {**routes, "applications": self._applications, "oauth2": self._oauth2, "interactions": self._callback}
        if root not in known:
            raise _Refused(404, 0, "404: Not Found")
        return known[root]

    async def _users(self, call: DiscordCall, rest: list[str], query: Mapping[str, str]) -> tuple[int, Any]:
        match call.method, rest:
            case "GET", ["@me"]:
                return 200, self.world.bot
            case "GET", ["@me", "guilds"]:
                return 200, [
                    {key: each[key] for key in ("id", "name", "permissions")} for each in self.world.guilds.values()
                ]
            case "POST", ["@me", "channels"]:
                known = [each["recipients"][0] for each in self.world.channels.values() if each["type"] == DM]
                for user in known:
                    if user["id"] == str(call.said["recipient_id"]):
                        return 200, self.world.channels[self.world.dm(user)]
                raise _Refused(403, 50007, "Cannot send messages to this user")
        raise _Refused(404, 0, "404: Not Found")

    async def _guilds(self, call: DiscordCall, rest: list[str], query: Mapping[str, str]) -> tuple[int, Any]:
        if rest[0] in self.world.guilds and rest[1:] == ["roles"]:
            return 200, self.world.guilds[rest[0]]["roles"]
        raise _Refused(404, 10004, "Unknown Guild")

    async def _gateway(self, call: DiscordCall, rest: list[str], query: Mapping[str, str]) -> tuple[int, Any]:
        limit = {"total": 1000, "remaining": self.starts_left, "reset_after": 7_000, "max_concurrency": 1}
        return 200, {"url": self.gateway.url, "shards": 1, "session_start_limit": limit}

    async def _oauth2(self, call: DiscordCall, rest: list[str], query: Mapping[str, str]) -> tuple[int, Any]:
        return 200, self.world.application

    async def _applications(self, call: DiscordCall, rest: list[str], query: Mapping[str, str]) -> tuple[int, Any]:
        if rest == ["@me"]:
            return 200, self.world.application
        if call.method == "PUT":
            for each in call.said:
                if not 1 <= len(each["description"]) <= 100:
                    raise _Refused(400, 50035, "Invalid Form Body: description must be between 1 and 100")
            self.commands = call.said
        return 200, self.commands

    async def _callback(self, call: DiscordCall, rest: list[str], query: Mapping[str, str]) -> tuple[int, Any]:
        asked = self._interactions.get(rest[0])
        if asked is None or rest[1:] != [asked["token"], "callback"]:
            raise _Refused(404, 10062, "Unknown interaction")
        if rest[0] in self.callbacks:
            raise _Refused(400, 40060, "Interaction has already been acknowledged.")
        self.callbacks[rest[0]] = call.said
        if call.said["type"] == 7:
            asked["message"] |= call.said["data"]
        if "with_response" in query:
            told = {"id": rest[0], "type": asked["type"], "response_message_id": asked.get("message", {}).get("id")}
            return 200, {"interaction": told, "resource": {"type": call.said["type"]}}
        return 204, None

    async def _channel(self, call: DiscordCall, rest: list[str], query: Mapping[str, str]) -> tuple[int, Any]:
        if rest[0] not in self.world.channels:
            raise _Refused(404, 10003, "Unknown Channel")
        match call.method, rest[1:]:
            case "GET", []:
                return 200, self.world.channels[rest[0]]
            case "POST", ["typing"]:
                self.typed.append(rest[0])
                return 204, None
            case "GET", ["messages"]:
                return 200, self._history(rest[0], query)
            case _, ["messages", id, *more]:
                return await self._message(call, rest[0], id, more)
        raise _Refused(404, 0, "404: Not Found")

    def _history(self, channel: str, query: Mapping[str, str]) -> list[Json]:
        """The next ones after an id, else the last ones; the newest first."""
        all, limit = [*self.world.messages[channel].values()], int(query.get("limit", 50))
        if "after" in query:
            return [each for each in all if int(each["id"]) > int(query["after"])][:limit][::-1]
        return all[-limit:][::-1]

    async def _message(self, call: DiscordCall, channel: str, id: str, more: list[str]) -> tuple[int, Any]:
        message = self.world.messages[channel].get(id)
        if message is None:
            raise _Refused(404, 10008, "Unknown Message")
        if call.method == "PUT" and more[:1] == ["reactions"]:
            self.reactions.append((id, more[1]))
            return 204, None
        if call.method == "DELETE" and not more:
            del self.world.messages[channel][id]
            await self.gateway.emit("MESSAGE_DELETE", {"id": id, "channel_id": channel})
            return 204, None
        if call.method == "PATCH":
            self._check(call)
            attached = [self.attach(name, data) for name, data in call.files]
            message |= {key: call.said[key] for key in ("content", "components", "flags") if key in call.said}
            message |= {
                "attachments": attached or message["attachments"],
                "edited_timestamp": datetime.now(UTC).isoformat(),
            }
            await self.gateway.emit("MESSAGE_UPDATE", self.world.event(message))
        return 200, message

    async def _create(self, request: web.Request, call: DiscordCall, channel: str) -> web.StreamResponse:
        if channel not in self.world.channels:
            raise _Refused(404, 10003, "Unknown Channel")
        self._check(call)
        nonce = str(call.said.get("nonce", ""))
        trouble = self.judge(nonce, call.said.get("content", ""))
        if refused := self._troubled(trouble):
            return refused
        known = self._nonces.get(nonce, "") if nonce and call.said.get("enforce_nonce") and self.remembers else ""
        message = self.world.messages[channel].get(known) or await self._post(call, channel)
        self._nonces[nonce] = message["id"]
        if trouble is Trouble.ACK_LOST and request.transport:
            request.transport.abort()
        return self._json(200, message)

    def _troubled(self, trouble: Trouble | None) -> web.Response | None:
        if trouble is Trouble.DOWN:
            return web.Response(status=503, text="upstream connect error")
        return self._limited(self.retry_after, is_global=False) if trouble is Trouble.LIMITED else None

    async def _post(self, call: DiscordCall, channel: str) -> Json:
        said = {
            key: value for key, value in call.said.items() if key not in ("content", "enforce_nonce", "attachments")
        }
        more = {**said, "attachments": [self.attach(name, data) for name, data in call.files]}
        message = self.world.message(channel, self.world.bot, call.said.get("content", ""), more)
        await self.gateway.emit("MESSAGE_CREATE", self.world.event(message))
        return message

    def _check(self, call: DiscordCall) -> None:
        if len(call.said.get("content") or "") > LONGEST:  # code points
            raise _Refused(400, 50035, "Invalid Form Body\nIn content: Must be 2000 or fewer in length.")
        if not call.said.get("content") and not call.files:
            raise _Refused(400, 50006, "Cannot send an empty message")
        if len(call.files) > MOST_FILES or any(len(data) > LARGEST_FILE for _, data in call.files):
            raise _Refused(413, 40005, "Request entity too large")

    async def _failed(self, request: web.Request, fault: DiscordFault) -> web.StreamResponse:
        if fault.half:
            answer = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "500"})
            await answer.prepare(request)
            await answer.write(b'{"id": "1')
            if request.transport:
                request.transport.abort()
            return answer
        if fault.status == 429:
            return self._limited(fault.retry_after, is_global=fault.is_global)
        return web.Response(status=fault.status, text="an error that is no JSON")

    def _limited(self, seconds: float, *, is_global: bool) -> web.Response:
        told = {"message": "You are being rate limited.", "retry_after": seconds, "global": is_global}
        return self._json(429, told, {"Via": "1.1 google", "Retry-After": str(round(seconds))})

    def _json(self, status: int, told: Any, headers: Mapping[str, str] = {}) -> web.Response:
        if status == 204:
            return web.Response(status=204, headers={**self.headers})
        # Discord names no charset, and its clients look for exactly this.
        sent = {"Content-Type": "application/json", **self.headers, **headers}
        return web.Response(status=status, body=json.dumps(told).encode(), headers=sent)


async def _read(request: web.Request) -> DiscordCall:
    path = request.rel_url.raw_path.removeprefix("/api/v10/")  # an emoji may hold a slash
    if request.content_type.startswith("multipart/"):
        form = await request.post()
        files = [each for name, each in form.items() if name.startswith("files[")]
        given = tuple((each.filename, each.file.read()) for each in files if isinstance(each, web.FileField))
        said = form["payload_json"]  # bytes when it comes with a type of its own
        return DiscordCall(request.method, path, json.loads(said if isinstance(said, bytearray) else str(said)), given)
    body = await request.read()
    return DiscordCall(request.method, path, json.loads(body) if body else None)
