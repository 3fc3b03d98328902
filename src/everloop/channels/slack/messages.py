"""What we write, as Slack takes it: the fields of a message, its buttons, and the names of emoji."""

from collections.abc import Mapping
from typing import Any

from ...ports.channel import OutgoingPart
from ...readings.keys import name_of
from ..text import SLACK
from .codec import APPROVE, DENY
from .emoji import NAMES

SECTION = 3_000  # characters of a section's text
ACTIONS = "everloop_question"

Fields = dict[str, Any]


def text_fields(text: str, plain: str = "") -> Fields:
    """Nothing is unfolded under it, and no name is looked for in it. What is empty without its markup is none."""
    return {"text": text or plain or " ", "unfurl_links": False, "unfurl_media": False, "link_names": False}


def message_fields(part: OutgoingPart) -> Fields:
    """Of `chat.postMessage`."""
    mentioned = [SLACK.tame(file.mention) for file in part.files if not file.data]
    text = "\n".join(filter(None, [part.text, *mentioned]))
    fields = text_fields(text, part.plain)
    if part.approval and part.number == part.of - 1 and len(text) <= SECTION:
        fields["blocks"] = [section(text), buttons(part.approval)]
    return fields


def place_fields(part: OutgoingPart) -> Fields:
    return {"channel": name_of(part.address.chat), "thread_ts": name_of(part.address.thread) or None}


def section(text: str) -> Fields:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def buttons(approval: str) -> Fields:
    def button(label: str, action: str, style: str) -> Fields:
        text = {"type": "plain_text", "text": label}
        return {"type": "button", "text": text, "action_id": action, "value": approval, "style": style}

    elements = [button("Approve", APPROVE, "primary"), button("Deny", DENY, "danger")]
    return {"type": "actions", "block_id": ACTIONS, "elements": elements}


def answered(message: Mapping[str, Any], who: str, verb: str, *, keeps_buttons: bool) -> Fields:
    """A question after somebody has pressed one of its buttons."""
    blocks = message.get("blocks")
    kept = [each for each in blocks if isinstance(each, dict)] if isinstance(blocks, list) else []
    kept = [each for each in kept if each.get("type") != "context"]
    if not keeps_buttons:
        kept = [each for each in kept if each.get("block_id") != ACTIONS]
    note = {"type": "context", "elements": [{"type": "plain_text", "text": f"{who} pressed {verb}."[:SECTION]}]}
    return {"text": str(message.get("text") or " "), "blocks": [*kept, note]}


def changed(fields: Mapping[str, Any]) -> Fields:
    """The same as a new message, of `chat.update`: blocks that are not named would stay."""
    return {"text": fields["text"], "blocks": fields.get("blocks", []), "link_names": False}


def emoji_name(emoji: str) -> str:
    """`eyes` for 👀, `:eyes:` and `eyes`; "" for what we know no name of."""
    name = emoji.strip().strip(":")
    if name.isascii():
        return name.lower()
    return NAMES.get(name.replace("\N{VARIATION SELECTOR-16}", ""), "")
