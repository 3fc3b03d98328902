"""What must be true of the world outside, and of the log, whatever was killed when. Each check is one sentence.

`check(world)` reads what the platform, the remote, the model and the store hold after all is quiet, and returns a
Report: `wrong` are broken promises, `seen` counts what the kills brought about, to show that they hit something.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from everloop.core.log import (
    CallReturned,
    CallStarted,
    Entry,
    GaveUp,
    ModelCalled,
    ModelFailed,
    ModelSaid,
    Resumed,
    Stopped,
    UserSaid,
)
from everloop.core.thread import Thread
from everloop.core.turn import Finished
from everloop.ports import Store
from everloop.testing import Ran, Sent, outside, runs_in, sends_in

from .feed import Ack, Event, acks_in, events_in, message_id
from .world import Troubles, World

MARK = "(may be repeated) "


class Report:
    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.seen: Counter[str] = Counter()

    def add(self, other: "Report") -> None:
        self.wrong += other.wrong
        self.seen += other.seen


class Conversation(Struct):
    """One thread, as the store has it, and the turns that its log tells."""

    id: str
    session: str
    head: int
    entries: list[Entry]
    turns: list[Finished]
    open: bool


class Evidence(Struct):
    events: list[Event]
    acks: dict[str, Ack]
    threads: list[Conversation]
    sends: list[Sent]
    runs: list[Ran]
    asked: Counter[str]  # how often the model was called, by message
    kills: int
    patient: bool  # leases were long, so that only the dead were taken over
    lease: float
    lost: int  # leases, as the processes said
    troubles: Troubles | None  # of lines
    noted: list[str]  # what the processes themselves found wrong


async def check(world: World) -> Report:
    report = Report()
    store = await open_store(world)
    try:
        evidence = await gather(world, store)
    finally:
        await store.close()
    report.wrong += world.crashes
    for promise in PROMISES:
        report.wrong += [f"{world.folder.name}: {sentence}" for sentence in promise(evidence)]
    report.seen = count(evidence)
    return report


async def open_store(world: World) -> Store:
    if world.url:
        from everloop.store.postgres import PostgresStore

        return await PostgresStore.connect(world.url)
    from everloop.store.sqlite import SqliteStore

    return await SqliteStore.connect(world.folder / "home")


async def gather(world: World, store: Store) -> Evidence:
    folder = world.folder
    acks: dict[str, Ack] = {}
    noted = [record["text"] for record in outside.records_in(folder / "violations.jsonl")]
    for ack in acks_in(folder / "acks.jsonl"):
        if acks.setdefault(ack.event, ack) != ack:
            noted.append(f"{ack.event} was acknowledged as {acks[ack.event]} and as {ack}")
    threads = [await read_conversation(store, id) for id in dict.fromkeys(ack.thread for ack in acks.values())]
    called = (record["message"] for record in outside.records_in(world.model.log))
    return Evidence(
        events=events_in(folder / "feed.jsonl"),
        acks=acks,
        threads=threads,
        sends=[*sends_in(folder / "idem.jsonl"), *sends_in(folder / "blind.jsonl")],
        runs=runs_in(folder / "effects.jsonl"),
        asked=Counter(id for id in called if id.startswith(f"{folder.name}/")),
        kills=world.kills,
        patient=world.lease_seconds >= 30,
        lease=world.lease_seconds,
        lost=_lines_in(folder / "stderr.txt", "the lease on thread"),
        troubles=world.troubles,
        noted=noted,
    )


def _lines_in(path: Path, words: str) -> int:
    return sum(words in line for line in path.read_text(errors="replace").splitlines()) if path.exists() else 0


async def read_conversation(store: Store, id: str) -> Conversation:
    entries, row = await store.read(id), (await store.open(id)).row
    thread, turns = Thread(id), []
    for entry in entries:
        before = thread.finished
        thread.add(entry)
        if thread.finished is not None and thread.finished is not before:
            turns.append(thread.finished)
    return Conversation(id, row.session, row.head, entries, turns, thread.owes_reply)


def nothing_was_noted(evidence: Evidence) -> Iterator[str]:
    """An event that comes again is the same letter in the same thread, and two processes never run one thread."""
    yield from evidence.noted


def every_event_is_acknowledged(evidence: Evidence) -> Iterator[str]:
    for event in evidence.events:
        if event.id not in evidence.acks:
            yield f"{event.id} was never acknowledged"


def every_message_has_exactly_one_turn(evidence: Evidence) -> Iterator[str]:
    heard = Counter(
        (thread.id, entry.mail)
        for thread in evidence.threads
        for entry in thread.entries
        if isinstance(entry, UserSaid)
    )
    ended = Counter((thread.id, mail) for thread in evidence.threads for turn in thread.turns for mail in turn.mails)
    for event in evidence.events:
        ack = evidence.acks.get(event.id)
        if ack is None or event.text.startswith("/"):
            continue
        letter = (ack.thread, ack.mail)
        if heard[letter] != 1 or ended[letter] != 1:
            yield f"{event.id} is {heard[letter]} times in the log and {ended[letter]} turns took it"


def every_log_is_whole(evidence: Evidence) -> Iterator[str]:
    for thread in evidence.threads:
        if len(thread.entries) != thread.head:
            yield f"the log of {thread.id} has {len(thread.entries)} entries and ends at {thread.head}"
        if thread.open:
            yield f"the turn of {thread.id} is still open"


def every_call_has_exactly_one_result_in_order(evidence: Evidence) -> Iterator[str]:
    for thread in evidence.threads:
        owed: list[tuple[int, int]] = []
        for seq, entry in enumerate(thread.entries, 1):
            if isinstance(entry, CallReturned):
                if not owed or owed.pop(0) != (entry.answer, entry.place):
                    yield f"{thread.id}:{seq} is a result out of its order"
            elif isinstance(entry, ModelCalled | GaveUp) and owed:
                yield f"{thread.id}:{seq} goes on before the results of {owed}"
            elif isinstance(entry, ModelSaid):
                owed = [(seq, place) for place in range(len(entry.calls))]


def nothing_starts_after_a_stop(evidence: Evidence) -> Iterator[str]:
    for thread in evidence.threads:
        for before, after in pairwise(thread.entries):
            if isinstance(before, Stopped) and isinstance(after, ModelCalled | CallStarted):
                yield f"{thread.id} went on after a stop with {after}"


def turns_keep_the_order_of_arrival(evidence: Evidence) -> Iterator[str]:
    for thread in evidence.threads:
        mails = [entry.mail for entry in thread.entries if isinstance(entry, UserSaid)]
        if mails != sorted(mails):
            yield f"{thread.id} heard its letters in the order {mails}"
        if "crowd" in thread.session and any(len(turn.mails) != 1 for turn in thread.turns):
            yield f"{thread.id} mixed the messages of different people in one turn"


def turns_are_given_up_only_for_interruptions(evidence: Evidence) -> Iterator[str]:
    host = ("cut", "connection", "timeout") if evidence.troubles else ()  # it was out of reach
    for thread in evidence.threads:
        for turn in thread.turns:
            if turn.reason not in ("", "stopped", "resumed", *host):
                yield f"{thread.id}:{turn.seq} was given up: {turn.reason}: {turn.text}"
        for entry in thread.entries:
            if isinstance(entry, ModelFailed) and entry.error not in host:
                yield f"a model call of {thread.id} failed: {entry.text}"


def every_answer_is_delivered_in_order_and_once(evidence: Evidence) -> Iterator[str]:
    sends: defaultdict[str, list[Sent]] = defaultdict(list)
    for sent in evidence.sends:
        sends[sent.key].append(sent)
    ended = [(thread.id, turn) for thread in evidence.threads for turn in thread.turns]
    replies = [f"reply:{id}:{turn.seq}" for id, turn in ended if turn.text is not None or turn.unknown or turn.cut]
    commands = {f"command:{ack.mail}": ack for ack in evidence.acks.values() if ack.reply is not None}
    for key in [*replies, *commands]:
        if key not in sends:
            yield f"{key} was never delivered"
    for key, copies in sends.items():
        if key not in replies and key not in commands and copies[0].kind != "question":
            yield f"{key} answers nothing: {copies[0].text}"
        for copy in copies[1:]:
            if not copy.once and not copy.text.startswith(MARK):
                yield f"{key} was repeated unmarked: {copy.text}"
        if len({copy.text.removeprefix(MARK) for copy in copies}) > 1:
            yield f"{key} has several texts: {copies}"
    yield from _answers_out_of_order(evidence)


def _answers_out_of_order(evidence: Evidence) -> Iterator[str]:
    for thread in evidence.threads:
        keys = dict.fromkeys(sent.key for sent in evidence.sends if sent.key.startswith(f"reply:{thread.id}:"))
        seqs = [int(key.rpartition(":")[2]) for key in keys]
        if seqs != sorted(seqs):
            yield f"the answers of {thread.id} were delivered in the order {seqs}"


def every_person_sees_one_answer_to_each_message(evidence: Evidence) -> Iterator[str]:
    answers = Counter(
        message_id(key_text.removeprefix("answer to ")).rstrip(":")
        for key_text in {sent.key: sent.text.removeprefix(MARK) for sent in evidence.sends}.values()
        if key_text.startswith("answer to ")
    )
    for id, times in answers.items():
        if times > 1:
            yield f"{id} has {times} different answers"


def every_effect_happens_as_often_as_its_class_allows(evidence: Evidence) -> Iterator[str]:
    runs: defaultdict[str, list[Ran]] = defaultdict(list)
    for ran in evidence.runs:
        runs[ran.args["for"]].append(ran)
    for target, made in runs.items():
        name, keys = made[0].name, {ran.key for ran in made}
        if len(keys) != 1:
            yield f"{name} for {target} ran with the keys {keys}"
        # Who was frozen in the middle of a call finishes it when it wakes; then the look for its effect came too early.
        once = ("unsafe", "guarded", "verifiable") if evidence.patient else ("unsafe", "guarded")
        if name in once and len(made) > 1:
            yield f"{name} for {target} ran {len(made)} times"
    ran_keys = {ran.key for ran in evidence.runs}
    for key, name, outcome, _ in results(evidence):
        if outcome == "done" and key not in ran_keys:
            yield f"{name} {key} is said to be done and never ran"
        if outcome in ("denied", "failed"):
            yield from [f"{name} {key} is said to be {outcome} and ran"] if key in ran_keys else []
            yield from [f"{name} {key} failed"] if outcome == "failed" else []


def every_interrupted_effect_is_surfaced(evidence: Evidence) -> Iterator[str]:
    """What ran and has no result of its own says so to the model: it may have taken effect."""
    ran_keys = {ran.key for ran in evidence.runs}
    for key, name, outcome, text in results(evidence):
        if name in ("unsafe", "guarded") and outcome not in ("done", "denied"):
            honest = "nobody knows whether" in text or "may have taken effect" in text or key not in ran_keys
            if not honest:
                yield f"{name} {key} ran, and the model was told: {text}"


def model_calls_are_repeated_at_most_once_a_kill(evidence: Evidence) -> Iterator[str]:
    """Each call stands in the log before it is made; those without an answer are one for each take-over or stop."""
    for thread in evidence.threads:
        called = sum(isinstance(entry, ModelCalled) for entry in thread.entries)
        answered = sum(isinstance(entry, ModelSaid) for entry in thread.entries)
        breaks = sum(isinstance(entry, Stopped | Resumed | ModelFailed) for entry in thread.entries)
        if called - answered > breaks:
            yield f"{thread.id} called the model {called} times for {answered} answers and {breaks} interruptions"
        taken = sum(isinstance(entry, Resumed) for entry in thread.entries)
        if taken > evidence.kills and evidence.patient:
            yield f"{thread.id} was taken over {taken} times, over {evidence.kills} kills"
    by_session: Counter[str] = Counter()
    for id, times in evidence.asked.items():
        by_session[id.partition("/")[2].partition("#")[0]] += times
    for session, times in by_session.items():
        logged = sum(isinstance(e, ModelCalled) for t in evidence.threads if t.session == session for e in t.entries)
        if times > logged + (evidence.troubles.broken if evidence.troubles else 0):
            yield f"the model was called {times} times for {session}, of which {logged} stand in the log"


def leases_are_lost_only_in_a_long_outage(evidence: Evidence) -> Iterator[str]:
    troubles = evidence.troubles
    if troubles and evidence.lost and troubles.away < evidence.lease / 2:
        yield f"{evidence.lost} leases were lost, though the database was away for {troubles.away:.1f} s at most"


def no_answer_is_paid_for_twice_without_a_reason(evidence: Evidence) -> Iterator[str]:
    """A call is made again when its own connection broke, when its lease ran out, or when somebody stopped it."""
    troubles = evidence.troubles
    if troubles is None:
        return  # a process that was killed made its calls again; that is counted above
    entries = [entry for thread in evidence.threads for entry in thread.entries]
    answered = sum(isinstance(entry, ModelSaid) for entry in entries)
    stopped = sum(isinstance(entry, Stopped) for entry in entries)
    asked, reasons = evidence.asked.total(), troubles.broken + evidence.lost + stopped
    if asked - answered > reasons:
        yield (
            f"the model was asked {asked} times for {answered} answers, with {troubles.broken} connections broken, "
            f"{evidence.lost} leases lost and {stopped} turns stopped"
        )


PROMISES = (
    nothing_was_noted,
    every_event_is_acknowledged,
    every_message_has_exactly_one_turn,
    every_log_is_whole,
    every_call_has_exactly_one_result_in_order,
    nothing_starts_after_a_stop,
    turns_keep_the_order_of_arrival,
    turns_are_given_up_only_for_interruptions,
    every_answer_is_delivered_in_order_and_once,
    every_person_sees_one_answer_to_each_message,
    every_effect_happens_as_often_as_its_class_allows,
    every_interrupted_effect_is_surfaced,
    model_calls_are_repeated_at_most_once_a_kill,
    leases_are_lost_only_in_a_long_outage,
    no_answer_is_paid_for_twice_without_a_reason,
)


def results(evidence: Evidence) -> Iterator[tuple[str, str, str, str]]:
    """Key, tool, outcome and text of every result in the logs."""
    for thread in evidence.threads:
        for entry in thread.entries:
            if isinstance(entry, CallReturned):
                answer = thread.entries[entry.answer - 1]
                assert isinstance(answer, ModelSaid)
                key = f"{thread.id}:{entry.answer}:{entry.place}"
                yield key, answer.calls[entry.place].name, entry.outcome, entry.text


def count(evidence: Evidence) -> Counter[str]:
    """What the kills brought about."""
    entries = [entry for thread in evidence.threads for entry in thread.entries]
    repeated = Counter(ran.key for ran in evidence.runs)
    sent = Counter(sent.key for sent in evidence.sends)
    return Counter(
        {
            "kills": evidence.kills,
            "messages": len(evidence.events),
            "turns": sum(len(thread.turns) for thread in evidence.threads),
            "steered": sum(len(turn.mails) - 1 for thread in evidence.threads for turn in thread.turns if turn.mails),
            "stopped": sum(isinstance(entry, Stopped) for entry in entries),
            "questions": sum(key.startswith("approval:") for key in sent),
            "takeovers of open turns": sum(isinstance(entry, Resumed) for entry in entries),
            "turns given up after three": sum(isinstance(e, GaveUp) and e.reason == "resumed" for e in entries),
            "model calls": evidence.asked.total(),
            "model calls repeated": sum(isinstance(entry, ModelCalled) for entry in entries)
            - sum(isinstance(entry, ModelSaid) for entry in entries),
            "effects": len(evidence.runs),
            "effects run again": sum(times - 1 for times in repeated.values()),
            "calls unknown": sum(outcome == "unknown" for _, _, outcome, _ in results(evidence)),
            "calls abandoned": sum(outcome == "abandoned" for _, _, outcome, _ in results(evidence)),
            "model calls that failed": sum(isinstance(entry, ModelFailed) for entry in entries),
            "leases lost": evidence.lost if evidence.troubles else 0,
            "model connections broken": evidence.troubles.broken if evidence.troubles else 0,
            "sends": len(evidence.sends),
            "sends repeated": sum(times - 1 for times in sent.values()),
            "sends marked": sum(sent.text.startswith(MARK) for sent in evidence.sends),
        }
    )
