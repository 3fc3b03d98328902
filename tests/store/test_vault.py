"""The vault on both databases: what goes in comes out with the right key, and with no other."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from everloop.errors import HomeError, VaultLocked
from everloop.ports import Store
from everloop.store.vault import KEY_FILE, PASSPHRASE, EncryptedVault, Key, KeyFile, Passphrase, key_of

CANARY = "sk-canary-0123456789-ü🙂"


class Home(Protocol):
    async def connect(self) -> Store: ...
    async def lose(self, store: Store) -> None: ...
    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / KEY_FILE


class OnDisk:
    """The key file as a person with a shell would handle it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mode(self) -> int:
        return self.path.stat().st_mode & 0o777

    def change_mode(self, mode: int) -> None:
        self.path.chmod(mode)

    def content(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    def replace(self, content: bytes | None) -> None:
        self.path.unlink() if content is None else self.path.write_bytes(content)

    def around(self) -> list[str]:
        return [file.name for file in self.path.parent.glob("vault*")]


@pytest.fixture
def file(path: Path) -> OnDisk:
    return OnDisk(path)


@pytest.fixture
def vault(store: Store, path: Path) -> EncryptedVault:
    return EncryptedVault(store, KeyFile(path))


@pytest.fixture(params=["file", "passphrase"])
def key(request: pytest.FixtureRequest, path: Path) -> Key:
    return KeyFile(path) if request.param == "file" else Passphrase("open sesame")


async def locked(vault: EncryptedVault, name: str = "openai") -> str:
    with pytest.raises(VaultLocked) as raised:
        await vault.get(name)
    assert CANARY not in repr(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("value", [CANARY, "", "x" * 100_000, "half \udc80 a pair, zero \x00"])
async def test_a_value_comes_back_as_it_was_set(store: Store, key: Key, value: str):
    vault = EncryptedVault(store, key)
    await vault.set("openai", "an older one")
    await vault.set("openai", value)
    assert (await vault.get("openai"), await vault.names()) == (value, ["openai"])


async def test_another_process_with_the_same_key_reads_it(home: Home, path: Path):
    for key in (KeyFile(path), Passphrase("open sesame")):
        await EncryptedVault(await home.connect(), key).set("openai", CANARY)
        again = KeyFile(path) if isinstance(key, KeyFile) else Passphrase("open sesame")
        assert await EncryptedVault(await home.connect(), again).get("openai") == CANARY


async def test_a_home_without_a_vault_has_nothing_and_nothing_is_made_by_looking(vault: EncryptedVault, file: OnDisk):
    assert (await vault.get("openai"), await vault.names(), await vault.forget("openai")) == (None, [], False)
    assert file.around() == []


async def test_what_is_forgotten_is_gone(vault: EncryptedVault):
    for name in ("b", "a"):
        await vault.set(name, CANARY)
    assert await vault.names() == ["a", "b"]
    assert [await vault.forget("a") for _ in range(2)] == [True, False]
    assert (await vault.get("a"), await vault.get("b"), await vault.names()) == (None, CANARY, ["b"])


async def test_owners_do_not_see_each_other(store: Store, path: Path):
    ann, bob = EncryptedVault(store, KeyFile(path), "ann"), EncryptedVault(store, KeyFile(path), "bob")
    await ann.set("openai", "of ann")
    assert (await bob.get("openai"), await bob.names()) == (None, [])
    await bob.set("openai", "of bob")
    assert (await ann.get("openai"), await bob.get("openai")) == ("of ann", "of bob")


async def test_the_key_file_is_for_its_owner_alone_whatever_the_umask(vault: EncryptedVault, file: OnDisk):
    before = os.umask(0)
    try:
        await vault.set("openai", CANARY)
    finally:
        os.umask(before)
    assert (file.mode(), len(file.content() or b""), file.around()) == (0o600, 32, [KEY_FILE])


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
async def test_a_key_file_that_others_can_use_is_refused(vault: EncryptedVault, file: OnDisk, mode: int):
    await vault.set("openai", CANARY)
    file.change_mode(mode)
    assert f"chmod 600 {file.path}" in await locked(vault)
    with pytest.raises(VaultLocked, match=f"mode {mode:o}"):
        await vault.set("openai", "new")
    file.change_mode(0o600)
    assert await vault.get("openai") == CANARY


async def test_another_key_opens_nothing(vault: EncryptedVault, file: OnDisk):
    await vault.set("openai", CANARY)
    right = file.content()
    file.replace(bytes(32))
    assert await locked(vault) == (
        "openai in the vault cannot be read: it was locked with another key or passphrase, or has been changed since. "
        "Bring back the vault.key or the EVERLOOP_VAULT_PASSPHRASE of that time; or give it up with: "
        "everloop models key forget openai"
    )
    file.replace(right)
    assert await vault.get("openai") == CANARY


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("key:openai", "everloop models key forget openai"),
        ("login:github-copilot", "everloop models logout github-copilot"),
    ],
)
async def test_what_cannot_be_opened_is_given_up_by_a_command(
    vault: EncryptedVault, file: OnDisk, name: str, command: str
):
    await vault.set(name, CANARY)
    file.replace(bytes(32))
    assert (await locked(vault, name)).endswith(f"or give it up with: {command}")


