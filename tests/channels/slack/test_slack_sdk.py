"""Slack's own SDK works with our fake of Slack: only then may our channel rely on it."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from everloop.testing.slack_server import SlackFault, SlackServer
from everloop.testing.slack_workspace import BOT_USER


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer(again=0.3) as slack:
        slack.echoes = False
        yield slack


def client_of(slack: SlackServer) -> AsyncWebClient:
    return AsyncWebClient(token=slack.bot_token, base_url=slack.api_url)


async def test_the_sdk_is_told_who_it_is_and_what_it_may_do(slack: SlackServer):
    answer = await client_of(slack).auth_test()
    assert (answer["user_id"], "chat:write" in answer.headers["x-oauth-scopes"]) == (BOT_USER, True)
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await AsyncWebClient(token="xoxb-wrong", base_url=slack.api_url).auth_test()


async def test_the_sdk_posts_changes_reacts_and_deletes(slack: SlackServer):
    client = client_of(slack)
    posted = await client.chat_postMessage(channel="C0GENERAL", text="hello", thread_ts="1.2")
    chat, stamp = posted["channel"], posted["ts"]
    await client.chat_update(channel=chat, ts=stamp, text="hello, all")
    await client.reactions_add(channel=chat, timestamp=stamp, name="eyes")
    message = slack.workspace.chats[chat][stamp]
    assert (message["text"], message["thread_ts"], message["reactions"]) == ("hello, all", "1.2", ["eyes"])
    with pytest.raises(SlackApiError, match="already_reacted"):
        await client.reactions_add(channel=chat, timestamp=stamp, name="eyes")
    await client.chat_delete(channel=chat, ts=stamp)
    assert slack.workspace.shown(chat) == []


async def test_the_sdk_streams(slack: SlackServer):
    stream = await client_of(slack).chat_stream(
        channel="C0GENERAL", thread_ts="1.2", recipient_team_id="T0TEAM", recipient_user_id="U0ANNA", buffer_size=1
    )
    await stream.append(markdown_text="**hel")
    await stream.append(markdown_text="lo**")
    await stream.stop()
    assert slack.workspace.shown("C0GENERAL") == ["**hello**"]
    with pytest.raises(SlackApiError, match="message_not_in_streaming_state"):
        await client_of(slack).chat_appendStream(channel="C0GENERAL", ts=stream.ts, markdown_text="more")


async def test_the_sdk_sends_and_fetches_files(slack: SlackServer):
    answer = await client_of(slack).files_upload_v2(channel="D0ANNA", filename="a.txt", content="some text")
    url = answer["file"]["url_private"]
    async with aiohttp.ClientSession() as client:
        async with client.get(url, headers={"Authorization": f"Bearer {slack.bot_token}"}) as got:
            assert await got.read() == b"some text"
        async with client.get(url) as got:
            assert got.content_type == "text/html"
    [message] = slack.workspace.chats["D0ANNA"].values()
    assert [file["name"] for file in message["files"]] == ["a.txt"]


async def test_the_sdk_is_told_to_wait(slack: SlackServer):
    slack.fail("chat.postMessage", SlackFault(429, retry_after=7))
    with pytest.raises(SlackApiError) as raised:
        await client_of(slack).chat_postMessage(channel="D0ANNA", text="hello")
    assert (raised.value.response.status_code, raised.value.response.headers["Retry-After"]) == (429, "7")


@pytest.mark.parametrize(
    "given, error",
    [
        ({"channel": "C0NOWHERE", "text": "x"}, "channel_not_found"),
        ({"channel": "D0ANNA", "markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"channel": "D0ANNA", "text": ""}, "no_text"),
        ({"channel": "D0ANNA", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3_001}}]},
         "invalid_blocks"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:The top-level `text` argument")
async def test_the_sdk_is_refused(slack: SlackServer, given: dict[str, object], error: str):
    with pytest.raises(SlackApiError, match=error):
        await client_of(slack).chat_postMessage(**given)


async def test_a_text_that_is_too_long_is_cut_and_no_change_may_be_so_long(slack: SlackServer):
    client = client_of(slack)
    posted = await client.chat_postMessage(channel="D0ANNA", text="x" * 40_001)
    assert len(posted["message"]["text"]) == 40_000
    with pytest.raises(SlackApiError, match="msg_too_long"):
        await client.chat_update(channel="D0ANNA", ts=posted["ts"], text="x" * 4_001)


async def test_the_sdk_hears_over_a_socket_and_what_it_does_not_acknowledge_comes_again(slack: SlackServer):
    heard: asyncio.Queue[SocketModeRequest] = asyncio.Queue()
    client = SocketModeClient(app_token=slack.app_token, web_client=client_of(slack))

    async def hear(_: object, request: SocketModeRequest) -> None:
        heard.put_nowait(request)

    client.socket_mode_request_listeners.append(hear)
    await client.connect()
    try:
        stamp = await slack.say("hello")
        first, second = await heard.get(), await heard.get()
        assert (first.payload["event"]["text"], first.envelope_id) == ("hello", second.envelope_id)
        assert (first.retry_attempt, second.retry_attempt) == (None, 1)
        await client.send_socket_mode_response(SocketModeResponse(envelope_id=first.envelope_id))
        await slack.acknowledged(stamp)
        await slack.disconnect()
        await slack.linked(2)
        await slack.command("new")
        while (await heard.get()).type != "slash_commands":  # the event once more, where we were slow
            pass
    finally:
        await client.close()


async def test_the_sdk_believes_what_is_signed(slack: SlackServer):
    posted: list[tuple[dict[str, str], bytes]] = []

    async def post(headers, body) -> int:
        posted.append((dict(headers), body))
        return 200

    async with SlackServer(post=post) as other:
        await other.say("hello")
        verifier = SignatureVerifier(other.signing_secret)
        headers, body = posted[0]
        assert verifier.is_valid_request(body, headers)
        assert not verifier.is_valid_request(body + b" ", headers)
