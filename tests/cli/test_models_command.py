"""`everloop models` as people run it, against hosts on loopback. What this machine may have at the usual ports of local
servers is kept out: they are configured to stand where nobody listens."""

import asyncio
import io
import re
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from tests.cli.person import SECRET, Person, Ran, is_one_plain_sentence
from tests.providers.fake_logins import POLL, Drawer, FakeLogins, Said
from tests.providers.speech_server import SpeechServer

from everloop.app.trial import fault_of_call
from everloop.cli.keys import log_in
from everloop.cli.terminal import Terminal
from everloop.core.prompt import Usage
from everloop.core.tool import ToolCall
from everloop.errors import KeyRefused, LoginDenied
from everloop.net.trusted import TrustedHttp
from everloop.ports.provider import Reply
from everloop.providers.logins.openai_codex import CodexLogin
from everloop.testing import Call, Fail, Say, Spend

CANARY = "sk-canary-7f3a91"
LOCAL = ("ollama", "lmstudio", "llamacpp", "vllm")


class Lister:
    """A host that has a list of models for whoever shows its key; it repeats a wrong one, as careless hosts do."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.models = [
            {
                "id": "claude-large",
                "max_input_tokens": 200_000,
                "max_tokens": 64_000,
                "input_modalities": ["text", "image"],
            },
            {"id": "claude-small", "context_length": 8000, "capabilities": {"vision": False}},
            {"id": "other"},
        ]

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        self.asked.append(request.path_qs)
        shown = request.headers.get("x-api-key") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        if shown != CANARY:
            return web.json_response({"error": {"message": f"no entry with {shown}"}}, status=403)
        return web.json_response({"object": "list", "data": self.models})


@pytest.fixture
async def lister() -> AsyncIterator[Lister]:
    lister = Lister()
    runner = web.ServerRunner(web.Server(lister))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    lister.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield lister
    await runner.cleanup()


@pytest.fixture
def nowhere() -> Iterator[str]:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else can take it
        yield f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"


@pytest.fixture
def person(person: Person, nowhere: str) -> Person:
    for name in LOCAL:
        person.environment[f"EVERLOOP_PROVIDERS__{name.upper()}__API_BASE"] = nowhere
    return person


@pytest.fixture
async def vectors(person: Person) -> AsyncIterator[None]:
    """The provider `mine` turns texts into vectors."""

    async def answer(request: web.BaseRequest) -> web.Response:
        texts = msgspec.json.decode(await request.read())["input"]
        rows = [{"index": index, "embedding": [0.1, 0.2, 0.3]} for index, _ in enumerate(texts)]
        return web.json_response({"data": rows, "usage": {"prompt_tokens": 20 * len(texts)}})

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    person.environment["EVERLOOP_PROVIDERS__MINE__API_BASE"] = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    yield
    await runner.cleanup()


@pytest.fixture
def anthropic(person: Person, lister: Lister) -> Person:
    """Someone who has a key for Anthropic, whose address is the lister's."""
    person.environment["ANTHROPIC_API_KEY"] = CANARY
    person.environment["EVERLOOP_PROVIDERS__ANTHROPIC__API_BASE"] = lister.url
    return person


def configure(person: Person, text: str) -> None:
    person.home.mkdir(exist_ok=True)
    (person.home / "config.toml").write_text(text)