async def test_a_key_file_that_is_damaged_is_named(vault: EncryptedVault, file: OnDisk):
    await vault.set("openai", CANARY)
    file.replace(b"short")
    assert f"the key file {file.path} is damaged" in await locked(vault)


async def test_a_missing_key_is_not_replaced_while_there_are_entries(vault: EncryptedVault, file: OnDisk):
    await vault.set("openai", CANARY)
    file.replace(None)
    assert f"the key file {file.path} is missing" in await locked(vault)
    with pytest.raises(VaultLocked, match="remove all entries to begin anew"):
        await vault.set("openai", CANARY)
    with pytest.raises(VaultLocked, match=f"openai in the vault cannot be read: the key file {file.path} is missing"):
        await vault.set("groq", CANARY)
    assert file.content() is None
    await vault.forget("openai")
    await vault.set("groq", CANARY)
    assert await vault.get("groq") == CANARY


async def test_a_home_that_cannot_be_written_is_named(store: Store, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(HomeError, match=r"the key file .* cannot be made"):
        await EncryptedVault(store, KeyFile(tmp_path / "file" / KEY_FILE)).set("openai", CANARY)


@pytest.mark.parametrize("place", [0, 1, 5, 13, 20, -1])
async def test_a_box_that_was_changed_does_not_open(store: Store, vault: EncryptedVault, place: int):
    await vault.set("openai", CANARY)
    box = bytearray(await store.secret("owner", "openai") or b"")
    box[place] ^= 64
    await store.keep_secret("owner", "openai", bytes(box))
    await locked(vault)
    box[place] ^= 64
    await store.keep_secret("owner", "openai", bytes(box))
    assert await vault.get("openai") == CANARY


@pytest.mark.parametrize("length", [0, 1, 12, 20])
async def test_a_box_that_was_cut_does_not_open(store: Store, vault: EncryptedVault, length: int):
    await vault.set("openai", CANARY)
    box = await store.secret("owner", "openai") or b""
    await store.keep_secret("owner", "openai", box[:length])
    await locked(vault)


async def test_boxes_open_in_their_own_place_only(store: Store, key: Key):
    vault, bobs = EncryptedVault(store, key), EncryptedVault(store, key, "bob")
    for name in ("openai", "groq"):
        await vault.set(name, f"key of {name}")
    boxes = [await store.secret("owner", name) or b"" for name in ("openai", "groq")]

    async def put(names: tuple[str, str], owner: str = "owner") -> None:
        for name, box in zip(names, boxes, strict=True):
            await store.keep_secret(owner, name, box)

    await put(("groq", "openai"))
    await put(("openai", "groq"), "bob")
    for name in ("openai", "groq"):
        await locked(vault, name)
        await locked(bobs, name)
    await put(("openai", "groq"))
    assert [await vault.get(name) for name in ("openai", "groq")] == ["key of openai", "key of groq"]


async def test_owner_and_name_do_not_run_into_each_other(store: Store, path: Path):
    await EncryptedVault(store, KeyFile(path), "ann").set("xkey", CANARY)
    await store.keep_secret("annx", "key", await store.secret("ann", "xkey") or b"")
    await locked(EncryptedVault(store, KeyFile(path), "annx"), "key")


async def test_the_same_value_never_makes_the_same_box(store: Store, key: Key):
    vault, boxes = EncryptedVault(store, key), set()
    for _ in range(20):
        await vault.set("openai", CANARY)
        boxes.add(await store.secret("owner", "openai"))
    assert len(boxes) == 20


async def test_a_wrong_passphrase_opens_nothing(store: Store):
    await EncryptedVault(store, Passphrase("open sesame")).set("openai", CANARY)
    assert "another key or passphrase" in await locked(EncryptedVault(store, Passphrase("open sesam")))
    assert await EncryptedVault(store, Passphrase("open sesame")).get("openai") == CANARY


async def test_salts_are_random_and_an_owner_keeps_to_one(store: Store):
    """What makes a key takes its time, and is done once for all that a process opens."""
    first, second = EncryptedVault(store, Passphrase("open sesame")), EncryptedVault(store, Passphrase("open sesame"))
    bobs = EncryptedVault(store, Passphrase("open sesame"), "bob")
    for vault, name in ((first, "a"), (first, "b"), (second, "c"), (bobs, "a")):
        await vault.set(name, CANARY)
    a, b, c = [(await store.secret("owner", name) or b"")[:17] for name in "abc"]
    other = (await store.secret("bob", "a") or b"")[:17]
    assert (a == b == c, a == other) == (True, False)
    assert [await second.get(name) for name in "abc"] == [CANARY] * 3


class Replaced:
    """A key file that was lost and made anew: nothing that it makes opens what was closed before."""

    def __init__(self, path: Path) -> None:
        self._key = KeyFile(path.with_name("vault.key.new"))

    def opening(self, box: bytes) -> tuple[int, bytes]:
        self._key.closing(may_be_made=True)
        return self._key.opening(box)

    def closing(self, *, may_be_made: bool) -> tuple[bytes, bytes]:
        return self._key.closing(may_be_made=True)


KEYS: dict[str, Callable[[Path], Key]] = {
    "file": KeyFile,
    "another file": Replaced,
    "passphrase": lambda path: Passphrase("open sesame"),
    "another passphrase": lambda path: Passphrase("open sesam"),
}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("file", "another file", "it was locked with another key or passphrase"),
        ("file", "passphrase", f"Unset {PASSPHRASE}"),
        ("passphrase", "another passphrase", "it was locked with another key or passphrase"),
        ("passphrase", "file", f"Set it in {PASSPHRASE}"),
    ],
)
async def test_with_another_key_nothing_is_put_beside_what_is_there(
    home: Home, store: Store, path: Path, old: str, new: str, why: str
):
    right, wrong = EncryptedVault(store, KEYS[old](path)), EncryptedVault(store, KEYS[new](path))
    for name in ("groq", "openai"):
        await right.set(name, CANARY)
    before = await home.rows("SELECT owner, name, box FROM vault ORDER BY name")
    for name, other in (("mistral", "groq"), ("openai", "groq"), ("groq", "openai")):
        with pytest.raises(VaultLocked, match=f"^{other} in the vault cannot be read: ") as raised:
            await wrong.set(name, "new")
        assert why in str(raised.value)
    assert await home.rows("SELECT owner, name, box FROM vault ORDER BY name") == before
    assert [await right.get(name) for name in await right.names()] == [CANARY, CANARY]


