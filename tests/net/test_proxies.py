"""NO_PROXY is read as other programs read it."""

import pytest
from yarl import URL

from everloop.net.proxies import bypasses, find_proxy

FITS = [
    ("model.example", "https://model.example/v1"),
    ("model.example", "https://eu.model.example/v1"),
    (".model.example", "https://eu.model.example/v1"),
    (".model.example", "https://model.example/v1"),
    ("*.model.example", "https://eu.model.example/v1"),
    ("MODEL.Example", "https://model.EXAMPLE/v1"),
    ("model.example.", "https://model.example/v1"),
    ("model.example", "https://model.example./v1"),
    ("a.example , model.example", "https://model.example/v1"),
    ("a.example model.example", "https://model.example/v1"),
    ("a.example,,\tmodel.example,", "https://model.example/v1"),
    ("model.example:443", "https://model.example/v1"),
    ("model.example:8000", "http://eu.model.example:8000/v1"),
    (".model.example:8000", "http://eu.model.example:8000/v1"),
    ("*", "https://model.example/v1"),
    ("a.example, *", "http://192.168.1.7/"),
    ("192.168.1.7", "http://192.168.1.7:11434/v1"),
    ("192.168.1.7:11434", "http://192.168.1.7:11434/v1"),
    ("192.168.0.0/16", "http://192.168.1.7:11434/v1"),
    ("192.168.1.9/16", "http://192.168.1.7:11434/v1"),
    ("192.168.0.0/16", "http://[::ffff:192.168.1.7]:11434/v1"),
    ("fd00::7", "http://[fd00::7]:8000/"),
    ("FD00:0:0::7", "http://[fd00::7]:8000/"),
    ("[fd00::7]", "http://[fd00::7]:8000/"),
    ("[fd00::7]:8000", "http://[fd00::7]:8000/"),
    ("fd00::/8", "http://[fd00::7]:8000/"),
    ("[fd00::]/8,fd00::/8", "http://[fd00::7]:8000/"),
    ("fe80::/10", "http://[fe80::1%25eth0]:8000/"),
    ("xn--strae-oqa.example", "https://straße.example/"),
    ("straße.example", "https://straße.example/"),
    ("0.0.0.0/0", "http://192.168.1.7/"),
]
FITS_NOT = [
    ("", "https://model.example/v1"),
    (" , ,", "https://model.example/v1"),
    ("model.example", "https://other.example/v1"),
    ("model.example", "https://notmodel.example/v1"),
    ("eu.model.example", "https://model.example/v1"),
    ("example.com", "https://example.com.evil.example/"),
    ("model.example:8443", "https://model.example/v1"),
    ("model.example:443", "http://model.example/v1"),
    ("192.168.1.7:8000", "http://192.168.1.7:11434/v1"),
    ("192.168.1.70", "http://192.168.1.7/"),
    ("168.1.7", "http://192.168.1.7/"),
    ("1.7", "http://192.168.1.7/"),
    ("192.168.0.0/16", "http://192.169.1.7/"),
    ("192.168.0.0/16", "http://192.168.example/"),
    ("192.168.0.0/33", "http://192.168.1.7/"),
    ("fd00::/8", "http://[fe80::7]/"),
    ("[fd00::7]:9000", "http://[fd00::7]:8000/"),
    ("[fd00::7", "http://[fd00::7]:8000/"),
    ("::/0", "http://192.168.1.7/"),
    (".", "https://model.example/v1"),
    ("*.", "https://model.example/v1"),
    ("https://model.example", "https://model.example/v1"),
    ("model.*", "https://model.example/v1"),
]


@pytest.mark.parametrize(("no_proxy", "url"), FITS)
def test_these_are_asked_without_a_proxy(no_proxy: str, url: str):
    assert bypasses(no_proxy, URL(url))


@pytest.mark.parametrize(("no_proxy", "url"), FITS_NOT)
def test_these_are_asked_through_the_proxy(no_proxy: str, url: str):
    assert not bypasses(no_proxy, URL(url))


@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize("wanted", ["", "http://wanted.example:3128"])
def test_a_model_on_the_lan_is_found_although_there_is_a_proxy(monkeypatch, variable: str, wanted: str):
    for name in ("NO_PROXY", "no_proxy", "HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv(variable, "10.0.0.0/8, 192.168.0.0/16")
    assert find_proxy(URL("http://192.168.1.7:11434/v1"), wanted) is None
    assert find_proxy(URL("http://model.example/v1"), wanted) == URL(wanted or "http://proxy.example:3128")
