"""A tool for everloop in a package of its own: the weather, as wttr.in tells it."""

import asyncio
import os
from typing import Annotated
from urllib.parse import quote
from urllib.request import urlopen

from everloop import Effect, Role, Shown, ToolError, tool

SITE = os.environ.get("WEATHER_SITE", "https://wttr.in")


@tool(Effect.READ, permission=Role.USER, seconds=20)
async def weather(city: Annotated[str, "Such as Oslo, or Paris, France"]) -> Shown:
    """Tell the weather in a city now."""
    try:
        text = await asyncio.to_thread(_read, f"{SITE}/{quote(city, safe='')}?format=3")
    except OSError as error:
        raise ToolError(f"the weather in {city} cannot be had: {error}") from error
    return Shown(text.strip(), origin=SITE)  # whose words these are, since they are not ours


def _read(url: str) -> str:
    with urlopen(url, timeout=10) as answer:
        return answer.read(2000).decode(errors="replace")
