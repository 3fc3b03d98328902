"""A small model inside the process, so that everloop answers without a key and without a network."""

from .download import Download, DownloadState
from .engine import BETTER, NOTICE, EmbeddedProvider
from .profile import compact_prompt
from .weights import WEIGHTS, Weights, fetch

__all__ = [
    "BETTER",
    "NOTICE",
    "WEIGHTS",
    "Download",
    "DownloadState",
    "EmbeddedProvider",
    "Weights",
    "compact_prompt",
    "fetch",
]
