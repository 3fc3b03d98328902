"""What tools make in a turn comes back as links, and a link opens for whoever may read the conversation, harmlessly."""

from contextlib import closing
from hashlib import sha256
from typing import Any

import apsw

import everloop
from everloop.app.access import new_token
from everloop.app.records import open_records
from everloop.testing import Call, Calls, Say, ScriptedModel

from .conftest import Door

PAGE = "<script>document.title = 'hacked'</script>"
PNG = (  # one dot
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00"
    b"\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00\x00IEND\xaeB`\x82"
)


def ref(content: str | bytes) -> str:
    return f"file:{sha256(content.encode() if isinstance(content, str) else content).hexdigest()}"


def write(path: str, content: str) -> Call:
    return Call("write_file", {"path": path, "content": content})


async def fetched(door: Door, url: str, token: str) -> tuple[int, bytes, dict[str, str]]:
    async with door.client(token) as client, client.get(url) as answer:
        return answer.status, await answer.read(), dict(answer.headers)


async def token_of(door: Door, user: str, *scopes: str) -> str:
    """For someone else, whom the owner has introduced."""
    # By the store's own library: two of them in one process do not see each other's locks, and spoil the file.
    with closing(apsw.Connection(str(door.home / "everloop.db"))) as database:
        database.execute("PRAGMA busy_timeout = 10000")
        database.execute("INSERT OR IGNORE INTO users(id, name, role, created) VALUES(?, ?, 'user', 0)", (user, user))
    async with open_records(door.home) as records:
        return await new_token(records.store, user, f"of {user}", scopes or ("read", "chat"), platforms=["chat"])


async def test_what_a_turn_has_made_is_linked_as_it_was_last_and_what_it_removed_is_not(openings):
    remove = Call("apply_patch", {"patch": "*** Begin Patch\n*** Delete File: gone.md\n*** End Patch"})
    edit = Call("edit_file", {"path": "notes/a.md", "old_text": "one", "new_text": "two"})
    turn = [Calls(write("notes/a.md", "one"), write("gone.md", "x")), Calls(edit, remove), Say("made")]
    door = await openings(ScriptedModel([*turn, Say("nothing more")]))
    token = await door.token()
    async with door.socket(token) as wire:
        response = (await wire.ask("work"))[-1]
        next = (await wire.ask("and?", "m2"))[-1]
        again = (await wire.ask("work"))[-1]
    (file,) = response["files"]
    assert file == {
        "file": ref("two"),
        "mime": "text/plain",
        "name": "notes/a.md",
        "url": f"/api/files/{ref('two')}/a.md?thread={response['thread']}&seq=11",
    }
    assert next["files"] == []
    assert again["files"] == response["files"]
    assert (await fetched(door, file["url"], token))[:2] == (200, b"two")


async def test_a_link_keeps_what_the_file_held_then(openings):
    door = await openings(ScriptedModel([write("a.md", "one"), Say("made"), write("a.md", "two"), Say("changed")]))
    token = await door.token()
    async with door.socket(token) as wire:
        links = [(await wire.ask("work", id))[-1]["files"][0]["url"] for id in ("m1", "m2")]
    assert [(await fetched(door, link, token))[:2] for link in links] == [(200, b"one"), (200, b"two")]


async def test_all_files_of_a_turn_of_many_entries_are_linked(openings):
    names = [f"{n}.md" for n in range(110)]
    door = await openings(ScriptedModel([Calls(*(write(name, name) for name in names)), Say("made")]))
    async with door.socket() as wire:
        response = (await wire.ask("work"))[-1]
    assert response["seq"] > 220
    assert [file["name"] for file in response["files"]] == names


async def test_a_link_opens_for_those_alone_who_may_read_the_conversation(openings):
    door = await openings(ScriptedModel([write("a.md", "secret"), Say("made")]))
    mine = await door.token()
    async with door.socket(mine) as wire:
        url = (await wire.ask("work"))[-1]["files"][0]["url"]
    others, narrow = await token_of(door, "ada"), await door.token("chat")
    bare, elsewhere = url.partition("?")[0], url.replace("seq=5", "seq=1")
    assert "seq=5" in url
    tried = [(mine, url), (mine, bare), (mine, elsewhere), (others, url), (others, bare), (narrow, url), ("", url)]
    assert [(await fetched(door, url, token))[0] for token, url in tried] == [200, 200, 404, 404, 404, 403, 401]


