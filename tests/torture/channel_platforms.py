"""The platforms of all channels, as the campaign of kills sees them: people write in chats of two, and see answers."""

import asyncio
import re
import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress

from tests.channels.discord.platform import TOKEN as DISCORD_TOKEN
from tests.channels.email.servers import MailServer, written
from tests.channels.matrix.somebody import Somebody, somebody
from tests.channels.matrix.synapse import running
from tests.channels.receiver import SECRET, Program, message, post
from tests.channels.slack.platform import settings_of
from tests.channels.telegram.stand import TOKEN as TELEGRAM_TOKEN

from everloop.net.trusted import TrustedHttp
from everloop.testing.discord_server import DiscordServer
from everloop.testing.slack_server import SlackServer
from everloop.testing.telegram_server import TelegramServer

MARK = "(may be repeated) "
_ANSWER = re.compile(rf"(?:{re.escape(MARK)})?you said [\w-]+(?:\. That is all\.)?")


class TorturedPlatform(ABC):
    """`settings` are those of its channel. `once`: no answer is ever seen twice there."""

    name: str
    once = False

    def __init__(self) -> None:
        self.settings: dict[str, object] = {}
        self.gateway = ""  # its address

    async def is_ready(self) -> None:  # noqa: B027 — most are, from the start
        """Wait until what is said is heard; from then on nothing may be lost."""

    @abstractmethod
    async def say(self, chat: int, text: str) -> None: ...

    @abstractmethod
    def seen(self) -> Counter[str]:
        """The answers that people see by now."""


class OnWebhook(TorturedPlatform):
    name, once = "webhook", True

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._program = program
        self.settings = {"url": program.url, "secret": SECRET}

    async def say(self, chat: int, text: str) -> None:
        await post(self.gateway, text, message(text, f"chat {chat}", f"user{chat}"))

    def seen(self) -> Counter[str]:
        return Counter(str(taken["text"]) for taken in self._program.taken.values())


class OnTelegram(TorturedPlatform):
    name = "telegram"

    def __init__(self, server: TelegramServer) -> None:
        super().__init__()
        self._server = server
        self.settings = {"token": TELEGRAM_TOKEN, "api_url": server.url}

    async def say(self, chat: int, text: str) -> None:
        await self._server.say(text, user={"id": 1000 + chat, "is_bot": False, "first_name": f"User {chat}"})

    def seen(self) -> Counter[str]:
        return Counter(self._server.account.seen())


class OnSlack(TorturedPlatform):
    name = "slack"

    def __init__(self, server: SlackServer, chats: int) -> None:
        super().__init__()
        self._workspace, self._server = server.workspace, server
        self._workspace.people |= {f"U0P{chat}": "Somebody" for chat in range(chats)}
        self._workspace.chats |= {f"D0P{chat}": {} for chat in range(chats)}
        self.settings = settings_of(server)

    async def say(self, chat: int, text: str) -> None:
        await self._server.say(text, user=f"U0P{chat}", chat=f"D0P{chat}", thread_ts="1.0")

    def seen(self) -> Counter[str]:
        """Without drafts of which nothing has become: those are streams that nobody has changed into an answer."""
        messages = [each for chat in self._workspace.chats.values() for each in chat.values() if each.get("bot_id")]
        return Counter(each["text"] for each in messages if "streaming" not in each or "edited" in each)


class OnDiscord(TorturedPlatform):
    name = "discord"

    def __init__(self, server: DiscordServer, chats: int) -> None:
        super().__init__()
        self._server = server
        self._users = [server.world.user(f"user{chat}") for chat in range(chats)]
        self._chats = [server.world.dm(user) for user in self._users]
        self.settings = {"token": DISCORD_TOKEN, "api_url": server.api, "cdn_url": server.cdn}

    async def is_ready(self) -> None:
        await self._server.gateway.until_listening()

    async def say(self, chat: int, text: str) -> None:
        await self._server.say(self._chats[chat], self._users[chat], text)

    def seen(self) -> Counter[str]:
        return Counter(text for chat in self._chats for text in self._server.seen(chat))