async def test_the_last_entry_may_be_replaced_with_another_passphrase(store: Store):
    old, new = EncryptedVault(store, Passphrase("open sesame")), EncryptedVault(store, Passphrase("open sesam"))
    await old.set("openai", CANARY)
    await new.set("openai", "new")
    await new.set("groq", "another")
    assert [await new.get(name) for name in ("openai", "groq")] == ["new", "another"]


async def test_the_other_way_of_locking_is_named(store: Store, path: Path):
    by_file, by_passphrase = EncryptedVault(store, KeyFile(path)), EncryptedVault(store, Passphrase("open sesame"))
    await by_file.set("openai", CANARY)
    assert f"Unset {PASSPHRASE}" in await locked(by_passphrase)
    await by_passphrase.set("openai", CANARY)
    assert f"Set it in {PASSPHRASE}" in await locked(by_file)


async def test_a_box_of_a_later_version_asks_for_an_upgrade(store: Store, vault: EncryptedVault):
    await store.keep_secret("owner", "openai", b"\x09 whatever comes")
    assert "Upgrade everloop" in await locked(vault)


def test_the_passphrase_of_the_environment_comes_before_the_key_file(tmp_path: Path):
    found = [key_of(tmp_path, environ) for environ in ({}, {PASSPHRASE: ""}, {PASSPHRASE: "open sesame"})]
    assert [type(key) for key in found] == [KeyFile, KeyFile, Passphrase]
    assert "sesame" not in repr(found)


