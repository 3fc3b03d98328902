"""A sealed stream comes back as it was, or not at all."""

import io

import msgspec
import pytest

from everloop.backup.sealing import CHUNK, MAGIC, WORK, Sealing, Unsealing
from everloop.errors import BackupDamaged, BackupLocked

SIZES = (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK)
SEALED = CHUNK + 16  # bytes of a chunk in the file


def sealed(data: bytes, passphrase: str = "open") -> bytes:
    file = io.BytesIO()
    writer = Sealing(file, passphrase, work=2**4)
    for at in range(0, len(data), 100_000):
        writer.write(data[at : at + 100_000])
    writer.close()
    return file.getvalue()


def opened(data: bytes, passphrase: str = "open", least: int = 2**4) -> bytes:
    reader, pieces = Unsealing(io.BytesIO(data), passphrase, least), list[bytes]()
    while piece := reader.read(70_000):
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("size", SIZES)
def test_what_was_sealed_is_opened_as_it_was(size: int):
    data = bytes(range(256)) * (size // 256 + 1)
    assert opened(sealed(data[:size])) == data[:size]


def test_nobody_opens_it_with_another_passphrase_and_nothing_of_it_can_be_read():
    held = sealed(b"what nobody is to read " * 100)
    assert b"nobody" not in held
    with pytest.raises(BackupLocked):
        opened(held, "other")
    assert sealed(b"same") != sealed(b"same")


def test_no_bit_can_be_changed_and_nothing_cut_off_left_out_or_moved():
    held = sealed(bytes(3 * CHUNK))
    begins = held.index(b"\n", len(MAGIC)) + 1
    first, second, third = (held[begins + n * SEALED : begins + (n + 1) * SEALED] for n in range(3))
    changed = [
        held[:-1],
        held[: begins + 2 * SEALED],  # exactly at a chunk
        held[: begins + SEALED],
        held[:begins] + first + third,
        held[:begins] + second + first + third,
        held + third,
    ]
    for at in (begins, begins + SEALED + 5, len(held) - 1):
        changed.append(held[:at] + bytes([held[at] ^ 1]) + held[at + 1 :])
    for each in changed:
        with pytest.raises((BackupDamaged, BackupLocked)):
            opened(each)
    assert opened(held) == bytes(3 * CHUNK)


SALT = "00" * 16
HEADS = {
    "endless work": {"salt": SALT, "n": 2**40, "r": 8, "p": 1},
    "endless rounds": {"salt": SALT, "n": 2**15, "r": 8, "p": 2**20},
    "two that are negative": {"salt": SALT, "n": 2**15, "r": -8, "p": -3},
    "numbers that no machine has": {"salt": SALT, "n": 2**15, "r": 2**63, "p": 1},
    "hardly any work": {"salt": SALT, "n": 2**4, "r": 8, "p": 1},
    "no salt": {"salt": "", "n": 2**15, "r": 8, "p": 3},
}


@pytest.mark.parametrize("name", HEADS)
def test_a_file_that_asks_for_too_much_work_or_too_little_is_refused(name: str):
    with pytest.raises(BackupDamaged, match="head"):
        opened(MAGIC + msgspec.json.encode(HEADS[name]) + b"\n" + bytes(64), least=WORK)


def test_what_we_seal_is_opened_with_the_work_that_it_has():
    file = io.BytesIO()
    writer = Sealing(file, "open")
    writer.write(b"hello")
    writer.close()
    assert opened(file.getvalue(), least=WORK) == b"hello"
