"""Secrets of clients: made here, shown once, and kept as hashes only.

Tokens and cookies are random enough that a plain hash cannot be turned back. Passwords are not, so theirs is made
expensive: Argon2 where argon2-cffi is installed, scrypt otherwise. What was hashed with one is read with the same.
Hashes are compared in constant time (timing attacks).
"""

import base64
import hashlib
import hmac
import secrets

SHORTEST = 8  # characters of a password
LONGEST = 1000
_N, _R, _P = 2**15, 8, 1


def new_secret(prefix: str = "") -> str:
    return prefix + secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def page_secret(cookie: str) -> str:
    """What the page of a browser's login is given: it follows from the cookie, and the cookie not from it."""
    return "page_" + hash_of(f"page:{cookie}")


def hash_password(password: str) -> str:
    """Takes its time; call it in a thread."""
    try:
        from argon2 import PasswordHasher
    except ImportError:
        salt = secrets.token_bytes(16)
        made = b"$".join(base64.b64encode(part) for part in (salt, _scrypt(password, salt)))
        return f"scrypt${made.decode()}"
    return str(PasswordHasher().hash(password))


def fits_password(password: str, kept: str) -> bool:
    """Whether this is the password whose hash is kept. Takes its time; call it in a thread."""
    if kept.startswith("scrypt$"):
        salt, made = (base64.b64decode(part) for part in kept.split("$")[1:])
        return hmac.compare_digest(_scrypt(password, salt), made)
    from argon2 import PasswordHasher
    from argon2.exceptions import Argon2Error, InvalidHashError

    try:
        return bool(PasswordHasher().verify(kept, password))
    except (Argon2Error, InvalidHashError):
        return False


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode("utf-8", "replace"), salt=salt, n=_N, r=_R, p=_P, maxmem=2**26)
