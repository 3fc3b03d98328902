"""Times as people type and read them."""

import argparse
from datetime import datetime

from ..errors import GrantRefused
from ..readings.grants import seconds_of


def seconds_in(text: str) -> float:
    """For argparse: 30m, 8h, 7d."""
    try:
        return seconds_of(text)
    except GrantRefused as error:
        raise argparse.ArgumentTypeError("it must be a time such as 30m, 8h or 7d") from error


def clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"
