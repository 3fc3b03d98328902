"""What a person speaks into the page, as text: by whoever transcribes voice messages, at the person's expense."""

from ..http.errors import Refused
from .route import ApiAnswer, ApiCall
from .speech_shapes import SpeechHeard, SpeechStanding

LARGEST = 25_000_000  # bytes of a recording; hosts take no more


async def show_speech(call: ApiCall) -> ApiAnswer:
    return SpeechStanding(await call.agent.voice.longest())


async def transcribe(call: ApiCall) -> ApiAnswer:
    return SpeechHeard(await call.agent.voice.hear(await _recording(call), call.principal.user))


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