def lines(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


ABSENT = [f"{name:10} no key needed      not reachable" for name in LOCAL]


class TestHosts:
    async def test_those_that_are_configured_are_asked_and_shown(self, anthropic):
        assert await anthropic.run("models") == Ran(
            0,
            lines(
                "PROVIDER   KEY                STATE          MODELS  USE",
                "anthropic  ANTHROPIC_API_KEY  reachable           3",
                "custom     settings           reachable           1  default",
                *ABSENT,
                "",
                "default: custom/scripted",
            ),
            "",
        )

    async def test_presets_and_fallbacks_are_shown_with_what_they_lack(self, anthropic):
        anthropic.environment["EVERLOOP_AGENTS__DEFAULTS__FALLBACKS"] = "wise,groq/x"
        configure(anthropic, '[models.wise]\nmodel = "anthropic/claude-large"\n')
        ran = await anthropic.run("models")
        assert ran.out.split("\n")[1] == "anthropic  ANTHROPIC_API_KEY  reachable           3  fallback"
        assert ran.out.split("\n\n")[1] == lines(
            "default: custom/scripted",
            "fallback: anthropic/claude-large",
            "fallback: groq/x (cannot be had: groq/x needs a key: set GROQ_API_KEY or providers.groq.api_key, or keep "
            "it in the vault with: everloop models key set groq)",
            "preset wise: anthropic/claude-large",
        )

    async def test_it_is_shown_which_model_serves_which_purpose(self, anthropic):
        anthropic.environment["EVERLOOP_AGENTS__DEFAULTS__SMALL_MODEL"] = "anthropic/claude-small"
        anthropic.environment["EVERLOOP_AGENTS__DEFAULTS__EMBEDDING_MODEL"] = "custom/vectors"
        anthropic.environment["EVERLOOP_VOICE__MODEL"] = "anthropic/claude-small"
        ran = await anthropic.run("models")
        assert ran.out.split("\n")[1:3] == [
            "anthropic  ANTHROPIC_API_KEY  reachable           3  small",
            "custom     settings           reachable           1  default",
        ]
        assert ran.out.split("\n\n")[1] == lines(
            "default: custom/scripted",
            "small: anthropic/claude-small",
            "embeddings: custom/vectors",
            "voice: anthropic/claude-small (cannot be had: anthropic transcribes nothing: set voice.model to a model "
            "of openai, groq or your own)",
        )
        anthropic.environment["EVERLOOP_AGENTS__DEFAULTS__EMBEDDING_MODEL"] = "anthropic/claude-small"
        told = msgspec.json.decode((await anthropic.run("models", "--json")).out)
        assert (told["small"]["model"], told["embeddings"]) == (
            "anthropic/claude-small",
            {
                "role": "embeddings",
                "model": "anthropic/claude-small",
                "why": "anthropic offers no embeddings: set agents.defaults.embedding_model to a model that does",
            },
        )

    async def test_a_host_that_refuses_is_no_failure_and_what_it_repeats_is_not_shown(self, anthropic):
        anthropic.environment["ANTHROPIC_API_KEY"] = wrong = "sk-canary-wrong"
        ran = await anthropic.run("models")
        assert (ran.status, ran.err) == (0, "")
        assert ran.out.split("\n")[1] == "anthropic  ANTHROPIC_API_KEY  key refused"
        told = await anthropic.run("models", "--json")
        assert "no entry with …" in told.out
        asked = await anthropic.run("models", "anthropic")
        assert (asked.status, asked.out, is_one_plain_sentence(asked.err)) == (1, "", True)
        assert "no entry with …" in asked.err
        assert wrong not in ran.out + told.out + asked.err

    async def test_a_key_that_cannot_be_sent_and_a_file_that_is_not_there(self, anthropic, lister):
        anthropic.environment["ANTHROPIC_API_KEY"] = "sk-\ncanary"
        anthropic.environment["EVERLOOP_PROVIDERS__GROQ__API_KEY_FILE"] = "nowhere.txt"
        rows = hosts_in(await anthropic.run("models", "--json"))
        assert (rows["anthropic"]["state"], rows["anthropic"]["why"]) == (
            "key refused",
            "The key of anthropic contains characters that none can. Copy it again.",
        )
        assert (rows["groq"]["key"], rows["groq"]["state"]) == ("file", "not set up")
        assert "nowhere.txt" in rows["groq"]["why"]
        assert lister.asked == []

    async def test_a_key_with_white_space_around_it_is_good(self, anthropic):
        anthropic.environment["ANTHROPIC_API_KEY"] = f"{CANARY}\r\n"
        assert hosts_in(await anthropic.run("models", "--json"))["anthropic"]["state"] == "reachable"

    async def test_as_json_it_is_one_object(self, anthropic):
        ran = await anthropic.run("models", "--json")
        told = msgspec.json.decode(ran.out)
        assert (ran.status, ran.err) == (0, "")
        assert {**told, "hosts": told["hosts"][:2]} == {
            "hosts": [
                row("anthropic", "ANTHROPIC_API_KEY", 3),
                row("custom", "settings", 1, use="default"),
            ],
            "default": {"role": "default", "model": "custom/scripted", "why": ""},
            "small": None,
            "embeddings": None,
            "voice": None,
            "speech": None,
            "fallbacks": [],
            "presets": {},
        }

    async def test_all_shows_what_the_others_need(self, person):
        rows = hosts_in(await person.run("models", "--all", "--json"))
        needs = {name: (rows[name]["key"], rows[name]["state"]) for name in ("openai", "azure", "openai-codex")}
        assert needs == {
            "openai": ("set OPENAI_API_KEY", "not asked"),
            "azure": ("set providers.azure.api_base", "not asked"),
            "openai-codex": ("everloop models login openai-codex", "not asked"),
        }

    async def test_one_of_the_owners_own_naming_is_shown(self, person, model):
        configure(person, f'[providers.work]\napi_base = "{model.url}"\n')
        assert hosts_in(await person.run("models", "--json"))["work"] == row("work", "no key needed", 1)


def hosts_in(ran: Ran) -> dict[str, dict[str, object]]:
    return {host["name"]: host for host in msgspec.json.decode(ran.out)["hosts"]}


def row(name: str, key: str, models: int, use: str = "") -> dict[str, object]:
    return {"name": name, "key": key, "state": "reachable", "models": models, "why": "", "use": use}


class TestModelsOfAHost:
    async def test_each_is_shown_with_its_window_its_price_and_its_sight(self, anthropic):
        configure(anthropic, '[prices."claude-*"]\ninput = 3.0\noutput = 15.0\n[prices.other]\ninput = 0.075\n')
        anthropic.environment["EVERLOOP_AGENTS__DEFAULTS__MODEL"] = "anthropic/claude-large"
        assert await anthropic.run("models", "anthropic") == Ran(
            0,
            lines(
                "MODEL                    WINDOW  ANSWER  INPUT/M  OUTPUT/M  IMAGES  USE",
                "anthropic/claude-large  200,000  64,000    $3.00    $15.00  yes     default",
                "anthropic/claude-small    8,000       ?    $3.00    $15.00  no",
                "anthropic/other               ?       ?  $0.0750     $0.00  ?",
            ),
            "",
        )

    async def test_a_pattern_leaves_the_others_out(self, anthropic):
        ran = await anthropic.run("models", "list", "anthropic/*SMALL", "--json")
        assert msgspec.json.decode(ran.out) == {
            "models": [
                {
                    "name": "anthropic/claude-small",
                    "window": 8000,
                    "input": None,
                    "output": None,
                    "sees": False,
                    "use": "",
                    "answer": None,
                    "tools": None,
                }
            ]
        }
        assert await anthropic.run("models", "anthropic/none") == Ran(0, "There is no model anthropic/none.\n", "")

    async def test_the_window_of_the_settings_comes_first(self, anthropic):
        anthropic.environment["EVERLOOP_AGENTS__DEFAULTS__CONTEXT_WINDOW"] = "5000"
        ran = await anthropic.run("models", "anthropic", "--json")
        assert [model["window"] for model in msgspec.json.decode(ran.out)["models"]] == [5000, 5000, 5000]

    async def test_what_runs_on_this_machine_costs_nothing(self, person, model):
        person.environment["EVERLOOP_PROVIDERS__VLLM__API_BASE"] = model.url
        assert (await person.run("models", "vllm")).out == lines(
            "MODEL           WINDOW  ANSWER  INPUT/M  OUTPUT/M  IMAGES  USE",
            "vllm/scripted  128,000       ?    $0.00     $0.00  ?",
        )

    @pytest.mark.parametrize(
        "name, says",
        [
            ("antropic", "there is no provider 'antropic'; did you mean anthropic"),
            ("zzz", "there is no provider 'zzz'; there are openrouter, "),
            ("openai", "set OPENAI_API_KEY"),
            ("vllm", "cannot be reached"),
        ],
    )
    async def test_one_that_cannot_be_asked(self, person, name, says):
        ran = await person.run("models", name)
        assert (ran.status, ran.out, is_one_plain_sentence(ran.err)) == (1, "", True)
        assert says in ran.err


PASSED = [[Say(["rea", "dy"]), Spend(Usage(20, 2))], [Call("add", {"a": 17, "b": 25}), Spend(Usage(40, 9))]]


class TestTrying:
    async def test_a_model_that_answers_and_calls_is_well(self, person, model):
        configure(person, '[prices."custom/scripted"]\ninput = 10.0\noutput = 100.0\n')
        model.play(PASSED)
        ran = await person.run("models", "test")
        answer, call, end = ran.out.split("\n")
        assert (ran.status, ran.err, end) == (0, "asking custom/scripted\n", "")
        assert answer.startswith("answer: ok (began after 0.")
        assert answer.endswith(" s; 20 tokens in, 2 out; $0.0004)")
        assert call.startswith("tool call: ok (")
        assert call.endswith(" s; 40 tokens in, 9 out; $0.0013)")

    async def test_nothing_of_it_is_stored(self, person, model):
        model.play(PASSED)
        await person.run("models", "test")
        assert (await person.run("usage")).out == "Nothing has been used in the last 30 days.\n"
        assert [shown.said for shown in model.prompts] == [
            [("user", "Answer with the single word: ready")],
            [("user", "Use the tool to add 17 and 25.")],
        ]

    async def test_as_json_it_is_one_object(self, person, model):
        model.play(PASSED)
        told = msgspec.json.decode((await person.run("models", "test", "custom/another", "--json")).out)
        times = [(check.pop("first"), check.pop("total")) for check in told["checks"]]
        assert times[0][0] <= times[0][1]
        assert told == {
            "model": "custom/another",
            "checks": [
                {"name": "answer", "ok": True, "why": "", "input": 20, "output": 2, "cost": None},
                {"name": "tool call", "ok": True, "why": "", "input": 40, "output": 9, "cost": None},
            ],
        }

    async def test_a_model_that_only_talks_has_failed(self, person, model):
        model.play([Say("ready"), Say("The sum is 42.")])
        ran = await person.run("models", "test")
        assert ran.status == 1
        assert ran.out.split("\n")[1:] == ["tool call: failed: it did not call the tool", ""]

    async def test_a_key_that_is_refused_is_told(self, person, model):
        model.play([Fail(KeyRefused(f"Incorrect API key provided: {SECRET}"))] * 2)
        why = "custom refuses the key (401). Check the key that is set for custom."
        assert await person.run("models", "test") == Ran(
            1, lines(f"answer: failed: {why}", f"tool call: failed: {why}"), "asking custom/scripted\n"
        )

    async def test_a_preset_is_tried_in_its_own_way_and_without_its_fallbacks(self, person, model, anthropic):
        configure(
            person,
            '[models.wise]\nmodel = "custom/scripted"\ntemperature = 0.5\nfallbacks = ["anthropic/claude-large"]\n',
        )
        model.play([Fail(KeyRefused("no"))] * 2)
        assert (await person.run("models", "test", "wise")).status == 1
        assert [asked.body["temperature"] for asked in model.requests] == [0.5, 0.5]

    async def test_a_model_that_makes_vectors_tells_their_dimensions(self, person, vectors):
        configure(person, '[prices."mine/*"]\ninput = 10.0\noutput = 0.0\n')
        ran = await person.run("models", "test", "mine/text-embed-x")
        assert (ran.status, ran.err) == (0, "asking mine/text-embed-x\n")
        assert re.fullmatch(r"embedding: ok \(3 dimensions after \d+\.\d\d s; 40 tokens in; \$0\.0004\)\n", ran.out)
        person.environment["EVERLOOP_AGENTS__DEFAULTS__EMBEDDING_MODEL"] = "mine/meaning"
        told = msgspec.json.decode((await person.run("models", "test", "mine/meaning", "--json")).out)
        assert told["checks"][0].pop("total") > 0
        check = {
            "name": "embedding",
            "ok": True,
            "why": "",
            "dimensions": 3,
            "input": 40,
            "cost": pytest.approx(0.0004),
        }
        assert told == {"model": "mine/meaning", "checks": [check]}

    async def test_the_model_that_reads_aloud_says_a_sentence(self, person):
        async with SpeechServer(b"ID3 and some sound", 401).open() as server:
            configure(person, f'[speech]\nmodel = "tts"\napi_base = "{server.url}"\nmillion_price = 15\n')
            ran = await person.run("models", "test", "tts")
            refused = await person.run("models", "test", "tts")
        assert (ran.status, ran.err, refused.status) == (0, "asking custom/tts\n", 1)
        assert re.fullmatch(r"speech: ok \(18 bytes of audio/mpeg after \d+\.\d\d s; \$0\.0005\)\n", ran.out)
        assert refused.out.startswith("speech: failed: ")
        assert [each["input"] for each in server.asked] == ["This is how answers will sound."] * 2

    async def test_one_that_makes_none_has_failed(self, person, model):
        ran = await person.run("models", "test", "custom/text-embed-x")
        assert (ran.status, ran.err) == (1, "asking custom/text-embed-x\n")
        assert ran.out.startswith("embedding: failed: custom does not know the model text-embed-x")

    async def test_a_model_that_cannot_be_had(self, person):
        ran = await person.run("models", "test", "groq/x")
        assert (ran.status, ran.out, is_one_plain_sentence(ran.err)) == (1, "", True)
        assert "set GROQ_API_KEY" in ran.err


@pytest.mark.parametrize(
    "args, fault",
    [
        ('{"a":17,"b":25}', ""),
        ('{"b":17,"a":25}', ""),
        ('{"a":17,"b":26}', "it called the tool with 17 and 26"),
        ('{"a":"17","b":25}', 'it called the tool wrongly: a must be integer, not "17"'),
        ('{"a":17}', "it called the tool wrongly: b is required"),
        ("{", "it called the tool wrongly: the arguments are not valid JSON"),
    ],
)
def test_the_fault_of_a_call_is_found(args, fault):
    found = fault_of_call(Reply("", (ToolCall("1", "add", args),)))
    assert found.startswith(fault) if fault else found == ""


def files_with(text: str, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


class TestKeys:
    async def test_a_key_goes_into_the_vault_is_used_and_is_forgotten(self, person, lister):
        person.environment["EVERLOOP_PROVIDERS__ANTHROPIC__API_BASE"] = lister.url
        kept = await person.run("models", "key", "set", "anthropic", typed=f"  {CANARY}\n".encode())
        assert kept == Ran(0, "", "The key of anthropic is kept in the vault.\n")
        assert files_with(CANARY, person.home) == []
        assert await person.run("models", "key", "list") == Ran(0, "anthropic\n", "")
        told = await person.run("models", "--json")
        assert hosts_in(told)["anthropic"] == row("anthropic", "vault", 3)
        assert CANARY not in told.out + told.err
        forgotten = await person.run("models", "key", "forget", "anthropic")
        assert forgotten == Ran(0, "", "The key of anthropic is forgotten.\n")
        assert await person.run("models", "key", "list") == Ran(0, "", "There are no keys in the vault.\n")
        again = await person.run("models", "key", "forget", "anthropic")
        assert again == Ran(1, "", "everloop: the key of anthropic is not in the vault\n")

    async def test_what_lies_open_would_be_found(self, person):
        configure(person, f"# {CANARY}\n")
        assert files_with(CANARY, person.home) == [person.home / "config.toml"]

    async def test_a_key_that_comes_first_is_named(self, person):
        person.environment["GROQ_API_KEY"] = "another"
        assert (await person.run("models", "key", "set", "groq", typed=CANARY.encode())).err == lines(
            "The key of groq is kept in the vault.",
            "It is not used as long as there is another, which comes first: GROQ_API_KEY.",
        )

    @pytest.mark.parametrize(
        "name, typed, says",
        [
            ("groq", b"", "no key was given"),
            ("groq", b" \n", "no key was given"),
            ("groq", CANARY.encode() + b"\nand more", "that is no key"),
            ("groq", CANARY.encode() + b"\x00", "that is no key"),
            ("groq", CANARY.encode() + b"\xff", "that is no key"),
            ("gorq", CANARY.encode(), "there is no provider 'gorq'; did you mean groq"),
            ("openai-codex", CANARY.encode(), "everloop models login openai-codex"),
        ],
    )
    async def test_what_is_not_kept(self, person, name, typed, says):
        ran = await person.run("models", "key", "set", name, typed=typed)
        assert (ran.status, ran.out, is_one_plain_sentence(ran.err)) == (1, "", True)
        assert says in ran.err
        assert CANARY not in ran.err
        assert (await person.run("models", "key", "list")).out == ""

    async def test_an_account_of_the_owners_own_may_have_one(self, person, model):
        configure(person, f'[providers.work]\napi_base = "{model.url}"\n')
        await person.run("models", "key", "set", "work", typed=CANARY.encode())
        assert hosts_in(await person.run("models", "--json"))["work"] == row("work", "vault", 1)

    async def test_a_vault_that_is_locked_can_be_tidied_up(self, person):
        await person.run("models", "key", "set", "groq", typed=CANARY.encode())
        (person.home / "vault.key").unlink()
        ran = await person.run("models")
        assert (ran.status, "vault locked" in ran.out) == (0, True)
        assert await person.run("models", "key", "list") == Ran(0, "groq\n", "")
        assert (await person.run("models", "key", "forget", "groq")).status == 0
        assert (await person.run("models")).status == 0


class TestLogin:
    """Against the fake, with a clock that moves when someone sleeps."""

    @pytest.fixture
    async def fake(self) -> AsyncIterator[tuple[FakeLogins, str]]:
        fake = FakeLogins(1_800_000_000.0)
        runner = web.ServerRunner(web.Server(fake))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield fake, f"http://127.0.0.1:{runner.addresses[0][1]}"
        await runner.cleanup()

    async def log_in(self, fake: FakeLogins, url: str, drawer: Drawer) -> tuple[str, str]:
        async def sleep(seconds: float) -> None:
            fake.now += seconds

        out, err, http = io.StringIO(), io.StringIO(), TrustedHttp()
        try:
            login = CodexLogin(http, drawer, now=lambda: fake.now, auth=url)
            await log_in(login, Terminal(out, err), sleep)
        finally:
            await http.close()
        return out.getvalue(), err.getvalue()

    async def test_the_address_and_the_code_are_told_and_the_tokens_kept(self, fake):
        drawer = Drawer()
        assert await self.log_in(*fake, drawer) == (
            f"Open {fake[1]}/codex/device and enter the code ABCD-1234\n",
            "You are logged in to openai-codex: openai-codex/MODEL is a model now.\n",
        )
        assert list(drawer.kept) == ["login:openai-codex"]

    async def test_a_login_that_is_refused_keeps_nothing(self, fake):
        fake[0].script[POLL].append(Said(403, {"error": "access_denied"}))
        drawer = Drawer()
        with pytest.raises(LoginDenied):
            await self.log_in(*fake, drawer)
        assert drawer.kept == {}

    async def test_who_is_not_logged_in_cannot_log_out(self, person):
        ran = await person.run("models", "logout", "github-copilot")
        assert ran == Ran(1, "", "everloop: the login to github-copilot is not in the vault\n")

    async def test_only_hosts_that_have_a_login_can_be_logged_in_to(self, person):
        ran = await person.run("models", "login", "openai")
        assert (ran.status, ran.out) == (2, "")
        assert "openai-codex" in ran.err


class TestWords:
    async def test_help_is_not_taken_for_the_name_of_a_provider(self, person):
        ran = await person.run("models", "--help")
        assert (ran.status, ran.err) == (0, "")
        assert "logout" in ran.out

    @pytest.mark.parametrize("words", [["key"], ["key", "set"], ["list", "a", "b"], ["test", "--all"]])
    async def test_what_cannot_be_understood(self, person, words):
        ran = await person.run("models", *words)
        assert (ran.status, ran.out) == (2, "")

    @pytest.mark.parametrize("command", ["agent", "models", "usage"])
    async def test_a_command_loads_itself_and_no_other(self, command):
        code = f"import sys; from everloop.cli import build_parser; build_parser([{command!r}]); print(*sys.modules)"
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
        loaded = (await process.communicate())[0].decode().split()
        commands = {f"everloop.cli.{name}" for name in ("agent", "models", "usage")}
        assert commands.intersection(loaded) == {f"everloop.cli.{command}"}
