"""The proxy of commands reads its list and its requests strictly: nothing is looked up or dialled that is not on it."""

import asyncio

import pytest

from everloop.errors import AddressRefused, SettingsError
from everloop.net.addresses import read_url
from everloop.net.proxy import Hosts, Proxy, read_request

PUBLIC, OTHER, PRIVATE = "93.184.216.34", "2606:2800:220:1::1", "10.0.0.7"


def may(entries: list[str], url: str) -> bool:
    try:
        Hosts(entries).check_name(read_url(url))
    except AddressRefused:
        return False
    return True


@pytest.mark.parametrize(
    "entry, reached, refused",
    [
        ("pypi.org", ["http://pypi.org/", "https://PyPI.org./", "http://pypi.org:8080/"],
         ["http://pypi.org:22/", "http://x.pypi.org/", "http://pypi.org.evil.example/", "http://1.2.3.4/"]),
        ("pypi.org:22", ["http://pypi.org:22/"], ["http://pypi.org/", "http://x.pypi.org:22/"]),
        ("*.example.com", ["http://a.example.com/", "https://a.b.example.com/"],
         ["http://example.com/", "http://aexample.com/", "http://a.example.com.evil.example/", "http://a.example.com:22/"]),
        ("*", ["http://a.example/", "http://1.2.3.4/", "https://[2606::1]/"], ["http://a.example:22/"]),
        ("*:22", ["http://a.example:22/", "http://1.2.3.4:22/"], ["http://a.example/"]),
        ("10.0.0.0/8", ["http://10.1.2.3:5000/"], ["http://11.1.2.3/", "http://a.example/"]),
        ("10.0.0.7:5000", ["http://10.0.0.7:5000/"], ["http://10.0.0.7/", "http://10.0.0.8:5000/"]),
        ("[fd00::7]:80", ["http://[fd00::7]/"], ["http://[fd00::8]/", "https://[fd00::7]/"]),
        ("bücher.example", ["http://xn--bcher-kva.example/"], ["http://bucher.example/"]),
    ],
)  # fmt: skip
def test_an_entry_permits_what_it_names(entry: str, reached: list[str], refused: list[str]):
    assert [url for url in (*reached, *refused) if may([entry], url)] == reached


@pytest.mark.parametrize(
    "entry",
    ["", " x", "a b",
     "http://x/", "x/y", "*.", "*foo", "a.*.b", "*.*.x", "x:99999", "x:y", "*.1.2.3.4", "0x7f.1", "u@x"],
)  # fmt: skip
def test_what_is_not_a_host_is_told_when_everloop_starts(entry: str):
    with pytest.raises(SettingsError, match=r"^tools\.exec\.network: "):
        Proxy(["pypi.org", entry])


def refusal(entries: list[str], url: str, address: str) -> str:
    try:
        Hosts(entries).check_address(read_url(url), address)
    except AddressRefused as error:
        return str(error)
    return ""


def test_a_name_leads_to_public_addresses_and_to_those_of_the_list():
    assert refusal(["nas.example"], "http://nas.example/", PUBLIC) == ""
    assert refusal(["git.example:22"], "http://git.example:22/", PUBLIC) == ""
    private = "nas.example leads to 10.0.0.7, which belongs to a private network. Only the owner can permit it."
    assert refusal(["nas.example"], "http://nas.example/", PRIVATE) == private
    assert refusal(["*"], "http://nas.example/", PRIVATE) == private
    assert refusal(["nas.example:5000", "10.0.0.7:80"], "http://nas.example:5000/", PRIVATE) == private
    assert refusal(["nas.example:5000", "10.0.0.7"], "http://nas.example:5000/", PRIVATE) == ""


def test_a_request_goes_on_without_what_is_between_it_and_the_proxy():
    request = read_request(
        b"POST http://Example.com:8080/a%20b/../c?q=\xc3\xa9#x HTTP/1.1\r\n".replace(b"\xc3\xa9", b"%C3%A9")
        + b"Host: evil.example\r\nProxy-Authorization: secret\r\nConnection: keep-alive, X-Mine\r\nX-Mine: 1\r\n"
        b"Content-Length: 3\r\nX-Kept: a  b\r\n\r\n"
    )
    assert request.onward == (
        b"POST /a%20b/../c?q=%C3%A9 HTTP/1.1\r\nHost: example.com:8080\r\nContent-Length: 3\r\nX-Kept: a  b\r\n"
        b"Connection: close\r\n\r\n"
    )
    assert request.back == b""


