"""What is noted of turns, commands and approvals; and that no line holds what was said, a name or a secret."""

import base64
import json
import urllib.parse
from pathlib import Path

from msgspec import structs

import everloop
from everloop import Agent, tool
from everloop.core.people import Role
from everloop.ports import Store
from everloop.ports.audit import AuditRow
from everloop.ports.directory import Person
from everloop.ports.events import PermissionAsked
from everloop.ports.permission import Allowance
from everloop.testing import Call, Say, ScriptedModel
from everloop.tools.decorator import Effect

CANARY = "quetzal77"


@tool(effect=Effect.UNSAFE, guarded=True, permission=Role.USER)
async def send(text: str) -> str:
    """Send it."""
    return f"sent {text}"


@tool(effect=Effect.READ)
async def look() -> str:
    """Look."""
    return "seen"


async def told(store: Store) -> list[tuple[str, str, str, object]]:
    rows = reversed(await store.audit(limit=1000))
    return [(row.actor, row.authority, row.deed, json.loads(row.detail or "{}")) for row in rows]


def calling(name: str, **args: str) -> ScriptedModel:
    return ScriptedModel(lambda shown: Say("done") if shown.step % 2 else Call(name, args))


async def test_a_tool_with_effects_is_noted_once_with_its_start_and_a_read_is_not(tmp_path: Path):
    allowed = {"tools": {"approvals": "allow"}}
    async with everloop.open(tmp_path, allowed, provider=calling("send", text=CANARY), tools=[send, look]) as agent:
        await agent.ask("go")
        lines = await agent.store.audit()
        assert await told(agent.store) == [
            ("owner", "owner", "tool.started", {"tool": "send", "effect": "unsafe", "decision": "not asked"})
        ]
        thread, answer, place = lines[0].subject.split(":")
        opened = await agent.store.open(thread)
        assert opened.entries[int(answer) - 1].calls[int(place)].name == "send"
        assert (await agent.store.check_audit()).broken is None
    async with everloop.open(tmp_path / "b", provider=calling("look"), tools=[send, look]) as agent:
        await agent.ask("go")
        assert await told(agent.store) == []


async def allowing(agent: Agent, text: str) -> str:
    """Say something, and allow the like of what is asked, five times; the name of the question."""
    name = ""
    async for event in agent.stream(text, attended=True):
        if isinstance(event, PermissionAsked):
            name = event.approvals[0].id
            await agent.decide(name, True, allowance=Allowance(runs=5))
    return name


async def test_an_approval_its_grant_and_the_call_are_noted_with_who_and_by_what(tmp_path: Path):
    async with everloop.open(tmp_path, provider=calling("send", text="x"), tools=[send]) as agent:
        waiting = await allowing(agent, "go")
        await agent.ask("go on")
        await agent.revoke(waiting)
        lines = await told(agent.store)
    whose = {"tool": "send", "requester": "owner"}
    run = {"tool": "send", "effect": "unsafe", "decision": "allowed"}
    assert [line for line in lines if line[2] != "grant.made"] == [
        ("owner", "the program itself", "approval.allowed", whose),
        ("owner", "owner", "tool.started", run),
        ("owner", f"grant:{waiting}", "approval.granted", whose),
        ("owner", "owner", "tool.started", run),
        ("owner", "the program itself", "grant.revoked", {}),
    ]
    made = next(line for line in lines if line[2] == "grant.made")
    assert (made[0], made[3]["tool"]) == ("owner", "send")  # type: ignore[index]


async def test_a_denial_and_a_command_in_a_chat_are_noted(tmp_path: Path):
    roles = {"web:anna": Role.ADMIN}
    async with everloop.open(tmp_path, provider=calling("send", text="x"), tools=[send], roles=roles) as agent:
        anna = agent.user("web:anna")
        async for event in anna.stream("go", attended=True):
            if isinstance(event, PermissionAsked):
                await anna.ask(f"/approve {event.approvals[0].id} no")
        assert await told(agent.store) == [
            ("web:anna", "admin in web", "approval.denied", {"tool": "send", "requester": "web:anna"})
        ]


def forms(text: str) -> list[str]:
    """A text in six encodings."""
    data = text.encode()
    return [
        text,
        data.hex(),
        base64.b64encode(data).decode().rstrip("="),
        base64.b32encode(data).decode().rstrip("="),
        urllib.parse.quote("".join(f"%{byte:02X}" for byte in data), safe="%"),
        "".join(f"\\u{ord(letter):04x}" for letter in text),
    ]


def holds(rows: list[AuditRow], text: str) -> list[str]:
    whole = "\n".join(str(value) for row in rows for value in structs.astuple(row)).lower()
    return [form for form in forms(text) if form.lower() in whole]


async def test_no_line_holds_a_name_what_was_said_or_a_secret(tmp_path: Path):
    provider = calling("send", text=f"{CANARY} in an argument")
    async with everloop.open(tmp_path, provider=provider, tools=[send]) as agent:
        store = agent.store
        await store.introduce(Person("p1", f"{CANARY} the name", Role.USER))
        await store.change_person("p1", name=f"{CANARY} again", role=Role.ADMIN)
        await store.keep_token("owner", f"{CANARY} token", f"hash-{CANARY}", ["read"])
        await store.keep_login("p1", "password", f"hash-{CANARY}")
        await store.keep_visit("p1", f"cookie-{CANARY}", f"page-{CANARY}", 10)
        await store.keep_secret("owner", "key:openai", CANARY.encode())
        await allowing(agent, f"{CANARY} said")
        rows = await store.audit(limit=1000)
        assert len(rows) == 10
        assert holds(rows, CANARY) == []
    for form in forms(CANARY):  # the control: each of the forms would be seen
        assert holds([AuditRow(1, 1, "a", "b", "login.ok", f"x{form}y", "", "", "")], CANARY) == [form]
