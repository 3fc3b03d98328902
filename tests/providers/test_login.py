"""Logging in to OpenAI Codex and GitHub Copilot, against a fake of both on loopback and a clock that tests move."""

import asyncio
from collections.abc import Awaitable

import msgspec
import pytest
from tests.providers.fake_logins import (
    COPILOT,
    DEVICE,
    GRANT,
    OAUTH,
    PAGE,
    POLL,
    USERCODE,
    Drawer,
    FakeLogins,
    Said,
    Seen,
    token_of,
)

from everloop.errors import (
    BadRequest,
    HostFailed,
    HostUnreachable,
    KeyRefused,
    LoginDenied,
    LoginExpired,
    ProviderError,
    RateLimited,
)
from everloop.net.trusted import TrustedHttp
from everloop.providers.logins import NAMES, DeviceCode, Login, kept_as, load
from everloop.providers.logins.github_copilot import CopilotLogin
from everloop.providers.logins.openai_codex import CodexLogin

START = 1_800_000_000.0
CODEX, COPILOT_LOGIN = NAMES
CLIENT, COPILOT_CLIENT = "app_EMoamEEZ73f0CkXaXp7hrann", "Iv1.b507a08c87ecfe98"
GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
EDITOR = {
    "User-Agent": "GitHubCopilotChat/0.35.0",
    "Editor-Version": "vscode/1.107.0",
    "Editor-Plugin-Version": "copilot-chat/0.35.0",
    "Copilot-Integration-Id": "vscode-chat",
}


