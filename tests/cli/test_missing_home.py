"""Commands in a home that is not there, as after a mistake in its name."""

import pytest
from tests.cli.person import Person

LOOKING = [
    *("status", "tokens", "users", "channels", "personas", "mcp", "secrets", "approvals"),
    *("sessions", "memory", "cron", "heartbeat", "context", "files", "outbox", "tasks", "usage", "audit", "logs"),
    *("backup", "config", "service", "doctor", "completion bash"),
]
WITHOUT = ("config", "service", "doctor", "completion bash")  # tell what holds where nothing is, too


@pytest.mark.parametrize("command", LOOKING)
async def test_who_looks_into_a_home_that_is_not_there_is_told_so_and_none_is_made(person: Person, command: str):
    person.environment["EVERLOOP_HOME"] = missing = str(person.home / "typo")
    ran = await person.run(*command.split())
    how = "`everloop onboard` makes one there; where it is, EVERLOOP_HOME says"
    told = f"everloop: there is no home at {missing}: {how}\n"
    assert (ran.status, ran.out, ran.err) == (1, "", told) or (command in WITHOUT and not ran.status)
    assert not (person.home / "typo").exists()


async def test_what_keeps_something_may_be_the_first_in_a_home(person: Person):
    person.environment["EVERLOOP_HOME"] = str(person.home / "new")
    assert (await person.run("secrets", "set", "pin", typed=b"4711\n")).status == 0
    assert (person.home / "new").exists()
