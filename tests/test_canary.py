"""The guard over keys can fail: each kind of leak is caught, and what a test itself has put down is none."""

import gzip
import io
import json
import logging
import os
import subprocess
import sys
import zipfile
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import apsw
import pytest

from tests.canary import FORMS, PREFIX, Ear, files_with_a_key, holds_a_key

KEY = f"{PREFIX}-of-this-test"
ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.may_hold_keys("leak*")  # the guard also guards its own tests


def zipped(text: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in/it.txt", text)
    return made.getvalue()


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def log(ear: Ear) -> Iterator[logging.Logger]:
    logger = logging.getLogger("not everloop's, which the guard of this run hears")
    logger.addHandler(ear)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    yield logger
    logger.removeHandler(ear)


def test_a_key_in_a_message_is_heard_once(ear: Ear, log: logging.Logger):
    log.debug("asking with %s", KEY)
    log.debug("asking with %s", "***")
    assert ear.told() == [f"the logger {log.name} has told a key: asking with {KEY}"]
    assert ear.told() == []


def test_a_key_in_an_error_behind_an_error_is_heard(ear: Ear, log: logging.Logger):
    try:
        try:
            raise ValueError(f"bad key {KEY}")
        except ValueError as error:
            raise RuntimeError("it failed") from error
    except RuntimeError:
        log.exception("thread 1 failed")
    (leak,) = ear.told()
    assert f"ValueError: bad key {KEY}" in leak


def test_a_key_in_a_file_is_found_wherever_it_lies(tmp_path: Path):
    leaks = [tmp_path / "leak.txt", tmp_path / "deep" / "er" / "leak.bin"]
    for leak in leaks:
        leak.parent.mkdir(parents=True, exist_ok=True)
        leak.write_bytes(b"\xff" * 1000 + KEY.encode())
    (tmp_path / "deep" / "harmless.txt").write_text("sk-another")
    assert sorted(files_with_a_key(tmp_path)) == sorted(leaks)


def test_a_key_in_a_row_of_a_database_is_found_also_while_it_is_open(tmp_path: Path):
    database = apsw.Connection(str(tmp_path / "leak.db"))
    database.execute("PRAGMA journal_mode = wal")
    database.execute("CREATE TABLE entries(body TEXT)")
    database.execute("INSERT INTO entries VALUES(?)", (f'{{"text":"bad key {KEY}"}}',))
    assert [path.name for path in files_with_a_key(tmp_path)] == ["leak.db-wal"]
    database.close()
    assert [path.name for path in files_with_a_key(tmp_path)] == ["leak.db"]


def percent(text: str) -> bytes:
    return "".join(f"%{byte:02X}" for byte in text.encode()).encode()


ENCODERS: dict[str, list[Callable[[str], bytes]]] = {
    "plain": [str.encode, lambda text: json.dumps(text).encode(), lambda text: quote(text).encode()],
    "base64": [lambda text: b64encode(text.encode()), lambda text: urlsafe_b64encode(text.encode())],
    "hexadecimal": [lambda text: text.encode().hex().encode(), lambda text: text.encode().hex().upper().encode()],
    "percent": [percent, lambda text: percent(text).lower()],
    "unicode escapes": [lambda text: "".join(rf"\u{ord(each):04x}" for each in text).encode()],
    "utf-16": [lambda text: text.encode("utf-16-le"), lambda text: text.encode("utf-16-be")],
    "compressed": [lambda text: gzip.compress(text.encode()), zipped],
}


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "Bearer ", "user:", "api:", "??>"])
@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_key_is_known_in_each_encoding(encoding: str, before: str):
    for encode in ENCODERS[encoding]:
        assert holds_a_key(encode(f"{before}{KEY} and more"))
        assert not holds_a_key(encode(f"{before}another and more"))


def test_there_are_six_encodings_and_each_is_known_by_a_form_of_its_own():
    assert [*FORMS, "utf-16", "compressed"] == [*ENCODERS]  # UTF-16 is known without a form: see `holds_a_key`
    assert len({form for forms in FORMS.values() for form in forms}) == sum(map(len, FORMS.values()))


def test_where_a_test_has_put_its_key_it_may_be(tmp_path: Path):
    for name in ("config.toml", "config.json", "openai.key", "key.txt", "declared.db"):
        (tmp_path / name).write_text(KEY)
    assert [path.name for path in files_with_a_key(tmp_path)] == ["declared.db"]
    assert files_with_a_key(tmp_path, ["declared.*"]) == []
    (tmp_path / "declared.db").unlink()


def test_the_vaults_own_key_file_is_no_place_for_another_key(tmp_path: Path):
    path = tmp_path / "vault.key"
    path.write_text(KEY)
    assert files_with_a_key(tmp_path) == [path]
    path.unlink()


def test_what_is_no_file_of_the_test_is_left_alone(tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "leak.txt").write_text(KEY)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").symlink_to(elsewhere / "leak.txt")
    (folder / "shared").symlink_to(elsewhere)
    os.mkfifo(folder / "pipe")
    assert files_with_a_key(folder) == []


TESTS = """
import logging
import sys
from tests.canary import EAR, PREFIX

def test_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("harmless")

def test_file(tmp_path):
    (tmp_path / "leak.txt").write_text(PREFIX)

def test_log():
    logging.getLogger("everloop.any").info(PREFIX)

def test_debug():
    logging.getLogger("everloop.any").debug(PREFIX.encode().hex())

def test_printed():
    print(PREFIX)

def test_told_to_stderr(tmp_path):
    print(f"<{PREFIX}>", file=sys.stderr)

def test_heard_from_a_command():
    EAR.hear("a command", PREFIX)

def test_next():
    pass
"""


def test_a_test_that_leaks_has_an_error_and_the_others_have_none(tmp_path: Path):
    file = tmp_path / "test_them.py"
    file.write_text(TESTS)
    plugins = ("-p", "pytest_timeout", "-o", "timeout=60", "-p", "tests.conftest", "-p", "no:cacheprovider")
    options = ("-q", *plugins, "--basetemp", str(tmp_path / "inner"))
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    lines = ran.stdout.splitlines()
    blamed = [line.partition("::")[2].partition(" ")[0] for line in lines if line.startswith("ERROR ")]
    leaking = [f"test_{each}" for each in ("file", "log", "debug", "printed", "told_to_stderr", "heard_from_a_command")]
    assert (blamed, lines[-1].partition(" in ")[0]) == (leaking, "8 passed, 6 errors")
    assert {"leak.txt holds a key", f"the logger everloop.any has told a key: {PREFIX}"} <= {*lines}