class Clock:
    """Time stands still unless someone sleeps or a test moves it."""

    def __init__(self, fake: FakeLogins) -> None:
        self._fake = fake
        self.time = START
        self.naps: list[float] = []

    def __call__(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.pass_by(seconds)

    def pass_by(self, seconds: float) -> None:
        self.time += seconds
        self._fake.now = self.time


class World:
    """Both logins in front of the same fake."""

    def __init__(self, fake: FakeLogins, url: str, http: TrustedHttp) -> None:
        self.fake, self.url, self.http = fake, url, http
        self.clock, self.vault = Clock(fake), Drawer()
        self.logins = {CODEX: self.codex(), COPILOT_LOGIN: self.copilot()}

    def codex(self) -> Login:
        return CodexLogin(self.http, self.vault, now=self.clock, auth=self.url, sleep=self.clock.sleep)

    def copilot(self) -> Login:
        return CopilotLogin(
            self.http, self.vault, now=self.clock, github=self.url, api=self.url, sleep=self.clock.sleep
        )

    async def log_in(self, name: str) -> Login:
        login = self.logins[name]
        await login.finish(await login.begin(), self.clock.sleep)
        self.fake.seen.clear()
        self.fake.trading.clear()
        return login

    def kept(self, name: str) -> dict[str, object]:
        return msgspec.json.decode(self.vault.kept[kept_as(name)])


@pytest.fixture
async def world(serve, http) -> World:
    fake = FakeLogins(START)
    return World(fake, await serve(fake), http)


async def refused(work: Awaitable[object]) -> ProviderError:
    """The error, which tells no secret: not in its text, and not in those of the errors behind it."""
    with pytest.raises(ProviderError) as raised:
        await work
    error: BaseException | None = raised.value
    while error:
        assert "SECRET" not in repr(error)
        error = error.__cause__ or error.__context__
    return raised.value


both = pytest.mark.parametrize("name", NAMES)
polling = pytest.mark.parametrize("name, path", [(CODEX, POLL), (COPILOT_LOGIN, GRANT)])
trading = pytest.mark.parametrize("name, path", [(CODEX, OAUTH), (COPILOT_LOGIN, COPILOT)])


# The whole way


async def test_codex_asks_for_a_code_trades_it_and_sends_the_account_along(world: World):
    login = world.codex()
    asking = await login.begin()
    assert asking == DeviceCode(f"{world.url}/codex/device", "ABCD-1234", START + 900, 5.0, "SECRET-device")
    await login.finish(asking, world.clock.sleep)
    access = token_of("access-1", exp=int(START) + 5 + 3600)
    assert await login.headers() == {
        "Authorization": f"Bearer {access}",
        "originator": "everloop",
        "chatgpt-account-id": "acct-1",
    }
    assert world.fake.seen == [
        Seen("POST", USERCODE, {"client_id": CLIENT}),
        Seen("POST", POLL, {"device_auth_id": "SECRET-device", "user_code": "ABCD-1234"}),
        Seen(
            "POST",
            OAUTH,
            {
                "client_id": CLIENT,
                "grant_type": "authorization_code",
                "code": "SECRET-code",
                "code_verifier": "SECRET-verifier",
                "redirect_uri": f"{world.url}/deviceauth/callback",
            },
        ),
    ]
    assert world.kept(CODEX) == {
        "access": access,
        "expires": START + 5 + 3600,
        "refresh": "SECRET-refresh-1",
        "account": "acct-1",
    }


async def test_copilot_asks_for_a_code_and_trades_what_github_grants(world: World):
    login = world.copilot()
    asking = await login.begin()
    assert asking == DeviceCode("https://github.com/login/device", "ABCD-1234", START + 899, 7.0, "SECRET-device")
    await login.finish(asking, world.clock.sleep)
    assert await login.headers() == {"Authorization": "Bearer tid=SECRET-copilot-1", **EDITOR}
    assert world.fake.seen == [
        Seen("POST", DEVICE, {"client_id": COPILOT_CLIENT, "scope": "read:user"}),
        Seen(
            "POST",
            GRANT,
            {"client_id": COPILOT_CLIENT, "device_code": "SECRET-device", "grant_type": GRANT_TYPE},
        ),
        Seen("GET", COPILOT, {}, "token SECRET-github"),
    ]
    assert world.kept(COPILOT_LOGIN) == {
        "access": "tid=SECRET-copilot-1",
        "expires": START + 7 + 1800,
        "refresh": "SECRET-github",
        "account": "",
    }


@pytest.mark.parametrize(
    "name, base, dialect",
    [
        (CODEX, "https://chatgpt.com/backend-api/codex", "openai_responses"),
        (COPILOT_LOGIN, "https://api.githubcopilot.com", "openai_chat"),
    ],
)
def test_a_login_is_loaded_by_its_name_and_says_how_its_host_is_spoken_to(http, name: str, base: str, dialect: str):
    login = load(name, http, Drawer())
    assert (login.name, login.base, login.dialect) == (name, base, dialect)


@both
async def test_secrets_are_not_shown(world: World, name: str):
    login = world.logins[name]
    asking = await login.begin()
    assert "SECRET" not in repr(asking)
    await world.log_in(name)
    assert "SECRET" not in repr([login, vars(login)])


# Waiting


@polling
async def test_what_is_pending_is_asked_again_at_the_hosts_pace(world: World, name: str, path: str):
    pending = {"error": "authorization_pending", "error_description": "The request is still pending."}
    world.fake.script[path].extend([Said(200 if path == GRANT else 403, pending)] * 3)
    await world.log_in(name)
    pace = 5.0 if name == CODEX else 7.0
    assert world.clock.naps == [pace] * 4
    assert kept_as(name) in world.vault.kept


async def test_codex_is_undecided_in_several_ways(world: World):
    world.fake.script[POLL].extend(
        [
            Said(403, {"error": {"code": "deviceauth_authorization_pending", "message": "Please try again."}}),
            Said(403, {"error": {"code": "deviceauth_authorization_unknown"}}),
            Said(404, {"detail": "not found"}),
            Said(400, {"error": "authorization_pending"}),
        ]
    )
    await world.log_in(CODEX)
    assert world.clock.naps == [5.0] * 5


@polling
async def test_each_slow_down_makes_it_slower_for_good(world: World, name: str, path: str):
    slow, pending = {"error": "slow_down"}, {"error": "authorization_pending"}
    world.fake.script[path].extend([Said(400, slow), Said(400, pending), Said(400, slow)])
    await world.log_in(name)
    pace = 5.0 if name == CODEX else 7.0
    assert world.clock.naps == [pace, pace + 5, pace + 5, pace + 10]


async def test_a_pace_that_the_host_names_is_kept(world: World):
    world.fake.script[GRANT].append(Said(200, {"error": "slow_down", "interval": 30}))
    await world.log_in(COPILOT_LOGIN)
    assert world.clock.naps == [7.0, 30.0]


@polling
async def test_a_person_who_says_no_is_heard(world: World, name: str, path: str):
    world.fake.script[path].append(Said(403, {"error": "access_denied", "error_description": "SECRET"}))
    error = await refused(world.log_in(name))
    assert (type(error), str(error)) == (
        LoginDenied,
        f"The login to {name} was refused in the browser. Log in again with: everloop models login {name}",
    )
    assert world.vault.kept == {}


@polling
async def test_a_code_that_the_host_calls_expired_is_at_its_end(world: World, name: str, path: str):
    world.fake.script[path].append(Said(400, {"error": "expired_token"}))
    error = await refused(world.log_in(name))
    assert (type(error), str(error)) == (
        LoginExpired,
        f"The code for {name} was not entered in time. Log in again with: everloop models login {name}",
    )


@polling
async def test_a_code_that_nobody_enters_is_given_up_when_its_time_is_over(world: World, name: str, path: str):
    world.fake.script[path].extend([Said(403, {"error": "authorization_pending"})] * 1000)
    assert isinstance(await refused(world.log_in(name)), LoginExpired)
    assert START + 880 < world.clock.time < START + 900


async def test_another_refusal_is_told_by_its_code(world: World):
    world.fake.script[GRANT].append(Said(200, {"error": "device_flow_disabled", "error_description": "SECRET"}))
    error = await refused(world.log_in(COPILOT_LOGIN))
    assert (type(error), "(device_flow_disabled)" in str(error)) == (BadRequest, True)


@polling
async def test_a_bad_connection_is_sat_out(world: World, name: str, path: str):
    world.fake.script[path].extend([Said(502, PAGE)] * 4 + [Said(403, {"error": "authorization_pending"})])
    world.fake.script[path].extend([Said(200, PAGE), Said(429, {}), Said(503, "")])
    await world.log_in(name)
    pace = 5.0 if name == CODEX else 7.0
    assert world.clock.naps == [pace] * 7 + [pace + 5] * 2


@polling
async def test_a_host_that_keeps_answering_with_pages_is_given_up(world: World, name: str, path: str):
    world.fake.script[path].extend([Said(200, PAGE)] * 9)
    error = await refused(world.log_in(name))
    assert (type(error), len(world.clock.naps)) == (HostFailed, 5)
    assert "something other than JSON (200), perhaps with a web page" in str(error)


# Beginning


@pytest.mark.parametrize("said", [Said(200, PAGE), Said(404, PAGE), Said(500, {}), Said(302, ""), Said(200, {})])
@both
async def test_a_host_that_gives_no_code_but_something_else_has_failed(world: World, name: str, said: Said):
    world.fake.script[USERCODE if name == CODEX else DEVICE].append(said)
    error = await refused(world.logins[name].begin())
    assert (type(error), world.url.removeprefix("http://") in str(error)) == (HostFailed, True)


@both
async def test_a_host_that_refuses_to_give_a_code_is_quoted_by_its_code_alone(world: World, name: str):
    refusal = {"error": "unauthorized_client", "error_description": "SECRET"}
    world.fake.script[USERCODE if name == CODEX else DEVICE].append(Said(400, refusal))
    error = await refused(world.logins[name].begin())
    assert (type(error), "(unauthorized_client)" in str(error)) == (KeyRefused, True)


@both
async def test_too_many_logins_say_how_long_to_wait(world: World, name: str):
    world.fake.script[USERCODE if name == CODEX else DEVICE].append(Said(429, {}, {"Retry-After": "17"}))
    error = await refused(world.logins[name].begin())
    assert isinstance(error, RateLimited)
    assert error.retry_after == 17


@both
async def test_a_host_that_is_not_there_is_unreachable(http, name: str):
    logins = {
        CODEX: CodexLogin(http, Drawer(), auth="http://127.0.0.1:1"),
        COPILOT_LOGIN: CopilotLogin(http, Drawer(), github="http://127.0.0.1:1"),
    }
    assert isinstance(await refused(logins[name].begin()), HostUnreachable)


async def test_an_account_without_copilot_is_told_at_once(world: World):
    world.fake.script[COPILOT].append(Said(403, {"message": "SECRET"}))
    error = await refused(world.log_in(COPILOT_LOGIN))
    assert (type(error), "does not let this GitHub account use Copilot (403)" in str(error)) == (LoginDenied, True)
    assert world.vault.kept == {}


@pytest.mark.parametrize(
    "answer, account, end",
    [
        ({"access_token": "opaque", "refresh_token": "r", "expires_in": 100}, "", 100),
        ({"access_token": "opaque", "refresh_token": "r"}, "", 3600),
        ({"access_token": token_of("a", exp=int(START) + 50, chatgpt_account_id="me"), "refresh_token": "r"}, "me", 45),
        ({"access_token": "a.%.c", "refresh_token": "r", "id_token": token_of("i", chatgpt_account_id="ü")}, "", 3600),
    ],
)  # fmt: skip
async def test_codex_takes_what_it_is_told_from_wherever_it_is_told(world: World, answer, account: str, end: float):
    world.fake.script[OAUTH].append(Said(200, answer))
    await world.log_in(CODEX)
    assert (world.kept(CODEX)["account"], world.kept(CODEX)["expires"]) == (account, START + 5 + end)


@pytest.mark.parametrize("answer", [{"refresh_token": "r"}, {"access_token": "a"}, {"access_token": 7}])
async def test_codex_keeps_no_half_of_a_login(world: World, answer):
    world.fake.script[OAUTH].append(Said(200, answer))
    assert isinstance(await refused(world.log_in(CODEX)), HostFailed)
    assert world.vault.kept == {}


# Renewing


@both
async def test_tokens_are_sent_until_a_minute_before_their_end(world: World, name: str):
    login = await world.log_in(name)
    headers, lasts = await login.headers(), 3600 if name == CODEX else 1800
    world.clock.pass_by(lasts - 61)
    assert await login.headers() == headers
    assert world.fake.seen == []
    world.clock.pass_by(1)
    assert (await login.headers())["Authorization"] != headers["Authorization"]
    assert len(world.fake.seen) == 1


async def test_a_new_refresh_token_takes_the_place_of_the_old_one(world: World):
    login = await world.log_in(CODEX)
    world.fake.account = "acct-2"
    for _ in range(3):
        world.clock.pass_by(3600)
        await login.headers()
    assert [seen.fields for seen in world.fake.seen] == [
        {"client_id": CLIENT, "grant_type": "refresh_token", "refresh_token": f"SECRET-refresh-{n}"} for n in (1, 2, 3)
    ]
    access = token_of("access-4", exp=int(world.clock.time) + 3600)
    assert world.kept(CODEX) == {
        "access": access,
        "expires": world.clock.time + 3600,
        "refresh": "SECRET-refresh-4",
        "account": "acct-2",
    }


async def test_a_renewal_without_a_new_refresh_token_keeps_the_old_one_and_the_account(world: World):
    login = await world.log_in(CODEX)
    world.clock.pass_by(3600)
    world.fake.script[OAUTH].append(Said(200, {"access_token": "new", "expires_in": 100}))
    assert await login.headers() == {
        "Authorization": "Bearer new",
        "originator": "everloop",
        "chatgpt-account-id": "acct-1",
    }
    assert world.kept(CODEX)["refresh"] == "SECRET-refresh-1"


async def test_copilot_trades_the_same_grant_again_and_again(world: World):
    login = await world.log_in(COPILOT_LOGIN)
    for _ in range(2):
        world.clock.pass_by(1800)
        await login.headers()
    assert world.fake.seen == [Seen("GET", COPILOT, {}, "token SECRET-github")] * 2
    assert await login.headers() == {"Authorization": "Bearer tid=SECRET-copilot-3", **EDITOR}


@trading
async def test_many_who_need_a_renewal_share_one(world: World, name: str, path: str):
    login = await world.log_in(name)
    world.clock.pass_by(3600)
    sent = await asyncio.gather(*(login.headers() for _ in range(20)))
    assert world.fake.paths() == [path]
    assert sent == [await login.headers()] * 20


@trading
async def test_who_waits_for_a_renewal_that_fails_tries_by_themselves(world: World, name: str, path: str):
    login = await world.log_in(name)
    world.clock.pass_by(3600)
    world.fake.script[path].append(Said(503, {}))
    sent = await asyncio.gather(*(login.headers() for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in sent] == [HostFailed, dict, dict]
    assert world.fake.paths() == [path] * 2


@trading
async def test_a_renewal_is_kept_even_when_who_asked_for_it_has_gone(world: World, name: str, path: str):
    login = await world.log_in(name)
    before = world.kept(name)["access"]
    world.clock.pass_by(3600)
    world.fake.hold = asyncio.Event()
    asked = asyncio.create_task(login.headers())
    await world.fake.trading.wait()
    for _ in range(2):
        asked.cancel()
        await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(world.fake.hold.set)
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert world.kept(name)["access"] != before
    assert world.fake.paths() == [path]
    assert (await login.headers())["Authorization"] == f"Bearer {world.kept(name)['access']}"


async def test_a_refused_renewal_says_how_to_log_in_again(world: World):
    login = await world.log_in(CODEX)
    world.clock.pass_by(3600)
    host = world.url.removeprefix("http://")
    for status, code in ((401, "refresh_token_expired"), (400, "invalid_grant")):
        world.fake.script[OAUTH].append(Said(status, {"error": {"code": code, "message": "SECRET"}}))
        error = await refused(login.headers())
        assert (type(error), str(error)) == (
            KeyRefused,
            f"{host} no longer accepts the login to openai-codex ({code}). "
            "Log in again with: everloop models login openai-codex",
        )


async def test_a_grant_that_github_has_taken_back_says_how_to_log_in_again(world: World):
    login = await world.log_in(COPILOT_LOGIN)
    world.clock.pass_by(3600)
    world.fake.script[COPILOT].append(Said(401, {"message": "Bad credentials"}))
    error = await refused(login.headers())
    assert (type(error), "Log in again with: everloop models login github-copilot" in str(error)) == (KeyRefused, True)


@trading
@pytest.mark.parametrize("said", [Said(200, PAGE), Said(403, PAGE), Said(503, PAGE), Said(200, {})])
async def test_a_renewal_that_is_answered_with_something_else_costs_no_login(
    world: World, name: str, path: str, said: Said
):
    login = await world.log_in(name)
    world.clock.pass_by(3600)
    world.fake.script[path].append(said)
    error = await refused(login.headers())
    assert (type(error), error.retryable) == (HostFailed, True)
    assert "Authorization" in await login.headers()


async def test_a_refresh_token_that_another_process_has_spent_is_no_reason_to_log_in_again(world: World):
    ours, theirs = await world.log_in(CODEX), world.codex()
    world.clock.pass_by(3600)
    world.fake.hold = asyncio.Event()
    slow = asyncio.create_task(ours.headers())
    await world.fake.trading.wait()
    held, world.fake.hold = world.fake.hold, None
    quick = await theirs.headers()
    held.set()
    assert await slow == quick
    assert world.fake.paths() == [OAUTH, OAUTH]
    assert world.kept(CODEX)["refresh"] == "SECRET-refresh-2"


async def test_one_who_has_spent_it_may_still_be_about_to_keep_what_it_was_given(world: World):
    theirs, naps = await world.log_in(CODEX), []
    world.clock.pass_by(3600)
    before = dict(world.vault.kept)
    quick = await theirs.headers()
    after, world.vault.kept = world.vault.kept, before  # as if it were not yet written

    async def sleep(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            world.vault.kept = after

    ours = CodexLogin(world.http, world.vault, now=world.clock, auth=world.url, sleep=sleep)
    assert await ours.headers() == quick
    assert naps == [0.0, 0.2, 0.5]


@both
async def test_without_a_login_it_is_said_how_to_log_in(world: World, name: str):
    error = await refused(world.logins[name].headers())
    assert (type(error), str(error)) == (
        KeyRefused,
        f"Nobody is logged in to {name}. Log in with: everloop models login {name}",
    )
    assert world.fake.seen == []


@pytest.mark.parametrize("kept", ["SECRET", '{"access":"SECRET"}', '{"access":7,"expires":"SECRET","refresh":""}'])
@both
async def test_a_login_that_cannot_be_understood_asks_for_another(world: World, name: str, kept: str):
    world.vault.kept[kept_as(name)] = kept
    assert "Log in again with" in str(await refused(world.logins[name].headers()))
