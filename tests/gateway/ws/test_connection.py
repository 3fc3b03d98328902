"""The WebSocket as a client sees it: acknowledged after the commit, streamed, resumed without a gap, answered once."""

import asyncio

from everloop.testing import Call, Say, ScriptedModel, Think, Wait

from ..conftest import plain
from ..test_files_out import token_of


def model(*lines) -> ScriptedModel:
    return ScriptedModel(list(lines))


async def test_a_message_is_acknowledged_streamed_and_answered(openings):
    door = await openings(model(Say(["hel", "lo"])))
    async with door.socket() as wire:
        frames = await wire.ask("hi")
    thread = frames[0]["thread"]
    assert plain(frames) == [
        ("ack", "m1"),
        ("event", "thinking_started"),
        ("stream_start", "m1"),
        ("stream_chunk", "hel"),
        ("stream_chunk", "lo"),
        ("stream_end", True),
        ("event", "metrics"),
        ("event", "thinking_finished"),
        ("response", "hello"),
    ]
    chunks = [frame for frame in frames if frame["type"] == "stream_chunk"]
    assert chunks == [
        {"type": "stream_chunk", "session": "api:default", "thread": thread, "seq": 2, "id": "m1", "msg": f"{thread}:2"}
        | {"n": n, "delta": delta, "reasoning": ""}
        for n, delta in ((1, "hel"), (2, "lo"))
    ]
    assert frames[-1] == {
        "type": "response",
        "session": "api:default",
        "thread": thread,
        "seq": 3,
        "id": "m1",
        "content": "hello",
        "files": [],
        "unknown": [],
    }


async def test_the_same_id_twice_is_one_turn_acknowledged_and_answered_again(openings):
    spoken = model(Say("once"), Say("twice"))
    door = await openings(spoken)
    async with door.socket() as wire:
        first = await wire.ask("hi")
        again = await wire.ask("hi")
    assert [first[0], first[-1]] == [again[0] | {"seq": 0}, again[-1]]
    assert plain(again) == [("ack", "m1"), ("response", "once")]
    assert len(spoken.prompts) == 1


async def test_an_id_belongs_to_its_session(openings):
    door = await openings(model(Say("one"), Say("two"), Say("three"), Say("four")))
    asked = [("api:a", "m"), ("api:b", "m"), ("api:a", "b:c"), ("api:a:b", "c")]
    async with door.socket() as wire:
        answers = [(await wire.ask("hi", id, session))[-1]["content"] for session, id in asked]
    assert answers == ["one", "two", "three", "four"]


async def test_whoever_comes_in_the_middle_gets_the_log_the_answer_so_far_and_the_rest(openings):
    gate = asyncio.Event()
    door = await openings(model((Think("hm"), Say(["one ", "two "]), Wait(gate), Say("three"))))
    token = await door.token()
    async with door.socket(token) as wire:
        await wire.send("message", id="m1", content="count")
        seen = await wire.until("stream_chunk", delta="two ")
    async with door.socket(token) as wire:
        await wire.send("resume", session="api:default", thread=seen[0]["thread"], after=0)
        back = await wire.until("stream_chunk")
        gate.set()
        rest = await wire.until("response")
    assert [entry["kind"] for entry in back[0]["entries"]] == ["user_said", "model_called"]
    assert back[0]["entries"][0]["id"] == "m1"
    assert plain(back[1:]) == [("stream_start", "m1"), ("stream_chunk", "one two ")]
    assert (back[2]["reasoning"], back[2]["n"]) == ("hm", 3)
    assert [frame for frame in plain(rest) if frame[0] != "event"] == [
        ("stream_chunk", "three"),
        ("stream_end", True),
        ("response", "one two three"),
    ]
    assert rest[-1]["id"] == "m1"


async def test_a_client_that_knows_a_position_is_given_what_follows_it(openings):
    door = await openings(model(Say("one"), Say("two")))
    async with door.socket() as wire:
        first = await wire.ask("a", "m1")
        await wire.ask("b", "m2")
        await wire.send("resume", session="api:default", thread=first[-1]["thread"], after=first[-1]["seq"])
        back = await wire.next()
    assert [(entry["seq"], entry["kind"]) for entry in back["entries"]] == [
        (4, "user_said"),
        (5, "model_called"),
        (6, "model_said"),
    ]
    assert (back["seq"], back["more"]) == (6, False)


