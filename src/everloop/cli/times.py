"""Times as people type and read them."""

import argparse
import re
from datetime import datetime

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_in(text: str) -> float:
    """For argparse: 30m, 8h, 7d."""
    if not (match := re.fullmatch(r"(\d{1,4})([smhd])", text)) or not int(match[1]):
        raise argparse.ArgumentTypeError("it must be a time such as 30m, 8h or 7d")
    return float(int(match[1]) * UNITS[match[2]])


def clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M}"
