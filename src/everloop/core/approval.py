"""Whether a call may run unasked, and what exactly a person allows when asked.

A permission is bound to a digest of all that decides what the call does: its exact arguments, the tool's definition and
the scene it works in. If any of these is another when the call is to run, nothing was allowed.
"""

from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Literal

import msgspec
from msgspec import Struct

from .tool import Circumstances, Effect, Risk, ToolCall, ToolSpec, parse_args

Stance = Literal["allow", "ask", "deny"]


class PolicyRule(Struct, frozen=True):
    """What is done with calls of tools whose names fit a pattern, of any risk or one."""

    tool: str
    stance: Stance
    risk: str = ""

    def fits(self, name: str, risk: Risk) -> bool:
        return fnmatchcase(name, self.tool) and self.risk in ("", risk.level)


class Policy(Struct, frozen=True):
    """The first rule that fits decides. Without one, `default` does, for what leaves the sandbox or is guarded."""

    default: Stance = "ask"
    rules: tuple[PolicyRule, ...] = ()

    def stance(self, call: ToolCall, spec: ToolSpec, situation: Circumstances) -> Stance:
        """For a call whose arguments have been checked."""
        risk = risk_of(call, spec, situation)
        for rule in self.rules:
            if rule.fits(spec.name, risk):
                return rule.stance
        return self.default if spec.guarded or risk.leaves or risk.privileged else "allow"


def risk_of(call: ToolCall, spec: ToolSpec, situation: Circumstances) -> Risk:
    if spec.risk is not None:
        try:
            return spec.risk(parse_args(call), situation)
        except Exception as error:  # a stranger's code runs here
            return Risk("high", leaves=True, mutates=True, why=f"how risky it is cannot be told ({error!r})")
    if spec.effect is Effect.READ:
        return Risk()
    return Risk("medium" if spec.effect is Effect.UNSAFE else "low", mutates=True)


def digest_of(call: ToolCall, spec: ToolSpec) -> str:
    """The same for two calls only if running either does the same."""
    bound = (call.name, call.args, spec.description, spec.schema, spec.effect, spec.permission, spec.scene)
    return sha256(msgspec.json.encode(bound, order="deterministic")).hexdigest()


def approval_id(thread: str, answer: int, place: int, digest: str) -> str:
    """What a person names it by. It stands for this call in this place and nothing else."""
    return sha256(f"{thread}:{answer}:{place}:{digest}".encode()).hexdigest()[:10]
