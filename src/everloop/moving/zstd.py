"""What is compressed with Zstandard, where Python or a package can read it: OpenClaw keeps longer messages so."""

from collections.abc import Callable
from importlib import import_module

LARGEST = 4 << 20


def decompressor() -> Callable[[bytes], bytes] | None:
    """None where nothing here can read it."""
    for name in ("compression.zstd", "zstandard"):
        try:
            module = import_module(name)
        except ImportError:  # the next one may be there
            continue
        if name == "zstandard":
            reader = module.ZstdDecompressor()
            return lambda data: bytes(reader.decompress(data, max_output_size=LARGEST))
        return lambda data: bytes(module.ZstdDecompressor().decompress(data, LARGEST))
    return None
