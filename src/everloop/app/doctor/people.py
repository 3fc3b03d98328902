"""Checks: memory, skills, schedules, budgets, the vault, the audit: what is kept for people."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...core.people import OWNER, Role
from ...errors import VaultLocked
from ...memory.built_in import is_installed
from ...memory.skills.shelf import Requirements, SkillFolder, SkillShelf
from ...ports.budgets import GUESTS, HOUSE
from ...ports.doctor import Diagnosis
from ...ports.heartbeat import HEARTBEAT_FILE
from ...ports.memory import DOCUMENTS
from ...runtime.allotments import Allotments, BudgetLine
from ...settings import workspace_of
from ...tools.bootstrap import FILES, LONGEST
from ...tools.sandbox.view import environment, has_program
from ..budgets import following
from ..skills import installed_in
from .check import Check, Patient, advice, aside, broken, fine, found_or_fine, many, opening_of, skipped

BEHIND = 20  # conversations that wait to become memory
LATE = 6 * 3600.0  # seconds
COPIES = ("conflict", "sync-conflict", "conflicted copy")
MARKS = ("<<<<<<< ", ">>>>>>> ")
SHOWN = 3
NO_HEAD = "the SKILL.md of {name} has no front matter: its first line alone says when to use it"
HEAD = "Put three lines before it: ---, description: what it does and when to use it, and --- (docs/skills.md)"


async def look_at_vault(patient: Patient) -> Sequence[Diagnosis]:
    vault = patient.house.vault
    found = []
    names = await vault.names()
    for name in names:
        try:
            await vault.get(name)
        except VaultLocked as error:
            found.append(broken(str(error), "Nothing that needs it works before"))
    if len(found) > 1:
        found = [broken(f"{found[0].what} ({len(found)} of {len(names)} entries cannot be read)", found[0].todo)]
    return found_or_fine(found, f"the vault opens; {many(len(names), 'secret')} in it")


async def look_at_memory_files(patient: Patient) -> Sequence[Diagnosis]:
    folder = workspace_of(patient.chosen, patient.home) / "memory"
    return found_or_fine([*await aside(_conflicts, folder)], "the files of the memory can be read")


def _conflicts(folder: Path) -> list[Diagnosis]:
    if os.path.lexists(folder) and not folder.is_dir():
        return [broken(f"{folder} is no folder, so nothing that is remembered is written there", "Move it away")]
    if folder.is_dir() and not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        shut = f"{folder} cannot be read and written by you: what is remembered does not reach it"
        return [broken(shut, opening_of(folder))]
    return [*_unreadable(folder), *_copies(folder)]


def _unreadable(folder: Path) -> Iterator[Diagnosis]:
    for path in (folder / name for name in DOCUMENTS):
        if not os.path.lexists(path):
            continue
        if path.is_symlink() or not path.is_file():
            yield broken(f"{path} is a link or no file, and is not read", "Put a plain file in its place")
            continue
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            yield broken(f"{path} cannot be read ({why}): what you change there is not taken in", "Save it as UTF-8")
            continue
        if any(line.startswith(MARKS) for line in text.splitlines()):
            yield advice(
                f"{path} holds both sides of a merge that nobody has settled",
                "Edit it: everloop memory edit; everloop memory log has the versions before",
            )


def _copies(folder: Path) -> Iterator[Diagnosis]:
    names = sorted(each.name for each in folder.glob("*.md")) if folder.is_dir() else []
    for name in names:
        if name not in DOCUMENTS and any(mark in name.lower() for mark in COPIES):
            yield advice(
                f"{folder / name} is a copy that a program for synchronising has put there, and is not read",
                "Take over what is missing in MEMORY.md, then remove it",
            )


async def look_at_prompt_files(patient: Patient) -> Sequence[Diagnosis]:
    folder = workspace_of(patient.chosen, patient.home)
    found = await aside(lambda: [each for name in (*FILES, HEARTBEAT_FILE) if (each := _untold(folder / name))])
    return found_or_fine(found, "the files that prompts are made of can be read")


def _untold(path: Path) -> Diagnosis | None:
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        return broken(f"{path} is no file, and the agent is told nothing of it", "Put a plain file in its place")
    try:
        is_long = path.stat().st_size > 4 * LONGEST or len(path.read_text(encoding="utf-8-sig")) > LONGEST
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        return broken(f"{path} cannot be read as it is ({why})", "Save it as UTF-8, readable by you")
    told = f"{path} is too long: the agent is told its beginning alone"
    return advice(told, f"Shorten it to {LONGEST:,} characters") if is_long else None


async def look_at_held(patient: Patient) -> Sequence[Diagnosis]:
    held = await patient.house.store.held_back()
    if not held:
        return fine("no change of a file waits for you")
    names = ", ".join(file.name for file in held[:SHOWN])
    return [
        advice(
            f"in {many(len(held), 'file')} that prompts are made of, changes wait for a person: {names}",
            "everloop approvals shows what was changed; approve or deny it there",
        )
    ]


async def look_at_embedder(patient: Patient) -> Sequence[Diagnosis]:
    assert patient.settings is not None
    if model := patient.settings.agents.defaults.embedding_model:
        return fine(f"facts are found by their meaning, with {model} (see the check models)")
    if is_installed():
        return fine("facts are found by their words and their meaning")
    return fine("facts are found by their words; pip install 'everloop[recall]' finds them by their meaning, too")


async def look_at_consolidation(patient: Patient) -> Sequence[Diagnosis]:
    assert patient.settings is not None
    chosen = patient.settings.memory
    if not chosen.enabled:
        return skipped("memory.enabled is off")
    waiting = await patient.house.store.unconsolidated(chosen.idle_minutes * 60.0 + LATE, 10**9, 1000)
    if len(waiting) < BEHIND:
        return fine("conversations become memory in time")
    return [
        advice(
            f"{many(len(waiting), 'conversation')} did not become part of the memory for hours",
            "It is done while everloop gateway runs; see that memory.tokens_per_day and budgets leave room",
        )
    ]


async def look_at_skills(patient: Patient) -> Sequence[Diagnosis]:
    """Those that the owner has installed or written; of ours some need programs that few have."""
    assert patient.settings is not None
    settings, home = patient.settings, patient.home
    env = environment(patient.environ, settings.tools.exec.env)
    needs = Requirements(has_program, frozenset(env), lambda name: name in patient.environ)
    shelf = SkillShelf(lambda who: installed_in(home, who), settings.skills.shared, needs)
    shelved = await aside(shelf.of, OWNER, Role.OWNER, {})
    written = await aside(SkillFolder(workspace_of(settings, home) / "skills").skills)
    found = [
        advice(
            f"the skill {each.row.name} cannot be used: {each.row.why}",
            f"Install what is missing, or everloop skills remove {each.row.name}",
        )
        for each in shelved
        if each.source != "built-in" and each.row.state in ("missing", "wrong")
    ]
    found += [
        advice(
            f"the skill {each.name} of the workspace cannot be used: {each.wrong}", "Correct it, or remove its folder"
        )
        for each in written.values()
        if each.wrong
    ]
    bare = [each for each in (*(one.skill for one in shelved), *written.values()) if each.bare]
    found += [advice(NO_HEAD.format(name=each.name), HEAD) for each in bare]
    at_hand = sum(each.row.state == "available" for each in shelved) + sum(not each.wrong for each in written.values())
    return found_or_fine(found, f"{many(at_hand, 'skill')} at hand")


async def look_at_schedules(patient: Patient) -> Sequence[Diagnosis]:
    store = patient.house.store
    people = {person.id: person for person in await store.people()}
    rows = [row for row in await store.schedules() if row.enabled and not row.over]
    found = []
    for row in rows:
        owner, name = row.schedule.owner, row.schedule.name
        todo = f"everloop cron remove {row.schedule.id}, or everloop cron disable {row.schedule.id}"
        person = people.get(owner)
        if owner != OWNER and person is None:
            found.append(advice(f"the schedule {name!r} belongs to {owner}, who is not known any more", todo))
        elif person and person.blocked:
            found.append(advice(f"the schedule {name!r} belongs to {person.name}, who is blocked", todo))
    return found_or_fine(found, f"{many(len(rows), 'schedule')} in force")


async def look_at_budgets(patient: Patient) -> Sequence[Diagnosis]:
    assert patient.settings is not None
    store, section = patient.house.store, patient.settings.users.budgets
    budgets = Allotments(store, following(lambda: section))
    people = [(person.id, person.name, person.role) for person in await store.people()]
    found = []
    for owner, name, role in [
        (HOUSE, "everyone together", Role.OWNER),
        (GUESTS, "all guests", Role.GUEST),
        *people,
    ]:
        for line in await budgets.of(owner, role):
            if _is_used_up(line):
                again = f", and begins anew at {time.ctime(line.resets)}" if line.resets else ""
                what = f"the budget of {name} for a {line.per} is used up{again}: no model is asked for them"
                who = {HOUSE: "house", GUESTS: "guests"}.get(owner, owner)
                todo = f"Raise it: everloop users budget {who}; usage: everloop usage"
                found.append(broken(what, todo) if owner in (HOUSE, OWNER) else advice(what, todo))
    return found_or_fine(found, "no budget is used up")


def _is_used_up(line: BudgetLine) -> bool:
    tokens = line.tokens is not None and line.spent_tokens is not None and line.spent_tokens >= line.tokens
    return tokens or (line.money is not None and line.spent_money is not None and line.spent_money >= line.money)


async def look_at_audit(patient: Patient) -> Sequence[Diagnosis]:
    checked = await patient.house.store.check_audit()
    if checked.broken:
        return [
            broken(
                f"line {checked.broken.line} of the audit is not as it was written: {checked.broken.why}",
                "Somebody has changed the database; everloop audit shows the lines, and a backup what they were",
            )
        ]
    return fine(f"the audit is as it was written, {many(checked.lines, 'line')}")


CHECKS = (
    Check("vault", "every entry of the vault opens with its key or passphrase", look_at_vault, "store", 30),
    Check("memory-files", "MEMORY.md and HISTORY.md can be read and hold no unsettled merge", look_at_memory_files),
    Check("prompt-files", "AGENTS.md, SOUL.md and the others can be read, and are short enough", look_at_prompt_files),
    Check("held-changes", "changes of prompt files, memory and skills that wait for a person", look_at_held, "store"),
    Check("embedder", "how facts are found", look_at_embedder, "settings"),
    Check("consolidation", "conversations that have not become memory for long", look_at_consolidation, "store"),
    Check("skills", "skills that lack a program, a variable or their front matter", look_at_skills, "settings"),
    Check("schedules", "schedules of people who are gone or blocked", look_at_schedules, "store"),
    Check("budgets", "budgets that are used up", look_at_budgets, "store"),
    Check("audit", "the audit is as it was written", look_at_audit, "store", 30),
)
