"""`everloop gateway` and `everloop tokens` as people run them: processes of their own, killed and started again."""

import asyncio
import re
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from tests.cli.person import Person, Ran, is_one_plain_sentence
from tests.ports import free_port

from everloop.testing import Call, Say, Wait


class Running:
    """A gateway that someone has started: its process, where it is, what it said."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, said: list[str]) -> None:
        self.process = process
        self.url = url
        self.said = said

    async def kill(self) -> None:
        self.process.kill()
        await self.process.communicate()

    async def stop(self) -> Ran:
        self.process.terminate()
        out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return Ran(self.process.returncode, out.decode(), err.decode())


async def start(person: Person, port: int, links: bool = True) -> Running:
    process = await person.start("gateway", "--port", str(port))
    assert process.stderr is not None
    said = [(await process.stderr.readline()).decode()]
    if links:
        said.append((await process.stderr.readline()).decode())
    assert said[0].startswith("everloop gateway: http"), said
    return Running(process, said[0].split()[-1], said)


async def new_token(person: Person, *arguments: str) -> str:
    ran = await person.run("tokens", "create", *arguments)
    assert (ran.status, ran.err) == (0, "")
    return ran.out.removesuffix("\n")


@asynccontextmanager
async def wire_to(url: str, token: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(url, headers=headers) as client, client.ws_connect("/ws") as wire:
        yield wire


async def until(wire: aiohttp.ClientWebSocketResponse, type: str, **fields: Any) -> list[dict[str, Any]]:
    frames = [await wire.receive_json(timeout=60)]
    while frames[-1]["type"] != type or any(frames[-1][name] != value for name, value in fields.items()):
        frames.append(await wire.receive_json(timeout=60))
    return frames


async def test_the_first_start_prints_a_link_that_logs_in_once(person):
    gateway = await start(person, 0)
    (link,) = re.findall(r"http://\S+/login\?code=\S+", gateway.said[1])
    async with aiohttp.ClientSession() as client:
        statuses = [(await client.get(link, allow_redirects=False)).status for _ in range(2)]
    stopped = await gateway.stop()
    assert statuses == [303, 401]
    assert (stopped.status, stopped.out, stopped.err) == (0, "", "everloop gateway: stopping\n")


async def test_a_token_is_alone_on_stdout_and_works_while_the_gateway_runs_until_it_is_revoked(person):
    gateway = await start(person, 0)
    token = await new_token(person, "laptop")
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(gateway.url, headers=headers) as client:
        before = (await client.get("/metrics")).status
        again = await person.run("tokens", "create", "laptop")
        listed = await person.run("tokens", "list", "--json")
        revoked = await person.run("tokens", "revoke", "laptop")
        after = (await client.get("/metrics")).status
    await gateway.stop()
    assert re.fullmatch(r"ev_[\w-]{43}", token)
    assert (before, after) == (200, 401)
    assert (again.status, again.out, is_one_plain_sentence(again.err)) == (1, "", True)
    (row,) = msgspec.json.decode(listed.out)["tokens"]
    assert (row["name"], row["scopes"], token in listed.out) == ("laptop", ["read", "chat", "approve", "admin"], False)
    assert revoked == Ran(0, "", "laptop is revoked.\n")


async def test_tokens_are_listed_scoped_and_revoked_by_name(person):
    none = await person.run("tokens")
    await new_token(person, "reader", "--scope", "read", "--days", "7")
    some = await person.run("tokens", "list")
    missing = await person.run("tokens", "revoke", "nobody")
    assert none == Ran(0, "There are no tokens. Make one with: everloop tokens create NAME\n", "")
    assert some.out.splitlines()[1].split()[0::2][:2] == ["reader", "read"]
    assert (missing.status, is_one_plain_sentence(missing.err)) == (1, True)


async def test_another_interface_without_encryption_is_refused(person):
    ran = await person.run("gateway", "--host", "0.0.0.0", "--port", "0")
    assert (ran.status, ran.out, is_one_plain_sentence(ran.err)) == (1, "", True)
    assert "gateway.behind_proxy" in ran.err


async def test_what_is_no_port_is_a_wrong_option(person):
    ran = await person.run("gateway", "--port", "99999")
    sentence = "--port must be a number from 0 to 65535. See: everloop gateway run --help"
    assert ran == Ran(2, "", f"everloop: {sentence}\n")


async def test_a_port_that_is_taken_is_named(person):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = await person.run("gateway", "--port", str(port))
    assert (ran.status, is_one_plain_sentence(ran.err), str(port) in ran.err) == (1, True, True)


async def test_the_settings_say_where_it_listens(person):
    port = free_port()
    person.environment["EVERLOOP_GATEWAY__PORT"] = str(port)
    process = await person.start("gateway")
    said = (await process.stderr.readline()).decode()
    process.terminate()
    await process.communicate()
    assert said == f"everloop gateway: http://127.0.0.1:{port}\n"


async def test_an_invitation_leads_to_where_the_gateway_listens(person):
    await person.run("users", "add", "ann")
    before = (await person.run("users", "invite", "ann")).out
    gateway = await start(person, 0)
    (invited,) = (await person.run("users", "invite", "ann")).out.splitlines()
    async with aiohttp.ClientSession() as client, client.get(invited, allow_redirects=False) as answer:
        came = answer.status
    await gateway.stop()
    after = (await person.run("users", "invite", "ann")).out
    assert (invited.startswith(f"{gateway.url}/login?code="), came) == (True, 303)
    assert [link.startswith("http://127.0.0.1:18790/login?code=") for link in (before, after)] == [True, True]


async def test_killed_in_the_middle_of_an_answer_it_shows_the_truth_once(person, model):
    never, gate = asyncio.Event(), asyncio.Event()
    model.play([[Say("half "), Wait(never)], [Wait(gate), Say("whole")]])
    port = free_port()
    gateway = await start(person, port)
    token = await new_token(person, "client")
    async with wire_to(gateway.url, token) as wire:
        await wire.send_json({"type": "message", "id": "m1", "session": "api:default", "content": "go"})
        seen = await until(wire, "stream_chunk")
        await gateway.kill()
    gateway = await start(person, port)
    async with wire_to(gateway.url, token) as wire:
        await wire.send_json({"type": "resume", "session": "api:default", "thread": seen[0]["thread"], "after": 0})
        back = await until(wire, "history_result")
        gate.set()
        back += await until(wire, "response")
        await wire.send_json({"type": "message", "id": "m1", "session": "api:default", "content": "go"})
        again = await until(wire, "response")
        await wire.send_json({"type": "history", "session": "api:default"})
        (history,) = await until(wire, "history_result")
    await gateway.stop()
    kinds = [entry["kind"] for entry in history["entries"]]
    assert next(entry["kind"] for entry in back[0]["entries"]) == "user_said"
    assert "".join(frame["delta"] for frame in back if frame["type"] == "stream_chunk") == "whole"
    assert (back[-1]["id"], back[-1]["content"]) == ("m1", "whole")
    assert [frame["type"] for frame in again] == ["ack", "response"]
    assert again[-1]["content"] == "whole"
    assert (kinds.count("user_said"), kinds.count("model_said")) == (1, 1)
    assert len([frame for frame in back if frame["type"] == "response"]) == 1


async def test_killed_with_many_clients_everything_acknowledged_is_answered_once(person, model):
    model.play(lambda shown: Say(f"answer to {shown.said[-1][1].split()[0]}"))
    port = free_port()
    gateway = await start(person, port)
    token = await new_token(person, "clients")
    acknowledged = asyncio.Event()
    answers: dict[str, set[str]] = {}

    async def speak(n: int) -> None:
        session = f"api:{n}"
        for m in range(4):
            id = f"{n}-{m}"
            frame = {"type": "message", "id": id, "session": session, "content": f"{id} please"}
            while id not in answers:
                try:
                    async with wire_to(f"http://127.0.0.1:{port}", token) as wire:
                        await wire.send_json(frame)
                        while True:
                            told = await wire.receive_json(timeout=60)
                            if told["type"] == "ack":
                                acknowledged.set()
                            if told["type"] == "response":
                                answers.setdefault(told["id"], set()).add(told["content"])
                            if told["type"] == "response" and told["id"] == id:
                                break
                except (aiohttp.ClientError, ConnectionError, TypeError):
                    await asyncio.sleep(0.05)  # it is being started again

    async with asyncio.TaskGroup() as group:
        for n in range(20):
            group.create_task(speak(n))
        for _ in range(2):  # a third in a row would end the turns, as it should
            await acknowledged.wait()
            await gateway.kill()
            acknowledged.clear()
            gateway = await start(person, port)
    ids = {f"{n}-{m}" for n in range(20) for m in range(4)}
    async with wire_to(gateway.url, token) as wire:
        said: list[str] = []
        for n in range(20):
            await wire.send_json({"type": "history", "session": f"api:{n}", "limit": 500})
            (history,) = await until(wire, "history_result")
            said += [entry["id"] for entry in history["entries"] if entry["kind"] == "user_said"]
    await gateway.stop()
    assert answers == {id: {f"answer to {id}"} for id in ids}
    assert sorted(said) == sorted(ids)


async def test_a_polite_stop_lets_the_running_turn_end_and_refuses_what_comes_then(person, model):
    gate = asyncio.Event()
    person.environment["EVERLOOP_AGENTS__SHUTDOWN_SECONDS"] = "60"  # it is to end by what is said here
    model.play([[Say("half "), Wait(gate), Say("whole")]])
    gateway = await start(person, 0)
    token = await new_token(person, "client")
    async with wire_to(gateway.url, token) as wire:
        await wire.send_json({"type": "message", "id": "m1", "session": "api:default", "content": "go"})
        await until(wire, "stream_chunk")
        gateway.process.send_signal(signal.SIGTERM)
        assert (await gateway.process.stderr.readline()).decode() == "everloop gateway: stopping\n"
        async with aiohttp.ClientSession(gateway.url) as client:
            draining = [await client.get(path) for path in ("/ready", "/health")]
            statuses = [answer.status for answer in draining]
        await wire.send_json({"type": "message", "id": "m2", "session": "api:default", "content": "more"})
        refused = (await until(wire, "error"))[-1]
        gate.set()
        frames = await until(wire, "response")
        closed = await wire.receive(timeout=60)
    await gateway.process.communicate()
    assert statuses == [503, 200]
    assert (refused["id"], refused["code"]) == ("m2", "draining")
    assert frames[-1]["content"] == "half whole"
    assert (closed.data, gateway.process.returncode) == (1001, 0)


async def test_a_turn_that_takes_too_long_goes_on_at_the_next_start(person, model):
    gate = asyncio.Event()
    person.environment["EVERLOOP_AGENTS__SHUTDOWN_SECONDS"] = "0"
    model.play([[Say("half "), Wait(gate)], Say("whole")])
    port = free_port()
    gateway = await start(person, port)
    token = await new_token(person, "client")
    async with wire_to(gateway.url, token) as wire:
        await wire.send_json({"type": "message", "id": "m1", "session": "api:default", "content": "go"})
        await until(wire, "stream_chunk")
        assert (await gateway.stop()).status == 0
    gateway = await start(person, port)
    async with wire_to(gateway.url, token) as wire:
        await wire.send_json({"type": "message", "id": "m1", "session": "api:default", "content": "go"})
        assert (await until(wire, "response"))[-1]["content"] == "whole"
    await gateway.stop()


async def test_a_turn_that_a_terminal_drives_is_answered_here_too(person, model):
    """Live pieces are in the process that drives; the answer is in the log, and so everywhere."""
    gate = asyncio.Event()
    model.play([[Say("by "), Wait(gate), Say("terminal")], Call("list_dir", {"path": "."}), Say("by gateway")])
    gateway = await start(person, 0)
    token = await new_token(person, "client")
    terminal = await person.start("agent", "-s", "api:default", "-m", "first")
    await model.called(1)
    async with wire_to(gateway.url, token) as wire:
        await wire.send_json({"type": "message", "id": "m1", "session": "api:default", "content": "second"})
        await until(wire, "ack")
        gate.set()
        out, _ = await terminal.communicate(b"")
        answer = (await until(wire, "response", id="m1"))[-1]
    await gateway.stop()
    assert out.decode() == "by terminal\n"
    assert answer["content"] == "by gateway"
