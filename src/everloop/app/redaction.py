"""What looks like a secret, taken out of what is remembered, as it is taken out of logs."""

import os
import re
from functools import cache

from ..readings.masks import masked_shapes
from ..readings.secrets import without_secrets

_NAMES = re.compile(r"(?i)(KEY|TOKEN|SECRET|PASSWORD|PASSWD)$")


def redacted(text: str) -> str:
    """Without what looks like a secret, and without the values of variables that are named like one: as in logs."""
    return masked_shapes(without_secrets(text, _named_values()))


@cache
def _named_values() -> tuple[str, ...]:
    return tuple(value for name, value in os.environ.items() if _NAMES.search(name))
