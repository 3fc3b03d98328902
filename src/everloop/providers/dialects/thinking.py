"""Parts what a model says from what it thinks, where the host leaves <think>…</think> in the text."""

_OPEN, _CLOSE = "<think>", "</think>"


class Thinking:
    """Is fed text as it streams and gives back what of it was said, and what thought.

    Only blocks before the first word count: later on, the tag is something that the model talks about.
    """

    __slots__ = ("_held", "_inside", "_thought", "speaking")

    def __init__(self) -> None:
        self.speaking = False  # from now on everything is said
        self._inside = False
        self._thought = False
        self._held = ""

    def part(self, piece: str) -> tuple[str, str]:
        if self.speaking:
            return piece, ""
        text, self._held = self._held + piece, ""
        thoughts = ""
        while text and not self.speaking:
            if self._inside:
                thought, text = self._think(text)
                thoughts += thought
            else:
                text = self._begin(text)
        return text, thoughts

    def end(self) -> tuple[str, str]:
        """What was held back because it could have become a tag."""
        held, self._held = self._held, ""
        return ("", held) if self._inside else (held, "")

    def _think(self, text: str) -> tuple[str, str]:
        thought, closed, rest = text.partition(_CLOSE)
        if closed:
            self._inside, self._thought = False, True
            return thought, rest
        end = len(text) - _overlap(text, _CLOSE)
        self._held = text[end:]
        return text[:end], ""

    def _begin(self, text: str) -> str:
        words = text.lstrip()
        if words.startswith(_OPEN):
            self._inside = True
            return words[len(_OPEN) :]
        if _OPEN.startswith(words):
            self._held = text
            return ""
        self.speaking = True
        return words if self._thought else text


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    return next((n for n in range(min(len(text), len(tag) - 1), 0, -1) if tag.startswith(text[-n:])), 0)
