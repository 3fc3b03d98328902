"""What is asked and told about speech."""

from typing import Annotated

from msgspec import Meta, Struct

from .shapes import ApiInput


class SpeechStanding(Struct, frozen=True):
    """`seconds` is how long a recording may be; 0 where nobody transcribes (`voice.model`). `characters` is how much of
    an answer is read aloud; 0 where nobody is set to do it (`speech.model`)."""

    seconds: float
    characters: int


class SpeechHeard(Struct, frozen=True):
    """What was said."""

    text: str


class ReadingAloud(ApiInput, frozen=True):
    """The answer with this `seq`; `part` counts from 0."""

    seq: Annotated[int, Meta(ge=1, le=2**53)]
    part: Annotated[int, Meta(ge=0, le=1000)] = 0
