"""Letters, answers and entries as the text that a row keeps."""

from collections.abc import Callable, Collection, Sequence

import msgspec

from ..core import log
from ..core.log import Compacted, Entry
from ..core.mail import Inbound, Letter, Outbound
from ..ports.channel import ASIDE
from ..ports.permission import Grant, PromptFile

NOT_ASIDE = f"AND i.channel <> '{ASIDE.rstrip(':')}'"  # of letters: those whose clients do not keep the conversation
THREAD = "id, session, owner, head, folded, state, coalesce(holder, ''), epoch, spawned_by"  # of a ThreadRow
SENDING_SECONDS = 70.0  # a send that has not come back by then may be tried again; the outbox gives up after 60

read_letter: Callable[[str], Letter] = msgspec.json.Decoder(Letter).decode
read_inbound: Callable[[str], Inbound] = msgspec.json.Decoder(Inbound).decode
read_outbound: Callable[[str], Outbound] = msgspec.json.Decoder(Outbound).decode
_read_grant: Callable[[str], Grant] = msgspec.json.Decoder(Grant).decode
read_watched: Callable[[str], PromptFile] = msgspec.json.Decoder(PromptFile).decode
_encode = msgspec.json.Encoder().encode


def body_of(value: Letter | Inbound | Outbound | Grant | PromptFile) -> str:
    return _encode(value).decode()


def bodies_of(entries: Sequence[Entry]) -> list[str]:
    return [log.encode(entry).decode() for entry in entries]


def numbered(body: str, mail: int) -> str:
    """The body of an entry that has no number yet, with that of the letter it came from."""
    return f'{body[:-1]},"mail":{mail}}}'


def read_grant(body: str, runs: int) -> Grant:
    """As it was given, with the runs that are left."""
    return msgspec.structs.replace(_read_grant(body), runs=runs)


def kind_of(letter: Letter) -> str:
    return str(letter.__struct_config__.tag)


def list_of(values: Collection[str] | Collection[int]) -> str:
    """As one value of a statement, which makes rows of it: see `each` in schema.py."""
    return _encode(tuple(values)).decode()


def fold_in(entries: Sequence[Entry]) -> int:
    """The place of the last compaction among these entries, counted from 1; 0 if there is none."""
    fold = 0
    for n, entry in enumerate(entries, 1):
        if isinstance(entry, Compacted):
            fold = n
    return fold
