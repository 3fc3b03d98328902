"""Somebody opens a chat in a home in which nothing is yet, or looks into one that is not there."""

import os
import sys

from ..settings import home_of

FIRST_TIME = "Nothing is set up here yet; `everloop onboard` does it in two minutes, and this works without, too."


def is_first_time() -> bool:
    """Whether someone sits here who has neither settings nor conversations."""
    home = home_of(os.environ)
    if not sys.stdin.isatty() or any((home / name).exists() for name in ("config.toml", "config.json", "everloop.db")):
        return False
    from ..app.opening import half_restored  # few begin

    return not half_restored(home)


def missing_home() -> str:
    """What is said to whoever looks into a home that is not there, as after a mistake in its name; "" where it is.
    With a store elsewhere there is something to be seen also without one."""
    home = home_of(os.environ)
    if home.exists() or os.environ.get("EVERLOOP_STORE__URL"):
        return ""
    from ..app.opening import half_restored  # few look into a home that is not there

    missing = f"there is no home at {home}: `everloop onboard` makes one there; where it is, EVERLOOP_HOME says"
    return half_restored(home) or missing
