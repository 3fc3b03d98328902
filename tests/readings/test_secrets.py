"""What a host repeats of a request is not told."""

import json
from base64 import b64encode, urlsafe_b64encode

import pytest

from everloop.errors import HostFailed, RateLimited
from everloop.readings.secrets import hide_secrets
from tests.canary import holds_a_key

KEY = "sk-canary-one/+1"
OTHER = "sk-canary-two"
HERE = "https://host/v1"


def told(text: str, url: str = HERE, **headers: str) -> str:
    error = HostFailed(text)
    hide_secrets(error, url, {name.replace("_", "-"): value for name, value in headers.items()})
    return str(error)


@pytest.mark.parametrize(
    "text, remains",
    [
        (f"no {KEY} here, and no {KEY}", "no … here, and no …"),
        ("no sk-canary-one%2F%2B1 here", "no … here"),
        (r'{"no":"sk-canary-one\/+1"}', '{"no":"…"}'),
        (f"no {OTHER} here", "no … here"),
        ("cut off: sk-canary-o). Try again", "cut off: …). Try again"),
        ("sk-cana is too short to be of use", "sk-cana is too short to be of use"),
        ("Bearer of good news, application/json", "Bearer of good news, application/json"),
    ],
)
def test_the_words_of_a_request_are_left_out(text, remains):
    assert told(text, Authorization=f"Bearer {KEY}", X_Team=OTHER, Accept="application/json") == remains


@pytest.mark.parametrize("before", ["", "a", "Bearer "])
@pytest.mark.parametrize(
    "encode",
    [
        lambda text: b64encode(text.encode()).decode(),
        lambda text: urlsafe_b64encode(text.encode()).decode(),
        lambda text: text.encode().hex(),
        lambda text: text.encode().hex().upper(),
        lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
        lambda text: "".join(rf"\u{ord(letter):04X}" for letter in text),
        json.dumps,
    ],
)
def test_a_key_that_a_host_repeats_in_another_encoding_is_left_out(encode, before):
    key, other = 'sk-canary??>"\\one/+1', "words of the host"
    left = told(f"no {encode(before + key)} here", Authorization=f"Bearer {key}")
    assert not holds_a_key(left.encode())
    assert (left[:3], "…" in left, left[-5:], len(left) < 60) == ("no ", True, " here", True)
    assert told(encode(other), Authorization=f"Bearer {key}") == encode(other)


@pytest.mark.parametrize("text", ["no pass/word here", "no pass%2Fword here", "no bWU6cGFzcy93b3Jk here"])
def test_so_is_a_password_in_the_address(text):
    assert told(text, "https://me:pass%2Fword@host/v1") == "no … here"


@pytest.mark.parametrize("url", [HERE, "https://[host", "https://me:short@host", ""])
def test_what_is_no_secret_stays(url):
    assert told("ollama failed to answer (500): short", url, Authorization="Bearer ollama") == (
        "ollama failed to answer (500): short"
    )


def test_the_error_stays_what_it_is():
    error = RateLimited(f"wait, {KEY}", 7.0)
    hide_secrets(error, HERE, {"x-api-key": KEY})
    assert (str(error), error.retry_after) == ("wait, …", 7.0)
