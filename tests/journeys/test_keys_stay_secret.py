"""Keys in every place where they may be kept, sent to hosts of every dialect that answer in every way and repeat to
whoever listens what they were sent: nothing that a person, a log, the database or a recording gets to see holds one."""

import asyncio
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
import pytest
from aiohttp import web
from tests.canary import PREFIX, holds_a_key
from tests.cli.person import Person, Ran

from everloop.providers.catalog import HOSTS
from everloop.providers.logins import kept_as
from everloop.providers.logins.tokens import LoginTokens
from everloop.store.sqlite import SqliteStore
from everloop.store.vault import EncryptedVault, key_of

RECORDINGS = Path(__file__).parent.parent / "providers" / "recordings"
DIALECTS = {
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic_messages",
    "/v1beta/models/m:streamGenerateContent": "gemini",
}
ERRORS: dict[str, dict[str, Any]] = {
    "openai_chat": {"error": {"code": 400, "message": "TOLD"}},
    "openai_responses": {"type": "error", "code": "invalid_request_error", "message": "TOLD"},
    "anthropic_messages": {"type": "error", "error": {"type": "invalid_request_error", "message": "TOLD"}},
    "gemini": {"error": {"code": 400, "message": "TOLD", "status": "INVALID_ARGUMENT"}},
}
PROVIDERS = ("custom", "openai", "anthropic", "gemini")  # each speaks another dialect
PLACES = ("settings", "environment", "file", "vault")
STATUS = {"be-strict": 401, "be-closed": 403, "be-picky": 400, "be-broken": 500}
QUICK = ("be-well", "be-strict", "be-closed", "be-picky", "be-torn")
SLOW = ("be-broken", "be-gone", "be-elsewhere")  # these are asked again, after a while


def secret(place: str) -> str:
    """Looks different in an address, and is known by its end too."""
    return f"{PREFIX}-{place}/+?~{place}-canary"


class Gossip:
    """A host of all dialects, which repeats every secret that it is sent. How it answers is the last word of the
    conversation that begins with `be-`, or else its `manner`."""

    def __init__(self) -> None:
        self.url = self.moved_to = ""
        self.manner = "be-well"
        self.seen: set[str] = set()
        self.answered: set[tuple[str, str]] = set()  # paths and manners

    def asked_models(self) -> set[tuple[str, str]]:
        """What was said to models: how much each can read is asked at other addresses."""
        return {(path, manner) for path, manner in self.answered if path in DIALECTS}

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        wishes = re.findall(rb"be-[a-z]+", await request.read())
        manner = wishes[-1].decode() if wishes else self.manner
        seen = {word for value in request.headers.values() for word in value.split() if holds_a_key(word.encode())}
        self.seen |= seen
        self.answered.add((request.path, manner))
        told = "You are " + " and ".join(f"{word} or {quote(word, safe='')}" for word in sorted(seen))
        if manner in STATUS:
            return web.json_response({"error": {"message": told, "more": told}}, status=STATUS[manner])
        if manner == "be-moved":
            return web.Response(status=307, headers={"Location": self.moved_to + request.path})
        if manner == "be-elsewhere":
            return web.Response(text=f"<html>{told}</html>", content_type="text/html")
        if request.path in DIALECTS:
            return await _speak(request, DIALECTS[request.path], manner, told)
        return _hang_up(request) if manner == "be-gone" else web.json_response({"data": [{"id": "m"}]})


