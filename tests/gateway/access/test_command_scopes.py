"""What a slash command tells needs the scope that the same needs in the API, at every door; and guests have few."""

import itertools
from pathlib import Path

import pytest

from everloop.app import open_desk
from everloop.core.people import Role
from everloop.gateway.access.scopes import SCOPES
from everloop.readings.commands import COMMANDS, find, rest_of, scope_of
from everloop.testing import Say, ScriptedModel, Shown

# A word, for figures stand in ids as well.
PIN = "my secret pin is quokka"
# Every command in every form that there is, and the scope that it needs beside `chat`.
FORMS = {
    "/help": "",
    "/new": "",
    "/stop": "",
    "/undo": "",
    "/compact": "",
    "/model": "read",
    "/model default": "",
    "/persona": "read",
    "/persona default": "",
    "/skill": "read",
    "/skill list": "read",
    "/skill help": "read",
    "/skill show weather": "read",
    "/skill accept weather": "approve",
    "/skill refuse weather": "approve",
    "/mcp": "read",
    "/mcp list": "read",
    "/mcp show x": "read",
    "/mcp prompt x": "read",
    "/mcp answer x": "",
    "/cron": "read",
    "/cron list": "read",
    "/cron log x": "read",
    "/cron add every 1h message: hi": "",
    "/cron edit x every 2h message: hi": "",
    "/cron run x": "",
    "/cron enable x": "",
    "/cron disable x": "",
    "/cron remove x": "",
    "/memory": "read",
    "/memory help": "",
    "/memory show": "read",
    "/memory search quokka": "read",
    "/memory log": "read",
    "/memory forget quokka": "read",
    "/memory restore 1": "read",
    "/approve": "read",
    "/approve abcd": "approve",
    "/approve abcd no": "approve",
    "/deny": "read",
    "/deny abcd": "approve",
    "/pair": "read",
    "/pair ABCDEFGH": "admin",
    "/link": "read",  # and all others
    "/link ABCDEFGH": "read",
    "/usage": "read",
    "/bg": "",
    "/bg dig": "",
    "/fg 1": "read",
    "/tasks": "read",
    "/tasks show 1": "read",
    "/tasks stop 1": "",
    "/kill 1": "",
    "/status": "read",
    "/budget": "read",
    "/keys": "read",
    "/resume": "read",
    "/resume {id}": "read",
    "/fork": "read",
    "/fork 1": "read",
    "/tree": "read",
    "/tree {id}": "read",
    "/session": "read",
    "/session help": "",
    "/session list": "read",
    "/session search quokka": "read",
    "/session resume {id}": "read",
    "/session fork": "read",
    "/session fork 1": "read",
    "/session snapshot here": "",
    "/session restore here": "read",
    "/session rename it": "",
    "/session edit other words": "",
    "/session regenerate": "",
    "/session delete": "read",
    "/session delete {id}": "read",
    "/SESSION   LIST": "read",
    " /Session  Search quokka": "read",
    "/session Resume {id}": "read",
}


OTHERS = (
    *("/cron", "/model", "/persona", "/skill", "/mcp", "/compact", "/approve", "/deny", "/usage", "/session"),
    *("/fork", "/tree", "/bg", "/fg", "/tasks", "/kill", "/status"),
)


def test_every_command_and_every_word_of_one_is_tried():
    tried = {form.split("{")[0].strip() for form in FORMS}
    words = {f"{name} {word}" for name, command in COMMANDS.items() for word in command.words}
    assert {name for name in {*COMMANDS, *words} if not any(form.startswith(name) for form in tried)} == set()


def echo(shown: Shown) -> Say:
    return Say(f"heard {shown.asked}")


@pytest.mark.parametrize("door_name", ["chat", "responses", "message", "socket"])
async def test_a_command_needs_its_scope_at_every_door(openings, door_name: str):
    door = await openings(ScriptedModel(echo))
    token, every = await door.token("chat"), await door.token()
    async with door.client(every) as client:
        body = {"model": "everloop", "messages": [{"role": "user", "content": PIN}]}
        await client.post("/v1/chat/completions", json=body, headers={"X-Everloop-Session": "cli:private"})
        found = await (await client.get("/api/search", params={"q": "quokka"})).json()
        thread = found["found"][0]["thread"]
    told, wrong = {}, {}
    for number, (form, scope) in enumerate(FORMS.items()):
        text = form.format(id=thread)
        status, said = await ask(door, door_name, token, text, f"s{number}")
        told[form] = (status, scope in said if scope else True)
        wrong[form] = "quokka" in said.replace(text, "") or "private" in said
    assert told == {form: (403 if scope else 200, True) for form, scope in FORMS.items()}
    assert [form for form, leaks in wrong.items() if leaks] == []
    status, said = await ask(door, door_name, every, "/session", "mine")  # the control
    assert (status, "session" in said) == (200, True)


