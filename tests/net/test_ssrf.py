"""Nothing that a model, a user or a page can aim arrives inside; judged by what a canary sees, not by what is said."""

import pytest
from tests.net import cage
from tests.net.ssrf import FORMS, NAMED

LACKS = cage.missing()
pytestmark = pytest.mark.skipif(bool(LACKS), reason=LACKS)


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> dict:
    return cage.caged(tmp_path_factory.mktemp("cage"))


def outcomes(table: dict) -> dict[str, int]:
    counted: dict[str, int] = {}
    for _, each in table["outcomes"]:
        counted[each] = counted.get(each, 0) + 1
    return counted


def test_in_the_cage_public_addresses_are_reached(seen):
    """Else it would prove nothing that others are not."""
    assert outcomes(seen["public"]) == {"answered": 3}
    assert seen["public"]["reached"] == {cage.PUBLIC: 2, cage.PUBLIC_6: 1}


def test_every_form_and_every_name_that_leads_inside_is_refused(seen):
    assert len(FORMS) >= 500
    assert [each for each in seen["guarded"]["outcomes"] if each[1] != "AddressRefused"] == []
    assert seen["guarded"]["reached"] == {}


def test_web_fetch_refuses_them_too(seen):
    assert [each for each in seen["fetched"]["outcomes"] if not each[1].startswith("ToolError: ")] == []
    assert seen["fetched"]["reached"] == {}


def test_with_the_guard_off_the_same_requests_arrive(seen):
    """What is still refused is no address at all, or one that only a careless reader takes for one."""
    assert sum(seen["trusting"]["reached"].values()) > 200
    assert seen["trusting"]["reached"]["127.0.0.1"] >= 5
    assert {"10.0.0.5", "169.254.169.254", "100.100.100.200", "::1", "fd00:ec2::254"} <= seen["trusting"][
        "reached"
    ].keys()
    assert sum(seen["careless"]["reached"].values()) > 350


def test_public_addresses_of_this_machine_and_its_neighbours_are_refused(seen):
    assert outcomes(seen["at home"]) == {"AddressRefused": len(cage.AT_HOME)}
    assert seen["at home"]["reached"] == {}
    assert len(seen["at home, trusting"]["reached"]) == len(cage.AT_HOME)


def test_a_redirect_is_checked_like_the_first_address(seen):
    """Every redirect comes from the one public host; nothing arrives anywhere else."""
    assert seen["redirected"]["reached"].keys() == {cage.PUBLIC}
    assert outcomes(seen["redirected"])["AddressRefused"] > 500
    assert len(seen["redirected, trusting"]["reached"]) > 100


def test_a_name_that_changes_its_mind_leads_where_it_was_checked(seen):
    assert outcomes(seen["rebound"]) == {"answered": cage.REBINDINGS}
    assert seen["rebound"]["reached"] == {cage.PUBLIC: cage.REBINDINGS}
    assert outcomes(seen["rebound, asked again"]) == {"AddressRefused": 50}
    assert seen["rebound, asked again"]["reached"] == {}


def test_a_websocket_goes_nowhere_that_a_request_may_not(seen):
    assert len(seen["websockets"]["outcomes"]) > 500
    assert outcomes(seen["websockets"]).keys() <= {"AddressRefused", "HostUnreachable"}
    assert seen["websockets"]["reached"] == {}
    assert seen["websockets, rebound"] == {"outcomes": [["'ws://rebind-ws.test/'", "AddressRefused"]], "reached": {}}


def test_with_the_guard_off_the_same_websockets_arrive(seen):
    assert outcomes(seen["websockets, public"]) == {"SocketRefused": 2}
    assert seen["websockets, public"]["reached"] == {cage.PUBLIC: 2}
    assert sum(seen["websockets, trusting"]["reached"].values()) > 200
    assert {"127.0.0.1", "10.0.0.5", "169.254.169.254", "::1"} <= seen["websockets, trusting"]["reached"].keys()


def test_a_look_before_asking_is_passed_by_such_a_name(seen):
    assert seen["rebound, careless"]["reached"] == {"127.0.0.1": 20}


def test_the_cage_has_names_with_both_kinds_of_addresses(seen):
    assert sorted(set(seen["names"])) == [cage.PUBLIC, "::1"]
    assert len(NAMED) >= 20
