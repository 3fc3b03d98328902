"""A host that transcribes, and one that reads aloud, on a port of its own, and remembers what it was asked."""

from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class SpeechServer:
    """Answers with each of its answers in turn, a status, JSON or a sound; then again and again with the last."""

    def __init__(self, *answers: int | dict[str, Any] | bytes) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.url = ""
        self._answers = [*answers]

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        fields: dict[str, Any] = {}
        async for part in await request.multipart():
            fields[part.name] = (part.filename, bytes(await part.read())) if part.filename else await part.text()
        return self._answer(request, fields)

    async def _speak(self, request: web.Request) -> web.StreamResponse:
        """https://platform.openai.com/docs/api-reference/audio/createSpeech: the sound is the body."""
        return self._answer(request, await request.json())

    def _answer(self, request: web.Request, fields: dict[str, Any]) -> web.StreamResponse:
        self.asked.append(fields)
        self.keys.append(request.headers.get("Authorization", ""))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, int):
            said = {"error": {"message": f"refused: {self.keys[-1]}"}}
            return web.json_response(said, status=answer, headers={"Retry-After": "0"})
        if isinstance(answer, bytes):
            return web.Response(body=answer, content_type="audio/mpeg")
        return web.json_response(answer)

    @asynccontextmanager
    async def open(self):
        app = web.Application(client_max_size=30_000_000)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        app.router.add_post("/v1/audio/speech", self._speak)
        runner = web.AppRunner(app, shutdown_timeout=0.01)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            yield self
        finally:
            await runner.cleanup()
