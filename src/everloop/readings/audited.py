"""Lines of the audit, as people read them."""

from typing import Any

import msgspec


def described(detail: str) -> str:
    """`role user, from guest`: what a line holds beside its subject."""
    if not detail:
        return ""
    found: dict[str, Any] = msgspec.json.decode(detail)
    return ", ".join(f"{key} {_shown(value)}" for key, value in found.items())


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
