"""An answer's part as Discord is told it."""

from hashlib import sha256
from typing import Any

from msgspec import Struct

from ...core.mail import ReplyTo
from ...ports.channel import OutgoingFile, OutgoingPart
from .interactions import buttons

LONGEST = 2_000  # Discord counts code points; ours are UTF-16 code units, of which there are never fewer
NO_PREVIEWS = 1 << 2  # the flag SUPPRESS_EMBEDS
NOBODY = {"parse": [], "replied_user": False}  # is mentioned, whatever a model writes


class DiscordPost(Struct, frozen=True):
    """A call's body, and the files that go with it."""

    body: dict[str, Any]
    files: tuple[OutgoingFile, ...] = ()


def nonce_of(key: str, number: int) -> str:
    """The same for each attempt: Discord makes no second message of one nonce, for some minutes."""
    return sha256(f"{key}#{number}".encode()).hexdigest()[:25]


def reference(to: ReplyTo, channel: str) -> dict[str, Any]:
    """What is answered, if it was said in this channel and others speak there, too."""
    there, _, rest = to.partition("/")
    if not rest or rest.endswith("/direct") or there != channel:
        return {}
    told = {"message_id": rest, "channel_id": channel, "fail_if_not_exists": False}
    return {"message_reference": told}


def message_in(to: ReplyTo) -> str:
    return to.split("/")[1] if "/" in to else ""


def text_body(text: str) -> dict[str, Any]:
    return {"content": text, "allowed_mentions": NOBODY, "flags": NO_PREVIEWS}


def posts_of(part: OutgoingPart, text: str, channel: str) -> list[DiscordPost]:
    """With this text (the part's own, or that without markup). Files that are not sent are named, in a message of their
    own where there is no room."""
    named = _cut("\n".join(file.mention for file in part.files if not file.data))
    whole = f"{text}\n{named}".strip() if named else text
    texts = [whole] if _fits(whole) or not text else [text, named]
    bodies = [text_body(each) for each in texts]
    if part.approval:
        bodies[0] |= {"components": buttons(part.approval)}
    if part.number == 0:
        bodies[0] |= reference(part.reply_to, channel)
    files = tuple(file for file in part.files if file.data)
    if files:
        bodies[0] |= {"attachments": [{"id": number, "filename": file.name} for number, file in enumerate(files)]}
    nonces = [{"nonce": nonce_of(part.key, number), "enforce_nonce": True} for number in range(len(bodies))]
    return [
        DiscordPost(body | nonce, files if number == 0 else ())
        for number, (body, nonce) in enumerate(zip(bodies, nonces, strict=True))
    ]


def _fits(text: str) -> bool:
    return len(text.encode("utf-16-le")) // 2 <= LONGEST


def _cut(text: str) -> str:
    """Only names of many files are ever longer."""
    return text if _fits(text) else text.encode("utf-16-le")[: 2 * LONGEST - 2].decode("utf-16-le", "ignore") + "…"


def edited(post: DiscordPost) -> dict[str, Any]:
    """The body with which a draft becomes this message."""
    kept = {
        key: value
        for key, value in post.body.items()
        if key in ("content", "allowed_mentions", "flags", "components", "attachments")
    }
    return {"components": [], **kept}
