"""An answer is the same however the network cuts it, and what is none is refused."""

import asyncio
from itertools import pairwise

import aiohttp
import pytest
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpResponseParser
from hypothesis import given
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
        (head("Content-Length: 2", "Content-Length: 2") + b"ok", 200, b"ok", True, True),
        (head("content-length:2 ", first="HTTP/1.1 404") + b"ok", 404, b"ok", True, True),
        (PLAIN + b"HTTP/1.1 200 OK\r\n", 200, b"hello", True, False),
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
        (head("Content-Length: 1", "Transfer-Encoding: chunked") + in_pieces(b"one"), 200, b"one", True, True),
        (head() + b"until it ends", 200, b"until it ends", False, False),
    ],
)
def test_an_answer(data: bytes, status: int, body: bytes, done: bool, keeps: bool):
    got = read(data)
    assert (got[0], *got[2:]) == (status, body, done, keeps)
    for cut in range(0, len(data), 1 + len(data) // 300):
        assert read(data[:cut], data[cut:]) == got


@pytest.mark.parametrize("fields", [("Content-Length: 9",), ("Transfer-Encoding: chunked",), ()])
def test_the_answer_to_a_head_request_has_no_body(fields: tuple[str, ...]):
    assert read(head(*fields), bodiless=True)[2:] == (b"", True, True)


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
        head("Content-Length: " + "9" * 5000),
        head(first="HTTP/1.1 100 Continue") * 20_000,
        head("Transfer-Encoding: gzip, chunked"),
        CHUNKED + b"0x3\r\none\r\n",
        CHUNKED + b"-3\r\none\r\n",
        CHUNKED + b"1_0\r\none\r\n",
        CHUNKED + b"\r\none\r\n",
        CHUNKED + b"2\r\none\r\n",
        CHUNKED + b"f" * 16 + b"\r\n",
        CHUNKED + b"0" * 2**18,
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


def as_aiohttp_reads(data: bytes) -> tuple[int, list[tuple[str, str]], bytes] | None:
    """What it makes of an answer; nothing when it refuses it, or when it is not whole."""
    loop = asyncio.new_event_loop()
    try:
        parser = HttpResponseParser(BaseProtocol(loop), loop, 2**16, read_until_eof=True)
        messages, _, _ = parser.feed_data(data)
        if not messages or not messages[0][1].is_eof():
            return None
        message, stream = messages[0]
        body = b"" if isinstance(stream, aiohttp.streams.EmptyStreamReader) else b"".join(stream._buffer)
        headers = [
            (name, value.encode(errors="surrogateescape").decode(errors="replace"))
            for name, value in message.headers.items()
        ]
        return message.code, headers, body
    except HttpProcessingError:
        return None
    finally:
        loop.close()


def test_the_other_client_reads_whole_answers():
    for data in (PLAIN, CHUNKED + in_pieces(b"one", b"two")):
        assert as_aiohttp_reads(data) == read(data)[:3]


@given(answers(), st.integers(0, 400), st.binary(max_size=3), st.integers(0, 3))
def test_a_damaged_answer_is_read_as_another_client_reads_it_or_not_at_all(answer, place: int, other: bytes, drop: int):
    """One of them may refuse what the other takes, for both may be strict; to understand something else is worse."""
    data = answer[0][:place] + other + answer[0][place + drop :]
    try:
        status, headers, body, done, _ = read(data)
    except NotHttp:
        return
    theirs = as_aiohttp_reads(data)
    if done and theirs is not None:
        assert (status, headers, body) == theirs
