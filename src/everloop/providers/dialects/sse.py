"""Takes a stream of server-sent events apart, wherever the network has cut it, in bounded memory and linear time."""

from ...errors import AnswerOversized

MOST_BYTES = 2**24  # of a line, of an event, and of a body that is no stream: what can only be read as a whole
_MOST_STRAY = 20_000
_OTHER_LINES = (b":", b"event:", b"id:", b"retry:")


class Pieces:
    """Of something that can only be read as a whole; they are joined as they come, and copied once, at its end. Raises
    AnswerOversized."""

    __slots__ = ("_what", "so_far")

    def __init__(self, what: str = "a line") -> None:
        self._what = what
        self.so_far = bytearray()

    def add(self, piece: bytes) -> None:
        self.so_far += piece
        if len(self.so_far) > MOST_BYTES:
            raise _oversized(self._what)

    def end(self) -> bytes:
        """The whole; what follows is the next."""
        whole, self.so_far = bytes(self.so_far), bytearray()
        return whole


class Lines(Pieces):
    """Gives the lines of a stream, each when it has ended; the pieces are those of the last one."""

    __slots__ = ()

    def split(self, data: bytes) -> list[bytes]:
        """The lines that end in these bytes."""
        lines = data.split(b"\n")
        if self.so_far:
            self.add(lines[0])
            if len(lines) == 1:
                return []
            lines[0] = self.end()
        if len(data) > MOST_BYTES and len(max(lines, key=len)) > MOST_BYTES:
            raise _oversized("a line")
        if last := lines.pop():
            self.add(last)
        return lines


class Events:
    """Gives the data of each event. Names and numbers of events are not told: our hosts repeat them in the data."""

    __slots__ = ("_data", "_length", "_lines", "stray")

    def __init__(self) -> None:
        self._lines = Lines()
        self._data: list[bytes] = []  # lines of an event that has not ended
        self._length = 0  # of those lines
        self.stray = b""  # a line that belongs to no stream of events: an error page, or a plain JSON body

    def feed(self, data: bytes) -> list[bytes]:
        """Raises AnswerOversized. An event without data says nothing, as the standard has it."""
        found: list[bytes] = []
        for line in self._lines.split(data):
            line = line.rstrip(b"\r")
            if line.startswith(b"data:"):
                self._length += len(line)
                if self._length > MOST_BYTES:
                    raise _oversized("an event")
                self._data.append(line[5:].removeprefix(b" "))
            elif not line:
                if self._data:
                    event, self._data, self._length = b"\n".join(self._data), [], 0
                    if event.strip():
                        found.append(event)
            elif not line.startswith(_OTHER_LINES) and len(self.stray) < _MOST_STRAY:
                self.stray += line + b"\n"
        return found

    def end(self) -> list[bytes]:
        """A last event whose blank line never came."""
        return self.feed(b"\n\n")


def _oversized(what: str) -> AnswerOversized:
    """Whoever has asked the host makes a sentence of it."""
    return AnswerOversized(f"{what} of more than {MOST_BYTES >> 20} MiB")
