"""The answer so far: what has been said in a model call that runs."""

from .events import AnswerBegan, AnswerPiece


class Draft:
    """Of the call that `called` names, for the letters `mails`. `kept` says what became of it, once it has ended."""

    __slots__ = ("_reasoning", "_text", "called", "kept", "last", "mails")

    def __init__(self, began: AnswerBegan) -> None:
        self.called = began.message
        self.mails = began.mails
        self.kept: bool | None = None
        self.last: AnswerPiece | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []

    def add(self, piece: AnswerPiece) -> None:
        self.last = piece
        self._text.append(piece.text)
        self._reasoning.append(piece.reasoning)

    @property
    def whole(self) -> AnswerPiece | None:
        """All pieces as one, for whoever comes in the middle; None when nothing has been said."""
        last = self.last
        if last is None:
            return None
        return AnswerPiece(
            thread=last.thread,
            seq=last.seq,
            n=last.n,
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            progress=last.progress,
            notice=last.notice,
        )
