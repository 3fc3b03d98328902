"""Real calls, recorded without their secrets and played again."""

import asyncio
import logging
import re
import stat
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strays import told_by

import everloop
from everloop.errors import (
    BadRequest,
    HostHungUp,
    HostTimeout,
    HostUnreachable,
    ProviderError,
    RateLimited,
    StreamCut,
    TurnFailed,
)
from everloop.net.trusted import TrustedHttp
from everloop.ports import Http
from everloop.testing import (
    Call,
    Cassette,
    CassetteMismatch,
    CutAt,
    Fail,
    Line,
    Raw,
    Recorder,
    Say,
    Spend,
    Think,
    Wait,
)
from everloop.testing import Http as Status
from everloop.testing.cassette import Exchange, Recorded, exchanges_in
from everloop.testing.differences import Comparison
from everloop.testing.masking import MASK, Masking
from everloop.testing.model_server import ModelServer

CANARY = "sk-canary/0123+456789"
NOWHERE = "http://127.0.0.1:9/v1"
HELLO: dict[str, Any] = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}

Told = list[tuple[str, dict[str, Any]]]


@pytest.fixture
async def network() -> AsyncIterator[TrustedHttp]:
    http = TrustedHttp()
    yield http
    await http.close()


def settings(url: str = NOWHERE, key: str = "any", record: Path | str = "", **more: Any) -> dict[str, Any]:
    account = {"api_base": url, "api_key": key, "model": "scripted", **more}
    defaults = {"context_window": 128_000}  # so that nobody asks for it
    return {"providers": {"custom": account}, "net": {"record": str(record)}, "agents": {"defaults": defaults}}


async def tell(home: Path, given: Mapping[str, Any], *texts: str, http: Http | None = None) -> Told:
    """What is to be seen while an agent answers, without the moment and the names that are new each time."""
    told: Told = []
    async with everloop.open(home, given, http=http) as agent:
        for text in texts:
            try:
                async for event in agent.stream(text):
                    told.append((event.name, plain(event.data)))
            except TurnFailed as error:
                told.append(("failed", {"reason": error.reason, "text": without_numbers(str(error))}))
    return told


