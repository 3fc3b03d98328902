"""Mails that no person wrote to us: they are not answered, or two machines would write to one another for ever
(RFC 3834, mail loops)."""

from collections.abc import Mapping, Sequence

_MACHINES = (
    "mailer-daemon",
    "postmaster",
    "noreply",
    "no-reply",
    "no_reply",
    "donotreply",
    "do-not-reply",
    "bounce",
    "bounces",
)
_BULK = ("bulk", "list", "junk")
_LISTS = ("list-id", "list-unsubscribe", "list-post", "list-help")
_RESPONDERS = ("x-autoreply", "x-autorespond", "x-autoresponder")

Headers = Mapping[str, Sequence[str]]


def why_not_a_person(headers: Headers, account: str, ours: str) -> str:
    """Why a mail of this account is not answered, or ""; `ours` is our own account. The names are in lower case."""
    local = account.partition("@")[0]
    first = {name: values[0].strip().lower() for name, values in headers.items() if values}
    if account == ours:
        return "it is from our own address"
    if local in _MACHINES or local.startswith(("noreply-", "no-reply-", "bounce-", "bounces-", "bounce+", "bounces+")):
        return "it is from an address that machines write from"
    if any(value.strip().lower().partition(";")[0].strip() != "no" for value in headers.get("auto-submitted", ())):
        return "it was submitted by a machine (Auto-Submitted)"
    if first.get("precedence", "") in _BULK:
        return f"its Precedence is {first['precedence']}"
    if any(name in headers for name in _LISTS):
        return "it is from a mailing list"
    if any(name in headers for name in _RESPONDERS) or _suppresses(first.get("x-auto-response-suppress", "")):
        return "it is an automatic reply, or wants none"
    if first.get("return-path") == "<>":
        return "it has no return path, as reports have"
    if first.get("content-type", "").startswith("multipart/report"):
        return "it is a report"
    return ""


def _suppresses(value: str) -> bool:
    return bool({"all", "autoreply"} & {each.strip() for each in value.split(",")})