async def test_an_old_thread_gives_its_rest_and_then_the_current_one_from_its_start(openings):
    door = await openings(model(Say("old"), Say("new")))
    async with door.socket() as wire:
        old = (await wire.ask("a", "m1"))[-1]
        await wire.ask("/new", "m2")
        new = (await wire.ask("b", "m3"))[-1]
        await wire.send("resume", session="api:default", thread=old["thread"], after=1)
        rest, current = await wire.next(), await wire.next()
    assert old["thread"] != new["thread"]
    assert [(rest["thread"], rest["more"]), (current["thread"], current["more"])] == [
        (old["thread"], True),
        (new["thread"], False),
    ]
    assert [[entry["seq"] for entry in frame["entries"]] for frame in (rest, current)] == [[2, 3], [1, 2, 3]]


async def test_others_see_the_turn_without_an_id(openings):
    door = await openings(model(Say("hello")))
    token = await door.token()
    async with door.socket(token) as one, door.socket(token) as other:
        await other.send("resume", session="api:default")
        assert (await other.next())["entries"] == []
        await one.ask("hi")
        seen = await other.until("response")
    assert {frame["id"] for frame in seen if "id" in frame} == {None}
    assert seen[-1]["content"] == "hello"


async def test_what_one_session_says_is_not_heard_in_another(openings):
    door = await openings(model(Say("secret"), Say("plain")))
    async with door.socket() as one, door.socket() as other:
        await other.send("resume", session="api:other")
        await other.next()
        await one.ask("hi", session="api:one")
        seen = await other.ask("hi", session="api:other")
    assert "secret" not in str(seen)


async def test_a_command_is_answered_at_once(openings):
    door = await openings(model(Say("hello")))
    async with door.socket() as wire:
        await wire.ask("hi", "m1")
        frames = await wire.ask("/new", "m2")
    assert [frame["type"] for frame in frames if frame["type"] != "event"] == ["ack", "response"]


async def test_a_stop_ends_the_turn_and_keeps_what_was_said(openings):
    gate = asyncio.Event()
    door = await openings(model((Say("half "), Wait(gate), Say("whole"))))
    async with door.socket() as wire:
        await wire.send("message", id="m1", content="go")
        await wire.until("stream_chunk")
        await wire.send("stop", session="api:default", id="s1")
        frames = await wire.until("error", id="m1")
    told = [frame for frame in plain(frames) if frame[0] != "event"]
    assert sorted(told) == sorted([("ack", "s1"), ("stream_end", True), ("error", "stopped")])
    assert [frame["cut"] for frame in frames if frame["type"] == "error"] == ["half "]


async def test_a_failed_turn_is_an_error_with_the_clients_id(openings):
    door = await openings(model())  # a model with no lines left refuses
    async with door.socket() as wire:
        await wire.send("message", id="m1", content="go")
        frames = await wire.until("error")
    assert (frames[-1]["id"], frames[-1]["session"]) == ("m1", "api:default")
    assert frames[-1]["content"]


async def test_what_needs_permission_is_asked_and_goes_on_when_allowed(openings, gated_send):
    door = await openings(model(Call("send", {}), Say("sent")), tools=[gated_send])
    async with door.socket() as wire:
        await wire.send("message", id="m1", content="send it")
        asked = (await wire.until("approval"))[-1]
        assert (asked["tool"], asked["requester"], asked["session"]) == ("send", "owner", "api:default")
        await wire.send("resume", session="api:default", after=asked["seq"])
        assert (await wire.until("approval"))[-1]["approval"] == asked["approval"]
        await wire.send("approve", approval=asked["approval"], allow=True, id="a1")
        await wire.until("ack", id="a1")
        assert (await wire.until("response"))[-1]["content"] == "sent"
        await wire.send("approve", approval=asked["approval"], allow=True)
        assert (await wire.next())["code"] == "no_approval"


async def test_the_like_can_be_allowed_ahead(openings, gated_send):
    door = await openings(model(Call("send", {}), Say("sent"), Call("send", {}), Say("sent again")), tools=[gated_send])
    async with door.socket() as wire:
        await wire.send("message", id="m1", content="send it")
        asked = (await wire.until("approval"))[-1]
        assert asked["choices"] == ["for", "runs", "here", "any"]
        for ahead, code in (({"host": "a.example"}, "refused"), ({"for": "1h"}, "malformed")):
            await wire.send("approve", approval=asked["approval"], allow=True, ahead=ahead)
            assert (await wire.until("error"))[-1]["code"] == code
        await wire.send("approve", approval=asked["approval"], allow=True, ahead={"here": True}, id="a1")
        await wire.until("ack", id="a1")
        await wire.until("response")
        await wire.send("message", id="m2", content="and again")
        frames = await wire.until("response")
    assert (frames[-1]["content"], [each for each in frames if each["type"] == "approval"]) == ("sent again", [])


