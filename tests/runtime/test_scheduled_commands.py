"""Commands of schedules after a crash: what has run is found and told, what has not is run, and what nobody knows is
said; a failed one is tried again as often as its schedule says."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from everloop.bus.local import LocalBus
from everloop.core.approval import Policy, PolicyRule
from everloop.core.mail import Telling
from everloop.core.people import OWNER, Role
from everloop.core.tool import Effect
from everloop.errors import ToolError
from everloop.files.folder import Folder
from everloop.ports import Store
from everloop.ports.directory import Person
from everloop.ports.jobs import JobRow
from everloop.ports.schedules import Schedule
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.runtime.calls import Toolbox
from everloop.runtime.people import KnownPeople
from everloop.runtime.scheduled_work import UNKNOWN, NotDone, ScheduledDeeds
from everloop.store.sqlite import SqliteStore
from everloop.tools.decorator import tool

ANY = Policy()
WELL, BADLY = Shown("[exit code 0]\nMonday\n"), Shown("[exit code 3]\noh\n")


class Machine:
    """On which commands run: what each attempt comes to, and what was left of those that a crash has cut off."""

    def __init__(self, *results: Shown) -> None:
        self.results = list(results)
        self.left: dict[str, Shown | None] = {}
        self.ran: list[str] = []
        self.is_lost = False

    def tool(self) -> Tool:
        @tool(Effect.VERIFIABLE, name="exec", permission=Role.USER)
        async def run(command: str, context: CallContext) -> Shown:
            """Run a command."""
            self.ran.append(context.key)
            return self.results.pop(0)

        async def verify(args: dict[str, Any], context: CallContext) -> Shown | None:
            if self.is_lost:
                raise ToolError("nobody knows")
            return self.left.get(context.key)

        return structs.replace(run, verify=verify)


@pytest.fixture
async def store(tmp_path: Path) -> Any:
    opened = await SqliteStore.connect(tmp_path / "home")
    yield opened
    await opened.close()


async def begun(store: Store, retries: int = 0, owner: str = OWNER) -> JobRow:
    """The work on a command that is due, claimed for the first time."""
    given = {"owner": owner, "name": "day", "does": "command", "text": "date +%A", "session": "test:chat"}
    await store.add_schedule(Schedule(id="s", retries=retries, **given), 1.0, 10)  # type: ignore[arg-type]
    await store.fire_schedules()
    (row,) = await store.claim_jobs({"command"}, 30.0)
    return row


def deeds(store: Store, machine: Machine, tmp_path: Path, policy: Policy = ANY) -> ScheduledDeeds:
    async def forget(thread: str) -> None:
        pass

    toolbox = Toolbox.of([machine.tool()], Folder(tmp_path / "files"))
    return ScheduledDeeds(store, LocalBus(), KnownPeople(store), toolbox, lambda: policy, forget)


async def tellings(store: Store) -> list[Telling]:
    row = await store.session("test:chat")
    letters = [mail.letter for mail in await store.mail(row.id)] if row else []
    return [letter for letter in letters if isinstance(letter, Telling)]


async def told(store: Store) -> list[str]:
    return [letter.text for letter in await tellings(store)]


async def states(store: Store) -> list[tuple[str, str]]:
    return [(run.state, run.result) for run in await store.schedule_runs("s")]


async def test_a_command_that_had_run_before_the_crash_is_not_run_again(store: Store, tmp_path: Path):
    row = await begun(store)
    machine = Machine()
    machine.left["schedule job:s:1:1:0"] = WELL
    assert await deeds(store, machine, tmp_path).run_command(structs.replace(row, attempts=2)) == "done"
    assert (machine.ran, await told(store), await states(store)) == ([], ["Monday"], [("done", "Monday")])


async def test_one_that_was_never_begun_is_run(store: Store, tmp_path: Path):
    row = await begun(store)
    machine = Machine(WELL)
    assert await deeds(store, machine, tmp_path).run_command(structs.replace(row, attempts=2)) == "done"
    assert (len(machine.ran), await told(store)) == (1, ["Monday"])


async def test_of_one_that_nobody_can_tell_anything_it_is_said_so_and_it_is_not_run(store: Store, tmp_path: Path):
    row = await begun(store, retries=3)
    machine = Machine(WELL)
    machine.is_lost = True
    assert await deeds(store, machine, tmp_path).run_command(structs.replace(row, attempts=2)) == "failed"
    assert (machine.ran, await told(store)) == ([], [f"day failed: {UNKNOWN}"])


async def test_what_was_told_is_not_told_again(store: Store, tmp_path: Path):
    """Killed after it was told, and before the job was settled."""
    row = await begun(store)
    machine = Machine(WELL)
    work = deeds(store, machine, tmp_path)
    await work.run_command(row)
    machine.left[machine.ran[0]] = WELL
    await work.run_command(structs.replace(row, attempts=2))
    assert (len(machine.ran), await told(store)) == (1, ["Monday"])


async def test_one_that_was_told_and_forgotten_is_not_run_again(store: Store, tmp_path: Path):
    """Killed after nothing was left of it on the machine, and before the job was settled."""
    row = await begun(store)
    machine = Machine(WELL, WELL)
    work = deeds(store, machine, tmp_path)
    await work.run_command(row)
    assert await work.run_command(structs.replace(row, attempts=2)) == "it was done before"
    assert (len(machine.ran), await told(store)) == (1, ["Monday"])


@pytest.mark.parametrize("result", [WELL, BADLY])
@pytest.mark.parametrize("origin", ["a command with a network", ""])
async def test_what_strangers_may_have_said_in_it_is_told_as_theirs_also_if_it_fails(
    store: Store, tmp_path: Path, result: Shown, origin: str
):
    row = await begun(store)
    await deeds(store, Machine(structs.replace(result, origin=origin)), tmp_path).run_command(row)
    assert [letter.outside for letter in await tellings(store)] == [bool(origin)]


async def test_a_failed_one_is_tried_again_as_often_as_its_schedule_says(store: Store, tmp_path: Path):
    row = await begun(store, retries=1)
    machine = Machine(BADLY, BADLY)
    work = deeds(store, machine, tmp_path)
    with pytest.raises(NotDone, match="exit code 3"):
        await work.run_command(row)
    machine.left[machine.ran[0]] = BADLY
    assert await told(store) == []
    assert await work.run_command(structs.replace(row, attempts=2)) == "failed"
    assert (len(machine.ran), await told(store)) == (2, ["day failed: [exit code 3]\noh"])
    assert await states(store) == [("failed", "[exit code 3]\noh")]


async def test_the_right_to_run_commands_is_that_of_the_moment(store: Store, tmp_path: Path):
    await store.introduce(Person("web:ann", "Ann", Role.USER))
    row = await begun(store, owner="web:ann")
    await store.change_person("web:ann", role=Role.GUEST)
    machine = Machine(WELL)
    assert await deeds(store, machine, tmp_path).run_command(row) == "failed"
    assert (machine.ran, await told(store)) == ([], ["day failed: exec is not for guests"])


async def test_what_the_settings_deny_is_not_run(store: Store, tmp_path: Path):
    row = await begun(store)
    machine = Machine(WELL)
    denied = Policy(rules=(PolicyRule("exec", "deny"),))
    assert await deeds(store, machine, tmp_path, denied).run_command(row) == "failed"
    assert (machine.ran, await told(store)) == ([], ["day failed: the settings do not allow it (tools.policy)"])
