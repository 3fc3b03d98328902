"""Slash commands that are understood in every channel, whatever the model is doing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct, structs

from ..core.gauge import rough
from ..core.mail import Choose, CompactRequest, Inbound, Said, Stop
from ..core.message import said, text_of
from ..core.people import Role
from ..core.thread import Thread
from ..errors import MailRefused, ModelMissing
from ..ports import Archive, Arrivals, Budgets, Clock, Directory, Ledger, Log, People
from ..ports.audit import acting, acting_as
from ..ports.conversation import Deed
from ..ports.permission import Grant
from ..ports.remembering import OwnMemory
from ..ports.rows import COUNT, Action, SpentRow
from ..ports.schedules import Schedules
from ..ports.skills import SkillBook
from ..ports.tasks import Tasks
from ..readings.brought_commands import BroughtCommand, CommandCall
from ..readings.commands import COMMANDS, SlashCommand, listed, rest_of
from ..readings.commands import find as find_command
from ..readings.grants import described, extent
from ..readings.personas import Personas
from ..readings.questions import chosen as chosen_in
from ..readings.questions import question_of
from .allotments import Allotments
from .approvals import Approvals
from .background import BackgroundCommands
from .brought_commands import answer_to
from .budgets import BudgetRules
from .children import TaskLimits
from .clock import MACHINE
from .cron_command import CronCommand
from .deletions import Deletions
from .heartbeat_desk import HeartbeatDesk
from .key_command import Kept, KeyCommand, nothing_kept
from .mcp_answers import McpAnswers
from .mcp_command import ListsMcp, McpCommand
from .membership import Membership, role_given
from .memory_commands import MemoryCommands
from .models import Models
from .persona_commands import PersonaCommands
from .schedule_words import ScheduleWords
from .session_commands import SessionCommands, sentence
from .sessions import BUSY, Sessions
from .skill_command import SkillCommand
from .status_command import StatusCommand, no_channels
from .task_commands import TaskCommands
from .usage_command import UsageCommand, paid, price_of

LEAST, LEAST_TOKENS = 4, 450  # messages that are worth a summary, and how long they have to be
BLOCKED = "You are blocked here: nothing that you say is heard."
ANSWERED = "Somebody else has answered this already."
ALONE = "What you may spend is nobody else's business, so I say it only where we are alone."
TO_THE_MODEL = "To say this to the model, begin with /{}."
LEAST_AGAIN = 1800  # the same, where there is a summary already


class CommandEffect(Struct, frozen=True):
    """What a command does: an action of the store's, the letter that goes with it, and what is said about it."""

    inbound: Inbound
    action: Action | Deed
    reply: str
    otherwise: str = ""
    decision: Inbound | None = None  # on a question of another conversation, which is posted first
    grant: Grant | None = None  # kept with the decision that is posted, if that counts
    stopped: tuple[str, ...] = ()  # threads that are told to stop, beside the session's own
    says: bool = False  # the letter is said to the model, as any other


class CommandStore(Archive, Arrivals, Log, Ledger, Directory, Budgets, Tasks, Schedules, Protocol):
    """Conversations, their letters and logs, what they cost, and who is known."""


