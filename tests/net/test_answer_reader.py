"""An answer is the same however the network cuts it, and what is none is refused."""

import gc
import weakref
from collections.abc import Iterable
from itertools import pairwise

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everloop.net.answer_reader import AnswerReader, NotHttp

Read = tuple[int, list[tuple[str, str]], bytes, bool, bool]
PLAIN = b"HTTP/1.1 200 OK\r\nX-Said: yes\r\nContent-Length: 5\r\n\r\nhello"


def read(*pieces: bytes, bodiless: bool = False, ends: bool = False) -> Read:
    reader = AnswerReader(bodiless)
    body = b"".join(reader.feed(piece) for piece in pieces)
    if ends:
        reader.end()
    return reader.status, list(reader.headers.items()), body, reader.done, reader.keeps


def in_pieces(*pieces: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + last


def head(*fields: str, first: str = "HTTP/1.1 200 OK") -> bytes:
    return "\r\n".join([first, *fields, "", ""]).encode()


CHUNKED = head("Transfer-Encoding: chunked")


@pytest.mark.parametrize(
    "data, status, body, done, keeps",
    [
        (PLAIN, 200, b"hello", True, True),
        (PLAIN[:-1], 200, b"hell", False, True),
        (head("Content-Length: 0"), 200, b"", True, True),
        (head("Content-Length: 2", "Connection: close") + b"ok", 200, b"ok", True, False),
        (head("Content-Length: 2", first="HTTP/1.0 200 OK") + b"ok", 200, b"ok", True, False),
        (head("Content-Length: 2", "Connection: Keep-Alive", first="HTTP/1.0 200 OK") + b"ok", 200, b"ok", True, True),
        (head("Content-Length: 2", "Connection: Keep-Alive", "Connection: close") + b"ok", 200, b"ok", True, False),
        (head("content-length:2 ", first="HTTP/1.1 404") + b"ok", 404, b"ok", True, True),
        (PLAIN + b"HTTP/1.1 200 OK\r\n", 200, b"hello", True, False),
        (PLAIN + b"HTTP/1.1 100 Continue\r\n\r\n", 200, b"hello", True, False),
        (PLAIN + PLAIN, 200, b"hello", True, False),
        (PLAIN + b"\0", 200, b"hello", True, False),
        (PLAIN + b"\r\n\n", 200, b"hello", True, True),  # which says nothing
        (head(first="HTTP/1.1 204 No Content"), 204, b"", True, True),
        (head("Content-Length: 9", first="HTTP/1.1 304 Not Modified"), 304, b"", True, True),
        (head(first="HTTP/1.1 100 Continue") + PLAIN, 200, b"hello", True, True),
        (head("Link: </x>", first="HTTP/1.1 103 Early Hints") + PLAIN, 200, b"hello", True, True),
        (head(first="HTTP/1.1 102 Processing") * 1000 + PLAIN, 200, b"hello", True, True),
        (head("Upgrade: x", "Connection: upgrade", first="HTTP/1.1 101 Switching Protocols"), 101, b"", True, False),
        (PLAIN.replace(b"\r\n", b"\n"), 200, b"hello", True, True),
        (b"HTTP/1.1 200 OK\nContent-Length: 8\n\nab\r\n\r\ncd", 200, b"ab\r\n\r\ncd", True, True),
        (CHUNKED + in_pieces(b"one", b"two"), 200, b"onetwo", True, True),
        (CHUNKED + in_pieces(b"one", last=b"0\r\nX-Sum: 1\r\n\r\n"), 200, b"one", True, True),
        (CHUNKED + in_pieces(b"one", last=b"000\r\n\r\n"), 200, b"one", True, True),
        (CHUNKED + b"3;why=not\r\none\r\n0\r\n\r\n", 200, b"one", True, True),
        (CHUNKED + b"A\r\n" + b"a" * 10 + b"\r\n0\r\n", 200, b"a" * 10, False, True),
        (CHUNKED + in_pieces(b"one", last=b""), 200, b"one", False, True),
        (CHUNKED + in_pieces(b"one") + b"more", 200, b"one", True, False),
        (CHUNKED + b"3  \r\none\r\n0 \r\n\r\n", 200, b"one", True, True),
        (CHUNKED.replace(b"1.1", b"1.0") + in_pieces(b"one"), 200, b"one", True, False),
        (CHUNKED + b"f" * 16 + b"\r\nmuch", 200, b"much", False, True),
        (head() + b"until it ends", 200, b"until it ends", False, False),
        (head(first="HTTP/1.1 199 Soon") + PLAIN, 200, b"hello", True, True),
        (head(*["X: y"] * 999, "Content-Length: 2") + b"ok", 200, b"ok", True, True),
    ],
)
def test_an_answer(data: bytes, status: int, body: bytes, done: bool, keeps: bool):
    got = read(data)
    assert (got[0], *got[2:]) == (status, body, done, keeps)
    for cut in range(0, len(data), 1 + len(data) // 300):
        assert read(data[:cut], data[cut:]) == got


@pytest.mark.parametrize(
    "data, keeps",
    [
        (head("Content-Length: 9"), True),
        (head("Transfer-Encoding: chunked"), True),
        (head("Transfer-Encoding: chunked").replace(b"\r\n", b"\n"), True),
        (head("Content-Length: 9") + b"all nine.", False),
        (head("Transfer-Encoding: chunked") + b"0", False),
        (head(first="HTTP/1.1 100 Continue") + head("Content-Length: 9"), True),
        (head("Content-Length: 9", "Connection: close"), False),
        (head(), False),  # its host might mean that it closes
    ],
)
def test_the_answer_to_a_head_request_has_no_body(data: bytes, keeps: bool):
    for cut in range(len(data)):
        assert read(data[:cut], data[cut:], bodiless=True)[2:] == (b"", True, keeps)


@pytest.mark.parametrize("said, read_as", [("/é?a=%20 b", "/é?a=%20 b"), ("http://ü.example/", "http://ü.example/")])
def test_an_address_keeps_its_letters(said: str, read_as: str):
    assert read(head(f"Location: {said}", "Content-Length: 0"))[1][0] == ("Location", read_as)


def test_an_address_that_is_not_utf_8_keeps_its_bytes():
    """What else is not is shown with gaps."""
    said = b"HTTP/1.1 302 Found\r\nlocation: /caf\xe9?a=%20\r\nX-Said: caf\xe9\r\n\r\n"
    assert read(said)[1] == [("location", "/caf%E9?a=%20"), ("X-Said", "caf\ufffd")]


def test_a_body_without_a_length_ends_with_the_connection():
    assert read(head(), b"one", b"two", ends=True)[2:] == (b"onetwo", True, False)


def test_a_body_without_a_length_has_not_ended_when_the_connection_is_torn_down():
    reader = AnswerReader()
    reader.feed(head() + b"one")
    with pytest.raises(EOFError):
        reader.end(by_force=True)


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 20", PLAIN[:-1], CHUNKED, CHUNKED + in_pieces(b"one", last=b"0\r\n")])
def test_an_answer_that_says_how_long_it_is_does_not_end_with_the_connection(data: bytes):
    with pytest.raises(EOFError):
        read(data, ends=True)


@pytest.mark.parametrize(
    "data",
    [
        b"220 mail.example ESMTP\r\n",
        b"\x15\x03\x01\x00\x02",
        head(first="HTTP/2 200"),
        head(first="HTTP/2.0 200 OK"),
        head(first="HTTP/0.9 200 OK"),
        head(first="HTTP/1.1 000 OK"),
        head(first="HTTP/1.1 099 OK"),
        head(first="HTTP/1.1 20 OK"),
        head(first="HTTP/1.1 2000 OK"),
        head("no colon"),
        head(": no name"),
        head("a name: with spaces"),
        head("One: line", " goes on"),
        head("Content-Length: -1"),
        head("Content-Length: +1"),
        head("Content-Length: 1_0"),
        head("Content-Length: ²"),
        head("Content-Length: 1", "Content-Length: 2"),
        head("Content-Length: 2", "Content-Length: 2"),
        head("Content-Length: 3", "Transfer-Encoding: chunked"),
        head("Transfer-Encoding: chunked", "Content-Length: 3"),
        head("Content-Length: " + "9" * 5000),
        head(first="HTTP/1.1 100 Continue") * 20_000,
        head("Transfer-Encoding: gzip, chunked"),
        head("Transfer-Encoding: gzip", "Transfer-Encoding: chunked"),
        head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        head("Transfer-Encoding: identity"),
        head("Content-Length: 5", first="HTTP/1.1 199 Soon") + b"hello" + PLAIN,
        head(*["X: y"] * 1001),
        head(*["X-Large: " + "x" * 1000] * 70),
        b"HTTP/1.1 200 OK\rX: y\r\r",
        CHUNKED + b"0x3\r\none\r\n",
        CHUNKED + b"-3\r\none\r\n",
        CHUNKED + b"1_0\r\none\r\n",
        CHUNKED + b"\r\none\r\n",
        CHUNKED + b"2\r\none\r\n",
        CHUNKED + b"f" * 17 + b"\r\n",
        CHUNKED + b"0" * 2**18,
        CHUNKED + in_pieces(b"one", last=b"0\r\n" + b"X: y\r\n" * 1002),
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**18,
    ],
)
def test_what_is_no_answer_is_refused(data: bytes):
    with pytest.raises(NotHttp):
        read(data)


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """An answer, and its body."""
    body = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=6))
    fields = draw(st.lists(st.sampled_from(["X-A: 1", "x-b:two words", "X-C: ", "Date: now"]), max_size=4))
    first = (
        f"HTTP/1.1 {draw(st.sampled_from([200, 201, 301, 400, 429, 503]))} {draw(st.sampled_from(['', 'OK', 'Oh no']))}"
    )
    if draw(st.booleans()):
        return head(*fields, "Transfer-Encoding: chunked", first=first) + in_pieces(*body), b"".join(body)
    whole = b"".join(body)
    return head(*fields, f"Content-Length: {len(whole)}", first=first) + whole, whole


