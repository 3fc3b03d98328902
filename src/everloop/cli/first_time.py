"""Somebody opens a chat in a home in which nothing is yet."""

import os
import sys

from ..settings import home_of

FIRST_TIME = "Nothing is set up here yet; `everloop onboard` does it in two minutes, and this works without, too."


def is_first_time() -> bool:
    """Whether someone sits here who has neither settings nor conversations."""
    home = home_of(os.environ)
    return sys.stdin.isatty() and not any(
        (home / name).exists() for name in ("config.toml", "config.json", "everloop.db")
    )
