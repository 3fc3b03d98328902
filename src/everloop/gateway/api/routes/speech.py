"""Routes of the API: speech."""

from .. import shapes, speech, speech_shapes
from ..route import ApiRoute

ROUTES = (
    ApiRoute(
        "GET",
        "/api/speech",
        "Whether somebody transcribes what you speak, and how much of it",
        handle=speech.show_speech,
        answers=speech_shapes.SpeechStanding,
        needs="chat",
    ),
    ApiRoute(
        "POST",
        "/api/speech/transcribe",
        "A recording as text, for you to look at; nothing of it is kept",
        handle=speech.transcribe,
        answers=speech_shapes.SpeechHeard,
        takes_bytes=True,
    ),
    ApiRoute(
        "POST",
        "/api/sessions/{id}/speech",
        "An answer, read aloud: a part of it as sound",
        handle=speech.read_aloud,
        at=shapes.OfSession,
        body=speech_shapes.ReadingAloud,
        tells=True,  # it is what was said there
    ),
)