@given(answers(), st.lists(st.integers(0, 600), max_size=12))
def test_an_answer_is_the_same_however_it_is_cut(answer: tuple[bytes, bytes], cuts: list[int]):
    data, body = answer
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    got = read(*(data[here:there] for here, there in pairwise(places)))
    assert got == read(data)
    assert got[2:] == (body, True, True)


ENDLESS = {
    "a head": (b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n"),
    "a field": (b"HTTP/1.1 200 OK\r\nX-More: ", b"and more"),
    "a name": (b"HTTP/1.1 200 OK\r\n", b"X-More"),
    "a reason": (b"HTTP/1.1 200 OK", b" or not"),
    "hints": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "line breaks": (b"", b"\r\n"),
    "a size": (CHUNKED, b"0"),
    "an extension": (CHUNKED + b"3;", b"x"),
    "trailers": (CHUNKED + in_pieces(b"one", last=b"0\r\n"), b"X-More: and more\r\n"),
    "a trailer": (CHUNKED + in_pieces(b"one", last=b"0\r\nX-More: "), b"and more"),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_never_ends_is_refused_before_it_is_much(what: str):
    """In pieces such as a slow host sends, of which none is too much by itself."""
    first, more = ENDLESS[what]
    with pytest.raises(NotHttp):
        read(first, *[more] * (2**18 // len(more) + 1))


def test_a_body_is_never_too_much():
    reader = AnswerReader()
    reader.feed(CHUNKED)
    assert sum(len(reader.feed(in_pieces(b"x" * 50, last=b""))) for _ in range(10_000)) == 500_000


def test_an_error_of_our_own_is_not_taken_for_the_hosts():
    """What is raised in the middle of an answer comes out through the parser as itself."""

    class Interrupted(AnswerReader):
        def on_header(self, name: bytes, value: bytes) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted().feed(PLAIN)


@pytest.mark.parametrize("data", [PLAIN, PLAIN[:-1], PLAIN[:20], CHUNKED], ids=["whole", "cut", "no head", "no body"])
def test_a_reader_is_let_go_without_the_collector(data: bytes):
    class Watched(AnswerReader):
        __slots__ = ("__weakref__",)

    gc.disable()
    try:
        reader = Watched()
        reader.feed(data)
        if not reader.done:
            with pytest.raises(EOFError):
                reader.end()
        watch = weakref.ref(reader)
        del reader
        assert watch() is None
    finally:
        gc.enable()


Read11 = tuple[int, list[tuple[str, str]], bytes, bool]


def as_h11_reads(data: bytes) -> Read11 | None:
    """What it makes of an answer; nothing when it refuses it, or when it is not whole."""
    ours = h11.Connection(h11.CLIENT, max_incomplete_event_size=2**20)
    ours.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    ours.send(h11.EndOfMessage())
    status, headers, body = 0, [], b""
    try:
        ours.receive_data(data)
        while True:
            match ours.next_event():
                case h11.Response() as response:
                    status = response.status_code
                    headers = _told(response.headers.raw_items())
                case h11.Data() as piece:
                    body += piece.data
                case h11.EndOfMessage():
                    keeps = ours.their_state is h11.DONE and not ours.trailing_data[0].strip(b"\r\n")
                    return status, headers, body, keeps
                case h11.NEED_DATA | h11.PAUSED | h11.ConnectionClosed():
                    return None
    except h11.RemoteProtocolError:
        return None


def _told(fields: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """But for those that h11 writes in its own way: what they mean shows in the body."""
    names = (b"content-length", b"transfer-encoding")
    return [(name.decode(), value.decode(errors="replace")) for name, value in fields if name.lower() not in names]


def as_we_read(data: bytes) -> Read11 | None:
    try:
        status, headers, body, done, keeps = read(data)
    except NotHttp:
        return None
    told = _told((name.encode(), value.encode()) for name, value in headers)
    return (status, told, body, keeps) if done else None


def test_h11_reads_whole_answers():
    for data in (PLAIN, CHUNKED + in_pieces(b"one", b"two")):
        assert as_h11_reads(data) == as_we_read(data) is not None


def assert_understood_as_h11_does(data: bytes) -> None:
    """One of them may refuse what the other takes, for both may be strict; to understand something else is worse, and
    so is to keep a connection that the other would close. It keeps none in HTTP/1.0."""
    ours, theirs = as_we_read(data), as_h11_reads(data)
    if ours is not None and theirs is not None:
        assert ours[:3] == theirs[:3]
        assert theirs[3] or not ours[3] or b"HTTP/1.0" in data


@given(answers(), st.integers(0, 400), st.binary(max_size=3), st.integers(0, 3))
def test_a_damaged_answer_is_read_as_another_client_reads_it_or_not_at_all(answer, place: int, other: bytes, drop: int):
    assert_understood_as_h11_does(answer[0][:place] + other + answer[0][place + drop :])


FIRST = ["HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 204 No", "HTTP/1.1 304 No", "HTTP/1.1 200", "HTTP/1.1 100 Go"]
FRAMING = [
    *("Content-Length: 3", "content-length:3", "Content-Length: 03", "Content-Length: 3, 3", "Content-Length: 5"),
    *("Content-Length : 3", "Content-Length: 0x3", "Content-Length: +3", "Content-Length:", "Content-Length: 3\t"),
    *("Transfer-Encoding: chunked", "Transfer-Encoding: Chunked", "Transfer-Encoding: chunked, identity"),
    *(
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding:\tchunked",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding:",
    ),
    *("Connection: close", "Connection: keep-alive", "Connection: close, keep-alive", "Keep-Alive: timeout=5"),
    *("Upgrade: x", "Connection: upgrade", "X: a\x00b", "X: \xe9", ": x", "X", "X: a", " folded"),
]
BODIES = [
    *(b"one", b"3\r\none\r\n", b"0\r\n\r\n", b"0\r\n", b"3;x=y\r\none\r\n", b"3 \r\none\r\n", b"03\r\none\r\n"),
    *(
        b"3\none\n",
        b"0\n\n",
        b"0\r\nX: y\r\n\r\n",
        b"+3\r\none\r\n",
        b"0x3\r\none\r\n",
        b"3\rone\r",
        b"\r\n",
        b"\n",
        PLAIN,
    ),
]


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    """What says in several ways where it ends."""
    ends = st.sampled_from(["\r\n"] * 6 + ["\n", "\r", "\n\r\n"])
    lines = [draw(st.sampled_from(FIRST)), *draw(st.lists(st.sampled_from(FRAMING), max_size=4)), ""]
    body = b"".join(draw(st.lists(st.sampled_from(BODIES), max_size=5)))
    return "".join(line + draw(ends) for line in lines).encode("latin-1") + body


@given(hostile(), st.lists(st.integers(0, 300), max_size=6))
@example(b"HTTP/1.1 200 OK\nContent-Length: 3\n\r\none", [])
def test_a_hostile_answer_is_read_as_another_client_reads_it_however_it_is_cut(data: bytes, cuts: list[int]):
    assert_understood_as_h11_does(data)
    places = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    assert outcome(*(data[here:there] for here, there in pairwise(places))) == outcome(data)


def outcome(*pieces: bytes) -> Read | None:
    try:
        return read(*pieces)
    except NotHttp:
        return None
