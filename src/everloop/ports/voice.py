"""Speech as text, and text as speech."""

from typing import Protocol

from msgspec import Struct

from ..core.prompt import Usage


class Speech(Struct, frozen=True):
    """`usage` is as the host counts it, all 0 where it does not; `seconds` is how long it says the sound is."""

    text: str
    usage: Usage = Usage()
    seconds: float = 0.0


class Transcriber(Protocol):
    @property
    def name(self) -> str:
        """provider/model"""
        ...

    @property
    def longest(self) -> float:
        """Seconds of a voice message."""
        ...

    async def transcribe(self, data: bytes, name: str) -> Speech:
        """Raises ProviderError."""
        ...

    def price(self, usage: Usage, seconds: float) -> float | None:
        """Dollars; None: nobody knows."""
        ...


class Sound(Struct, frozen=True):
    data: bytes
    mime: str


class PartAloud(Struct, frozen=True):
    """One of the `parts` that an answer is read in."""

    sound: Sound
    parts: int


class SpeechMaker(Protocol):
    @property
    def name(self) -> str:
        """provider/model"""
        ...

    @property
    def voice(self) -> str:
        """Whose voice it is and how it is written down: another one sounds different."""
        ...

    @property
    def longest(self) -> int:
        """Characters of an answer that are read."""
        ...

    async def speak(self, text: str) -> Sound:
        """Raises ProviderError."""
        ...

    def price(self, usage: Usage, characters: int) -> float | None:
        """Dollars; None: nobody knows."""
        ...