async def _speak(request: web.BaseRequest, dialect: str, manner: str, told: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    if manner == "be-well":
        await response.write((RECORDINGS / dialect / "text.sse").read_bytes())
        return response
    beginning = re.match(rb"(?s).*?Hello.*?\r?\n\r?\n", (RECORDINGS / dialect / "text.sse").read_bytes())
    assert beginning is not None
    error = msgspec.json.encode(ERRORS[dialect]).replace(b"TOLD", told.encode())
    await response.write(beginning[0] + (b"data: " + error + b"\n\n" if manner == "be-torn" else b""))
    return response if manner == "be-torn" else _hang_up(request)


def _hang_up(request: web.BaseRequest) -> web.Response:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


@asynccontextmanager
async def serving(handler: Any) -> AsyncIterator[str]:
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def gossip() -> AsyncIterator[Gossip]:
    gossip = Gossip()
    async with serving(gossip) as gossip.url:
        yield gossip


@pytest.fixture
async def person(tmp_path: Path, gossip: Gossip) -> AsyncIterator[Person]:
    """Someone who records all calls and has no key yet."""
    person = Person(tmp_path, gossip)
    person.environment = {name: person.environment[name] for name in ("PATH", "HOME", "EVERLOOP_HOME")}
    for name in (host.name for host in HOSTS.values() if host.port):  # not those that this machine may really have
        person.environment[f"EVERLOOP_PROVIDERS__{name.upper()}__API_BASE"] = f"{gossip.url}/v1"
    person.environment |= {"EVERLOOP_NET__RECORD": "calls", "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/m"}
    person.home.mkdir(exist_ok=True)
    yield person
    await person.leave()


async def build_tools(person: Person, url: str, places: dict[str, str]) -> None:
    """Configure the providers, with the key of each in its place. In the settings only the name of a variable is."""
    settings = ""
    for provider, place in places.items():
        base = f"{url}/v1" if provider in ("custom", "openai") else url
        settings += f'[providers.{provider}]\napi_base = "{base}"\nheaders = {{ X-Team = "Team ${{TEAM}}" }}\n'
        settings += 'dialect = "openai_responses"\n' if provider == "openai" else ""
        settings += {"settings": 'api_key = "${MY_KEY}"\n', "file": 'api_key_file = "../host.key"\n'}.get(place, "")
    (person.home / "config.toml").write_text(settings)
    (person.home / "../host.key").write_text(secret("file"))
    person.environment |= {"MY_KEY": secret("settings"), "TEAM": secret("header")}
    for provider, place in places.items():
        if place == "environment":
            person.environment[HOSTS[provider].key_variable] = secret(place)
        if place == "vault":
            kept = await person.run("models", "key", "set", provider, typed=secret(place).encode())
            assert kept == Ran(0, "", f"The key of {provider} is kept in the vault.\n")


def leaks(person: Person, *runs: Ran) -> list[str]:
    """Where a secret can be seen, or a piece of one. There is none in the settings, so they are searched as well."""
    texts = {f"run {n}": (ran.out + ran.err).encode() for n, ran in enumerate(runs)}
    files = {str(path): path.read_bytes() for path in person.home.rglob("*") if path.is_file()}
    return [name for name, data in (texts | files).items() if b"canary" in data or holds_a_key(data)]


def evidence(person: Person) -> dict[str, int]:
    """How much there was to look at, so that nothing is believed of files that are not there."""
    calls = [line for path in (person.home / "calls").iterdir() for line in path.read_bytes().splitlines()]
    paths = [urlsplit(msgspec.json.decode(call)["url"]).path for call in calls]
    models = sum(path in DIALECTS for path in paths)
    logs = (person.home / "logs" / "everloop.log").read_text()
    return {"calls": models, "looks": len(paths) - models, "given up": logs.count("turn given up")}


def rotated(turns: int) -> dict[str, str]:
    return dict(zip(PROVIDERS, (*PLACES[turns:], *PLACES[:turns]), strict=True))


@pytest.mark.parametrize("turns", range(4))
async def test_a_key_stays_secret_wherever_it_is_kept_and_whatever_the_host_says(person, gossip, turns):
    await build_tools(person, gossip.url, rotated(turns))
    typed = "".join(f"/model {provider}/m\n" + "".join(f"{manner}\n" for manner in QUICK) for provider in PROVIDERS)
    ran = await person.run("agent", typed=typed.encode())
    assert leaks(person, ran) == []
    assert gossip.seen == {secret(place) for place in (*PLACES, "header")}
    assert gossip.asked_models() == {(path, manner) for path in DIALECTS for manner in QUICK}
    assert ran.out.count("Hello there.") == 4
    assert [ran.err.count(f"You are … or … and … or …{end}") for end in (". Check", ". (")] == [4, 8]
    assert evidence(person) == {"calls": 20, "looks": 5, "given up": 16}  # at what custom can read


async def test_a_key_stays_secret_when_a_host_fails_again_and_again(person, gossip):
    await build_tools(person, gossip.url, rotated(0))
    typed = "".join(f"{manner}\n" for manner in SLOW).encode()

    async def tell(provider: str) -> Ran:
        return await person.run("agent", "-s", f"cli:{provider}", typed=f"/model {provider}/m\n".encode() + typed)

    runs = await asyncio.gather(*map(tell, PROVIDERS))
    assert leaks(person, *runs) == []
    assert gossip.seen == {secret(place) for place in (*PLACES, "header")}
    assert gossip.asked_models() == {(path, manner) for path in DIALECTS for manner in SLOW}
    assert [ran.err.count("…") > 0 for ran in runs] == [True] * 4
    found = evidence(person)
    looks = found.pop("looks")  # at what each can read: once more by whoever goes on with a turn of another's
    assert (found, looks >= 8) == ({"calls": 4 * (3 + 2 + 3), "given up": 4 * 3}, True)


@pytest.mark.parametrize("manner", [*QUICK[:-1], *SLOW])
async def test_a_key_stays_secret_when_hosts_are_asked_for_their_models(person, gossip, manner):
    await build_tools(person, gossip.url, rotated(1))
    gossip.manner = manner
    runs = [await person.run("models", "--json"), await person.run("models", "gemini")]
    assert leaks(person, *runs) == []
    assert gossip.seen == {secret(place) for place in (*PLACES, "header")}
    assert gossip.answered == {(path, manner) for path in ("/v1/models", "/v1beta/models")}
    assert (runs[0].status, runs[1].status) == (0, 0 if manner == "be-well" else 1)
    assert ("… or …" in runs[0].out) == (manner in ("be-closed", "be-picky", "be-broken"))


async def test_a_host_that_has_moved_does_not_take_the_key_along(person, gossip):
    await build_tools(person, gossip.url, rotated(3))
    stranger, gossip.manner = Gossip(), "be-moved"
    async with serving(stranger) as gossip.moved_to:
        runs = [await person.run("models", "--json"), await person.run("agent", "-m", "be-moved")]
    assert leaks(person, *runs) == []
    assert gossip.seen == {secret(place) for place in (*PLACES, "header")}
    assert stranger.seen == set()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_key_stays_secret_when_a_model_is_tried(person, gossip, provider):
    await build_tools(person, gossip.url, rotated(2))
    runs = []
    for gossip.manner in QUICK:
        runs.append(await person.run("models", "test", f"{provider}/m"))
    assert leaks(person, *runs) == []
    assert gossip.seen == {secret(rotated(2)[provider]), secret("header")}
    assert [ran.out.count("failed") for ran in runs] == [1, 2, 2, 2, 2]  # the tool is never called
    assert [ran.out.count("You are … or … and … or …") for ran in runs] == [0, 0, 2, 2, 2]


@pytest.mark.parametrize("manner", [*QUICK[2:], "be-elsewhere"])
async def test_the_token_of_a_login_stays_secret(person, gossip, manner):
    person.environment["EVERLOOP_AGENTS__DEFAULTS__MODEL"] = "openai-codex/m"
    (person.home / "config.toml").write_text(f'[providers.openai-codex]\napi_base = "{gossip.url}/v1"\n')
    store = await SqliteStore.connect(person.home, 30.0)
    tokens = LoginTokens(secret("login"), 1e11, secret("refresh"))
    vault = EncryptedVault(store, key_of(person.home, {}))
    await vault.set(kept_as("openai-codex"), msgspec.json.encode(tokens).decode())
    await store.close()
    runs = [await person.run("agent", "-m", manner)]
    assert leaks(person, *runs) == []
    assert gossip.seen == {secret("login")}


@pytest.mark.parametrize("manner", QUICK)
async def test_a_password_in_the_address_stays_secret(person, gossip, manner):
    (person.home / "config.toml").write_text('[providers.custom]\napi_base = "${ADDRESS}"\n')
    login, gossip.manner = f"me:{quote(secret('address'), safe='')}", manner
    person.environment["ADDRESS"] = gossip.url.replace("//", f"//{login}@") + "/v1"
    runs = [await person.run("agent", "-m", manner), await person.run("models", "--json")]
    assert leaks(person, *runs) == []
    assert gossip.seen == {b64encode(f"me:{secret('address')}".encode()).decode()}


async def test_a_key_and_a_password_in_the_address_are_one_too_many(person, gossip):
    (person.home / "config.toml").write_text('[providers.custom]\napi_base = "${ADDRESS}"\napi_key = "${MY_KEY}"\n')
    login, host = f"me:{quote(secret('address'), safe='')}", gossip.url.removeprefix("http://")
    person.environment |= {"ADDRESS": f"http://{login}@{host}/v1", "MY_KEY": secret("settings")}
    ran, listed = await person.run("agent", "-m", "be-well"), await person.run("models", "custom")
    told = f"everloop: custom: {host} has both a key and a password in its address. Keep one of them."
    assert (ran.out, ran.err.partition(" (error")[0]) == ("", told)
    assert listed == Ran(1, "", told.replace("custom: ", "") + "\n")
    assert (leaks(person, ran), gossip.seen) == ([], set())
