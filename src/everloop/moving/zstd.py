"""What is compressed with Zstandard, where Python or a package can read it: OpenClaw keeps longer messages so."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

LARGEST = 4 << 20


def decompressor() -> Callable[[bytes], bytes] | None:
    """None where nothing here can read it. What it gives raises ValueError for what is broken."""
    for name in ("compression.zstd", "zstandard"):
        try:
            module = import_module(name)
        except ImportError:  # the next one may be there
            continue
        more = {"max_output_size": LARGEST} if name == "zstandard" else {"max_length": LARGEST}
        return partial(_unpacked, module, more)
    return None


def _unpacked(module: Any, more: dict[str, int], data: bytes) -> bytes:
    try:
        return bytes(module.ZstdDecompressor().decompress(data, **more))
    except Exception as error:  # the border to a library that has errors of its own
        raise ValueError(f"it is broken ({error})") from error
