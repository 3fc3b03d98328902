"""Asking a host about sound, by OpenAI's way of asking: what transcribing and speaking have in common."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from ..errors import ModelMissing, ProviderError
from ..ports import Http
from ..readings.secrets import hide_secrets
from . import dialects
from .choose import Choice
from .host import checked, masked, name_host, wait_before_retry

_SECONDS = 60.0
_ATTEMPTS = 2
_PATIENCE = 10.0  # seconds that a host may ask to be left alone
_WAYS = ("openai_chat", "openai_responses")

Login = Callable[[], Awaitable[Mapping[str, str]]]


class AudioHost:
    """The host of a choice; `lacks` says what one of another kind does not do, and what to set. Raises ModelMissing."""

    def __init__(self, choice: Choice, http: Http, login: Login | None, *, lacks: str) -> None:
        if choice.host is None or choice.host.dialect not in _WAYS:
            raise ModelMissing(f"{choice.host.name if choice.host else 'the embedded model'} {lacks}")
        self.name = choice.host.name
        self._choice = choice
        self._http = http
        self._login = login
        self._dialect = dialects.load(choice.host.dialect)

    async def insist(self, path: str, body: bytes, kind: str, limit: int) -> tuple[str, bytes]:
        """The type and the bytes of its answer; what passes is tried once more. Raises ProviderError."""
        attempt = 1
        while True:
            try:
                return await self._ask(path, body, kind, limit)
            except ProviderError as error:
                wait = wait_before_retry(error, attempt, 0.5)
                if not error.retryable or attempt >= _ATTEMPTS or wait > _PATIENCE:
                    raise
            await asyncio.sleep(wait)
            attempt += 1

    async def _ask(self, path: str, body: bytes, kind: str, limit: int) -> tuple[str, bytes]:
        choice = self._choice
        url, headers = dialects.address(choice.base, path), await self._headers(kind)
        try:
            async with self._http.request("POST", url, body=body, headers=headers, seconds=_SECONDS) as answer:
                said = masked(await answer.read(limit), choice.key)
                if answer.status != 200:
                    raise self._dialect.error_from(self.name, choice.model, answer.status, answer.headers, said)
                return answer.headers.get("Content-Type", ""), said
        except ProviderError as error:
            hide_secrets(error, url, headers)
            name_host(error, self.name)
            raise

    async def _headers(self, kind: str) -> dict[str, str]:
        headers = self._dialect.headers(self._choice.key.strip()) | dict(self._choice.headers)
        if self._login is not None:
            headers |= await self._login()
        return checked(self.name, {**headers, "Content-Type": kind})
