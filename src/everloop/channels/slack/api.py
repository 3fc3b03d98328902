"""Slack's Web API: one call, its answer, and what went wrong with it."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from ...errors import ChannelDown, ChannelRefused, HostFailed, HostHungUp, HostUnreachable, ProviderError
from ...ports import Http
from ..wellformed import read_json
from .refusals import UNSURE, SlackRefused, refused, to_enter, to_send

SECONDS = 20.0
LARGEST = 4_000_000  # bytes of an answer

Fields = Mapping[str, Any]


class SlackReply(Struct, frozen=True):
    fields: Fields
    scopes: frozenset[str] = frozenset()


class SlackApi:
    """Calls methods with the bot's token, or with the app's."""

    def __init__(self, http: Http, url: str, bot_token: str, app_token: str = "") -> None:
        self.url = url if url.endswith("/") else url + "/"
        self._http = http
        self._bot_token = bot_token
        self._app_token = app_token
        self._is_shaky = False  # whether the last call that was sent may have been done, and nobody knows

    async def call(self, method: str, **given: Any) -> SlackReply:
        """Raises SlackRefused, and ChannelDown when surely nothing was done. After any other error it may have been."""
        try:
            return await self._call(self._bot_token, method, given)
        except ProviderError:
            self._is_shaky = True
            raise

    async def see_whether_it_answers(self) -> None:
        """Before a message is sent after a failure of which nobody knows whether it was one: Slack takes no keys, so a
        send that may have arrived can be repeated only a few times, and an outage lasts longer. Raises ChannelDown."""
        if self._is_shaky:
            try:
                await self.ask_who_we_are()
            except ChannelRefused as error:
                raise ChannelDown(str(error)) from error
            self._is_shaky = False

    async def _call(self, token: str, method: str, given: Fields) -> SlackReply:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-www-form-urlencoded"}
        try:
            async with self._http.request(
                "POST", self.url + method, body=_form(given), headers=headers, seconds=SECONDS
            ) as answer:
                status = answer.status
                heard = {name.lower(): value for name, value in answer.headers.items()}
                body = await answer.read(LARGEST)
        except HostHungUp:
            raise  # it may have arrived
        except HostUnreachable as error:
            raise ChannelDown(str(error)) from error
        return _reply(method, status, heard, body)

    async def send(self, method: str, **given: Any) -> Fields:
        """A call that is seen by people. Raises ChannelDown, Undeliverable; after any other error it may have been
        done."""
        try:
            return (await self.call(method, **given)).fields
        except SlackRefused as error:
            raise to_send(error) from error

    async def ask_who_we_are(self) -> SlackReply:
        """Raises ChannelDown, ChannelRefused."""
        return await self._ask(self._bot_token, "auth.test")

    async def ask_for_socket(self) -> str:
        """An address at which a WebSocket can be opened, once. Raises as above."""
        reply = await self._ask(self._app_token, "apps.connections.open")
        return str(reply.fields.get("url", ""))

    async def _ask(self, token: str, method: str) -> SlackReply:
        try:
            return await self._call(token, method, {})
        except SlackRefused as error:
            raise to_enter(error, as_app=token == self._app_token) from error
        except ProviderError as error:
            raise ChannelDown(str(error)) from error


def _form(given: Fields) -> bytes:
    """All methods take forms, not all take JSON. What is None is left out."""

    def written(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return urlencode({name: written(value) for name, value in given.items() if value is not None}).encode()


def _reply(method: str, status: int, headers: Mapping[str, str], body: bytes) -> SlackReply:
    wait = _seconds(headers.get("retry-after", ""))
    if status == 429:
        raise ChannelDown(f"Slack asks to wait before the next {method}", wait)
    if status == 503 or 300 <= status < 500:
        raise ChannelDown(f"Slack answers {status} to {method}", wait)
    if status >= 500:
        raise HostFailed(f"Slack answers {status} to {method}")
    try:
        fields = read_json(body, dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise HostFailed(f"Slack answers {method} with something that is not of its API") from error
    if fields.get("ok") is not True:
        refusal = refused(fields.get("error"), fields.get("needed"), wait)
        raise HostFailed(f"Slack answers {method} with {refusal.word}") if refusal.word in UNSURE else refusal
    scopes = headers.get("x-oauth-scopes", "").replace(" ", "").split(",")
    return SlackReply(fields, frozenset(scopes) - {""})


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds < 1e6 else None
