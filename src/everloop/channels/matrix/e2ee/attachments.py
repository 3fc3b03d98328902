"""Files of encrypted rooms: AES-256 in counter mode, with the hash of what lies on the homeserver (version v2)."""

import hashlib
import secrets
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any


def encrypted(data: bytes) -> tuple[bytes, dict[str, Any]]:
    """What is to be uploaded, and what reads it, but for the address."""
    key, counter = secrets.token_bytes(32), secrets.token_bytes(8) + bytes(8)
    sealed = _in_counter_mode(key, counter, data)
    return sealed, {
        "v": "v2",
        "key": {
            "kty": "oct",
            "key_ops": ["encrypt", "decrypt"],
            "alg": "A256CTR",
            "k": urlsafe_b64encode(key).decode().rstrip("="),
            "ext": True,
        },
        "iv": b64encode(counter).decode().rstrip("="),
        "hashes": {"sha256": b64encode(hashlib.sha256(sealed).digest()).decode().rstrip("=")},
    }


def decrypted(sealed: bytes, secret: Mapping[str, str]) -> bytes:
    """`secret` is what `secret_of` has found. Raises ValueError."""
    key, counter = urlsafe_b64decode(_padded(secret["k"])), b64decode(_padded(secret["iv"]))
    if hashlib.sha256(sealed).digest() != b64decode(_padded(secret["sha256"])):
        raise ValueError("an encrypted file is not the one that was sent")
    if len(key) != 32 or len(counter) != 16:
        raise ValueError("an encrypted file has no key that is known")
    return _in_counter_mode(key, counter, sealed)


def secret_of(file: Any) -> dict[str, str] | None:
    """Of the `file` of a message; None: it is of no form that is known."""
    try:
        found = {"k": file["key"]["k"], "iv": file["iv"], "sha256": file["hashes"]["sha256"]}
    except (KeyError, TypeError):
        return None
    is_known = file.get("v") == "v2" and all(isinstance(each, str) and len(each) < 100 for each in found.values())
    return found if is_known else None


def _in_counter_mode(key: bytes, counter: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    cipher = Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor()
    return cipher.update(data) + cipher.finalize()


def _padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)
