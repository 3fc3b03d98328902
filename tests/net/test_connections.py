"""Whatever a host does with a connection, an answer is the answer to its own request, or none."""

import asyncio
import string
from contextlib import suppress
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from everloop.errors import ProviderError
from everloop.net.trusted import TrustedHttp

FORMS = ("length", "pieces", "until the end")
MISCHIEF = ("", "", "", "cut", "more", "close", "nothing")
LEAVES = ("whole", "first", "error", "head")
STRANGE = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nSTRANGE"


class Plan:
    """What the host answers to a request, how it errs, and when its client leaves."""

    def __init__(self, chance: Random, number: int) -> None:
        self.body = string.ascii_lowercase[number % 26].encode() * chance.choice([0, 1, 50, 5000, 400_000])
        self.form, self.mischief = chance.choice(FORMS), chance.choice(MISCHIEF)
        if self.form == "until the end" and self.mischief == "more":
            self.mischief = ""  # it would be the body's
        self.leaves = chance.choice(LEAVES)
        self.cuts = sorted(chance.randrange(1 + len(self.data())) for _ in range(chance.choice([0, 0, 1, 3])))
        self.end = chance.randrange(len(self.data())) if self.mischief == "cut" else len(self.data())

    def data(self) -> bytes:
        closes = b"Connection: close\r\n" if self.mischief == "close" else b""
        match self.form:
            case "length":
                fields, body = b"Content-Length: %d\r\n" % len(self.body), self.body
            case "pieces":
                half = len(self.body) // 2
                pieces = [piece for piece in (self.body[:half], self.body[half:]) if piece]
                body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
                fields = b"Transfer-Encoding: chunked\r\n"
            case _:
                fields, body = b"", self.body
        more = STRANGE if self.mischief == "more" else b""
        return b"HTTP/1.1 200 OK\r\n" + closes + fields + b"\r\n" + body + more

    def parts(self) -> list[bytes]:
        data = self.data()[: self.end]
        places = [0, *(cut for cut in self.cuts if cut < len(data)), len(data)]
        return [data[here:there] for here, there in pairwise(places)]


async def host(plans: list[Plan], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            plan = plans[int(head.split()[1].removeprefix("/"))]
            if plan.mischief == "nothing":
                break
            for part in plan.parts():
                writer.write(part)
                await writer.drain()
            if plan.mischief in ("cut", "close") or plan.form == "until the end":
                break
    writer.close()


class Left(Exception):
    pass


async def ask(http: TrustedHttp, url: str, plan: Plan) -> tuple[bytes, bool]:
    """What was read of the body, and whether it is whole."""
    body, whole = b"", False
    with suppress(ProviderError, Left):
        async with http.request("GET", url, seconds=30) as answer:
            if plan.leaves == "head":
                return b"", False
            async for chunk in answer.chunks():
                body += chunk
                if plan.leaves == "first":
                    break
                if plan.leaves == "error":
                    raise Left
            else:
                whole = True
    return body, whole


@examples(60)
@given(seed=st.integers(0, 1 << 32), together=st.booleans())
async def test_an_answer_is_the_answer_to_its_own_request(seed: int, together: bool):
    chance = Random(seed)
    plans = [Plan(chance, number) for number in range(12)]
    http = TrustedHttp()
    server = await asyncio.start_server(lambda *ends: host(plans, *ends), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    asked = [ask(http, f"{url}/{number}", plan) for number, plan in enumerate(plans)]
    got = await asyncio.gather(*asked) if together else [await each for each in asked]
    await http.close()
    server.close()
    await server.wait_closed()
    for plan, (body, whole) in zip(plans, got, strict=True):
        assert plan.body.startswith(body)
        if whole and plan.form != "until the end":
            assert (body, plan.mischief in ("cut", "nothing")) == (plan.body, False)
        if plan.leaves == "whole" and plan.mischief in ("", "more", "close"):
            assert whole
