"""A small model inside the process, so that everloop answers without a key and without a network."""

from .engine import NOTICE, EmbeddedProvider
from .profile import compact_prompt
from .weights import WEIGHTS, Weights, fetch

__all__ = ["NOTICE", "WEIGHTS", "EmbeddedProvider", "Weights", "compact_prompt", "fetch"]
