"""A person takes along what is theirs, or is erased: by whom, confirmed, while turns run, and whole."""

import asyncio
import io
import os
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from everloop.app import open_desk
from everloop.core.people import OWNER as OWNER_ID
from everloop.core.people import Role, chat_of
from everloop.ports import Deliver
from everloop.ports.channel import Incoming
from everloop.ports.directory import Person
from everloop.readings.spoken import BLANK
from everloop.testing import RecordingChannel, ScriptedModel, Shown, Wait
from tests.gateway.api.test_api import OWNER, READER, USER, Client, lines, opened

GUEST = {"Authorization": "Bearer guest"}
WORD = "canaryword"
STRANGERS = {"users": {"strangers": "guest"}}


class Chat(RecordingChannel):
    def __init__(self) -> None:
        super().__init__("fake")
        self.listens: asyncio.Queue[Deliver] = asyncio.Queue()

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.put_nowait(deliver)


async def export(client: Client, id: str, who: dict[str, str] = OWNER) -> tuple[int, bytes]:
    answer = await client.get(f"/api/users/{quote(id, safe='')}/export", headers=who)
    return answer.status, await answer.read()


async def erase(client: Client, id: str, confirm: str, who: dict[str, str] = OWNER) -> tuple[int, Any]:
    answer = await client.post(f"/api/users/{quote(id, safe='')}/erase", params={"confirm": confirm}, headers=who)
    return answer.status, await answer.json()


def is_in(home: Path, word: str = WORD) -> bool:
    return any(word.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def unpacked(data: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as pack:
        assert pack.testzip() is None
        return {name: pack.read(name).decode() for name in pack.namelist()}


async def test_one_is_handed_ones_own_and_nobody_but_the_owner_anothers(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.store.introduce(Person("ada", "Ada", Role.USER))
        await agent.ask(f"my {WORD}", "page:mine")
        await agent.user("web:zoe").ask("a stranger's words")
        status, data = await export(client, OWNER_ID)
        mine = unpacked(data)
        refused = [
            (await export(client, id, who))[0]
            for id, who in (
                *((OWNER_ID, USER), ("web:zoe", USER), ("nobody", USER), (OWNER_ID, GUEST)),
                *((OWNER_ID, {}), ("nobody", OWNER), ("web:zoe", READER), ("chat:a/b", OWNER)),
            )
        ]
        strangers = unpacked((await export(client, "web:zoe"))[1])
        own = (await export(client, "ada", USER))[0]
    assert (status, own) == (200, 200)
    assert refused == [404, 404, 404, 403, 401, 404, 403, 404]
    assert sorted(name.partition("/")[0] for name in mine)[0] == "README.md"
    [told] = [text for name, text in mine.items() if name.endswith(".md") and name.startswith("conversations/")]
    assert told.count(f"my {WORD}") == 3  # the title, what was said, the answer
    assert "stranger's" not in str(mine)
    assert (WORD in str(strangers), "a stranger's words" in str(strangers)) == (False, True)


async def test_erasing_is_confirmed_by_the_name_and_done_by_those_who_may(tmp_path: Path):
    async with opened(tmp_path) as (agent, client):
        await agent.store.introduce(Person("web:anna", "Anna", Role.USER, accounts=("web:anna",)))
        await agent.store.introduce(Person("web:boss", "Boss", Role.ADMIN))
        await agent.user("web:anna").ask(f"hello {WORD}")
        await agent.user("web:ben").ask("hello from ben")
        assert is_in(tmp_path)
        tried = [
            await erase(client, *each)
            for each in (
                *(("web:anna", "anna"), ("web:anna", "web:anna"), ("Anna", "Anna"), (OWNER_ID, "owner")),
                *(("web:anna", "Anna", USER), ("web:anna", "Anna", READER), ("web:anna", "Anna", {})),
                ("nobody", "nobody"),
            )
        ]
        assert is_in(tmp_path)
        status, told = await erase(client, "web:anna", "Anna")
        again, _ = await erase(client, "web:anna", "Anna")
        listed = [each.id for each in await agent.store.people()]
        others = [each.title for each in await agent.store.conversations("web:ben")]
        assert not is_in(tmp_path)
    assert [status for status, _ in tried] == [409, 409, 409, 409, 403, 403, 401, 409]
    assert (status, again) == (200, 409)
    assert told == {"id": "web:anna", "removed": {**told["removed"], "person": 1, "conversations": 1, "entries": 3}}
    assert ("web:anna" in listed, others) == (False, ["hello from ben"])


async def test_a_turn_of_theirs_that_runs_is_stopped_first_there_and_in_a_group(tmp_path: Path):
    asked: asyncio.Queue[str] = asyncio.Queue()
    channel = Chat()

    def hangs(shown: Shown) -> Any:
        asked.put_nowait(shown.asked)
        return Wait(asyncio.Event())

    given = {"provider": ScriptedModel(hangs), "channels": (channel,)}
    async with open_desk(tmp_path, STRANGERS, **given) as agent:
        deliver = await channel.listens.get()
        for chat, direct in (("anna", True), ("room", False)):
            text = f"{WORD} in {chat}"
            await deliver(
                Incoming(event=chat, chat=chat, account="anna", text=text, direct=direct, mentioned=not direct)
            )
            await asked.get()
        rows = await agent.store.threads_of([chat_of("fake", "room")])
        assert [row.state for row in rows] == ["running"]
        await agent.erasures.erase(await agent.erasures.find("fake:anna", Role.OWNER))
        assert not is_in(tmp_path)
        [row] = await agent.store.threads_of([chat_of("fake", "room")])
        assert (row.state, await agent.store.threads_of(["fake:anna"])) == ("resting", [])


async def test_a_group_goes_on_without_their_words_also_where_they_were_remembered(tmp_path: Path):
    shown, channel = list[str](), Chat()

    def watched(each: Shown) -> Any:
        shown.append(str(each.messages))
        return lines(each)

    given = {"provider": ScriptedModel(watched), "channels": (channel,)}
    async with open_desk(tmp_path, STRANGERS, **given) as agent:
        deliver = await channel.listens.get()
        for number, (account, text) in enumerate((("anna", f"I say {WORD}"), ("ben", "I say pear"))):
            said = Incoming(event=f"e{number}", chat="room", account=account, text=text, direct=False, mentioned=True)
            await deliver(said)
            await channel.sent(number + 1)
        assert WORD in shown[1]  # the model is told what others said
        person = await agent.erasures.find("fake:anna", Role.OWNER)
        await agent.erasures.erase(person)
        await deliver(Incoming(event="e9", chat="room", account="ben", text="and on", direct=False, mentioned=True))
        await channel.sent(3)
        assert (WORD in shown[2], "pear" in shown[2], BLANK in shown[2]) == (False, True, True)
        assert not is_in(tmp_path)


async def test_a_large_workspace_is_not_in_memory_while_it_is_handed_over(tmp_path: Path):
    async with opened(tmp_path) as (agent, _):
        (tmp_path / "workspace" / "large.bin").touch()
        os.truncate(tmp_path / "workspace" / "large.bin", 64_000_000)
        person = await agent.members.find(OWNER_ID)
        tracemalloc.start()
        size = 0
        async for piece in agent.export(person):
            size += len(piece)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (size > 60_000, peak < 8_000_000) == (True, True)
