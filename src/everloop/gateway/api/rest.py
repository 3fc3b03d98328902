"""What is not a conversation: who asks, what waits for permission, what was spent, models, settings."""

import time
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import msgspec

from ...core.errors import MailRefused
from ...core.people import Role
from ...core.rows import SpentRow
from ..answers import Refused
from ..house import Question
from ..principal import Principal
from .route import Answer, Call
from .shapes import (
    ApprovalList,
    ApprovalShown,
    Decided,
    Me,
    ModelChoice,
    ModelList,
    UsageRow,
    UsageRows,
)

DAY = 86_400


async def me(call: Call) -> Answer:
    who, role = call.principal, call.principal.role.name.lower()
    told = {"user": who.user, "role": role, "scopes": sorted(who.scopes)}
    known = who.role >= Role.USER  # which models there are is not a guest's to know
    model, notice = (call.desk.model, call.desk.notice) if known else ("", "")
    return msgspec.convert({**told, "model": model, "notice": notice}, Me)


async def approvals(call: Call) -> Answer:
    waiting = await call.desk.approvals()
    return ApprovalList([_shown(each) for each in waiting if _concerns(each, call.principal)])


async def decide(call: Call) -> Answer:
    waiting = [each for each in await call.desk.approvals() if each.id == call.path.id]
    if not waiting or not _concerns(waiting[0], call.principal):
        raise Refused(404, "not_found", "Nothing of that name waits for permission; it may have been answered already.")
    try:
        found = await call.desk.decide(call.path.id, call.body.allow, call.principal.user)
    except MailRefused as error:
        if waiting[0].kind == "file" and call.principal.role >= Role.ADMIN:
            raise Refused(409, "changed", str(error)) from error
        raise Refused(403, "forbidden", str(error)) from error
    return Decided(found.id, call.body.allow)


async def usage(call: Call) -> Answer:
    days, offset = call.query.days, call.query.offset
    first = int(time.time() + offset) // DAY - (days - 1)
    rows = await call.desk.store.spent(first * DAY - offset, offset=offset)
    return UsageRows(_date(first), days, [_usage_row(row) for row in rows])


async def models(call: Call) -> Answer:
    settings = call.desk.settings
    presets: Mapping[str, Any] = settings.get("models") or {}
    defaults: Mapping[str, Any] = settings["agents"]["defaults"]
    choices = [ModelChoice(name, preset["model"], name == defaults["model"]) for name, preset in presets.items()]
    if defaults["model"] not in presets:
        choices.insert(0, ModelChoice(defaults["model"], call.desk.model, True))
    choices += [ModelChoice(name, name) for name in defaults["fallbacks"] if name not in presets]
    notice = "\n".join(filter(None, (call.desk.notice, *call.desk.unused)))
    return ModelList(call.desk.model, notice, choices, call.desk.missing)


def _concerns(question: Question, who: Principal) -> bool:
    return who.role >= Role.ADMIN or question.requester == who.user


def _shown(each: Question) -> ApprovalShown:
    return ApprovalShown(each.id, each.session, each.requester, each.tool, each.text, each.risk, each.until, each.kind)


def _usage_row(row: SpentRow) -> UsageRow:
    used = row.usage
    return UsageRow(
        *(_date(row.day), row.model, row.calls, used.input, used.output, used.cache_read, used.cache_write),
        *(used.reasoning, row.cost, row.unpriced),
    )


def _date(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
