"""What a URL means, and which addresses are public: by values alone, so nothing can be sent."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.net.ssrf import FORMS, NOT_PUBLIC_4, NOT_PUBLIC_6
from yarl import URL

from everloop.errors import AddressRefused, SettingsError
from everloop.net.addresses import Allowed, Target, check_address, read_url, why_inward

PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.216.34", "9.255.255.255", "11.0.0.0", "126.255.255.255", "128.0.0.1",
          "100.63.255.255", "100.128.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
          "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "192.0.1.1",
          "2606:4700:4700::1111", "2001:200::1", "2a00:1450:4001::1", "2003::1", "2620:fe::fe")  # fmt: skip


def is_refused(url: str) -> bool:
    try:
        target = read_url(url)
        if target.address:
            check_address(target.host, target.port, target.address)
    except AddressRefused:
        return True
    return False


def test_more_than_three_hundred_forms_are_refused():
    assert len(FORMS) >= 500
    assert [url for url in FORMS if not is_refused(url)] == []


def test_the_same_look_says_that_public_addresses_are_not():
    hosts = [f"[{each}]" if ":" in each else each for each in PUBLIC]
    assert [host for host in hosts if is_refused(f"http://{host}/")] == []


@pytest.mark.parametrize("address", [*NOT_PUBLIC_4, *NOT_PUBLIC_6])
def test_an_address_that_is_not_public_says_why(address):
    assert why_inward(ip_address(address)).startswith(("is ", "means ", "belongs ", "hides ", "leads "))


@pytest.mark.parametrize(
    "why, addresses",
    [
        ("means this machine", "0.0.0.0 127.0.0.1 :: ::1"),
        ("belongs to a private network", "10.0.0.5 172.16.0.1 192.168.1.1 fd00::1 fec0::1"),
        ("belongs to a provider's inner network", "100.64.0.1"),
        ("belongs to the local link, where clouds keep their secrets", "169.254.169.254"),
        ("belongs to the local link", "fe80::1"),
        ("belongs to a cloud's own services", "168.63.129.16"),
        ("is for documentation", "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1"),
        ("is for measurements inside a network", "198.18.0.1"),
        ("is reserved", "240.0.0.1"),
        ("is reserved for protocols, as Teredo's", "2001::1"),
        ("means many machines", "224.0.0.1 ff02::1"),
        ("hides an IPv4 address", "::7f00:1 ::ffff:1.1.1.1 ::ffff:0:1.1.1.1 2002::1 2606:4700::5efe:101:101"),
        ("leads through a translator", "192.88.99.1 64:ff9b::1 64:ff9b:1::1"),
        ("is not a public address", "4000::1 100::1"),
        ("", " ".join(PUBLIC)),
    ],
)
def test_the_reason_is_the_true_one(why, addresses):
    assert {why_inward(ip_address(each)) for each in addresses.split()} == {why}


@given(st.ip_addresses())
def test_whatever_python_calls_private_is_inward(address):
    if address.is_private or address.is_multicast or address.is_reserved or not address.is_global:
        assert why_inward(address)


@pytest.mark.parametrize(
    "url, target",
    [
        ("http://example.org", Target("http", "example.org", 80, "/")),
        ("HTTPS://Example.ORG.:443/a?b=c#d", Target("https", "example.org", 443, "/a", "b=c")),
        ("https://bücher.example/ä?ö", Target("https", "xn--bcher-kva.example", 443, "/%C3%A4", "%C3%B6")),
        ("http://example.org:8080?x", Target("http", "example.org", 8080, "/", "x")),
        ("http://a_b.example/a b/%20|", Target("http", "a_b.example", 80, "/a%20b/%20%7C")),
        ("http://1.1.1.1:/", Target("http", "1.1.1.1", 80, "/", address=ip_address("1.1.1.1"))),
        ("http://[2606:4700::0:1]/", Target("http", "2606:4700::1", 80, "/", address=ip_address("2606:4700::1"))),
        ("http://example.org/@x:1//y", Target("http", "example.org", 80, "/@x:1//y")),
    ],
)
def test_an_honest_address_is_read(url, target):
    assert read_url(url) == target


@pytest.mark.parametrize(
    "url, sentence",
    [
        ("ftp://x.org", "'ftp://x.org' is not a web address; begin it with https:// or http://."),
        ("http://2130706433/", "'2130706433' is a number for a host; write a name, or four numbers plainly."),
        ("http://x.org\\@y.org", r"'http://x.org\\@y.org' holds a backslash or a control character; write it without."),
        (
            "http://me@x.org",
            "'http://me@x.org' has a user name, an escape or a space before its path; write it without.",
        ),
        ("http://\uff11.1.1.1/", r"'\uff11.1.1.1' is an address in disguise; write it as 1.1.1.1."),
        ("http://x.org:99999/", "'http://x.org:99999/' has a port that does not exist."),
    ],
)
def test_what_is_refused_is_told_in_a_sentence(url, sentence):
    with pytest.raises(AddressRefused) as caught:
        read_url(url)
    assert str(caught.value) == sentence


def test_an_inward_address_is_told_in_a_sentence():
    for host, address, sentence in [
        ("10.0.0.5", "10.0.0.5", "10.0.0.5 belongs to a private network. Only the owner can permit it."),
        ("x.org", "::1", "x.org leads to ::1, which means this machine. Only the owner can permit it."),
    ]:
        with pytest.raises(AddressRefused) as caught:
            check_address(host, 80, ip_address(address))
        assert str(caught.value) == sentence


@given(st.text(st.sampled_from("abx019.:/@#?[]%\\\t -_ü。１"), max_size=30))
def test_what_is_sent_means_what_was_read(rest):
    """The URL that is built is read by the HTTP client as exactly the same host and port."""
    try:
        target = read_url(f"http://{rest}")
    except AddressRefused:
        return
    url = target.url
    assert (url.raw_host, url.port, url.user, url.password) == (target.host, target.port, None, None)
    again = URL(str(url))
    assert (again.raw_host, again.port, again.user) == (target.host, target.port, None)
    assert read_url(str(url)).origin == target.origin


@pytest.mark.parametrize(
    "entry, permits, does_not",
    [
        ("nas.local", ("nas.local", 5000, "192.168.1.7"), ("nas.local.evil.org", 5000, "192.168.1.7")),
        ("NAS.local.:5000", ("nas.local", 5000, "10.0.0.1"), ("nas.local", 5001, "10.0.0.1")),
        ("10.0.0.0/8", ("x.org", 22, "10.1.2.3"), ("x.org", 22, "11.0.0.1")),
        ("10.0.0.9/8", ("x.org", 22, "10.1.2.3"), ("x.org", 22, "::ffff:10.1.2.3")),
        ("127.0.0.1", ("127.0.0.1", 1, "127.0.0.1"), ("127.0.0.1", 1, "127.0.0.2")),
        ("127.0.0.1:8000", ("localhost", 8000, "127.0.0.1"), ("localhost", 8001, "127.0.0.1")),
        ("fd00::/8", ("x.org", 1, "fd00::1"), ("x.org", 1, "fc00::1")),
        ("fd00::7", ("x.org", 1, "fd00::7"), ("x.org", 1, "fd00::8")),
        ("[fd00::7]:8000", ("x.org", 8000, "fd00::7"), ("x.org", 80, "fd00::7")),
    ],
)
def test_the_owner_permits_a_name_an_address_or_a_network(entry, permits, does_not):
    allowed = Allowed([entry])
    host, port, address = permits
    assert allowed.permits(host, port, ip_address(address))
    host, port, address = does_not
    assert not allowed.permits(host, port, ip_address(address))


@pytest.mark.parametrize(
    "entry", ["", "http://nas.local", "nas.local/x", "me@nas", "*.local", "2130706433", "10.0.0.0/99"]
)
def test_what_cannot_be_permitted_is_a_mistake_in_the_settings(entry):
    with pytest.raises(SettingsError):
        Allowed([entry])
