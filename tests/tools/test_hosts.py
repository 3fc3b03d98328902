"""The host of an address is told only where no program reads another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.core.thread import Thread
from everloop.net.addresses import read_url
from everloop.tools.hosts import plain_host_of
from everloop.tools.web_fetch import web_fetch_tool


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://evil.example", "evil.example"),
        ("https://EVIL.Example:443/a?b=c#d", "evil.example"),
        ("HTTP://evil.example:80", "evil.example"),
        ("http://evil.example:443/", "evil.example:443"),
        ("https://evil.example:8443/x", "evil.example:8443"),
        ("http://[2001:db8::1]/x", "[2001:db8::1]"),
        ("http://192.0.2.7/", "192.0.2.7"),
        ("http://evil.example?x", "evil.example"),
        *((url, "") for url in (
            "http://good.example@evil.example/", "http://good.example:80@evil.example/", "http://good.example\\@evil.example/",
            "http://good.example\\.evil.example/", "http://good.example%2f@evil.example/", "http://good.example%00.evil.example",
            " http://good.example/", "http://good.example/ x", "http://good.example\t.evil.example/", "http://good.example.",
            "http:///good.example", "http:good.example", "//good.example/", "ftp://good.example/", "http://gооd.example/",
            "http://good。example/", "http://good.example:８０/", "http://ſ.example/", "http://good.example:80:81/", "http://",
            "http://good..example/", "http://good.example\n", "", "http://[::1", "http://good.example/é",
        )),
    ],
)  # fmt: skip
def test_the_host_of_an_address(url: str, host: str):
    assert plain_host_of(url) == host


pieces = st.lists(
    st.sampled_from(
        [
            *"abc.:/@?#\\%[]",
            "http",
            "https",
            "://",
            "//",
            "good.example",
            "evil.example",
            ":80",
            ":443",
            "%2e",
            " ",
            "é",
            "\t",
        ]
    ),
    max_size=9,
).map("".join)


@given(st.sampled_from(["http://", "https://", ""]), pieces)
def test_whoever_fetches_it_goes_to_this_host(scheme: str, rest: str):
    url = scheme + rest
    if host := plain_host_of(url):
        target = read_url(url)
        usual = {"http": 80, "https": 443}[target.scheme] == target.port
        assert host == (target.host if usual else f"{target.host}:{target.port}")


async def test_web_fetch_names_the_host_that_is_asked_about():
    spec = web_fetch_tool(None).spec  # type: ignore[arg-type]
    thread = Thread()
    thread.strangers.outside = True
    assert spec.risk is not None
    assert spec.risk({"url": "http://evil.example/made-up"}, thread.before(0)).host == "evil.example"
