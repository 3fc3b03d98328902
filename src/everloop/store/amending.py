"""Letters that their authors change or take back, written once for both databases."""

from msgspec import structs

from ..core.mail import Address, Amendment, Inbound, Said
from ..ports.rows import Receipt
from .channel_rows import keep_more
from .codec import body_of, kind_of, read_letter
from .database import Ask
from .letters import KNOWN, post

_SAID = "SELECT id, thread, body FROM inbox WHERE channel = $1 AND event = $2 AND kind = 'said' AND body <> ''"
# Letters are taken under the lock of their thread.
_LOCK = "SELECT 1 FROM threads WHERE id = $1{lock}"
_STANDS = "SELECT taken FROM inbox WHERE id = $1 AND thread = $2 AND ended = 0"


async def amend(ask: Ask, inbound: Inbound, event: str) -> Receipt | None:
    change, channel = inbound.letter, inbound.address.channel
    assert isinstance(change, Amendment)
    if known := await ask(KNOWN, channel, inbound.event):
        await keep_more(ask, inbound)
        return Receipt(known[0][0], known[0][1], fresh=False)
    for id, thread, body in await ask(_SAID, channel, event):
        letter = read_letter(body)
        assert isinstance(letter, Said)
        if not _is_theirs(letter, change.said, inbound.address) or not await ask(_LOCK, thread):
            return None
        for (taken,) in await ask(_STANDS, id, thread):
            await keep_more(ask, inbound)
            numbered = structs.replace(inbound, letter=structs.replace(change, mail=id))
            receipt = await post(ask, numbered, thread, kind_of(change))
            if change.withdrawn and not taken:
                await ask("UPDATE inbox SET body = $1 WHERE id = $2", body_of(structs.replace(letter, parts=())), id)
            return receipt
    return None


def _is_theirs(letter: Said, said: Said, address: Address) -> bool:
    """Whether the same author has written both in the same chat, in whichever thread of it."""
    there = Address.parse(letter.address)
    return letter.author == said.author and (there.channel, there.chat) == (address.channel, address.chat)