async def ask(door, name: str, token: str, text: str, session: str) -> tuple[int, str]:
    headers = {"X-Everloop-Session": f"api:{session}"}
    match name:
        case "socket":
            async with door.socket(token) as wire:
                await wire.send("message", id=session, session=f"api:{session}", content=text)
                while (frame := await wire.next())["type"] not in ("response", "error"):
                    pass
                refused = frame["type"] == "error" and frame["code"] == "forbidden"
                return 403 if refused else 200, frame["content"]
        case "message":
            sent = {"platform": "discord", "platform_user_id": session, "content": text}
            path, headers = "/message", {}
        case "responses":
            sent, path = {"model": "everloop", "input": text}, "/v1/responses"
        case _:
            sent = {"model": "everloop", "messages": [{"role": "user", "content": text}]}
            path = "/v1/chat/completions"
    async with door.client(token) as client, client.post(path, json=sent, headers=headers) as answer:
        said = await answer.text()
        return (403 if answer.status == 403 else 200), said


@pytest.mark.parametrize("door_name", ["chat", "responses", "socket"])
async def test_nobody_becomes_a_person_by_a_token_that_is_worth_less(openings, door_name: str):
    """Whoever says the code from an account of theirs is that person there, with all that they may."""
    door = await openings(ScriptedModel(echo))
    told = {}
    for missing in (*SCOPES, ""):
        token = await door.token(*(scope for scope in SCOPES if scope != missing))
        _, said = await ask(door, door_name, token, "/link", f"s{missing}")
        told[missing] = "/link " in said
    assert told == {**dict.fromkeys(SCOPES, False), "": True}


async def test_nor_does_the_api_bring_another_conversation_into_ones_own_with_chat_alone(openings):
    door = await openings(ScriptedModel(echo))
    async with door.client(await door.token()) as client:
        body = {"model": "everloop", "messages": [{"role": "user", "content": PIN}]}
        await client.post("/v1/chat/completions", json=body, headers={"X-Everloop-Session": "cli:private"})
        found = await (await client.get("/api/search", params={"q": "quokka"})).json()
        thread = found["found"][0]["thread"]
    paths = [f"/api/sessions/{id}/{deed}" for id in (thread, thread[:1]) for deed in ("resume", "fork")]
    async with door.client(await door.token("chat")) as client:
        refused = [(await client.post(path, json={"session": "api:eve"})).status for path in paths]
        digits = "0123456789abcdef"
        guessed = [await client.patch(f"/api/sessions/{digit}", json={"archived": False}) for digit in digits]
        blind = [
            await client.post(f"/api/sessions/{digit}/{deed}", json=body)
            for digit in digits
            for deed, body in (("undo", {}), ("regenerate", {}), ("edit", {"content": "x"}))
        ]
        whole = await client.patch(f"/api/sessions/{thread}", json={"title": "renamed"})
    async with door.client(await door.token("chat", "read")) as client:
        done = (await client.post(paths[0], json={"session": "api:eve"})).status
        short = (await client.patch(f"/api/sessions/{thread[:8]}", json={"title": "again"})).status
    assert (refused, done, short) == ([403] * 4, 200, 200)
    assert {answer.status for answer in (*guessed, *blind)} == {404}
    assert whole.status == 200


def test_the_command_that_is_found_is_the_one_whose_scope_is_looked_at():
    """Whatever spaces, capitals and line breaks stand around it."""
    spaces = ("", " ", "\t", "\n", "\u00a0", "\r\n")
    names = ("/approve", "/APPROVE", "/Session", "/usage")
    for before, name, between, rest in itertools.product(spaces, names, spaces, ("", "list", "x no")):
        text = f"{before}{name}{between}{rest}"
        found = find(text)
        assert scope_of(text) == (found.right_to(rest_of(text)).scope if found else "")


GUESTS = {"/budget", "/keys", "/help", "/new", "/stop", "/undo", "/session", "/resume", "/skill", "/memory"}


async def test_a_guest_has_no_command_that_costs_or_tells(tmp_path: Path):
    async with open_desk(tmp_path, provider=ScriptedModel(echo)) as agent:
        await agent.ask(PIN, "cli:private")
        thread = (await agent.store.session("cli:private")).id
        await agent.ask("hello", "platform:discord//c", author="discord:7")

        async def said(text: str) -> str:
            return (await agent.ask(text, "platform:discord//c", author="discord:7")).content

        refused = {}
        for form in FORMS:
            text = form.format(id=thread)
            command = find(text)
            assert command is not None
            if command.right_to(rest_of(text)).least > Role.GUEST:
                refused[form] = await said(text)
        listed, searched = await said("/session list"), await said("/session search quokka")
        resumed = await said(f"/session resume {thread}")
        helped, words = await said("/help"), await said("/session help")
        everything = (await agent.ask("/help", "cli:direct")).content
    assert {form.split()[0] for form in refused} == {*OTHERS, "/pair", "/link"}
    assert {form.lower() for form in refused if "session" in form} == {
        "/session fork", "/session fork 1", "/session snapshot here", "/session restore here",
    }  # fmt: skip
    assert refused["/model"] == refused["/model default"] == "/model is not for guests: it needs a user."
    assert refused["/session fork"] == "/session fork is not for guests: it needs a user."
    assert refused["/approve"] == "/approve is not for guests: it needs a user."
    assert (PIN in listed, searched, resumed) == (
        *(False, "Nobody has said 'quokka'."),
        f"No conversation has an id that begins with {thread!r}.",
    )
    assert {line.split()[0] for line in helped.splitlines()[1:]} == GUESTS
    assert {line.split()[0] for line in everything.splitlines()[1:]} == set(COMMANDS)
    assert not any(word in words for word in ("fork", "snapshot", "restore"))
