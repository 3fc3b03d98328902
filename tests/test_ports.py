"""A port that was found free stays free for whoever found it."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ports import PORTS, _hold, free_port

ASK = "from tests.ports import free_port; print(*[free_port() for _ in range(100)]); input()"


def test_processes_that_ask_at_once_are_given_different_ports():
    place = Path(__file__).parents[1]
    asking = [subprocess.Popen([sys.executable, "-c", ASK], stdin=-1, stdout=-1, text=True, cwd=place) for _ in "abc"]
    given = [line.split() for line in (each.stdout.readline() for each in asking)]
    every = [*(int(port) for ports in given for port in ports), *(free_port() for _ in range(100))]
    for each in asking:
        each.communicate("\n")
    assert len({*every}) == len(every) == 400
    assert {*every} <= {*PORTS}


def test_a_port_is_not_given_twice_and_can_be_listened_at():
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        assert _hold(port) is None
    assert _hold(port) is None


def test_a_port_at_which_something_else_listens_is_not_given():
    with socket.create_server(("127.0.0.1", 0)) as other:
        assert _hold(other.getsockname()[1]) is None


@pytest.mark.skipif(sys.platform != "linux", reason="where the system's own ports begin is told by Linux alone")
def test_the_system_gives_none_of_them_away_by_itself():
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert PORTS.stop + 10_000 <= first
