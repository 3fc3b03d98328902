"""What a person speaks into the page, as text, and answers, read aloud: by whoever is set for it, at the person's
expense."""

from aiohttp import web

from ...core.log import ModelSaid
from ..http.errors import Refused
from ..http.sending import HEADERS
from .route import ApiAnswer, ApiCall
from .sessions import conversation_in
from .speech_shapes import SpeechHeard, SpeechStanding

LARGEST = 25_000_000  # bytes of a recording; hosts take no more


async def show_speech(call: ApiCall) -> ApiAnswer:
    return SpeechStanding(await call.agent.voice.longest(), await call.agent.aloud.longest())


async def transcribe(call: ApiCall) -> ApiAnswer:
    return SpeechHeard(await call.agent.voice.hear(await _recording(call), call.principal.user))


async def read_aloud(call: ApiCall) -> ApiAnswer:
    """A part of an answer, as sound; the header says how many there are."""
    found, asked = await conversation_in(call), call.body
    written = await call.agent.store.history(found.id, asked.seq - 1, 1)
    entry = written[0].entry if written and written[0].seq == asked.seq else None
    if not isinstance(entry, ModelSaid):
        raise Refused(404, "not_found", "There is no answer at that place.")
    user = call.principal.user
    aloud = await call.agent.aloud.read(entry.text, asked.part, listener=user, thread=found.id)
    if aloud is None:
        raise Refused(404, "not_found", "There is nothing to read aloud in it, or no such part.")
    headers = {**HEADERS, "Cache-Control": "no-store", "Everloop-Parts": str(aloud.parts)}
    return web.Response(body=aloud.sound.data, content_type=aloud.sound.mime, headers=headers)


async def _recording(call: ApiCall) -> bytes:
    """Raises Refused."""
    data = bytearray()
    async for piece in call.request.content.iter_any():
        data += piece
        if len(data) > LARGEST:
            raise Refused(413, "too_large", f"A recording has at most {LARGEST:,} bytes.")
    if not data:
        raise Refused(400, "bad_request", "There is no recording in it.")
    return bytes(data)