async def test_history_is_read_backwards_in_pages(openings):
    door = await openings(model(Say("one"), Say("two")))
    async with door.socket() as wire:
        await wire.ask("a", "m1")
        await wire.ask("b", "m2")
        await wire.send("history", session="api:default", limit=4)
        late = await wire.next()
        await wire.send("history", session="api:default", before=late["entries"][0]["seq"], limit=4)
        early = await wire.next()
    assert [([entry["seq"] for entry in page["entries"]], page["more"]) for page in (late, early)] == [
        ([3, 4, 5, 6], True),
        ([1, 2], False),
    ]


async def test_status_tells_how_the_gateway_is(openings):
    door = await openings(model(Say("hello")))
    async with door.socket() as wire:
        await wire.send("status")
        bare = await wire.next()
        end = (await wire.ask("hi"))[-1]
        await wire.send("status", session="api:default")
        there = await wire.next()
    assert (bare["session"], bare["thread"], bare["seq"], bare["state"]) == (None, None, None, None)
    assert (bare["connections"], bare["running"], bare["draining"], bare["user"]) == (1, 0, False, "owner")
    assert (there["session"], there["thread"], there["seq"], there["state"]) == (
        *("api:default", end["thread"], end["seq"]),
        "resting",
    )


async def test_a_file_comes_with_a_message_and_a_wrong_one_is_refused(openings):
    spoken = model(Say("read"))
    door = await openings(spoken)
    async with door.socket() as wire:
        await wire.send("message", id="m0", content="x", files=[{"file": "file:" + "0" * 64}])
        refused = await wire.next()
        await wire.send("message", id="m1", content="see", files=[{"name": "a.txt", "data": "aGFsbG8="}])
        await wire.until("response", id="m1")
    assert (refused["type"], refused["code"], refused["id"]) == ("error", "no_file", "m0")
    assert spoken.prompts[-1].said == [("user", "see\n[a.txt, kept as file:d3751d33f9cd]\nhallo")]


async def test_the_durable_position_never_runs_ahead_of_the_log(openings):
    """A client that resumes after the seq of any frame misses nothing: what it told comes again, as an entry."""
    door = await openings(model(Call("list_dir", {"path": "."}), Say("done")))
    async with door.socket() as wire:
        frames = await wire.ask("look")
        await wire.send("history", session="api:default")
        entries = (await wire.next())["entries"]
    (result,) = [entry["seq"] for entry in entries if entry["kind"] == "call_returned"]
    told = next(frame for frame in frames if frame["type"] == "event" and frame["event"] == "tool_result")
    assert told["seq"] < result


async def test_whoever_watches_a_session_before_it_is_there_hears_nothing_when_it_is_anothers(openings):
    door = await openings(model(Say("the secret is 42"), Say("fine")))
    ada = await token_of(door, "ada")
    async with door.socket(ada) as spy, door.socket() as own:
        await spy.send("resume", session="api:fresh")
        await spy.next()
        assert (await own.ask("tell me", "m1", "api:fresh"))[-1]["content"] == "the secret is 42"
        frames = await spy.ask("hi", "m2", "api:mine")
    assert {frame["session"] for frame in frames} == {"api:mine"}


async def test_a_token_that_may_only_chat_allows_nothing_by_a_command_either(openings, gated_send):
    door = await openings(model(Call("send"), Say("done")), tools=[gated_send])
    both, chat = await door.token("chat", "read", "approve"), await door.token("chat")
    async with door.socket(both) as wire, door.client(chat) as client, door.socket(chat) as talker:
        await wire.send("message", id="m1", session="api:default", content="go")
        command = f"/approve {(await wire.until('approval'))[-1]['approval']}"
        await talker.send("message", id="m2", session="api:default", content=command)
        refused = await talker.next()
        asked = {"model": "everloop", "messages": [{"role": "user", "content": command}]}
        where = {"X-Everloop-Session": "api:default"}
        async with client.post("/v1/chat/completions", json=asked, headers=where) as answer:
            status = answer.status
        await wire.send("message", id="m3", session="api:default", content=command)
        assert (await wire.until("response", id="m1"))[-1]["content"] == "done"
    assert (refused["type"], refused["code"], status) == ("error", "forbidden", 403)


async def test_whoever_watches_has_news_of_sessions_that_they_have_not_resumed_and_of_their_own_only(openings):
    door = await openings(ScriptedModel([Say("hello"), Say("hello again")]))
    async with door.socket() as watching, door.socket() as idle, door.socket() as speaking:
        await watching.send("watch")
        await watching.send("status")
        await watching.until("status_result")
        await speaking.ask("hi", session="page:one")
        news = [await watching.next(), await watching.next()]
        await idle.send("status")
        heard = await idle.until("status_result")
    assert [(each["type"], each["session"], each["event"]) for each in news] == [
        ("news", "page:one", "thinking_started"),
        ("news", "page:one", "thinking_finished"),
    ]
    assert [each["type"] for each in heard] == ["status_result"]
