"""Whether a tool is still the one that was decided on."""

from hashlib import sha256

import msgspec

from ..core.tool import ToolSpec


def definition_of(spec: ToolSpec) -> str:
    """The same for a tool only as long as a call of it does the same."""
    bound = (spec.name, spec.description, spec.schema, spec.effect, spec.permission, spec.scene)
    return sha256(msgspec.json.encode(bound, order="deterministic")).hexdigest()[:16]


def is_another(now: ToolSpec, then: ToolSpec) -> bool:
    """Whether what was decided on a call of `then` says nothing about one of `now`."""
    if now is then:
        return False
    held = ((definition_of(each), each.guarded, each.outside, each.exit) for each in (now, then))
    return next(held) != next(held)
