"""What kept files are called, wherever they lie: `<owner>/<aa>/<sha256>`, and `file:<sha256>` to everyone else."""

import errno
import re
from collections.abc import Callable, Sequence
from hashlib import sha256

SHORTEST = 12
LEAST = 4096  # bytes that even the smallest file takes of a disk
_REF = re.compile(rf"file:([0-9a-f]{{{SHORTEST},64}})(?:…|\.\.\.)?")
_PLAIN_OWNER = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
NO_REFERENCE = f"a reference is file: and at least {SHORTEST} of the 64 hexadecimal digits of the hash"


def folder_of(owner: str) -> str:
    """A name that cannot climb. `=` begins no plain owner, so that a hashed name is never someone's own."""
    if _PLAIN_OWNER.fullmatch(owner):
        return owner
    return f"={sha256(owner.encode('utf-8', 'surrogatepass')).hexdigest()}"


def ref_of(digest: str) -> str:
    return f"file:{digest}"


def is_digest(name: str) -> bool:
    return bool(_DIGEST.fullmatch(name))


def digits_in(ref: str) -> str:
    """Those of a reference. Raises ValueError when it is none."""
    match = _REF.fullmatch(ref.strip())
    if not match:
        raise ValueError(NO_REFERENCE)
    return match[1]


def whole_digits(ref: str, beginning: Callable[[str], Sequence[str]]) -> str:
    """All of a hash. `beginning` tells which of the owner's begin so. Raises ValueError, FileNotFoundError."""
    digits = digits_in(ref)
    return digits if len(digits) == 64 else the_one(digits, beginning(digits))


def the_one(digits: str, found: Sequence[str]) -> str:
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no file of this owner begins so", f"file:{digits}")
    if len(found) > 1:
        raise ValueError(f"file:{digits} is the beginning of {len(found)} references; give more digits")
    return found[0]
