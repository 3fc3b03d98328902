"""A tool for everloop in a package of its own: where somebody is, by what their chat app told a service of yours.

It is told with every call on which channel, in which chat and in which topic of it somebody asks, and who that is: so
one tool serves all of them, and none can ask for another's place.
"""

import asyncio
import json
import os
from pathlib import Path

from everloop import CallContext, Effect, Role, ToolError, tool

PLACES = Path(os.environ.get("LOCATIONS", "locations.json"))  # {"telegram:42": "Oslo"}: what the service has written


@tool(Effect.READ, permission=Role.USER)
async def location(context: CallContext) -> str:
    """Tell where the person who asks is, as far as they share it in this chat."""
    try:
        shared = json.loads(await asyncio.to_thread(PLACES.read_text))
    except (OSError, ValueError) as error:
        raise ToolError(f"nobody's place is known at the moment: {error}") from error
    where = shared.get(f"{context.channel}:{context.chat}")
    if not where:
        raise ToolError(f"{context.user} shares no place on {context.channel}")
    return f"{where}, as {context.user} shares it on {context.channel}"
