"""What is not a conversation: who asks, what waits for permission, what was spent, models, settings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ...core.decide import may_answer
from ...core.people import Role
from ...errors import GrantRefused, MailRefused
from ...ports.permission import Approval, Grant
from ...readings.commands import SlashCommand
from ...readings.forms import fields_shown, how_to_answer
from ...readings.grants import MANY, described
from ...readings.held import is_private
from ...readings.visible import visible
from ..access.principal import Principal
from ..http.errors import Refused, sentence
from .model_shapes import ConnectedHost, ConnectedHosts, HostModel, HostModels, ModelChoice, ModelList
from .route import ApiAnswer, ApiCall
from .shapes import (
    ApprovalList,
    ApprovalShown,
    CommandList,
    CommandShown,
    CommandWord,
    Decided,
    GrantList,
    GrantShown,
    McpQuestionShown,
    McpToldAnswer,
    Me,
    Revoked,
)

if TYPE_CHECKING:
    from ...ports.mcp_questions import McpQuestion


async def me(call: ApiCall) -> ApiAnswer:
    who, role = call.principal, call.principal.role.name.lower()
    person = await call.agent.store.person(who.user)
    told = {"user": who.user, "name": person.name if person else who.user, "role": role, "scopes": sorted(who.scopes)}
    known = who.role >= Role.USER  # which models there are is not a guest's to know
    model, notice = (call.agent.model, call.agent.notice) if known else ("", "")
    return msgspec.convert({**told, "model": model, "notice": notice}, Me)


async def commands(call: ApiCall) -> ApiAnswer:
    """Those that someone of this role may use, as /help tells them."""
    role = call.principal.role
    return CommandList([_command(each, role) for each in call.agent.commands_for(role)])


async def approvals(call: ApiCall) -> ApiAnswer:
    waiting = await call.agent.approvals()
    who = call.principal
    questions = [_question(each) for each in await call.agent.mcp_answers.waiting(who.user)]
    return ApprovalList([_shown(each, who) for each in waiting if _is_shown(each, who)], questions)


async def answer_mcp(call: ApiCall) -> ApiAnswer:
    answers, person = call.agent.mcp_answers, call.principal.user
    if call.path.id not in {each.id for each in await answers.waiting(person)}:
        raise Refused(404, "not_found", "No MCP server waits for this answer of yours (any more).")
    try:
        return McpToldAnswer(await answers.answer(call.path.id, call.body.answer, person))
    except MailRefused as error:
        raise Refused(409, "answer_refused", sentence(error)) from error


async def decide(call: ApiCall) -> ApiAnswer:
    waiting = [each for each in await call.agent.approvals() if each.id == call.path.id]
    if not waiting or not _is_shown(waiting[0], call.principal):
        raise Refused(404, "not_found", "Nothing of that name waits for permission; it may have been answered already.")
    allow, ahead = call.body.allow, call.body.ahead
    allowance = ahead.allowance if ahead else None
    try:
        found = await call.agent.decide(call.path.id, allow, call.principal.user, allowance)
    except GrantRefused:
        raise
    except MailRefused as error:
        if waiting[0].kind == "file" and call.principal.role >= Role.ADMIN:
            raise Refused(409, "changed", str(error)) from error
        raise Refused(403, "forbidden", str(error)) from error
    return Decided(found.id, allow, found.id if allowance else None)


async def grants(call: ApiCall) -> ApiAnswer:
    known = await call.agent.grants()
    return GrantList([_told(each) for each in known if _concerns(each.user, call.principal)])


async def revoke_grant(call: ApiCall) -> ApiAnswer:
    if call.path.id not in {each.id for each in await call.agent.grants()}:
        raise Refused(404, "not_found", "There is no grant of that name; its time or its runs may be over.")
    try:
        await call.agent.revoke(call.path.id, call.principal.user)
    except MailRefused as error:
        raise Refused(403, "forbidden", str(error)) from error
    return Revoked(call.path.id)


async def models(call: ApiCall) -> ApiAnswer:
    settings = call.agent.settings
    presets: Mapping[str, Any] = settings.get("models") or {}
    defaults: Mapping[str, Any] = settings["agents"]["defaults"]
    choices = [
        _choice(call, name, preset["model"], default=name == defaults["model"]) for name, preset in presets.items()
    ]
    if defaults["model"] not in presets:
        choices.insert(0, _choice(call, defaults["model"], call.agent.model, default=True))
    choices += [_choice(call, name, name) for name in defaults["fallbacks"] if name not in presets]
    unused = call.agent.unused if call.principal.role >= Role.ADMIN else ()  # who may see settings
    notice = "\n".join(filter(None, (call.agent.notice, *unused)))
    return ModelList(call.agent.model, notice, choices, call.agent.missing)


def _choice(call: ApiCall, name: str, model: str, default: bool = False) -> ModelChoice:
    presets: Mapping[str, Any] = call.agent.settings.get("models") or {}
    facts = call.agent.offers.facts(name if name in presets else model)
    return ModelChoice(name, model, default, facts.window, facts.answer, facts.input, facts.output, facts.local)


async def hosts(call: ApiCall) -> ApiAnswer:
    found = call.agent.offers.hosts()
    return ConnectedHosts([msgspec.convert(each, ConnectedHost, from_attributes=True) for each in found])


async def models_of_host(call: ApiCall) -> ApiAnswer:
    """A sentence about a host may name its address, which is not everybody's to know."""
    offer = await call.agent.offers.of(call.path.name)
    if offer is None:
        raise Refused(404, "not_found", "There is no connected host of that name.")
    rows = [msgspec.convert(each, HostModel, from_attributes=True) for each in offer.models]
    return HostModels(call.path.name, offer.state, offer.why if call.principal.role >= Role.ADMIN else "", rows)


def _command(command: SlashCommand, role: Role) -> CommandShown:
    words = [
        CommandWord(name, word.help, word.takes) for name, word in command.words.items() if word.right.least <= role
    ]
    return CommandShown(command.name, command.help, command.takes, words)


def _concerns(user: str, who: Principal) -> bool:
    return who.role >= Role.ADMIN or user == who.user


def _is_shown(each: Approval, who: Principal) -> bool:
    if each.held and is_private(each.held):
        return each.requester == who.user
    return _concerns(each.requester, who)


def _question(each: "McpQuestion") -> McpQuestionShown:
    return McpQuestionShown(
        id=each.id,
        session=each.session,
        server=each.server,
        message=visible(each.message),
        fields=[line.removeprefix("> ") for line in fields_shown(each.form)],
        how=how_to_answer(each.form),
    )


def _shown(each: Approval, who: Principal) -> ApprovalShown:
    return ApprovalShown(
        id=each.id,
        session=each.session,
        requester=each.requester,
        tool=each.tool,
        text=each.text,
        risk=each.risk,
        until=each.until,
        kind=each.kind,
        choices=tuple(each.choices),
        answerable=bool(each.held and is_private(each.held)) or may_answer(each.overrun, who.user, who.role),
    )


def _told(grant: Grant) -> GrantShown:
    return GrantShown(
        id=grant.id,
        user=grant.user,
        by=grant.by,
        tool=grant.tool,
        allowed=described(grant),
        risk=grant.risk,
        runs=grant.runs if grant.runs <= MANY // 2 else None,
        until=grant.until,
        thread=grant.thread,
        call=grant.call,
    )
