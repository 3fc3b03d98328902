"""A server aims nothing inside: neither its metadata, nor its authorization server, nor a redirect leads us to an
address that is not public; judged by what a canary sees, in a network namespace."""

import pytest
from tests.net import cage
from tests.tools.mcp.mcp_cage import INSIDE_URLS, PLAIN_URLS, REBINDINGS, WAYS

LACKS = cage.missing()
pytestmark = pytest.mark.skipif(bool(LACKS), reason=LACKS)
AIMED = ("resource_metadata", "authorization_servers", "registration_endpoint", "token_endpoint")
NOT_FOLLOWED = ("metadata redirects", "the server itself redirects")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict:
    return cage.caged(tmp_path_factory.mktemp("cage"), "tests.tools.mcp.mcp_cage")


def test_all_ways_are_tried():
    assert {*AIMED, *NOT_FOLLOWED} == {*WAYS}


@pytest.mark.parametrize("way", AIMED)
def test_a_public_authorization_server_is_asked(seen: dict, way: str):
    """Else it would prove nothing that others are not. (No certificate of the canary's is trusted.)"""
    assert seen[f"public: {way}"]["reached"] == {cage.PUBLIC: 2}


@pytest.mark.parametrize("way", WAYS)
def test_what_leads_inside_is_not_reached(seen: dict, way: str):
    table = seen[f"inside: {way}"]
    assert (len(table["outcomes"]), table["reached"]) == (len(INSIDE_URLS), {})
    assert "logged in" not in table["outcomes"].values()


@pytest.mark.parametrize("way", AIMED)
def test_it_is_said_what_was_refused_and_what_the_owner_can_do(seen: dict, way: str):
    said = seen[f"inside: {way}"]["outcomes"]
    assert [url for url, each in said.items() if "oauth.issuers" not in each and "not a web address" not in each] == []
    assert said["https://169.254.169.254/latest/meta-data"] == (
        "The login to demo failed: 169.254.169.254 belongs to the local link, where clouds keep their secrets. Only "
        "the owner can permit it. If that is its authorization server, name it in the server's oauth.issuers."
    )


@pytest.mark.parametrize("way", WAYS)
def test_what_is_not_encrypted_is_not_reached(seen: dict, way: str):
    table = seen[f"plain: {way}"]
    assert (len(table["outcomes"]), table["reached"]) == (len(PLAIN_URLS), {})


@pytest.mark.parametrize("way", NOT_FOLLOWED)
def test_no_redirect_is_followed_to_another_origin(seen: dict, way: str):
    assert seen[f"public: {way}"]["reached"] == {}


def test_messages_follow_nobody_elsewhere(seen: dict):
    assert seen["calls"]["reached"] == {}
    assert [each for each in seen["calls"]["outcomes"].values() if "connected" in each] == []


@pytest.mark.parametrize("way", AIMED)
def test_without_the_guard_the_same_addresses_are_reached(seen: dict, way: str):
    assert {"127.0.0.1", "10.0.0.5", "169.254.169.254"} <= set(seen[f"careless: {way}"]["reached"])


def test_a_name_that_changes_its_mind_leads_nowhere(seen: dict):
    """DNS rebinding: what was public when it was first asked for is loopback from then on."""
    assert seen["rebound, first"] == {cage.PUBLIC: REBINDINGS}
    assert seen["rebound, again"]["reached"] == {}
    assert len(seen["rebound, again"]["outcomes"]) == REBINDINGS