class SlashCommands:
    def __init__(
        self,
        store: CommandStore,
        models: Models,
        approvals: Approvals,
        sessions: Sessions,
        people: People,
        deletions: Deletions,
        clock: Clock = MACHINE,
        budgets: Allotments | None = None,
        personas: Callable[[], Personas] = Personas,
        kept: Kept = nothing_kept,
        memory: OwnMemory | None = None,
        skills: SkillBook | None = None,
        channels: Callable[[], Sequence[str]] = no_channels,
        schedules: ScheduleWords | None = None,
        heartbeat: HeartbeatDesk | None = None,
        tasks: Callable[[], TaskLimits] = TaskLimits,
        mcp: ListsMcp | None = None,
        brought: Callable[[], Mapping[str, BroughtCommand]] = dict,
        mcp_answers: McpAnswers | None = None,
    ) -> None:
        """`brought` are the commands of plugins."""
        self._store = store
        self._brought = brought
        self._budgets = budgets or Allotments(store, BudgetRules)
        self._clock = clock
        self._people = people
        self._models = models
        self._approvals = approvals
        self._sessions = sessions
        self._looking_back = SessionCommands(store, sessions, deletions)
        self._members = Membership(store)
        self._usage = UsageCommand(store, clock)
        self._personas = PersonaCommands(store, personas)
        self._keys = KeyCommand(kept)
        self._memory = MemoryCommands(memory)
        self._skills = SkillCommand(skills)
        self._tasks = TaskCommands(store, clock)
        self._background = BackgroundCommands(store, sessions, tasks)
        self._mcp = McpCommand(mcp, mcp_answers)
        self._status = StatusCommand(store, models, channels, heartbeat, self._mcp)
        self._cron = CronCommand(schedules)

    def find(self, text: str) -> SlashCommand | None:
        """The command that someone typed, if what they typed looks like one; there need not be one of that name."""
        return find_command(text)

    def known(self, role: Role) -> list[SlashCommand]:
        """Those that someone of this role may use, the plugins' last."""
        every = (*COMMANDS.values(), *(each.command for each in self._brought().values()))
        return [each for each in every if each.right.least <= role]

    async def work_out(self, command: SlashCommand, inbound: Inbound, letter: Said) -> CommandEffect:
        """What it comes to; nothing has happened yet."""
        role = await self._people.role(letter.author)
        came = acting.get()
        by = came.by if came.person == letter.author else f"{role.name.lower()} in {inbound.address.channel}"
        with acting_as(letter.author, by):
            return await self._work_out(command, inbound, letter, role)

    async def _work_out(self, command: SlashCommand, inbound: Inbound, letter: Said, role: Role) -> CommandEffect:
        rest = rest_of(text_of(letter.parts))
        brought = self._brought().get(command.name)
        command = brought.command if brought else command
        if command.name not in COMMANDS and not brought:
            return CommandEffect(inbound, "none", misunderstood(command.name, self.known(role)))
        if rest and not command.takes:
            return CommandEffect(inbound, "none", f"{command.name} stands alone. {TO_THE_MODEL.format(command.name)}")
        if role < Role.GUEST:
            return CommandEffect(inbound, "none", BLOCKED)
        if role < (least := command.right_to(rest).least):
            typed = f"{command.name} {rest.partition(' ')[0].lower()}" if command.right.least <= role else command.name
            return CommandEffect(inbound, "none", f"{typed} is not for {role.name.lower()}s: it needs {_a(least)}.")
        if brought:
            call = CommandCall(rest, letter.author, role, str(inbound.address))
            return CommandEffect(inbound, "none", await answer_to(call, brought))
        match command.name:
            case "/new":
                return CommandEffect(inbound, "new", "New session started.")
            case "/stop":
                stopping = structs.replace(inbound, letter=Stop(letter.author))
                return CommandEffect(stopping, "stop", f"⏹ Stopped {COUNT} task(s).", "No active task to stop.")
            case "/model":
                if rest:
                    return await self._choose(rest, inbound, letter)
                return await self._show_model(inbound, await self._personas.model(inbound, letter, role))
            case "/persona":
                choosing, reply = await self._personas.work_out(rest, inbound, letter, role)
                if choosing is None:
                    return CommandEffect(inbound, "none", reply)
                return CommandEffect(structs.replace(inbound, letter=choosing), "tell", reply)
            case "/compact":
                return await self._compact(inbound, letter)
            case "/approve":
                return await self._approve(rest.split(), inbound, letter)
            case "/deny":
                return await self._approve([*rest.split()[:1], "no"] if rest else [], inbound, letter)
            case "/pair":
                return CommandEffect(inbound, "none", await self._pair(rest.split(), role))
            case "/link":
                return CommandEffect(inbound, "none", await self._link(rest, inbound, letter))
            case "/undo":
                return await self._undo(inbound, letter)
            case "/session":
                deed, reply = await self._looking_back.work_out(rest, inbound, letter, role)
                return CommandEffect(inbound, deed, reply, BUSY)
            case "/resume" | "/fork" | "/tree":
                deed, reply = await self._looking_back.go(command.name, rest, inbound, letter, role)
                return CommandEffect(inbound, deed, reply, BUSY)
            case "/budget":
                if letter.principal:
                    return CommandEffect(inbound, "none", ALONE)
                row = await self._store.session(str(inbound.address))
                told = await self._budgets.tell(letter.author, role, row.id if row else "")
                return CommandEffect(inbound, "none", told)
            case "/memory":
                return CommandEffect(inbound, "none", await self._memory.tell(rest, letter, role))
            case "/keys":
                kept, reply = self._keys.tell(rest, inbound, letter)
                return CommandEffect(kept, "none", reply)
            case "/skill":
                return CommandEffect(inbound, "none", await self._skills.tell(rest, letter, role))
            case "/bg":
                return CommandEffect(inbound, *await self._background.send(rest, inbound, letter, role))
            case "/fg":
                return CommandEffect(inbound, *await self._background.bring(rest, inbound, letter, role))
            case "/mcp":
                shared = str(inbound.address) if letter.principal else ""
                text, prompt = await self._mcp.tell(rest, role, letter.author, shared)
                if prompt is None:
                    return CommandEffect(inbound, "none", text)
                asked = structs.replace(letter, parts=(*said(text), *said(prompt.text, prompt.origin)))
                return CommandEffect(structs.replace(inbound, letter=asked), "none", "", says=True)
            case "/tasks" | "/kill":
                work_out = self._tasks.tell if command.name == "/tasks" else self._tasks.stop
                reply, stopped = await work_out(rest, inbound, letter)
                return CommandEffect(inbound, "none", reply, stopped=stopped)
            case "/status":
                usual = await self._personas.model(inbound, letter, role)
                return CommandEffect(inbound, "none", await self._status.tell(inbound, letter, role, usual))
            case "/cron":
                return CommandEffect(inbound, "none", await self._cron.tell(rest, inbound, letter, role))
            case "/usage" if rest:
                return CommandEffect(inbound, "none", await self._usage.tell(rest, letter, role))
            case "/usage":
                row = await self._store.session(str(inbound.address))
                rows = await self._store.spent(thread=row.id) if row else []
                before = await self._store.taken_back(row.id) if row else []
                inherited = await self._store.inherited(row.id) if row else []
                return CommandEffect(inbound, "none", describe(rows, before, inherited))
        return CommandEffect(inbound, "none", "\n".join(["everloop commands:", *listed(self.known(role))]))

    async def _pair(self, words: list[str], role: Role) -> str:
        if not words:
            waiting = [f"{each.code} — {each.account}" for each in await self._members.waiting()]
            return "\n".join(waiting) or "Nobody waits to be let in."
        code, *given = words
        try:
            # Administrators are not made in a chat: what is said there may come by a token that is worth less.
            person = await self._members.pair(code, role_given(" ".join(given) or "user"), min(role, Role.ADMIN))
        except MailRefused as error:
            return sentence(error)
        return f"{person.name} ({person.id}) is {person.role.name.lower()} from now on, and can write again."

    async def _link(self, code: str, inbound: Inbound, letter: Said) -> str:
        if code:
            return "You are known here already. Say this where you are not."
        if letter.principal:  # a group: whoever reads the code there could be them
            return "Whoever is told the code can become you, so I say it only where we are alone. Say /link there."
        made = await self._members.link_code(letter.author, str(inbound.address), inbound.event)
        return f"Say this from your other account, within ten minutes, to be the same person there: /link {made}"

    async def _compact(self, inbound: Inbound, letter: Said) -> CommandEffect:
        thread = await self._thread(inbound)
        known = thread.transcript.messages[int(thread.condensed) :] if thread else []
        enough = LEAST_AGAIN if thread and thread.condensed else LEAST_TOKENS
        if len(known) < LEAST or sum(map(rough, known)) < enough:
            return CommandEffect(inbound, "none", "There is too little in this conversation to make a summary of it.")
        squeezing = structs.replace(inbound, letter=CompactRequest(letter.author, letter.payer))
        return CommandEffect(squeezing, "tell", "What was said before becomes a summary; nothing of it is lost.")

    async def _thread(self, inbound: Inbound) -> Thread | None:
        """The conversation as it stands, without the mail that waits."""
        row = await self._store.session(str(inbound.address))
        if row is None:
            return None
        opened = await self._store.open(row.id)
        thread = Thread(row.id, opened.first - 1)
        thread.extend(opened.entries)
        return thread

    async def _undo(self, inbound: Inbound, letter: Said) -> CommandEffect:
        row = await self._store.session(str(inbound.address))
        if row is None:
            return CommandEffect(inbound, "none", "Nothing has been said here yet.")
        try:
            return CommandEffect(inbound, await self._sessions.undo(row, letter.author), "", BUSY)
        except MailRefused as error:
            return CommandEffect(inbound, "none", sentence(error))

    async def _approve(self, words: list[str], inbound: Inbound, letter: Said) -> CommandEffect:
        """A person's answer to a question. It is theirs alone: what a model or a tool says is never a command."""
        session, author = str(inbound.address), letter.author
        if not words:
            open_here = await self._approvals.waiting(session)
            if not letter.principal:  # what is theirs alone is not told in a group
                own = await self._approvals.private(author)
                open_here += [each for each in own if each.session != session]
            waiting = [each for each in open_here if await self._approvals.may_answer(each, author)]
            return CommandEffect(
                inbound,
                "none",
                "\n\n".join(question_of(each) for each in waiting) or "Nothing waits for permission here.",
            )
        name, *rest = words
        allow = [word.lower() for word in rest] != ["no"]
        more = rest[1:] if rest and rest[0].lower() == "yes" else rest
        try:
            approval = await self._approvals.find_anywhere(name, session)
            chosen = chosen_in(approval, more) if allow else None
            if approval.held:
                return CommandEffect(
                    inbound, "none", await self._approvals.decide_on_file(approval, allow, author, chosen)
                )
            answer, grant = await self._approvals.decide(approval, allow, author, chosen, inbound.event)
        except MailRefused as error:
            return CommandEffect(inbound, "none", sentence(error))
        ahead = f" So is, {extent(grant, self._clock.now())}: {described(grant, grant.thread)}." if grant else ""
        reply = f"{approval.subject} is {'allowed' if allow else 'not allowed'}.{ahead}"
        if approval.address != session:
            decided = structs.replace(answer, event=f"decision:{approval.id}")
            return CommandEffect(inbound, "none", reply, ANSWERED, decided, grant)
        return CommandEffect(structs.replace(inbound, letter=answer.letter), "tell", reply, grant=grant)

    async def keep(self, posted: Inbound, grant: Grant | None) -> None:
        """What an answer to a question allows ahead, now that it is posted."""
        await self._approvals.keep(posted, grant)

    async def _choose(self, wanted: str, inbound: Inbound, letter: Said) -> CommandEffect:
        try:
            model = await self._models.look("" if wanted == "default" else wanted)
        except ModelMissing as error:
            return CommandEffect(inbound, "none", f"The model stays as it is: {error}.")
        choosing = structs.replace(inbound, letter=Choose("" if wanted == "default" else model.key, letter.author))
        return CommandEffect(choosing, "tell", f"{model.name} answers in this conversation from now on.")

    async def _show_model(self, inbound: Inbound, usual: str) -> CommandEffect:
        """`usual` is who answers here where nobody has chosen; "" is the one of the settings."""
        row = await self._store.session(str(inbound.address))
        chosen = ""
        if row:
            opened = await self._store.open(row.id)
            fold = Thread(row.id, opened.first - 1)
            fold.extend(opened.entries)
            waiting = [mail.letter.model for mail in opened.mail if isinstance(mail.letter, Choose)]
            chosen = waiting[-1] if waiting else fold.choice
        presets = self._models.names()
        lines = [f"{await self._who(chosen or usual)} answers in this conversation."]
        if presets:
            lines.append(f"Presets: {', '.join(presets)}.")
        lines.append("Choose another with /model NAME (a preset or provider/model), or go back with /model default.")
        return CommandEffect(inbound, "none", "\n".join(lines))

    async def _who(self, chosen: str) -> str:
        try:
            model = await self._models.look(chosen) if chosen else self._models.find("")
        except ModelMissing:
            return f"{self._models.default} (in place of {chosen}, which cannot be had)"
        return model.name if chosen in ("", model.name) else f"{chosen} ({model.name})"


