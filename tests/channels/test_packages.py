"""Every channel of ours: looking at its package costs nothing, and it says how it is set up."""

import subprocess
import sys
from importlib import import_module

import pytest

from everloop.app.channels import OURS
from everloop.errors import SettingsError
from everloop.ports.channel import Manifest, Setup
from tests.channels.platform import Receiver

HEAVY = ("websockets", "markdown_it", "aiohttp", "ssl", "cryptography", "nio")
LOOK = f"import sys, {', '.join(OURS.values())}; print(*sorted({HEAVY!r} & sys.modules.keys()))"


def test_looking_at_all_of_them_loads_nothing_heavy():
    look = LOOK.replace(repr(HEAVY), repr(set(HEAVY)))
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
    seen = subprocess.run(
        [sys.executable, "-c", f"import markdown_it; {look}"], capture_output=True, text=True, check=True
    )
    assert "markdown_it" in seen.stdout.split()


@pytest.mark.parametrize("name", OURS)
def test_it_says_how_it_is_set_up_and_takes_what_it_asks_for(name: str):
    package = import_module(OURS[name])
    assert isinstance(package.MANIFEST, Manifest)
    assert isinstance(package.SETUP, Setup)
    assert (package.MANIFEST.name, bool(package.SETUP.steps), bool(package.SETUP.fields)) == (name, True, True)
    package.check_keys({field.name: "x" for field in package.SETUP.fields})
    if hasattr(package, "log_in"):
        assert package.LOGIN, "what its login asks for"


@pytest.mark.parametrize("name", OURS)
def test_what_it_does_not_know_or_is_not_given_is_one_sentence(name: str):
    package = import_module(OURS[name])
    with pytest.raises(SettingsError, match=rf"there is no setting channels\.{name}\.no_such_key"):
        package.check_keys({"no_such_key": 1})
    with pytest.raises(SettingsError, match=rf"channels\.{name}"):
        package.open_channel({}, Receiver())
