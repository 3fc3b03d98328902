"""message: a word of the agent's own in another conversation of the same person.

It is put into that conversation's inbox under the name of the call. So it is there once, whatever happens in between:
a call that a crash has cut off is made again, and the inbox knows its letter already.
"""

import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Protocol

from ..core.mail import Address, Inbound, Telling
from ..core.message import Media
from ..core.people import Role
from ..core.tool import Circumstances, Effect, Risk
from ..errors import NoRoom, StoreFull, ToolError
from ..ports import Files
from ..ports.channel import DOORS, Traits, traits_of
from ..ports.conversation import Conversation
from ..ports.rows import Receipt, ThreadRow
from ..ports.tools import CallContext, Tool
from ..readings.media import LARGEST_IMAGE, mime_of
from .decorator import tool
from .workspace import Workspace

LONGEST = 50_000
MOST_FILES = 20
_SHOWN = 10


class PostOffice(Protocol):
    """The part of the store that knows conversations and takes letters for them."""

    async def session(self, key: str) -> ThreadRow | None: ...

    async def conversations(self, owner: str, *, limit: int) -> list[Conversation]: ...

    async def came(self, channel: str, event: str) -> bool: ...

    async def receive(self, inbound: Inbound) -> Receipt: ...


def message_tool(
    post: PostOffice,
    wake: Callable[[str], None],
    workspace: Workspace,
    files: Files,
    channels: Mapping[str, Traits] = DOORS,
) -> Tool:
    """`wake` says that a thread has mail; `channels` are those that are known here, by name."""

    def risk_of_message(args: dict[str, Any], situation: Circumstances) -> Risk:
        """Where others read along, it speaks to them."""
        if traits_of(args["session"], channels).private:
            return Risk(mutates=True)
        return Risk("medium", leaves=True, mutates=True, why="others may read it there")

    # Not `files`: that is what the model calls what it sends along.
    kept = files

    @tool(Effect.KEYED, permission=Role.GUEST, risk=risk_of_message)
    async def message(
        session: Annotated[str, "Its key, channel:chat; a wrong one is answered with those there are"],
        text: Annotated[str, "What to say there"],
        context: CallContext,
        files: Annotated[list[str] | None, "Paths in the workspace, to send along"] = None,
    ) -> str:
        """Tell this person something in another of their conversations. Nobody answers it here."""
        if files and context.role < Role.USER:  # the workspace is not theirs to read
            raise ToolError("files of the workspace are not for guests to send; say it without them")
        row = await _found(post, session, context)
        text = text.encode("utf-8", "replace").decode()
        if not text.strip() or len(text) > LONGEST or len(files or ()) > MOST_FILES:
            raise ToolError(f"a message has some text, at most {LONGEST:,} characters, and at most {MOST_FILES} files")
        address, event = Address.parse(row.session), f"message:{context.key}"
        if not await post.came(address.channel, event):  # else the files may not be what they were, or be gone
            sent = [await _keep(workspace, kept, path, row.owner) for path in files or ()]
            word = Telling(text, tuple(sent), row.session, context.session, context.user, context.outside)
            receipt = await post.receive(Inbound(address, event, word, row.owner))
            wake(receipt.thread)
        return f"Told in {row.session}."

    return message


async def _found(post: PostOffice, session: str, context: CallContext) -> ThreadRow:
    """The conversation, if it is the person's own. Of anyone else's one hears what one hears of none."""
    try:
        row = await post.session(str(Address.parse(session)))
    except ValueError as error:
        raise ToolError(str(error)) from error
    if row is None or row.owner != context.principal:
        known = await post.conversations(context.principal, limit=_SHOWN)
        keys = dict.fromkeys(each.session for each in known if each.session != context.session)
        there = f"there are: {', '.join(keys)}" if keys else "there is no other"
        raise ToolError(f"there is no conversation {session!r} that you may write to; {there}")
    if row.session == context.session:
        raise ToolError("that is this very conversation: say it in your answer")
    return row


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
