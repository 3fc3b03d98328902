"""What a turn shows while it runs, put together from the events of its thread.

A turn may ask a model several times: what it says before it calls a tool is shown as it comes and stays shown. The
answer that counts is the last; whatever of it has not been shown by then follows. What a thread does for other letters
is not shown: somebody else's turn may run in it before ours.
"""

from msgspec import Struct

from ..core.ports import Event
from .desk import Answer


class Piece(Struct, frozen=True):
    """Something more of what is said in one model call, which `call` names."""

    call: int
    text: str = ""
    reasoning: str = ""


class Draft:
    """The draft of the answer to one letter. `ours` says whether what happens now is done for that letter."""

    def __init__(self) -> None:
        self._mail = 0
        self.ours = False
        self._call = 0
        self._text = ""

    def follow(self, event: Event) -> Piece | None:
        """What an event adds, if anything."""
        if event.name == "taken":
            self._mail = event.data["mail"]
        elif event.name == "stream_start":
            self.ours = self._mail in event.data["mails"]
        elif event.name == "thinking_finished":
            self.ours = False
        if event.name != "stream_chunk" or not self.ours:
            return None
        text, reasoning = event.data.get("text", ""), event.data.get("reasoning", "")
        if not text and not reasoning:
            return None
        if event.seq != self._call:
            self._call, self._text = event.seq, ""
        self._text += text
        return Piece(event.seq, text, reasoning)

    def works(self, event: Event) -> bool:
        """Whether one of everloop's own tools begins to run for that letter."""
        return event.name == "tool_call" and self.ours

    def complete(self, answer: Answer) -> Piece | None:
        """What is missing of the answer when it is there: usually nothing."""
        told = answer.told
        if told == self._text or not told:
            return None
        if self._text and told.startswith(self._text):
            return Piece(self._call, told[len(self._text) :])
        return Piece(-1, told)
