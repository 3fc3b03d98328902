"""Where a key is found, and that nobody sees it."""

from collections.abc import Mapping

import pytest

from everloop.errors import ModelMissing
from everloop.providers.catalog import HOSTS
from everloop.providers.keys import Keys
from everloop.settings import AccountSection

GEMINI = HOSTS["gemini"]
SECRET = "sk-canary-do-not-show"


def found(
    tmp_path, account=None, environ: Mapping[str, str] = {}, vault: Mapping[str, str] = {}
) -> tuple[str, str] | None:
    """The key and where it was found."""
    key = Keys({"gemini": account} if account else {}, environ, vault, tmp_path).find(GEMINI)
    return None if key is None else (str(key), key.where)


def test_settings_come_before_a_file_before_the_environment_before_the_vault(tmp_path):
    (tmp_path / "key").write_text("of the file\n")
    environ, vault = {"GEMINI_API_KEY": "of the environment"}, {"gemini": "of the vault"}
    both, file = AccountSection(api_key="of the settings", api_key_file="key"), AccountSection(api_key_file="key")
    assert found(tmp_path, both, environ, vault) == ("of the settings", "settings")
    assert found(tmp_path, file, environ, vault) == ("of the file", "file")
    assert found(tmp_path, None, environ, vault) == ("of the environment", "GEMINI_API_KEY")
    assert found(tmp_path, None, {}, vault) == ("of the vault", "vault")
    assert found(tmp_path) is None


def test_of_two_variables_the_first_counts_and_an_empty_one_does_not(tmp_path):
    both = {"GEMINI_API_KEY": "one", "GOOGLE_API_KEY": "two"}
    assert found(tmp_path, None, both) == ("one", "GEMINI_API_KEY")
    assert found(tmp_path, None, both | {"GEMINI_API_KEY": ""}) == ("two", "GOOGLE_API_KEY")


def test_another_hosts_key_is_not_taken(tmp_path):
    assert found(tmp_path, None, {"OPENAI_API_KEY": "other"}, {"openai": "other"}) is None


def test_a_key_file_may_be_named_from_anywhere(tmp_path):
    path = tmp_path / "elsewhere" / "key"
    path.parent.mkdir()
    path.write_text("  far \n\n")
    assert found(tmp_path / "home", AccountSection(api_key_file=str(path))) == ("far", "file")


def test_a_key_file_of_the_persons_own_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text("mine")
    assert found(tmp_path / "home", AccountSection(api_key_file="~/key")) == ("mine", "file")


def test_a_key_is_not_in_its_repr_nor_in_that_of_what_holds_it(tmp_path):
    account = AccountSection(api_key=SECRET, headers={"X-Key": SECRET})
    key = Keys({"gemini": account}, {}, {}, tmp_path).find(GEMINI)
    assert (repr(key), SECRET in repr([key, account])) == ("FoundKey(…, 'settings')", False)
    assert key == SECRET


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "cannot be read (No such file or directory)"),
        (b" \n", "is empty"),
        (b"\xff\xfe\x00", "cannot be read (it is not text)"),
    ],
    ids=["missing", "empty", "no text"],
)
def test_a_key_file_that_holds_no_key_is_a_sentence(tmp_path, content, says):
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ModelMissing) as raised:
        found(tmp_path, AccountSection(api_key_file="key"), {"GEMINI_API_KEY": "not this instead"})
    assert str(raised.value) == f"the key file of gemini, {path}, {says}"


def test_a_folder_is_no_key_file(tmp_path):
    with pytest.raises(ModelMissing, match=r"cannot be read \(Is a directory\)"):
        found(tmp_path, AccountSection(api_key_file="."))
