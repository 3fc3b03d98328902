"""What the model writes when it has tools: one JSON object with one key, `{"reply":"…"}` or `{"read_file":{…}}`.

The key is the name of the choice, so that three tokens decide it and the words of a reply can be shown at once.
The grammar fixes the separators, so an answer has one spelling, and the history repeats it byte for byte.
"""

import re

import msgspec

from ...core.prompt import Finish, Usage
from ...core.tool import ToolCall
from ...ports.provider import Reply

REPLY = "reply"

_LOOK, _PERIOD = 240, 40  # characters; so many that are the same again and again lead nowhere
_HEAD = re.compile(r'\{"([^"\\]+)":')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def spell_reply(text: str) -> str:
    return f'{{"{REPLY}":{msgspec.json.encode(text).decode()}}}'


def spell_call(call: ToolCall) -> str:
    return f'{{"{call.name}":{call.args or "{}"}}}'


class JsonText:
    """Decodes a JSON string piece by piece; begins after the opening quote, and `ended` at the closing one."""

    def __init__(self) -> None:
        self.ended = False
        self._held = ""  # an escape, or the first half of a surrogate pair, that is not whole yet

    def feed(self, piece: str) -> str:
        """The text that this piece adds."""
        source, self._held = self._held + piece, ""
        out: list[str] = []
        at = 0
        while at < len(source) and not self.ended:
            if source[at] == '"':
                self.ended = True
            elif source[at] != "\\":
                end = next((i for i in range(at, len(source)) if source[i] in '"\\'), len(source))
                out.append(source[at:end])
                at = end
            elif (escape := _escape(source, at)) is None:
                self._held = source[at:]
                break
            else:
                text, at = escape
                out.append(text)
        return "".join(out)


def _escape(source: str, at: int) -> tuple[str, int] | None:
    """What the escape at this place stands for and where it ends; None while it is not whole."""
    if len(source) < at + 2:
        return None
    if source[at + 1] != "u":
        return _ESCAPES.get(source[at + 1], source[at + 1]), at + 2
    if len(source) < at + 6:
        return None
    code = _code(source, at)
    if not 0xD800 <= code < 0xE000:
        return chr(code), at + 6
    if code < 0xDC00 and r"\u".startswith(source[at + 6 : at + 8]):
        if len(source) < at + 12:
            return None
        low = _code(source, at + 6)
        if 0xDC00 <= low < 0xE000:
            return chr(0x10000 + ((code - 0xD800) << 10) + low - 0xDC00), at + 12
    return "\ufffd", at + 6  # half a pair is no text


def _code(source: str, at: int) -> int:
    try:
        return int(source[at + 2 : at + 6], 16)
    except ValueError:
        return 0xFFFD


class AnswerParser:
    """An answer while it is generated. What is not of the agreed form is taken as plain words."""

    def __init__(self, names: frozenset[str]) -> None:
        """Without names the model was asked for plain text."""
        self.raw = ""
        self.text = ""
        self._names = names
        self._name: str | None = None if names else ""  # "" once it is known to be plain text
        self._start = 0
        self._string = JsonText()

    def feed(self, piece: str) -> str:
        """The words for the user that this piece adds."""
        begun = len(self.raw)
        self.raw += piece
        if self._name is None:
            begun = self._open()
        if self._name == "":
            words = self.raw[begun:]
        elif self._name == REPLY:
            words = self._string.feed(self.raw[begun:])
        else:
            words = ""
        self.text += words
        return words

    def _open(self) -> int:
        """Find out what it is going to be; the words, if any, begin at the place that is returned."""
        longest = max(map(len, self._names)) + 5
        head = _HEAD.match(self.raw)
        if head and head[1] in self._names and (head[1] != REPLY or self.raw[head.end() :].startswith('"')):
            self._name, self._start = head[1], head.end()
            return head.end() + (head[1] == REPLY)
        if not '{"'.startswith(self.raw[:2]) or len(self.raw) > longest:
            self._name = ""
        return 0

    @property
    def is_lost(self) -> bool:
        """Whether it repeats itself and would not come to an end."""
        end = self.raw[-_LOOK:]
        return len(end) == _LOOK and any(end[size:] == end[:-size] for size in range(1, _PERIOD))

    def finish(self, reason: str, usage: Usage, model: str, call_id: str) -> Reply | None:
        """The whole answer; None if it broke off in the middle of a call, which is nothing that can be used."""
        cut = reason == "length"
        if self._name in ("", REPLY):
            finish: Finish = "length" if cut and not self._string.ended else "stop"
            return Reply(text=self.text, usage=usage, finish=finish, model=model)
        whole = self.raw if self._name and _is_json(self.raw) else self._mended
        if self._name is None or not whole.endswith("}"):
            return None
        call = ToolCall(id=call_id, name=self._name, args=whole[self._start : -1])
        return Reply(text="", calls=(call,), usage=usage, finish="calls", model=model)

    @property
    def _mended(self) -> str:
        """A call that lacks the quote before its closing braces, with it; "" if that is not what is wrong."""
        mended = f'{self.raw.rpartition("}}")[0]}"}}}}'
        return mended if self.raw.count("}}") and _is_json(mended) else ""


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True