async def test_processes_that_set_at_once_make_one_key(home: Home, file: OnDisk):
    vaults = [EncryptedVault(await home.connect(), KeyFile(file.path)) for _ in range(3)]
    await asyncio.gather(*(vaults[n % 3].set(f"key {n}", CANARY) for n in range(12)))
    assert [await vault.get(f"key {n}") for n in range(12) for vault in vaults] == [CANARY] * 36
    assert file.around() == [KEY_FILE]


RACER = """
import sys
from pathlib import Path
from everloop.store.vault import KeyFile
print("ready", flush=True)
sys.stdin.readline()
print(KeyFile(Path(sys.argv[1])).closing(may_be_made=True)[1].hex())
"""


def test_real_processes_that_meet_agree_on_the_key(path: Path):
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, str(path)], stdin=-1, stdout=-1, text=True) for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    assert {racer.communicate()[0].strip() for racer in racers} == {path.read_bytes().hex()}


def files_with(folder: Path, word: bytes) -> set[str]:
    return {file.name for file in folder.rglob("*") if file.is_file() and word in file.read_bytes()}


async def test_nothing_of_a_value_can_be_read_in_any_file_of_the_home(sqlite_home: Home, tmp_path: Path):
    store = await sqlite_home.connect()
    await EncryptedVault(store, key_of(tmp_path, {})).set("openai", CANARY)
    await EncryptedVault(store, key_of(tmp_path, {PASSPHRASE: "open sesame"}), "bob").set("groq", CANARY)
    await sqlite_home.lose(store)
    words = (CANARY.encode(), b"canary", b"open sesame", (tmp_path / KEY_FILE).read_bytes())
    assert [files_with(tmp_path, word) for word in words] == [set(), set(), set(), {KEY_FILE}]


@pytest.mark.may_hold_keys("everloop.db")
async def test_the_search_would_have_found_it(sqlite_home: Home, tmp_path: Path):
    store = await sqlite_home.connect()
    await store.keep_secret("owner", "openai", CANARY.encode())
    await sqlite_home.lose(store)
    assert files_with(tmp_path, CANARY.encode()) == {"everloop.db"}


async def test_nothing_of_a_value_can_be_read_in_the_rows(home: Home, vault: EncryptedVault):
    await vault.set("openai", CANARY)
    rows = await home.rows("SELECT owner, name, box FROM vault")
    assert [(owner, name, CANARY.encode() in bytes(box)) for owner, name, box in rows] == [("owner", "openai", False)]


UNTOUCHED = """
import asyncio, sys
from pathlib import Path
from everloop.store.sqlite import SqliteStore
from everloop.store.vault import EncryptedVault, key_of
async def main():
    store = await SqliteStore.connect(Path(sys.argv[1]))
    vault = EncryptedVault(store, key_of(Path(sys.argv[1]), {}))
    assert await vault.get("openai") is None
    print("cryptography" in sys.modules)
    await vault.set("openai", "x")
    print("cryptography" in sys.modules)
    await store.close()
asyncio.run(main())
"""


def test_cryptography_is_loaded_by_the_first_box_and_not_before(tmp_path: Path):
    ran = subprocess.run([sys.executable, "-c", UNTOUCHED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]


async def test_nobodys_first_secret_makes_another_key_file_where_others_have_theirs(
    store: Store, vault: EncryptedVault, path: Path, file: OnDisk
):
    await vault.set("key:openai", CANARY)
    file.replace(None)
    with pytest.raises(VaultLocked, match="Bring it back from where it was copied to"):
        await EncryptedVault(store, KeyFile(path), "anna").set("own-key:openai", CANARY)
    assert file.content() is None
