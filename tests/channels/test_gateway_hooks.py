"""The gateway with webhooks in its settings: what comes in at /hooks/webhook is answered at the program's address."""

import json
from contextlib import asynccontextmanager

import aiohttp

from everloop.app import serve
from everloop.testing import Say, ScriptedModel
from tests.channels.receiver import SECRET, Program, headers_of, message, post


@asynccontextmanager
async def opened(home, program: Program, model: ScriptedModel | None = None):
    model = model or ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))
    settings = {
        "gateway": {"port": 0},
        "channels": {"webhook": {"url": program.url, "secret": SECRET}},
        "users": {"strangers": "guest"},
    }
    async with serve(home, settings, provider=model) as gateway:
        yield gateway


async def test_what_is_posted_is_answered_there(tmp_path):
    async with Program().open() as program, opened(tmp_path, program) as gateway:
        assert gateway.unused == ()
        assert [await post(gateway.url, "m1", message("hi")) for _ in range(2)] == [202, 200]
        await program.answered({"m1"})
        assert await post(gateway.url, "m2", message("/help")) == 202
        await program.answered({"m2"})
    first, second = program.taken.values()
    assert {name: first[name] for name in ("in_reply_to", "chat", "thread", "kind", "text", "part", "of")} == {
        "in_reply_to": "m1",
        "chat": "room",
        "thread": "",
        "kind": "reply",
        "text": "you said hi",
        "part": 1,
        "of": 1,
    }
    assert second["text"].startswith("everloop commands")
    assert set(program.posts.values()) == {1}


async def test_nobody_gets_past_the_hook_without_the_secret(tmp_path):
    model, body = ScriptedModel([]), message("give me all")
    good = headers_of("m1", body)
    tries = [
        ("POST", "/hooks/webhook", {}, body, 401),
        ("POST", "/hooks/webhook", headers_of("m1", body, "another-secret-of-32-characters!"), body, 401),
        ("POST", "/hooks/webhook", good, body + b" ", 401),
        ("POST", "/hooks/webhook", [*good.items(), ("Webhook-Id", "m2")], body, 401),
        ("POST", "/hooks/webhook", good, b"x" * 256_001, 413),
        ("POST", "/hooks/webhook", {**good, "Origin": "https://evil.example"}, body, 403),
        ("POST", "/hooks/webhook", {**good, "Host": "evil.example"}, body, 421),
        ("POST", "/hooks/webhook", {**good, "Content-Encoding": "gzip"}, body, 415),
        ("GET", "/hooks/webhook", good, b"", 401),
        ("POST", "/hooks/webhook/", good, body, 401),
        ("POST", "/hooks/telegram", good, body, 401),
        ("POST", "/hooks", good, body, 401),
        ("GET", "/api/sessions", good, b"", 401),
    ]
    async with (
        Program().open() as program,
        opened(tmp_path, program, model) as gateway,
        aiohttp.ClientSession(gateway.url) as client,
    ):
        found = []
        for method, path, headers, data, _ in tries:
            async with client.request(method, path, headers=headers, data=data) as answer:
                found.append((method, path, answer.status))
                assert SECRET not in await answer.text()
    assert found == [(method, path, status) for method, path, _, _, status in tries]
    assert (model.calls, program.taken) == (0, {})


async def test_a_message_that_says_too_much_of_itself_is_told_so(tmp_path):
    async with (
        Program().open() as program,
        opened(tmp_path, program) as gateway,
        aiohttp.ClientSession(gateway.url) as client,
    ):
        body = message("hi", role="owner")
        async with client.post("/hooks/webhook", data=body, headers=headers_of("m1", body)) as answer:
            told = (answer.status, json.loads(await answer.text()))
    assert told == (400, {"error": "the body is no message: Object contains unknown field `role`"})


async def test_the_chat_of_someone_else_is_theirs(tmp_path):
    async with (
        Program().open() as program,
        opened(tmp_path, program) as gateway,
        aiohttp.ClientSession(gateway.url) as client,
    ):
        await post(gateway.url, "m1", message("hi"))
        await program.answered({"m1"})
        body = message("what did anna say?", author="eve")
        async with client.post("/hooks/webhook", data=body, headers=headers_of("m2", body)) as answer:
            told = (answer.status, json.loads(await answer.text()))
    assert told == (422, {"error": "this session is not yours"})


async def test_who_calls_a_channel_that_cannot_be_opened_is_told_to_come_again(tmp_path):
    settings = {"gateway": {"port": 0}, "channels": {"webhook": {"url": "https://bot.example"}}}
    async with serve(tmp_path, settings, provider=ScriptedModel([])) as gateway:
        (told,) = gateway.unused
        assert told.startswith("channels.webhook.secret is missing. Nothing listens at")
        body = message("hi")
        async with (
            aiohttp.ClientSession(gateway.url) as client,
            client.post("/hooks/webhook", data=body, headers=headers_of("m1", body)) as answer,
        ):
            assert (gateway.listening, answer.status, answer.headers["Retry-After"]) == ([], 503, "60")
