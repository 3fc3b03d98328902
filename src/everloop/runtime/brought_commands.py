"""Answering what somebody types with the code of a plugin."""

import asyncio
import logging

from ..errors import ToolError
from ..readings.brought_commands import BroughtCommand, CommandCall
from .strangers import contained

_log = logging.getLogger("everloop.commands")

SECONDS = 30.0  # that one may take: whoever typed it waits for the answer
LONGEST = 20_000  # characters of an answer


async def answer_to(call: CommandCall, brought: BroughtCommand) -> str:
    """What is told to whoever typed it, also when it fails: a stranger's code runs here."""
    name = brought.command.name
    try:
        with contained():
            async with asyncio.timeout(SECONDS):
                told = await brought.answer(call)
    except TimeoutError:
        return f"{name} did not answer within {SECONDS:.0f} seconds."
    except ToolError as error:
        return f"{name}: {error}"
    except Exception:
        _log.exception("the command %s has failed", name)
        return f"{name} failed. The details are in the log: everloop logs"
    text = str(told).strip()
    return (text if len(text) <= LONGEST else f"{text[:LONGEST]} …") or "Done."
