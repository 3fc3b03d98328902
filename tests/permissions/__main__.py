"""`python -m tests.permissions` writes down who may do what, after a change that is meant: look at the difference."""

import asyncio
import tempfile
from pathlib import Path

from .asked import all_rows
from .matrix import DOCS, TABLE, page_of, written


async def write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = await all_rows(Path(folder))
    TABLE.write_text(written(rows))
    DOCS.write_text(page_of(rows))


asyncio.run(write())