class OnEmail(TorturedPlatform):
    """Whoever reads mail has a second copy with the same Message-ID as one, though that says that it may be one."""

    name, once = "email", True
    address = "agent@agent.example"

    def __init__(self, server: MailServer) -> None:
        super().__init__()
        self._server = server
        self.settings = server.settings(address=self.address, senders="any", unseen_days=1)
        self._people: set[str] = set()
        self._read: dict[str, tuple[str, str]] = {}  # by its file, the Message-ID of a mail and the answer in it

    async def say(self, chat: int, text: str) -> None:
        person = f"user{chat}@people.example"
        self._people.add(person)
        mail = written(text, sender=person, id=f"{text}-{secrets.token_hex(4)}@people.example")
        await asyncio.to_thread(self._server.post, mail, person, self.address)

    def seen(self) -> Counter[str]:
        for person in [*self._people]:
            for name, read in self._server.unread(person, self._read):
                mail = read()
                said = _ANSWER.search(mail.as_string())
                self._read[name] = mail["Message-ID"], said[0].removeprefix(MARK) if said else ""
        found = dict(self._read.values())
        return Counter(answer for answer in found.values() if answer)


class OnMatrix(TorturedPlatform):
    name, once = "matrix", True

    def __init__(self, homeserver: str, token: str) -> None:
        super().__init__()
        self.settings = {"homeserver": homeserver, "access_token": token}
        self.chats: list[tuple[Somebody, str, str]] = []

    async def say(self, chat: int, text: str) -> None:
        someone, room, _ = self.chats[chat]
        await someone.say(room, text)

    def seen(self) -> Counter[str]:
        """Without drafts of which nothing has become: one that comes late is left by who is killed before it is taken
        away, and may be whole."""
        return Counter(text for someone, room, bot in self.chats for text in someone.shown(room, bot, drafts=False))


@asynccontextmanager
async def on_webhook(chats: int) -> AsyncIterator[TorturedPlatform]:
    async with Program().open() as program:
        yield OnWebhook(program)


@asynccontextmanager
async def on_telegram(chats: int) -> AsyncIterator[TorturedPlatform]:
    http = TrustedHttp()
    async with TelegramServer(TELEGRAM_TOKEN, http=http) as server:
        yield OnTelegram(server)
    await http.close()


@asynccontextmanager
async def on_slack(chats: int) -> AsyncIterator[TorturedPlatform]:
    async with SlackServer(again=1.0) as server:
        yield OnSlack(server, chats)


@asynccontextmanager
async def on_discord(chats: int) -> AsyncIterator[TorturedPlatform]:
    async with DiscordServer(DISCORD_TOKEN, heartbeat=1.0) as server:
        yield OnDiscord(server, chats)


@asynccontextmanager
async def on_email(chats: int) -> AsyncIterator[TorturedPlatform]:
    server = MailServer()
    try:
        await asyncio.to_thread(server.start)
        yield OnEmail(server)
    finally:
        await asyncio.to_thread(server.stop)


@asynccontextmanager
async def on_matrix(chats: int) -> AsyncIterator[TorturedPlatform]:
    async with AsyncExitStack() as stack:
        server = stack.enter_context(running())
        bot = server.register("bot")
        platform = OnMatrix(server.url, bot.token)
        for _ in range(chats):
            someone = await stack.enter_async_context(somebody(server))
            platform.chats.append((someone, await someone.make_room(bot.user, direct=True), bot.user))
            stack.push_async_callback(_end, asyncio.ensure_future(_listen(someone)))
        yield platform


async def _listen(someone: Somebody) -> None:
    """For as long as the campaign takes; they are not patient for so long."""
    while True:
        with suppress(TimeoutError):
            await someone.until(lambda _: False)


async def _end(task: "asyncio.Future[object]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


Opening = Callable[[int], AbstractAsyncContextManager[TorturedPlatform]]
PLATFORMS: dict[str, Opening] = {
    "webhook": on_webhook,
    "telegram": on_telegram,
    "slack": on_slack,
    "discord": on_discord,
    "email": on_email,
    "matrix": on_matrix,
}
