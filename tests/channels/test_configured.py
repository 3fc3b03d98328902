"""A gateway whose settings name channels: it opens those that it can, tells of the others, and follows changes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from everloop.app import open_desk, serve
from everloop.app.channel_desk import open_channel_desk
from everloop.app.records import open_records
from everloop.app.secrets import keep_secret
from everloop.gateway.server import serve as answer
from everloop.settings import load
from everloop.testing import Say, ScriptedModel
from everloop.testing.model_server import ModelServer
from tests.channels.parrot import PLUGGED, TOKEN, Cage, plugged_in
from tests.channels.receiver import SECRET, Program, message, post
from tests.cli.person import Person
from tests.ports import free_port

PATIENCE = 60.0


async def states(home: Path) -> dict[str, str]:
    async with open_channel_desk(home) as desk:
        return {each.name: each.state for each in await desk.rows()}


async def until(home: Path, wanted: dict[str, str]) -> None:
    """Until the channels stand so, as another process sees them."""
    found = {}
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await states(home)
                if wanted.items() <= found.items():
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(found) from None


class House:
    """A home with a gateway in a process of its own, which can be killed."""

    def __init__(self, person: Person, port: int) -> None:
        self.home, self.person, self.url = person.home, person, f"http://127.0.0.1:{port}"
        self.port = port
        person.environment["PYTHONPATH"] = str(PLUGGED)
        person.environment["EVERLOOP_STORE__LEASE_SECONDS"] = "4"

    def write(self, channels: dict[str, object]) -> None:
        self.home.mkdir(exist_ok=True)
        settings = {"gateway": {"port": self.port}, "channels": channels}
        place = self.home / ".config.json"
        place.write_text(json.dumps(settings))
        place.rename(self.home / "config.json")

    async def start(self) -> tuple[asyncio.subprocess.Process, list[str]]:
        """With what it says until it listens."""
        process = await self.person.start("gateway")
        assert process.stderr
        said: list[str] = []
        while not any("everloop gateway: http" in line for line in said):
            said.append((await asyncio.wait_for(process.stderr.readline(), PATIENCE)).decode())
            assert said[-1], said
        return process, said

    async def hook(self, path: str = "webhook") -> int:
        """Of what is not signed: 401 by the channel itself, 503 where it is not open, 0 where there is none."""
        async with aiohttp.ClientSession(self.url) as client, client.post(f"/hooks/{path}", data=b"x") as answer:
            return 0 if "Authorization: Bearer" in await answer.text() else answer.status


@asynccontextmanager
async def housed(folder: Path) -> AsyncIterator[House]:
    async with ModelServer() as model:
        person = Person(folder, model)
        try:
            with plugged_in():
                yield House(person, free_port())
        finally:
            await person.leave()


WEBHOOK = {"url": "http://127.0.0.1:9/x", "secret": SECRET}


async def test_one_wrong_one_right_one_that_fails_killed_and_started_again_and_what_is_said_is_true(tmp_path: Path):
    async with housed(tmp_path) as house, Cage().open() as cage:
        wrong = {"url": "ftp://x", "secret": SECRET}
        house.write({"webhook": wrong, "parrot": {"url": cage.url, "token": TOKEN}, "whatsapp": {"enabled": True}})
        gateway, _ = await house.start()
        up = {"webhook": "wrong", "parrot": "listening", "whatsapp": "wrong"}
        await until(house.home, up)
        assert gateway.stderr
        told = [(await asyncio.wait_for(gateway.stderr.readline(), PATIENCE)).decode() for _ in range(4)]
        assert told[1] == "Open channels: parrot. See: everloop channels status\n"
        assert "channels.webhook.url must begin with https://" in told[2]
        assert told[3] == (
            "channels.whatsapp is set, but this version has no channel for WhatsApp: nothing listens there.\n"
        )
        gateway.kill()
        await gateway.wait()
        await until(house.home, {"webhook": "wrong", "parrot": "stopped", "whatsapp": "wrong"})
        cage.token = "another-than-before"
        await house.start()
        await until(house.home, {"parrot": "failed"})
        async with open_channel_desk(house.home) as desk:
            row = await desk.row("parrot")
        assert row.why == "the parrot does not know the token …; ask it for another"  # which it has told us with it


async def test_what_changes_is_followed_without_a_restart(tmp_path: Path):
    async with housed(tmp_path) as house, Cage().open() as cage:
        house.write({"webhook": {"url": "http://127.0.0.1:9/x", "secret": "${vault:hook}"}})
        await house.start()
        await until(house.home, {"webhook": "wrong"})  # the secret is not there yet
        assert await house.hook() == 503
        async with open_records(house.home) as records:
            await keep_secret(records.vault, "hook", SECRET)
        await until(house.home, {"webhook": "listening"})
        assert await house.hook() == 401
        async with open_channel_desk(house.home) as desk:
            await desk.add("parrot", {"url": cage.url, "token": TOKEN})
        await until(house.home, {"webhook": "listening", "parrot": "listening"})
        async with open_channel_desk(house.home) as desk:
            await desk.remove("webhook")
        await until(house.home, {"webhook": "unset", "parrot": "listening"})
        assert await house.hook() == 0
        house.write({"parrot": {"url": cage.url, "token": "${vault:parrot.token}", "wings": 2}, "webhook": WEBHOOK})
        await until(house.home, {"webhook": "listening", "parrot": "wrong"})
        (house.home / "config.json").write_text("{ this is")
        assert await house.hook() == 401  # what cannot be read changes nothing


async def test_what_is_under_way_while_a_channel_is_opened_anew_is_taken_in_and_answered_once(tmp_path: Path):
    model = ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))
    given = {"gateway": {"port": 0}, "users": {"strangers": "guest"}}
    place = load(tmp_path, {}, given).gateway
    async with (
        Program().open() as program,
        open_desk(tmp_path, given, provider=model) as desk,
        answer(desk, place, tmp_path) as gateway,
    ):
        values = {"url": program.url, "secret": SECRET}
        await desk.channels.add("webhook", values)
        names: set[str] = set()
        for number in range(6):
            again = desk.channels.add("webhook", {**values, "previous_secret": f"{SECRET}{number}"}, test=False)
            adding = asyncio.ensure_future(again)
            while not adding.done():  # platforms go on calling
                names.add(name := f"m{len(names)}")
                assert await post(gateway.url, name, message("hi", chat=name)) == 202
            await adding
        await program.answered(names)
        tasks = [task.name for task in desk.tasks()]
    assert ({each["in_reply_to"] for each in program.taken.values()}, set(program.posts.values())) == (names, {1})
    assert len(tasks) == len(set(tasks))


async def test_a_locked_vault_keeps_only_those_from_listening_that_need_it(tmp_path: Path):
    async with open_records(tmp_path) as records:
        await keep_secret(records.vault, "bird", TOKEN)
    (tmp_path / "vault.key").unlink()
    parrot = {"url": "http://127.0.0.1:9", "token": "${vault:bird}"}
    given = {"gateway": {"port": 0}, "channels": {"webhook": WEBHOOK, "parrot": parrot}}
    with plugged_in():
        async with serve(tmp_path, given, provider=ScriptedModel([])) as gateway:
            (told,) = gateway.unused
            assert (gateway.listening, "vault.key is missing" in told, TOKEN in told) == (["webhook"], True, False)
