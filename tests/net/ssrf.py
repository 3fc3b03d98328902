"""Web addresses that lead inside, in the forms in which people have passed guards with them."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from itertools import chain

# One of each kind that matters: this machine, three private networks, clouds' metadata, a provider's inside.
INSIDE = (
    "127.0.0.1", "0.0.0.0", "10.0.0.5", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200",
    "168.63.129.16", "192.0.0.192",
)  # fmt: skip

NOT_PUBLIC_4 = (
    "0.0.0.1", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.0",
    "127.255.255.254", "127.1.2.3", "169.254.0.0", "169.254.170.2", "169.254.255.255", "172.16.0.0", "172.31.255.255",
    "192.0.0.0", "192.0.0.170", "192.0.0.255", "192.0.2.1", "192.88.99.1", "192.168.0.0", "192.168.255.255",
    "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1",
    "255.255.255.254", "255.255.255.255",
)  # fmt: skip

NOT_PUBLIC_6 = (
    "::", "::1", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001", "::0001", "0::1", "::2", "::ffff:0:1",
    "64:ff9b::1", "64:ff9b:1::1", "64:ff9b:1:ffff::7f00:1", "100::1", "100:0:0:1::1", "2001::1", "2001:0:1::1",
    "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff:ffff::1", "2001:db8::1", "2001:DB8:1::1", "2002::1",
    "3fff::1", "3fff:fff::1", "4000::1", "5f00::1", "8000::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fd20:ce::254",
    "fdff:ffff::1", "fe80::1", "fe80::a9fe:a9fe", "febf::1", "fec0::1", "feff::1", "ff02::1", "ff05::1:3",
    "FF0E::1", "200::1", "1::1",
)  # fmt: skip

ODD_PORTS = (1, 7, 19, 21, 22, 23, 25, 53, 81, 110, 111, 137, 139, 389, 445, 465, 587, 873, 1080, 1433, 2049, 2375,
             2379, 3306, 5432, 5900, 5984, 6379, 6443, 8500, 9000, 9200, 10250, 11211, 18790, 27017)  # fmt: skip

SCHEMES = (
    "file:///etc/hostname", "file://127.0.0.1/etc/hostname", "ftp://127.0.0.1/", "gopher://127.0.0.1:80/_GET%20/",
    "dict://127.0.0.1:11211/stats", "ldap://127.0.0.1/", "tftp://127.0.0.1/x", "sftp://127.0.0.1/", "ssh://127.0.0.1/",
    "ws://127.0.0.1/", "wss://127.0.0.1/", "unix:///var/run/docker.sock", "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "data:text/html,hello", "javascript:alert(1)", "jar:http://127.0.0.1!/", "netdoc:///etc/hostname",
    "blob:http://127.0.0.1/x", "about:blank", "view-source:http://127.0.0.1/", "feed:http://127.0.0.1/",
    "url:http://127.0.0.1/", "http:127.0.0.1", "http:/127.0.0.1", "http:///127.0.0.1", "http:////127.0.0.1",
    "https:127.0.0.1", "//127.0.0.1/", "127.0.0.1", "127.0.0.1:80", "http", "http:", "http://", "https://", "", " ",
    "?", "/", "h\u0442tp://127.0.0.1/", "htt\tp://127.0.0.1/",
)  # fmt: skip

# Two programs may read these differently: what one takes for the host is the user's name to another.
TRICKS = (
    "http://user@127.0.0.1/", "http://user:pw@127.0.0.1/", "http://public.test@127.0.0.1/",
    "http://127.0.0.1@public.test/", "http://public.test:80@127.0.0.1:80/", "http://127.0.0.1:80@public.test:80/",
    "http://@127.0.0.1/", "http://:@127.0.0.1/", "http://public.test%40127.0.0.1/", "http://public.test\\@127.0.0.1/",
    "http://127.0.0.1\\@public.test/", "http://127.0.0.1\\.public.test/", "http://public.test\\127.0.0.1/",
    "http:\\\\127.0.0.1\\", "http:/\\127.0.0.1/", "http://127.0.0.1\\/", "http://127.0.0.1%2f@public.test/",
    "http://127.0.0.1%23@public.test/", "http://127.0.0.1%00.public.test/", "http://127.0.0.1\x00.public.test/",
    "http://127.0.0.1%20.public.test/", "http://127.0.0.1 .public.test/", "http://127.0.0.1\t/", "http://127.0.0.1\n/",
    "http://127.0.0.1\r\nHost: public.test/", "http://127.0.\n0.1/", "\thttp://127.0.0.1/", "\x00http://127.0.0.1/",
    " http://127.0.0.1/", "http://127.0.0.1/\r\nX-Evil: 1", "http://public.test/\r\nHost: 127.0.0.1",
    "http://127.0.0.1 @public.test/", "http://127.0.0.1;public.test/", "http://127.0.0.1,public.test/",
    "http://127.0.0.1&public.test/", "http://127.0.0.1#@public.test/", "http://127.0.0.1?@public.test/",
    "http://127.0.0.1/#@public.test/", "http://127.0.0.1:80:80/", "http://127.0.0.1::80/", "http://127.0.0.1:+80/",
    "http://127.0.0.1:-1/", "http://127.0.0.1:0/", "http://127.0.0.1:65616/", "http://127.0.0.1:080080/",
    "http://127.0.0.1:\uff18\uff10/", "http://127.0.0.1:80 /", "http://127.0.0.1:8 0/", "http://127.0.0.1:/",
    "http://127.0.0.1:0x50/", "http://[::1/", "http://::1/", "http://::1]/", "http://[::1]extra/",
    "http://[::1].public.test/", "http://[[::1]]/", "http://[::1%25lo]/", "http://[::1%lo]/",
    "http://[fe80::1%25eth0]/", "http://[::1]:80@public.test/", "http://[v1.127.0.0.1]/", "http://[127.0.0.1]/",
    "http://[localhost]/", "http://[]/", "http://[::ffff:127.1]/", "http://[::ffff:0x7f000001]/", "http://127.0.0.1./",
    "http://127.0.0.1../", "http://.127.0.0.1/", "http://127..0.0.1/", "http://127.0.0.1.1/", "http://256.0.0.1/",
    "http://127.0.0.01/", "http://127.0.0.0x1/", "http://127.0.0.08/", "http://1.1.1.1.127/", "http://-127.0.0.1/",
    "http://127.0.0.1-/", "http://+127.0.0.1/", "http://\u0661\u0662\u0667.0.0.1/", "http://127\u30020\u30020\u30021/",
    "http://127\uff0e0\uff0e0\uff0e1/", "http://127\uff610\uff610\uff611/", "http://127.0.0.1\u200b/",
    "http://\u202e127.0.0.1/", "http://127.0.0.1\u00ad/", "http://127.0.0.1\ufe0f/",
    "http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/", "http://127.0.0.1\uff0fpublic.test/", "http://127.0.0.1\u2028/",
    "http://127.0.0.1\x85/", "http://public.test\uff20127.0.0.1/", "http://127.0.0.1\uff1a80/",
    "http://" + "a" * 64 + ".127.0.0.1/", "http://" + "127.0.0.1" * 900 + "/", "http://!/", "http://*/",
    "http://$(x)/", "http://<127.0.0.1>/", "http://'127.0.0.1'/", 'http://"127.0.0.1"/', "http://{127.0.0.1}/",
    "http://127.0.0.1|/", "http://127.0.0.1^/", "http://`127.0.0.1`/",
)  # fmt: skip

NAMES = (
    "localhost", "LOCALHOST", "localhost.", "LocalHost.", "ip6-localhost", "inside.test", "metadata.test", "loop.test",
    "six.test", "mapped.test", "translated.test", "mixed.test", "mixed-six.test", "many.test", "alias.test",
    "zero.test", "linklocal.test", "ulalocal.test", "broadcast.test", "\uff4c\uff4fcalhost", "inside\u3002test",
    "\u2110nside.test", "LOOP.TEST", "loop.test.",
)  # fmt: skip


def numeric(address: IPv4Address) -> Iterator[str]:
    """One IPv4 address, as inet_aton, browsers and IPv6 write it."""
    number, parts = int(address), address.packed
    a, b, c, d = parts
    high, low = f"{number >> 16:x}", f"{number & 0xFFFF:x}"
    yield from (str(address), f"{number}", f"0x{number:x}", f"0X{number:08X}", f"0{number:o}", f"{number + 2**32}")
    yield from (f"{a}.{number & 0xFFFFFF}", f"{a}.{b}.{number & 0xFFFF}", f"0x{a:x}.{number & 0xFFFFFF}")
    yield from (".".join(f"0x{part:x}" for part in parts), ".".join(f"0{part:o}" for part in parts))
    yield from (".".join(f"{part:03o}".rjust(8, "0") for part in parts), f"0x{a:x}.{b}.0{c:o}.{d}")
    yield from (f"{address}.", "".join(f"%{ord(each):02x}" for each in str(address)), str(address).replace(".", "%2e"))
    yield from (
        str(address).translate({0x30 + digit: 0xFF10 + digit for digit in range(10)}),  # of full width
        str(address).translate({0x2E: 0x3002}),  # with ideographic full stops
        str(address).translate({0x31 + digit: 0x2460 + digit for digit in range(9)}),  # in circles
        str(address).translate({0x30 + digit: 0x1D7CE + digit for digit in range(10)}),  # in bold
    )
    yield from (f"[::ffff:{address}]", f"[::ffff:{high}:{low}]", f"[0:0:0:0:0:FFFF:{address}]", f"[::{address}]")
    yield from (f"[::{high}:{low}]", f"[::ffff:0:{address}]", f"[64:ff9b::{address}]", f"[64:ff9b:1::{high}:{low}]")
    yield from (f"[2002:{high}:{low}::1]", f"[2002:{high}:{low}:1::{high}:{low}]")
    yield f"[{IPv6Address((0x20010000 << 96) | (0x41D0 << 64) | (number ^ 0xFFFFFFFF))}]"  # Teredo turns the bits
    yield from (f"[2606:4700::5efe:{address}]", f"[2606:4700::200:5efe:{address}]", f"[fe80::5efe:{address}]")


FORMS: tuple[str, ...] = tuple(
    dict.fromkeys(
        chain(
            (f"http://{host}/" for each in INSIDE for host in numeric(IPv4Address(each))),
            (f"https://{host}:8443/latest/meta-data" for host in numeric(IPv4Address("169.254.169.254"))),
            (f"http://{each}/" for each in NOT_PUBLIC_4),
            (f"http://[{each}]/" for each in NOT_PUBLIC_6),
            (f"http://1.1.1.1:{port}/" for port in ODD_PORTS),
            (f"http://[2606:4700:4700::1111]:{port}/" for port in ODD_PORTS[:5]),
            SCHEMES,
            TRICKS,
        )
    )
)
NAMED: tuple[str, ...] = tuple(f"http://{name}/" for name in NAMES)