def plain(data: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.json.decode(without_numbers(msgspec.json.encode(data).decode()))
    if "answer" in told:
        told["answer"].pop("turn")
    return {key: value for key, value in told.items() if key not in ("seconds", "error")}


def without_numbers(text: str) -> str:
    return re.sub(r"error [\w-]+|127\.0\.0\.1:\d+", "…", text)


async def record(file: Path, lines: Iterable[Line], *texts: str, key: str = CANARY) -> tuple[Told, ModelServer]:
    async with ModelServer([*lines]) as server:
        told = await tell(file.parent / f"recording {file.name}", settings(server.url, key, file), *texts)
    return told, server


async def ask(http: Http, url: str, body: Any = HELLO, **more: Any) -> tuple[int, list[bytes], str]:
    """The status, the pieces and the end of an answer."""
    status, pieces = 0, []
    try:
        async with http.request("POST", f"{url}/chat/completions", body=msgspec.json.encode(body), **more) as answer:
            status = answer.status
            async for piece in answer.chunks():
                pieces.append(piece)
    except ProviderError as error:
        return status, pieces, f"{type(error).__name__}: {error}"
    return status, pieces, "ok"


def made(file: Path, *bodies: Any) -> Cassette:
    """A cassette in which each body was answered by its number."""
    answers = [Recorded(200, {"content-type": "text/plain"}, [str(number)]) for number, _ in enumerate(bodies, 1)]
    file.write_bytes(
        b"\n".join(
            msgspec.json.encode(Exchange(1, "POST", f"{NOWHERE}/chat/completions", {}, body, answer, "ok", ""))
            for body, answer in zip(bodies, answers, strict=True)
        )
    )
    return Cassette(file)


async def test_a_recorded_conversation_is_played_without_a_host_and_looks_the_same(tmp_path: Path):
    lines = [
        [Think("hm"), Say(["I ", "look."]), Call("list_dir", {"path": "."})],
        [Say(["It is ", "empty."]), Spend(everloop.Usage(90, 7))],
        Say("Indeed."),
    ]
    file = tmp_path / "it.cassette"
    told, server = await record(file, lines, "What is there?", "Sure?")
    cassette = Cassette(file)
    played = await tell(tmp_path / "another home", settings(), "What is there?", "Sure?", http=cassette)
    assert played == told
    assert [data["answer"]["content"] for name, data in told if name == "answer"] == ["It is empty.", "Indeed."]
    assert [name for name, _ in told].count("tool_call") == 1
    assert (server.calls, cassette.rest) == (3, [])


async def test_a_list_of_models_is_played_too_wherever_the_host_is_now(tmp_path: Path):
    file = tmp_path / "it.cassette"
    async with ModelServer([Say("Hi.")]) as server:
        told = await tell(tmp_path / "a", {**settings(server.url, CANARY, file), "agents": {}}, "hello")
    assert [each.method for each in exchanges_in(file)] == ["GET", "POST"]
    cassette = Cassette(file)
    assert await tell(tmp_path / "b", {**settings(), "agents": {}}, "hello", http=cassette) == told
    assert cassette.rest == []


async def test_a_recording_from_before_lists_were_asked_for_is_played_as_it_was(tmp_path: Path):
    file = tmp_path / "it.cassette"
    await record(file, [Say("Hi.")], "hello")
    (asked,) = exchanges_in(file)
    file.write_text(file.read_text().replace(f'"max_tokens":{asked.body["max_tokens"]}', '"max_tokens":2048'))
    told = await tell(tmp_path / "b", {**settings(), "agents": {}}, "hello", http=Cassette(file))
    assert told[-1][1]["answer"]["content"] == "Hi."


async def test_two_recordings_of_one_run_differ_in_the_port_the_time_and_the_workspace_only(tmp_path: Path):
    recordings = []
    for name in ("one", "two"):
        await record(tmp_path / f"{name}.cassette", [Call("list_dir", {"path": "."}), Say("Empty.")], "What is there?")
        recordings.append((tmp_path / f"{name}.cassette").read_text())
    one, two = (
        re.sub(r"127.0.0.1:\d+|Current time: [^\\]*|workspace is the folder [^;]*", "…", text) for text in recordings
    )
    assert recordings[0] != recordings[1]
    assert one == two


async def test_a_recording_of_another_day_is_played_and_one_of_other_instructions_is_not(tmp_path: Path):
    file = tmp_path / "it.cassette"
    await record(file, [Say("Hi.")], "hello")
    now = file.read_text()
    file.write_text(re.sub(r"Current time: [^\\]*", "Current time: Friday 2020-01-03 12:00 UTC", now))
    assert file.read_text() != now
    assert (await tell(tmp_path / "b", settings(), "hello", http=Cassette(file)))[-1][1]["answer"]["content"] == "Hi."
    file.write_text(now.replace("Be accurate and brief", "Be kind"))
    told = await tell(tmp_path / "c", settings(), "hello", http=Cassette(file))
    assert "messages[0].content: recorded …'with tools. Be kind. Use" in told[-1][1]["text"]


@pytest.mark.may_hold_keys("everloop.db*")  # as a part of what was said
async def test_a_key_is_nowhere_in_the_recording(tmp_path: Path):
    file = tmp_path / "it.cassette"
    refused = Status(400, {"error": {"message": f"no {CANARY} here"}})
    _, server = await record(file, [Say(f"It is {CANARY}."), refused], f"My key is {CANARY}.", "And now?")
    assert [asked.headers["Authorization"] for asked in server.requests] == [f"Bearer {CANARY}"] * 2
    assert [CANARY in asked.body["messages"][1]["content"] for asked in server.requests] == [True] * 2
    text = file.read_text()
    assert ("canary" in text, "0123+456789" in text) == (False, False)
    first, second = exchanges_in(file)
    assert first.headers["Authorization"] == MASK
    assert first.body["messages"][1]["content"].startswith("My key is ***.")
    assert "It is ***." in first.answer.chunks[0]
    assert second.answer.chunks == ['{"error":{"message":"no *** here"}}']


@pytest.mark.may_hold_keys("everloop.db*")
async def test_what_hides_a_key_is_played_with_any_other(tmp_path: Path):
    file = tmp_path / "it.cassette"
    await record(file, [Say("Thanks.")], f"My key is {CANARY}, keep it.")
    told = await tell(tmp_path / "b", settings(), "My key is another, keep it.", http=Cassette(file))
    assert told[-1][1]["answer"]["content"] == "Thanks."


async def test_a_configured_key_of_another_host_is_kept_out_too(tmp_path: Path):
    other = "gsk_of-another-host"
    file = tmp_path / "it.cassette"
    async with ModelServer([Say("Hi.")]) as server:
        given = settings(server.url, CANARY, file)
        given["providers"]["groq"] = {"api_key": other}
        await tell(tmp_path / "home", given, f"It is {other}.")
    assert other in server.requests[0].body["messages"][1]["content"]
    assert other not in file.read_text()


async def test_a_key_that_is_split_between_two_pieces_is_kept_out_and_no_piece_is_held_back(
    tmp_path: Path, network: TrustedHttp
):
    gate = asyncio.Event()
    line = [Raw(f"data: a {CANARY[:9]}"), Wait(gate), Raw(f"{CANARY[9:]} b\n\n")]
    recorder = Recorder(network, tmp_path / "it.cassette")
    heard = []
    async with ModelServer([line]) as server:
        body, headers = msgspec.json.encode(HELLO), {"x-api-key": CANARY}
        url = f"{server.url}/chat/completions"
        async with recorder.request("POST", url, body=body, headers=headers) as answer:
            async for piece in answer.chunks():
                heard.append(piece)
                gate.set()  # the second piece is not even sent before the first is here
    assert (CANARY.encode() in b"".join(heard), [CANARY.encode() in piece for piece in heard]) == (True, [False] * 2)
    (exchange,) = exchanges_in(tmp_path / "it.cassette")
    assert exchange.answer.chunks[0] == "data: a ***"
    assert exchange.answer.chunks[1].startswith(" b\n\n")
    assert "canary" not in (tmp_path / "it.cassette").read_text()


async def test_a_piece_that_is_no_text_is_played_as_it_was(tmp_path: Path, network: TrustedHttp):
    file = tmp_path / "it.cassette"
    async with ModelServer([[Raw("ü"), CutAt(1)]]) as server:
        heard = await ask(Recorder(network, file), server.url)
    assert heard[:2] == (200, [b"\xc3"])
    assert await ask(Cassette(file), NOWHERE) == heard


@pytest.mark.parametrize(
    "line, end",
    [
        ([Say("half"), Fail(StreamCut("gone"))], StreamCut),
        ([Fail(HostUnreachable("gone"))], HostHungUp),
        ([Fail(HostTimeout("slow"))], HostTimeout),
    ],
)
async def test_a_call_that_failed_fails_again_in_the_same_way(
    tmp_path: Path, network: TrustedHttp, line: Line, end: type[ProviderError]
):
    file = tmp_path / "it.cassette"
    async with ModelServer([line]) as server:
        heard = await ask(Recorder(network, file), server.url, seconds=1.0)  # of which only the slow one takes all
    assert await ask(Cassette(file), NOWHERE) == heard
    assert heard[2].startswith(end.__name__)


async def test_a_turn_that_survived_a_cut_survives_it_again(tmp_path: Path):
    file = tmp_path / "it.cassette"
    told, _ = await record(file, [[Say("ha"), Fail(StreamCut("gone"))], Say("whole")], "hello")
    assert [exchange.end for exchange in exchanges_in(file)] == ["StreamCut", "ok"]
    assert await tell(tmp_path / "b", settings(), "hello", http=Cassette(file)) == told
    assert [data["kept"] for name, data in told if name == "stream_end"] == [False, True]


async def test_a_refusal_is_played_with_the_wait_that_it_asks_for(tmp_path: Path):
    file = tmp_path / "it.cassette"
    told, server = await record(file, [Fail(RateLimited("slow", 3600))], "hello")
    assert await tell(tmp_path / "b", settings(), "hello", http=Cassette(file)) == told
    assert (server.calls, "It asks to wait 3600 s" in told[-1][1]["text"]) == (1, True)


async def test_a_call_that_was_abandoned_goes_silent_where_it_was_left(tmp_path: Path, network: TrustedHttp):
    file = tmp_path / "it.cassette"
    heard: list[bytes] = []
    begun = asyncio.Event()

    async def listen(http: Http, url: str) -> None:
        async with http.request("POST", f"{url}/chat/completions", body=msgspec.json.encode(HELLO)) as answer:
            async for piece in answer.chunks():
                heard.append(piece)
                begun.set()

    async with ModelServer([[Say("half"), Wait(asyncio.Event())]]) as server:
        listening = asyncio.create_task(listen(Recorder(network, file), server.url))
        await begun.wait()
        listening.cancel()
        await asyncio.wait({listening})
    assert [exchange.end for exchange in exchanges_in(file)] == ["abandoned"]
    status, pieces, end = await ask(Cassette(file), NOWHERE, seconds=0.0)
    assert (status, pieces, end.partition(":")[0]) == (200, heard, "HostTimeout")


async def test_what_was_not_recorded_is_refused_and_the_nearest_is_shown(tmp_path: Path):
    long = "x" * 100
    other = {**HELLO, "messages": [{"role": "user", "content": "bye"}], "temperature": 1}
    cassette = made(tmp_path / "it.cassette", other, {**HELLO, "top_p": 1, "user": long + "a"})
    with pytest.raises(CassetteMismatch) as raised:
        async with cassette.request(
            "POST", f"{NOWHERE}/chat/completions", body=msgspec.json.encode({**HELLO, "user": long + "b"})
        ):
            pass
    assert str(raised.value) == (
        "it.cassette has no such POST /v1/chat/completions. The nearest, call 2, differs in\n"
        "  top_p: recorded 1, asked nothing\n"
        "  user: recorded …'xxxxxxxxxxxxxxxa', asked …'xxxxxxxxxxxxxxxb'"
    )
    assert isinstance(raised.value, AssertionError)


async def test_many_differences_are_counted(tmp_path: Path):
    cassette = made(tmp_path / "it.cassette", {"a": list(range(9))})
    _, _, end = await ask(cassette, NOWHERE, {"a": list("abcdefghi")})
    assert end.splitlines()[1:] == [f"  a[{n}]: recorded {n}, asked '{'abcde'[n]}'" for n in range(5)] + [
        "  and 4 more"
    ]


async def test_a_turn_that_asks_for_what_was_not_recorded_ends_and_says_so(tmp_path: Path):
    file = tmp_path / "it.cassette"
    await record(file, [Say("Hi.")], "hello")
    told = await tell(tmp_path / "b", settings(), "good bye", http=Cassette(file))
    assert "messages[1].content: recorded 'hello" in told[-1][1]["text"]
    assert told[-1][1]["reason"] == BadRequest.kind


async def test_calls_that_are_equal_are_played_in_their_order_and_once(tmp_path: Path):
    cassette = made(tmp_path / "it.cassette", HELLO, {"other": 1}, HELLO)
    ends = [await ask(cassette, NOWHERE) for _ in range(3)]
    assert ends == [
        (200, [b"1"], "ok"),
        (200, [b"3"], "ok"),
        (0, [], "CassetteMismatch: " + ends[2][2].partition(": ")[2]),
    ]
    assert [exchange.body for exchange in cassette.rest] == [{"other": 1}]


async def test_by_order_the_bodies_are_not_looked_at(tmp_path: Path):
    made(tmp_path / "it.cassette", {"a": 1}, {"b": 2})
    cassette = Cassette(tmp_path / "it.cassette", match="order")
    assert [await ask(cassette, NOWHERE, body) for body in ({"c": 3}, {"a": 1})] == [
        (200, [b"1"], "ok"),
        (200, [b"2"], "ok"),
    ]
    assert await ask(cassette, NOWHERE) == (
        0,
        [],
        "CassetteMismatch: it.cassette has no POST /v1/chat/completions that was not played. Left in it: nothing.",
    )


async def test_what_has_no_body_is_found_by_its_whole_address(tmp_path: Path, network: TrustedHttp):
    file = tmp_path / "it.cassette"

    async def models(http: Http, url: str) -> bytes:
        async with http.request("GET", f"{url}/models") as answer:
            return await answer.read()

    async with ModelServer(models=["a"]) as server:
        listed = await models(Recorder(network, file), server.url)
    with pytest.raises(CassetteMismatch, match="Left in it: GET /v1/models"):
        await models(Cassette(file), NOWHERE)
    assert (await models(Cassette(file), server.url), b'"id":"a"' in listed) == (listed, True)


async def test_a_long_body_is_read_as_far_as_wanted(tmp_path: Path, network: TrustedHttp):
    file = tmp_path / "it.cassette"

    async def begin(http: Http, url: str) -> bytes:
        async with http.request("POST", f"{url}/chat/completions", body=msgspec.json.encode(HELLO)) as answer:
            return await answer.read(4)

    async with ModelServer([Status(200, "0123456789")]) as server:
        assert await begin(Recorder(network, file), server.url) == b"0123"
    assert await begin(Cassette(file), NOWHERE) == b"0123"


def test_what_may_differ_is_told_by_patterns():
    assert not Comparison().same({"a": ["run 17 of it"]}, {"a": ["run 18 of it"]})
    assert Comparison([r"run \d+"]).same({"a": ["run 17 of it"]}, {"a": ["run 18 of it"]})
    assert not Comparison([r"run \d+"]).same({"a": ["run 17 of it"]}, {"a": ["run 18 of that"]})


@pytest.mark.parametrize(
    "recorded, asked, same",
    [
        ({"a": 1, "prompt_cache_key": "x"}, {"a": 1, "prompt_cache_key": "y"}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [1], False),
        ("a *** b *** c", "a one b two c", True),
        ("a *** b", "a  b", True),
        ("a *** b", "a b", False),
        ("ab***ba", "aba", False),
        ("*** x ***", "1 y 2", False),
        ("", "x", False),
    ],
)
def test_values_are_compared_but_for_what_is_masked(recorded: Any, asked: Any, same: bool):
    assert Comparison().same(recorded, asked) == same
    assert (Comparison().differences(recorded, asked) == []) == same


def test_only_headers_that_are_known_to_be_harmless_are_written_down():
    secret = dict.fromkeys(
        ["Authorization", "x-api-key", "api-key", "x-goog-api-key", "Cookie", "chatgpt-account-id", "X-Strange"], "s"
    )
    harmless = {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
    assert Masking().headers(secret | harmless) == dict.fromkeys(secret, "***") | harmless


@pytest.mark.parametrize(
    "url, masked",
    [
        ("https://h/v1/x?alt=sse&key=abc&b=1", "https://h/v1/x?alt=sse&key=***&b=1"),
        ("https://h/x?api-version=1&access_token=a%20b#f", "https://h/x?api-version=1&access_token=***#f"),
        ("https://me:pw@h:8/x", "https://***@h:8/x"),
        ("https://h/v1/long-secret/x?q=long-secret", "https://h/v1/***/x?q=***"),
    ],
)
def test_an_address_is_written_down_without_its_secrets(url: str, masked: str):
    assert Masking(["long-secret"]).url(url) == masked


@pytest.mark.parametrize(
    "url, headers",
    [
        ("https://h/", {"Authorization": "Bearer top/secret+1"}),
        ("https://h/", {"authorization": "token top/secret+1"}),
        ("https://h/", {"X-Api-Key": "top/secret+1"}),
        ("https://h/", {"Authorization": "Basic bWU6dG9wL3NlY3JldCsx"}),
        ("https://h/", {"Cookie": "a=1; b=top/secret+1"}),
        ("https://h/?key=top%2Fsecret%2B1", {}),
        ("https://me:top%2Fsecret%2B1@h/", {}),
    ],
)
def test_a_secret_of_the_request_is_taken_out_in_every_form(url: str, headers: dict[str, str]):
    text = r'top/secret+1, "top\/secret+1", top%2Fsecret%2B1'
    masking = Masking()
    assert masking.text(text) == text
    masking.see(url, headers)
    assert masking.text(text) == '***, "***", ***'


def test_a_word_that_is_too_short_for_a_secret_is_left_in_the_text():
    masking = Masking(["x", "ollama"])
    masking.see("https://h/", {"Authorization": "Bearer x"})
    assert masking.text("fox, ollama") == "fox, ollama"


def test_the_beginning_of_a_secret_at_which_an_answer_was_cut_is_taken_out():
    assert Masking([CANARY]).pieces([b"it is sk-", b"cana"]) == [b"it is ***"]
    assert Masking([CANARY]).pieces([b"it is sk-", b"cana no"]) == [b"it is sk-", b"cana no"]


@given(st.lists(st.sampled_from([CANARY, "a", "sk-", "-", "canary"]), max_size=6), st.lists(st.integers(0, 60)))
def test_wherever_an_answer_is_split_no_secret_is_left_in_it(words: list[str], cuts: list[int]):
    whole = "".join([*words, "."]).encode()
    borders = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[start:end] for start, end in pairwise(borders)]
    masked = Masking([CANARY]).pieces(pieces)
    assert b"".join(masked) == whole.replace(CANARY.encode(), b"***")
    assert b"" not in masked
    assert CANARY.encode() in whole or masked == pieces


async def test_calls_at_the_same_time_are_each_written_whole(tmp_path: Path, network: TrustedHttp):
    file = tmp_path / "it.cassette"
    bodies = [{**HELLO, "user": f"{number} {'x' * 20_000}"} for number in range(50)]
    async with ModelServer(by_conversation=[Say("hi")]) as server:
        recorder = Recorder(network, file)
        await asyncio.gather(*(ask(recorder, server.url, body) for body in bodies))
    assert sorted(exchange.body["user"] for exchange in exchanges_in(file)) == sorted(body["user"] for body in bodies)


def modes(folder: Path, pattern: str) -> list[tuple[Path, int]]:
    return [(file, stat.S_IMODE(file.stat().st_mode)) for file in folder.glob(pattern)]


@pytest.mark.parametrize("where, found", [("new/it.cassette", "new/it.cassette"), ("folder", "folder/*.cassette")])
async def test_a_recording_is_made_where_it_is_wanted_and_nobody_else_can_read_it(
    tmp_path: Path, network: TrustedHttp, where: str, found: str
):
    async with ModelServer([Say("hi")]) as server:
        await ask(Recorder(network, tmp_path / where), server.url)
    assert [(mode, len(exchanges_in(file))) for file, mode in modes(tmp_path, found)] == [(0o600, 1)]


async def test_a_recording_named_without_its_folder_is_in_the_home(tmp_path: Path):
    async with ModelServer([Say("hi")]) as server:
        await tell(tmp_path, settings(server.url, CANARY, "it.cassette"), "hello")
    assert len(exchanges_in(tmp_path / "it.cassette")) == 1


async def test_an_answer_is_worth_more_than_its_recording(
    tmp_path: Path, network: TrustedHttp, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").touch()
    async with ModelServer([Status(200, "hi")]) as server:
        assert await ask(Recorder(network, tmp_path / "file" / "it.cassette"), server.url) == (200, [b"hi"], "ok")
    (warning,) = told_by("everloop", (entry for entry in caplog.records if entry.levelno == logging.WARNING))
    assert "could not be recorded" in warning


@pytest.mark.parametrize(
    "line, problem",
    [
        ('{"version": 2}', "line 2: this call was recorded in version 2, and only 1 is known here"),
        ('{"version": 1}', "line 2: this is no recorded call"),
        ('{"version"', "line 2: this is no recorded call"),
    ],
)
def test_a_file_that_cannot_be_played_is_refused_with_the_line(tmp_path: Path, line: str, problem: str):
    made(tmp_path / "it.cassette", HELLO)
    with (tmp_path / "it.cassette").open("a") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(ValueError, match=re.escape(f"it.cassette, {problem}")):
        Cassette(tmp_path / "it.cassette")
