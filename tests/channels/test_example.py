"""The example of a channel outside the tree: small, shown to work by its own tests, and found by its name."""

import asyncio
import os
import sys
from pathlib import Path

from everloop.testing.conformance import CHECKS

EXAMPLE = Path(__file__).parents[2] / "examples" / "echo_channel"


async def test_the_example_passes_the_suite_in_less_than_a_hundred_lines():
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE))
    pipe = asyncio.subprocess.PIPE
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    ran = await asyncio.create_subprocess_exec(*command, cwd=EXAMPLE, stdout=pipe, stderr=pipe, env=environment)
    out, err = await ran.communicate()
    assert (ran.returncode, "." * len(CHECKS) in out.decode()) == (0, True), (out + err).decode()
    assert sum(len(file.read_text().splitlines()) for file in EXAMPLE.glob("*.py")) < 100
