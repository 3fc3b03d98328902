"""What is said over a WebSocket, without a network: bytes in, whole messages out (the sans-I/O protocol of
`websockets`)."""

import logging
from collections import deque
from collections.abc import Mapping

from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.exceptions import PayloadTooBig
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import State
from websockets.typing import BytesLike, Subprotocol
from websockets.uri import parse_uri

from ..ports import SocketTerms

MOST_FRAGMENTS = 4096  # of one message, of which each may be empty
_WEIGHT = 256  # bytes that a message takes beside its own
_NOWHERE = parse_uri("wss://host/")  # the request is written elsewhere
_SILENT = logging.Logger("silent", logging.CRITICAL + 1)  # the package logs headers and frames, which hold tokens
_HANDSHAKE = {"connection", "upgrade"}

Message = str | bytes


class _TooManyFragments(PayloadTooBig):
    def __init__(self) -> None:
        super().__init__(None, MOST_FRAGMENTS)

    def __str__(self) -> str:
        return f"more than {MOST_FRAGMENTS} fragments"


class SocketProtocol(ClientProtocol):
    """After `receive_data`, `messages` has what was said, and `data_to_send` what is to be answered (pongs, the
    farewell). Whoever does not keep to the protocol is told so, and `parser_exc` says why."""

    def __init__(self, terms: SocketTerms) -> None:
        deflate = ClientPerMessageDeflateFactory(client_max_window_bits=True, compress_settings={"memLevel": 5})
        super().__init__(
            _NOWHERE,
            extensions=[deflate] if terms.compress else None,
            subprotocols=[Subprotocol(each) for each in terms.subprotocols] or None,
            state=State.OPEN,
            max_size=terms.max_bytes,
            logger=_SILENT,
        )
        self.messages: deque[Message] = deque()
        self.weight = 0  # of the messages that wait
        self.frames = 0  # that have come
        self._parts: list[BytesLike] = []
        self._is_text = False

    def asking(self) -> dict[str, str]:
        """The headers that ask for a WebSocket."""
        return {name: value for name, value in self.connect().headers.raw_items() if name != "Host"}

    def agree(self, headers: Mapping[str, str]) -> None:
        """Check the headers of a 101. Raises InvalidHandshake."""
        names = ((name.lower(), value) for name, value in headers.items())
        pairs = [each for each in names if each[0] in _HANDSHAKE or each[0].startswith("sec-websocket-")]
        self.process_response(Response(101, "", Headers(pairs)))

    def take(self) -> Message:
        message = self.messages.popleft()
        self.weight -= len(message) + _WEIGHT
        return message

    def forget(self) -> None:
        self.messages.clear()
        self.weight = 0

    def recv_frame(self, frame: Frame) -> None:
        """Within the parser, so that text that is none (UnicodeDecodeError) is answered as the protocol wants it before
        anything that follows."""
        super().recv_frame(frame)
        self.events.clear()
        self.frames += 1
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            self._assemble(frame)

    def _assemble(self, frame: Frame) -> None:
        if frame.opcode is not Opcode.CONT:
            self._is_text = frame.opcode is Opcode.TEXT
        whole = frame.data
        if self._parts or not frame.fin:
            self._parts.append(whole)
            if len(self._parts) > MOST_FRAGMENTS:
                raise _TooManyFragments
            if not frame.fin:
                return
            whole = b"".join(self._parts)
            self._parts.clear()
        message = str(whole, "utf-8") if self._is_text else bytes(whole)
        self.messages.append(message)
        self.weight += len(message) + _WEIGHT
