"""`everloop gateway password`, and a gateway that starts without anyone who could answer."""

import aiohttp
import pytest
from tests.cli.person import Person, is_one_plain_sentence
from tests.cli.test_gateway_command import new_token, start

PASSWORD = "correct horse, battery"


async def log_in(url: str, password: str) -> int:
    sent = {"password": password}
    async with (
        aiohttp.ClientSession(url, headers={"Origin": url}) as client,
        client.post("/auth/login", json=sent) as got,
    ):
        return got.status


async def test_a_password_is_set_and_taken_away_while_the_gateway_runs(person: Person):
    gateway = await start(person, 0)
    before = await log_in(gateway.url, PASSWORD)
    kept = await person.run("gateway", "password", typed=f"{PASSWORD}\nsomething else\n".encode())
    after = await log_in(gateway.url, PASSWORD)
    gone = await person.run("gateway", "password", "--remove")
    later = await log_in(gateway.url, PASSWORD)
    none = await person.run("gateway", "password", "--remove")
    await gateway.stop()
    assert (kept.status, kept.out, gone.status, gone.out) == (0, "", 0, "")
    assert (before, after, later) == (401, 200, 401)
    assert none.status == 1
    assert is_one_plain_sentence(none.err)
    assert PASSWORD not in kept.err + "".join(gateway.said)


async def test_with_a_password_no_link_is_printed(person: Person):
    await person.run("gateway", "password", typed=PASSWORD.encode())
    gateway = await start(person, 0, links=False)
    stopped = await gateway.stop()
    assert (len(gateway.said), stopped.err) == (1, "everloop gateway: stopping\n")


@pytest.mark.parametrize("typed", [b"", b"short\n", b"x" * 1001])
async def test_what_is_no_password_is_refused(person: Person, typed: bytes):
    ran = await person.run("gateway", "password", typed=typed)
    assert (ran.status, ran.out) == (1, "")
    assert is_one_plain_sentence(ran.err)


async def test_it_starts_without_a_model_that_can_be_had(person: Person):
    person.environment["EVERLOOP_AGENTS__DEFAULTS__MODEL"] = "nobody/knows"
    gateway = await start(person, 0)
    token = await new_token(person, "client")
    async with aiohttp.ClientSession(gateway.url, headers={"Authorization": f"Bearer {token}"}) as client:
        told = await (await client.get("/api/models")).json()
    stopped = await gateway.stop()
    assert (stopped.status, told["missing"].startswith("Nobody can answer yet: ")) == (0, True)
