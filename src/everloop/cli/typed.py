"""What a person types while an answer comes: keys, as a terminal sends them, become lines. At the prompt GNU readline
does this; it cannot while something else is written."""

import codecs
import re

PASTE, PASTED = "\x1b[200~", "\x1b[201~"
LEAVE = "/exit"
LONGEST_CODE = 16  # letters of an escape sequence; what is longer is none

# A code that a key sends: a whole one, or the beginning of one.
_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\[O])", re.DOTALL)


class TypedLine:
    """`feed` it what comes from the terminal; `text` is the line that is being written."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""  # the beginning of an escape sequence
        self._pasting = False

    def feed(self, data: bytes) -> list[str]:
        """The lines that are finished with it."""
        keys = self._rest + self._decoder.decode(data)
        self._rest = ""
        lines: list[str] = []
        while keys:
            if keys[0] != "\x1b":
                key, keys = keys[0], keys[1:]
            elif found := _CODE.match(keys):
                key, keys = found[0], keys[found.end() :]
            elif len(keys) < LONGEST_CODE:
                self._rest = keys
                break
            else:
                key, keys = "", keys[1:]
            if (line := self._press(key)) is not None:
                lines.append(line)
        return lines

    def _press(self, key: str) -> str | None:
        """The line, if this key ends it."""
        match key:
            case "\x1b[200~" | "\x1b[201~":
                self._pasting = key == PASTE
            case "\r" | "\n" if self._pasting:
                self.text += "\n"
            case "\x1b\r" | "\x1b\n":
                self.text += "\n"
            case "\r" | "\n":
                return self._enter()
            case "\x7f" | "\x08":
                self.text = self.text[:-1]
            case "\x15":  # Ctrl-U
                self.text = ""
            case "\x17":  # Ctrl-W
                self.text = re.sub(r"\S*\s*\Z", "", self.text)
            case "\x04" if not self.text:  # Ctrl-D leaves, when what runs is over
                return LEAVE
            case "\t":
                self.text += "\t" if self._pasting else " "
            case _ if len(key) == 1 and key.isprintable():
                self.text += key
        return None

    def _enter(self) -> str | None:
        if goes_on(self.text):
            self.text = f"{self.text[:-1]}\n"
            return None
        line, self.text = self.text.rstrip("\n"), ""
        return line


def goes_on(line: str) -> bool:
    """A line that ends with a backslash goes on in the next one. Whoever wants to end with one writes two."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