async def test_what_another_has_brought_into_a_conversation_opens_through_it_alone(openings):
    door = await openings(ScriptedModel([Say("a dot")]))
    token = await door.token()
    letter = {"platform": "chat", "platform_user_id": "7", "platform_channel_id": "c", "content": "what?"}
    shown = {"url": f"data:image/png;base64,{_base64(PNG)}", "filename": "dot.png"}
    async with door.client(token) as client:
        async with client.post("/message", json={**letter, "attachments": [shown]}) as answer:
            assert answer.status == 200
        async with client.get("/api/sessions") as answer:
            (session,) = (await answer.json())["sessions"]
        async with client.get(f"/api/sessions/{session['id']}/entries") as answer:
            said = (await answer.json())["entries"][0]
    (link,) = said["links"]
    assert (link["name"], link["mime"], link["file"]) == ("dot.png", "image/png", ref(PNG))
    assert (await fetched(door, link["url"], token))[:2] == (200, PNG)
    assert (await fetched(door, link["url"].partition("?")[0], token))[0] == 404
    assert (await fetched(door, link["url"], await token_of(door, "ada")))[0] == 404


def _base64(data: bytes) -> str:
    import base64

    return base64.b64encode(data).decode()


async def test_nothing_but_a_picture_is_shown_and_nothing_can_run(openings):
    @everloop.tool(everloop.Effect.READ)
    async def photograph() -> everloop.Shown:
        """Take a photo."""
        return everloop.Shown("a dot", (everloop.Picture(PNG, "image/png", "dot.png"),))

    calls = Calls(write('evil";\r\n.html'.replace("\r\n", ""), PAGE), write("ünder.svg", "<svg/>"), Call("photograph"))
    door = await openings(ScriptedModel([calls, Say("made")]), tools=[photograph])
    token = await door.token()
    async with door.socket(token) as wire:
        files = {file["name"]: file for file in (await wire.ask("work"))[-1]["files"]}
    answers = {name: await fetched(door, file["url"], token) for name, file in files.items()}
    assert {name: _told(headers) for name, (_, _, headers) in answers.items()} == {
        'evil";.html': (
            "text/plain; charset=utf-8",
            "attachment; filename=\"evil__.html\"; filename*=UTF-8''evil%22%3B.html",
        ),
        "ünder.svg": (
            "text/plain; charset=utf-8",
            "attachment; filename=\"_nder.svg\"; filename*=UTF-8''%C3%BCnder.svg",
        ),
        "dot.png": ("image/png", "inline; filename=\"dot.png\"; filename*=UTF-8''dot.png"),
    }
    for status, _, headers in answers.values():
        assert status == 200
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"


def _told(headers: dict[str, Any]) -> tuple[str, str]:
    return headers["Content-Type"], headers["Content-Disposition"]


async def test_the_api_and_the_platform_door_tell_links(openings):
    door = await openings(ScriptedModel([write("a.md", "one"), Say("made")]))
    token = await door.token()
    async with door.socket(token) as wire:
        response = (await wire.ask("work"))[-1]
    async with door.client(token) as client, client.get(f"/api/sessions/{response['thread']}/entries") as answer:
        entries = (await answer.json())["entries"]
    assert [entry["links"] for entry in entries if "links" in entry] == [response["files"]]


async def test_a_bot_is_given_links_that_it_can_open(openings):
    @everloop.tool(everloop.Effect.READ, permission=everloop.Role.GUEST)
    async def photograph() -> everloop.Shown:
        """Take a photo."""
        return everloop.Shown("a dot", (everloop.Picture(PNG, "image/png", "dot.png"),))

    door = await openings(ScriptedModel([Call("photograph"), Say("there")] * 2), tools=[photograph])
    token = await door.token("chat", "read")
    letter = {"platform": "chat", "platform_user_id": "7", "platform_channel_id": "c", "content": "show me"}
    async with door.client(token) as client:
        async with client.post("/message", json=letter) as answer:
            whole = (await answer.json())["files"]
        async with client.post("/message/stream", json=letter) as answer:
            streamed = await answer.text()
    (file,) = whole
    assert (file["name"], file["mime"]) == ("dot.png", "image/png")
    assert (await fetched(door, file["url"], token))[:2] == (200, PNG)
    assert f'"url":"{file["url"].partition("?")[0]}?link=' in streamed.replace('": "', '":"')
