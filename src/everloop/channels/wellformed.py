"""JSON of a platform, in which half of a surrogate pair may stand that somebody has written: strict readers refuse all
of it, and would hear of nothing behind it, however often it is handed over."""

import json
from typing import Any, TypeVar, overload

import msgspec

_Value = TypeVar("_Value")


@overload
def read_json(data: bytes | str | msgspec.Raw) -> Any: ...
@overload
def read_json(data: bytes | str | msgspec.Raw, kind: type[_Value]) -> _Value: ...
def read_json(data: bytes | str | msgspec.Raw, kind: Any = Any) -> Any:
    """With U+FFFD in place of what is no character. Raises msgspec.DecodeError."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return msgspec.json.decode(_mended(data, error), type=kind)


def _mended(data: bytes | str | msgspec.Raw, why: Exception) -> bytes:
    text = data if isinstance(data, str) else bytes(data).decode("utf-8", "replace")
    try:
        return json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")
    except (ValueError, RecursionError):
        raise msgspec.DecodeError(str(why)) from why
