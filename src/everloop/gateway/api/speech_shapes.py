"""What is told about speech."""

from msgspec import Struct


class SpeechStanding(Struct, frozen=True):
    """`seconds` is how long a recording may be; 0 where nobody transcribes (`voice.model`)."""

    seconds: float


class SpeechHeard(Struct, frozen=True):
    """What was said."""

    text: str