def _a(role: Role) -> str:
    return f"{'a' if role is Role.USER else 'an'} {role.name.lower()}"


def misunderstood(name: str, known: Sequence[SlashCommand]) -> str:
    """What is said to whoever types a command that there is not: no model is asked."""
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(name, [each.name for each in known], 1)
    perhaps = f"Did you mean {near[0]}? " if near else ""
    return f"There is no {name}. {perhaps}/help shows what there is. {TO_THE_MODEL.format(name)}"


def describe(rows: list[SpentRow], before: Sequence[SpentRow] = (), inherited: Sequence[SpentRow] = ()) -> str:
    """What a conversation has used, a line for each model. `before` was used for what it stands for now,
    `inherited` for what it has from another."""
    if not rows and not before and not inherited:
        return "Nothing has been used in this conversation yet."
    lines = [_line(row) for row in _by_model([*before, *rows])]
    if before:
        calls, price = sum(row.calls for row in before), _price(before)
        lines.append(
            f"Of this, {calls} call(s), {price}, were before something was taken back or said in other words (/undo, "
            "/session edit, /session regenerate): what was spent stays spent."
        )
    if inherited:
        lines += ["Up to where it branched off (a fork, a snapshot), in the conversation that it comes from:"]
        lines += [_line(row) for row in _by_model([*inherited])]
    return "\n".join(lines)


def _by_model(rows: list[SpentRow]) -> list[SpentRow]:
    totals: dict[str, SpentRow] = {}
    for row in rows:
        name = _called(row)
        totals[name] = _add(totals[name], row) if name in totals else row
    return list(totals.values())


def _called(row: SpentRow) -> str:
    return f"{row.model} (for {row.purpose})" if row.purpose else row.model


def _line(row: SpentRow) -> str:
    return (
        f"{_called(row)}: {row.calls} call(s), {row.usage.input:,} tokens in ({row.usage.cache_read:,} from the "
        f"cache), {row.usage.output:,} out, {paid(row)}"
    )


def _price(rows: Sequence[SpentRow]) -> str:
    return price_of(sum(row.cost for row in rows), sum(row.unpriced for row in rows))


def _add(one: SpentRow, other: SpentRow) -> SpentRow:
    return structs.replace(
        one,
        calls=one.calls + other.calls,
        usage=one.usage + other.usage,
        cost=one.cost + other.cost,
        unpriced=one.unpriced + other.unpriced,
        own_calls=one.own_calls + other.own_calls,
        own_cost=one.own_cost + other.own_cost,
    )
