"""Which parts of a setting are secrets; and which are none, although they look a little like it."""

import time

import pytest

from everloop.readings.masks import masked_shapes
from everloop.readings.secret_parts import (
    argument_parts,
    names_secret,
    replaced,
    secrets_of,
    shown_arguments,
    text_parts,
    value_parts,
)

JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"
SECRET = {
    "in what a database is opened with": (
        ["--dsn", "Server=h;User=u;Password=hunter2;"],
        ["--dsn", "Server=h;User=u;Password=…;"],
    ),
    "in JSON": (["--config", '{"apiKey": "hunter2"}'], ["--config", '{"apiKey": "…"}']),
    "for a shell": (["-c", "srv --x --token hunter2 --port 3"], ["-c", "srv --x --token … --port 3"]),
    "behind an option": (["--token", "plainword"], ["--token", "…"]),
    "joined to an option": (["--api-key=plainword"], ["--api-key=…"]),
    "of a short option": (["-p=hunter2"], ["-p=…"]),
    "in base64, which may begin as a path does": (["--secret", "/q9xAb+c=="], ["--secret", "…"]),
    "of a variable": (["-e", "API_KEY=plainword"], ["-e", "API_KEY=…"]),
    "of a header": (["--header", "Authorization: Bearer plainword"], ["--header", "Authorization: Bearer …"]),
    "of a header that is joined": (["--header=X-Api-Key: plainword"], ["--header=X-Api-Key: …"]),
    "a password of an address": (["postgres://me:hunter2@db/x"], ["postgres://me:…@db/x"]),
    "a login of one word": (["https://hunter2@host/x"], ["https://…@host/x"]),
    "a parameter of an address": (["--url=https://h/?q=2&token=plain&n=1"], ["--url=https://h/?q=2&token=…&n=1"]),
    "a key by how it begins": (["run", "sk-canary-0123456789"], ["run", "…"]),
    "a key of GitHub": (["ghp_0123456789abcdef"], ["…"]),
    "a key of GitLab": (["--with", "glpat-0123456789abcdef"], ["--with", "…"]),
    "a key of AWS": (["AKIAIOSFODNN7EXAMPLE"], ["…"]),
    "a bot of Slack": (["xoxb-123456789012-abc"], ["…"]),
    "a JWT": ([JWT], ["…"]),
}
PLAIN = (
    ["-c", "srv --token $TOKEN"],
    ["--query", "SELECT key FROM t WHERE key='a'"],
    ["--tokenizer", "fast", "--max-tokens", "500", "--max_tokens=500", "--token-limit", "9"],
    ["--port", "80", "-p", "8080:80", "-p=80", "-p", "@scope/package", "-p=@scope/package"],
    ["--key", "/etc/tls/server.pem", "--token-file", "/run/secrets/token", "--password-stdin", "--key", "./my.key"],
    ["--model", "openai/gpt-4.1", "--author", "Ada", "--sort-key", "name", "--keyboard=de", "--monkey", "yes"],
    ["--token", "${vault:mcp.x.token}", "--api-key=${KEY}", "https://u:${PASSWORD}@host/?token=${TOKEN}"],
    ["http://localhost:3000/mcp?page=2&sort=up", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/x"],
    ["--password", "--verbose", "--auth", "none", "-c", "print(1)", "sk-short", "MODE=fast", "C:\\Users\\x"],
)


@pytest.mark.parametrize(("given", "shown"), SECRET.values(), ids=SECRET)
def test_a_secret_in_arguments_is_found_and_nothing_else_of_them_is_changed(given: list[str], shown: list[str]):
    assert shown_arguments(given) == shown
    assert [replaced(parts, lambda part: part.text) for parts in argument_parts(given)] == given
    assert [found for parts in argument_parts(given) for found in secrets_of(parts)] != []


@pytest.mark.parametrize("given", PLAIN, ids=lambda given: given[0])
def test_what_is_no_secret_stays_as_it_is(given: list[str]):
    assert shown_arguments(given) == given


def test_a_value_is_a_secret_by_its_name_or_by_what_it_is():
    assert secrets_of(value_parts("hunter2", "DB_PASSWORD")) == ["hunter2"]
    assert secrets_of(value_parts("postgres://me:hunter2@db/x", "DATABASE_URL")) == ["hunter2"]
    assert secrets_of(value_parts("ghp_0123456789abcdef", "X-Whatever")) == ["ghp_0123456789abcdef"]
    assert secrets_of(value_parts("fast", "TOKENIZER")) == []
    assert secrets_of(text_parts("the weather at https://host/a?city=Bern")) == []


def test_names_are_read_by_their_last_word():
    assert all(map(names_secret, ("--token", "apiKey", "X-API-Key", "GITHUB_PAT", "clientSecret", "--pwd", "Cookie")))
    assert not any(map(names_secret, ("--tokens", "tokenizer", "KEY_FILE", "keys", "password-file", "primary-key", "")))


@pytest.mark.parametrize("key", [JWT, "AKIAIOSFODNN7EXAMPLE", "glpat-0123456789abcdef", "github_pat_0123456789ab"])
def test_logs_know_keys_by_the_same_shapes(key: str):
    assert masked_shapes(f"it said {key} there") == "it said *** there"
    assert masked_shapes("it said eyJ there") == "it said eyJ there"


@pytest.mark.parametrize("made", ["--a" * 8000, "a." * 12000, "a=" * 5000, "a: " * 5000, "--a=" * 5000 + "x"])
def test_an_argument_that_a_stranger_has_made_to_be_slow_to_look_through_is_looked_through_in_a_moment(made: str):
    """It stands in the home of another agent that somebody moves in from, and the gateway waits for it."""
    before = time.process_time()
    (parts,) = argument_parts([made])
    assert time.process_time() - before < 3
    assert "".join(part.text for part in parts) == made


def test_a_secret_is_found_however_many_names_stand_before_it():
    assert shown_arguments(["--env=" * 2000 + "API_KEY=hunter2"]) == ["--env=" * 2000 + "API_KEY=…"]
