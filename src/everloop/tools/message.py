"""message: a word of the agent's own in another conversation of the same person, or to a person.

It is put into that conversation's inbox under the name of the call. So it is there once, whatever happens in between:
a call that a crash has cut off is made again, and the inbox knows its letter already.
"""

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from ..core.mail import Inbound, Telling
from ..core.message import Media
from ..core.people import Role
from ..core.tool import Circumstances, Effect, Risk
from ..errors import MailRefused, NoRoom, StoreFull, ToolError
from ..ports import Channel, Files
from ..ports.channel import DOORS, Traits, traits_of
from ..ports.tools import CallContext, Tool
from ..readings.media import LARGEST_IMAGE, mime_of
from .decorator import tool
from .recipients import ME, PostOffice, Recipients
from .workspace import Workspace

LONGEST = 50_000
MOST_FILES = 20


def message_tool(
    post: PostOffice,
    wake: Callable[[str], None],
    workspace: Workspace,
    files: Files,
    channels: Mapping[str, Traits] = DOORS,
    opened: Mapping[str, Channel] = {},
) -> Tool:
    """`wake` says that a thread has mail; `channels` are those that are known here, by name, `opened` those that are
    open now."""

    def risk_of_message(args: dict[str, Any], situation: Circumstances) -> Risk:
        """Where others read along, it speaks to them."""
        if session := args.get("session"):
            if traits_of(session, channels).private:
                return Risk(mutates=True)
            return Risk("medium", leaves=True, mutates=True, why="others may read it there")
        if str(args.get("to", "")).casefold() == ME:
            return Risk(mutates=True)
        return Risk("medium", leaves=True, mutates=True, why="it is told to another person")

    # Not `files`: that is what the model calls what it sends along.
    kept, recipients = files, Recipients(post, channels, opened)

    @tool(Effect.KEYED, permission=Role.GUEST, risk=risk_of_message)
    async def message(
        text: Annotated[str, "What to say there"],
        context: CallContext,
        session: Annotated[str, "Where: its key, channel:chat"] = "",
        to: Annotated[str, "Or to whom: me, or a person's name"] = "",
        channel: Annotated[str, "With to: on which channel"] = "",
        files: Annotated[list[str] | None, "Paths to send along"] = None,
    ) -> str:
        """Tell something in another conversation of this person's, or to a person. Nobody answers it here."""
        if files and context.role < Role.USER:  # the workspace is not theirs to read
            raise ToolError("files of the workspace are not for guests to send; say it without them")
        if bool(session) == bool(to):
            raise ToolError("say where by session, or to whom by to, and not both")
        text = text.encode("utf-8", "replace").decode()
        if not text.strip() or len(text) > LONGEST or len(files or ()) > MOST_FILES:
            raise ToolError(f"a message has some text, at most {LONGEST:,} characters, and at most {MOST_FILES} files")
        event = f"message:{context.key}"
        if to and (told := await _told_before(post, channels, event)):
            return f"Told on {told}."  # where they speak may be elsewhere by now
        there = await (recipients.at(session, context) if session else recipients.person(to, channel, context))
        if not await post.came(there.address.channel, event):  # else the files may not be what they were, or be gone
            sent = [await _keep(workspace, kept, path, there.owner) for path in files or ()]
            place = str(there.address)
            sender = context.session if there.owner in (context.user, context.principal) else context.user
            word = Telling(text, tuple(sent), place, sender, context.user, context.outside)
            wake(await _post(post, Inbound(there.address, event, word, there.owner, account=there.account)))
        return f"Told in {there.address}."

    return message


async def _post(post: PostOffice, inbound: Inbound) -> str:
    """The thread that has it now."""
    try:
        return (await post.receive(inbound)).thread
    except MailRefused as error:  # the conversation has become another's meanwhile
        raise ToolError(f"it was not told: {error}") from error


async def _told_before(post: PostOffice, channels: Mapping[str, Traits], event: str) -> str:
    """The channel on which a call of this name has told it already."""
    for name in channels:
        if await post.came(name, event):
            return name
    return ""


async def _keep(workspace: Workspace, files: Files, path: str, owner: str) -> Media:
    with workspace.opened(path) as (fd, status):
        if status.st_size > LARGEST_IMAGE:
            raise ToolError(f"{path!r} has {status.st_size:,} bytes; at most {LARGEST_IMAGE:,} can be sent")
        data = os.pread(fd, LARGEST_IMAGE, 0)
    try:
        file = await files.put(owner, data, path)
    except (NoRoom, StoreFull, OSError) as error:
        raise ToolError(f"{path!r} cannot be kept, so nothing was sent ({error})") from error
    return Media(file, mime_of(data), path, owner)
