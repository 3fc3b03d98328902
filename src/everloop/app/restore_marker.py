"""What says of a home that a restore into it has begun: a file in it, and one beside it if it takes a home's place."""

import os
from pathlib import Path

RESTORING = "restoring.json"  # lies in a home from the first file that is restored until all is there


def marker_beside(home: Path) -> Path:
    """Of a restore that moves aside what is there: from before that until it has ended."""
    real = Path(os.path.realpath(home))
    return real.with_name(f"{real.name}.{RESTORING}")
