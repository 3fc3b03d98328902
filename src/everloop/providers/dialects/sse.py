"""Takes a stream of server-sent events apart, wherever the network has cut it."""


class Events:
    """Gives the data of each event. Names and numbers of events are not told: our hosts repeat them in the data."""

    __slots__ = ("_lines", "_rest", "stray")

    def __init__(self) -> None:
        self._rest = b""  # a line that has not ended
        self._lines: list[bytes] = []  # of an event that has not ended
        self.stray = b""  # a line that belongs to no stream of events: an error page, or a plain JSON body

    def feed(self, data: bytes) -> list[bytes]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        found: list[bytes] = []
        for line in lines:
            self._read(line.rstrip(b"\r"), found)
        return found

    def end(self) -> list[bytes]:
        """A last event whose blank line never came."""
        return self.feed(b"\n\n")

    def _read(self, line: bytes, found: list[bytes]) -> None:
        if line.startswith(b"data:"):
            self._lines.append(line[5:].removeprefix(b" "))
        elif not line:
            if self._lines:
                found.append(b"\n".join(self._lines))
                self._lines = []
        elif not line.startswith((b":", b"event:", b"id:", b"retry:")) and len(self.stray) < 20_000:
            self.stray += line + b"\n"
