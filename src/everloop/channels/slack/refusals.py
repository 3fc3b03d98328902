"""What Slack's errors mean (`ok: false` and a word), in sentences that a person can act on."""

import re

from ...errors import ChannelDown, ChannelRefused, Undeliverable

_WORD = re.compile(r"[a-z][a-z0-9_]{0,79}", re.ASCII)
_SCOPES = re.compile(r"[a-z_.:,]{1,200}", re.ASCII)
UNNAMED = "an error without a name"

TOKEN = frozenset({
    "account_inactive", "invalid_auth", "not_allowed_token_type", "not_authed", "org_login_required",
    "token_expired", "token_revoked", "two_factor_setup_required", "ekm_access_denied",
})  # fmt: skip
# Slack has surely done nothing, and may do it later.
LATER = frozenset({"ratelimited", "rate_limited", "request_timeout", "service_unavailable", "team_added_to_org"})
# "It's possible some aspect of the operation succeeded": https://docs.slack.dev/reference/methods/chat.postMessage
UNSURE = frozenset({"fatal_error", "internal_error"})
MARKUP = frozenset({"invalid_blocks", "invalid_blocks_format", "cannot_parse_attachment"})

_NEVER = {
    "channel_not_found": "there is no such chat, or the app is not in it: invite it there with /invite",
    "not_in_channel": "the app is not in this channel: invite it there with /invite",
    "is_archived": "the channel is archived: nobody can write there",
    "msg_too_long": "the message is longer than Slack takes",
    "user_not_found": "there is no such person in this workspace",
    "user_disabled": "this person's account was closed",
    "cannot_dm_bot": "a bot cannot write to another bot",
    "messages_tab_disabled": "people cannot be written to: turn on the Messages Tab of the app, under App Home",
    "restricted_action": "the workspace does not let apps write here",
    "restricted_action_thread_only_channel": "in this channel one may only write in threads",
    "message_not_found": "the message is not there any more",
    "cant_update_message": "only its own messages can be changed",
    "cant_delete_message": "only its own messages can be deleted",
    "edit_window_closed": "the message is too old to be changed",
    "invalid_name": "Slack has no emoji of this name",
    "too_many_reactions": "the message has as many reactions as it may",
    "too_many_emoji": "the message has as many reactions as it may",
    "file_not_found": "the file is not there any more",
    "file_deleted": "the file is not there any more",
}


class SlackRefused(Exception):
    """Slack has answered, and not done what it was asked for. `word` is its name for why."""

    def __init__(self, word: str, needed: str = "", retry_after: float | None = None) -> None:
        super().__init__(word)
        self.word = word
        self.needed = needed
        self.retry_after = retry_after


def refused(word: object, needed: object = "", retry_after: float | None = None) -> SlackRefused:
    """What a host says is believed to be a word only if it looks like one: it may repeat what we have sent."""
    name = word if isinstance(word, str) and _WORD.fullmatch(word) else UNNAMED
    scopes = needed if isinstance(needed, str) and _SCOPES.fullmatch(needed) else ""
    return SlackRefused(name, scopes, retry_after)


def is_about_access(error: SlackRefused) -> bool:
    return error.word in TOKEN or error.word == "missing_scope"


def of_access(error: SlackRefused, *, as_app: bool = False) -> str:
    if as_app:
        wanted = "generate another with the scope connections:write, under Basic Information, and set it"
        return f"Slack refuses channels.slack.app_token ({error.word}): {wanted}"
    if error.word == "missing_scope":
        wanted = f"the scope {error.needed}" if error.needed else "a scope"
        return f"Slack's app lacks {wanted}: add it under OAuth & Permissions and install the app again"
    return f"Slack refuses channels.slack.bot_token ({error.word}): install the app again and set its new token"


def to_enter(error: SlackRefused, *, as_app: bool = False) -> ChannelRefused | ChannelDown:
    """For `run` and `probe`."""
    if is_about_access(error):
        return ChannelRefused(of_access(error, as_app=as_app))
    return ChannelDown(f"Slack does not let us in now ({error.word})", error.retry_after)


def to_send(error: SlackRefused) -> ChannelDown | Undeliverable:
    """For what is sent: a token that is refused is the owner's to change, and until then nothing is lost."""
    if error.word in LATER:
        return ChannelDown(f"Slack asks to wait ({error.word})", error.retry_after)
    if is_about_access(error):
        return ChannelDown(of_access(error))
    known = _NEVER.get(error.word)
    return Undeliverable(f"Slack: {known} ({error.word})" if known else f"Slack refuses it ({error.word})")