def test_a_tunnel_is_opened_by_host_and_port():
    request = read_request(b"CONNECT [2606::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (request.target.host, request.target.port, request.onward) == ("2606::1", 443, b"")


class Net:
    """A network of names and no machines: `asked` are the names that were looked up, `dialled` whom one spoke to."""

    def __init__(self, **names: str) -> None:
        self.names = {name.replace("_", "."): address for name, address in names.items()}
        self.asked: list[str] = []
        self.dialled: list[tuple[str, int]] = []

    async def lookup(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return [self.names[host]]

    async def dial(self, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self.dialled.append((address, port))
        raise ConnectionRefusedError(111, "Connection refused")


async def answered(net: Net, hosts: list[str], said: bytes) -> bytes:
    proxy = Proxy(hosts, net.lookup, net.dial)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(said)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    server.close()
    return answer


async def test_a_host_that_is_not_on_the_list_is_not_even_looked_up():
    net = Net(evil_example=PUBLIC)
    for said in (b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n", b"GET http://evil.example/ HTTP/1.1\r\n\r\n"):
        assert b"403 evil.example:" in await answered(net, ["pypi.org", "*.example.com"], said)
    assert (net.asked, net.dialled) == ([], [])
    assert b"502 evil.example cannot be reached" in await answered(net, ["*"], said)
    assert (net.asked, net.dialled) == (["evil.example"], [(PUBLIC, 80)])


async def test_the_command_is_told_why_in_a_sentence():
    answer = await answered(Net(), ["pypi.org"], b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n")
    sentence = (
        b"evil.example:443 is not among the hosts that commands may reach (pypi.org). "
        b"Only the owner can add it, to tools.exec.network."
    )
    assert answer.startswith(b"HTTP/1.1 403 " + sentence + b"\r\n")
    assert answer.endswith(b"\r\n\r\n" + sentence + b"\n")


@pytest.mark.parametrize(
    "said",
    [
        b"", b"\r\n\r\n", b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nHost: ok.example\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"CONNECT ok.example HTTP/1.1\r\n\r\n", b"CONNECT ok.example:443/x HTTP/1.1\r\n\r\n",
        b"CONNECT u@ok.example:443 HTTP/1.1\r\n\r\n", b"CONNECT ok.example:443 HTTP/2\r\n\r\n",
        b"CONNECT ok.example:99999 HTTP/1.1\r\n\r\n", b"CONNECT 0x5db8d822:443 HTTP/1.1\r\n\r\n",
        b"GET https://ok.example/ HTTP/1.1\r\n\r\n", b"GET ftp://ok.example/ HTTP/1.1\r\n\r\n",
        b"GET http://u:p@ok.example/ HTTP/1.1\r\n\r\n", b"GET http://ok.example\\@evil.example/ HTTP/1.1\r\n\r\n",
        b"GET http://ok.example/ HTTP/1.1\r\n folded: x\r\n\r\n", b"GET http://ok.example/ HTTP/1.1\r\nx\r\n\r\n",
        b"GET http://ok.example/ HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
)  # fmt: skip
async def test_what_is_no_request_to_a_proxy_leads_nowhere(said: bytes):
    net = Net(ok_example=PUBLIC)
    answer = await answered(net, ["*"], said)
    assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 403")
    assert (net.asked, net.dialled) == ([], [])


@pytest.mark.parametrize("address", [PRIVATE, "127.0.0.1", "169.254.169.254", "::1", "64:ff9b::7f00:1", "fd00::1"])
async def test_an_inward_address_is_not_dialled_whoever_names_it(address: str):
    net = Net(ok_example=address)
    literal = f"[{address}]" if ":" in address else address
    for host in ("ok.example", literal):
        assert (await answered(net, ["*"], f"CONNECT {host}:443 HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 403")
    assert net.dialled == []


async def test_one_bad_address_of_several_refuses_the_name():
    net = Net()

    async def lookup(host: str, port: int) -> list[str]:
        return [PUBLIC, PRIVATE]

    net.lookup = lookup  # type: ignore[method-assign]
    assert b"403 ok.example leads to" in await answered(net, ["*"], b"CONNECT ok.example:443 HTTP/1.1\r\n\r\n")
    assert net.dialled == []
