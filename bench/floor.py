"""The floor: a bare aiohttp client that streams the answer and keeps the history in a list. It stores nothing."""

import json
import os
from typing import Any

import aiohttp

TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}

_LENGTH = 4_000_000  # bytes of the file of a floor that keeps what is said


class Floor:
    def __init__(self, base: str) -> None:
        self._url = f"{base}/chat/completions"
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._histories: dict[str, list[dict[str, Any]]] = {}

    async def ask(self, text: str, session: str) -> str:
        history = self._histories.setdefault(session, [{"role": "system", "content": "You are helpful."}])
        history.append({"role": "user", "content": text})
        while True:
            content, calls = await self._stream(history)
            message: dict[str, Any] = {"role": "assistant", "content": content}
            history.append(message)
            if not calls:
                return content
            message["tool_calls"] = list(calls.values())
            for call in calls.values():
                history.append({"role": "tool", "tool_call_id": call["id"], "content": "seen"})

    async def _stream(self, history: list[dict[str, Any]]) -> tuple[str, dict[int, dict[str, Any]]]:
        body = {"model": "m", "stream": True, "messages": history, "tools": [TOOL]}
        parts: list[str] = []
        calls: dict[int, dict[str, Any]] = {}
        async with self._session.post(self._url, json=body) as response:
            async for line in response.content:
                if not line.startswith(b"data: {"):
                    continue
                for choice in json.loads(line[6:])["choices"]:
                    delta = choice["delta"]
                    if piece := delta.get("content"):
                        parts.append(piece)
                    for part in delta.get("tool_calls", ()):
                        call = calls.setdefault(
                            part["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                        )
                        call["id"] = part.get("id") or call["id"]
                        call["function"]["name"] += part["function"].get("name") or ""
                        call["function"]["arguments"] += part["function"].get("arguments") or ""
        return "".join(parts), calls

    async def close(self) -> None:
        await self._session.close()


class SyncedFloor(Floor):
    """The floor with the least that a durable turn needs: what is said and what is answered reach the disk, each before
    anything follows from it. The file is as long as it will be, so that only what is written has to be synced."""

    def __init__(self, base: str, path: str) -> None:
        super().__init__(base)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.posix_fallocate(self._file, 0, _LENGTH)
        os.pwrite(self._file, b" " * _LENGTH, 0)
        os.fsync(self._file)
        self._at = 0

    async def ask(self, text: str, session: str) -> str:
        self._keep(text, session)
        answer = await super().ask(text, session)
        self._keep(answer, session)
        return answer

    def _keep(self, text: str, session: str) -> None:
        line = json.dumps({"session": session, "text": text}).encode() + b"\n"
        self._at += os.pwrite(self._file, line, self._at % (_LENGTH - len(line)))
        os.fdatasync(self._file)

    async def close(self) -> None:
        await super().close()
        os.close(self._file)
