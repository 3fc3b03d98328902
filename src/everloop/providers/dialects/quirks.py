"""Where hosts depart from the dialect that they speak."""

from typing import Literal

from msgspec import Struct

# How a host of the chat dialect is told how hard to think: a field of that name, an object `reasoning` with the
# effort in it, an object `thinking` that is enabled or disabled, or the switch `enable_thinking`.
EffortField = Literal["", "reasoning_effort", "reasoning", "thinking", "enable_thinking"]


class Quirks(Struct, frozen=True, cache_hash=True):
    """A row of the catalogue names those that its host has."""

    token_limit_field: str = "max_tokens"  # empty: the host knows best how much fits
    streams_usage: bool = True  # understands stream_options
    reasoning_field: str = ""  # how it wants its reasoning back beside the calls that came of it
    effort: EffortField = "reasoning_effort"
    conversation_field: str = ""  # takes a name under which to keep its cache
    short_call_ids: bool = False  # takes only ids of nine letters and digits
    extra_content: bool = False  # signs its calls, and refuses them without the signature
    cache_marks: str = ""  # models whose names begin with this want the end of the prefix marked
