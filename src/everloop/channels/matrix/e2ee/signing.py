"""Signed JSON, as the specification has it."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from vodozemac import Ed25519PublicKey, Ed25519Signature, KeyException, SignatureException


def canonical(value: Mapping[str, Any]) -> bytes:
    bare = {name: each for name, each in value.items() if name not in ("signatures", "unsigned")}
    return json.dumps(bare, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode("utf-8", "replace")


def is_signed(value: Mapping[str, Any], user: str, device: str, signing: str) -> bool:
    try:
        signature = Ed25519Signature.from_base64(value["signatures"][user][f"ed25519:{device}"])
        Ed25519PublicKey.from_base64(signing).verify_signature(canonical(value), signature)
    except (KeyException, SignatureException, KeyError, TypeError, ValueError, RecursionError):
        return False
    return True


def base64(data: bytes) -> str:
    """Without padding."""
    return b64encode(data).decode().rstrip("=")


def unbase64(text: str) -> bytes:
    """Raises ValueError."""
    return b64decode(text + "=" * (-len(text) % 4), validate=True)
