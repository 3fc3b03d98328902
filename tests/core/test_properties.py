"""For any log that can arise and any prefix of it, going on gives a valid log and the turn ends.

A small world drives a thread as the runtime does, but in memory: it commits at the same places, and hypothesis
decides what the model says, what arrives when, and where the process dies.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from everloop.core.approval import digest_of
from everloop.core.decide import (
    Ask,
    CallModel,
    Compact,
    GiveUp,
    Rest,
    Rules,
    RunCalls,
    Settle,
    Verify,
    admit,
    decide,
)
from everloop.core.log import (
    Asked,
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
from everloop.core.mail import Decision, Mail, Said, Stop
from everloop.core.message import said
from everloop.core.prompt import Brought, Offered
from everloop.core.thread import Thread
from everloop.core.tool import Effect
from tests.core.makers import ROLES, RULES, SPECS, call
from tests.effort import examples

HARMLESS = {Effect.READ, Effect.IDEMPOTENT, Effect.KEYED}  # to do twice; written out, and not asked of the code


class Died(Exception):
    pass


def spoken(chance: Random, text: str = "hi", author: str = "ann", address: str = "") -> Said:
    """A message; now and then of a client that brings tools of its own, also such as are called like ours."""
    names = chance.sample([*SPECS, "nosuch"], k=chance.randint(1, 4)) if chance.random() < 0.3 else []
    brought = Brought(tools=tuple(map(Offered, names))) if names else None
    return Said(said(text), author, address, brought=brought)


class World:
    def __init__(self, chance: Random, rules: Rules, log: list[Entry], trouble: float) -> None:
        self.chance, self.rules, self.log, self.trouble = chance, rules, log, trouble
        self.inbox: list[Mail] = []
        self.mails = 0
        self.ran: Counter[tuple[int, int]] = Counter()  # unsafe effects, by call
        self.held: list[Entry] = []
        self.absorbed: set[int] = set()
        self.running = False
        self.deaths, self.letters = 8, 12  # trouble is bounded, or nothing could be said about the end

    def post(self, letter) -> None:
        self.mails += 1
        self.inbox.append(Mail(self.mails, letter))

    def live(self) -> None:
        """One life of a process: from its start until the thread rests or the process dies."""
        self.thread = Thread.of(*self.log)
        self.held, self.absorbed = [], set()
        if self.running and self.thread.owes_reply:
            self.keep(Resumed())
        for _ in range(400):
            self.absorb()
            step = decide(self.thread, self.rules)
            match step:
                case Rest():
                    if self.rest():
                        return
                case CallModel(wrap=wrap):
                    if self.write(ModelCalled("m", wrap=wrap)):
                        self.perhaps_die()
                        self.keep(self.model_says())
                case RunCalls(places=places):
                    self.run(places)
                case Verify(place=place):
                    self.keep(CallReturned(self.thread.answer, place, "it had happened"))
                case Settle(results=results):
                    self.keep(*results)
                case Ask(places=places):
                    self.keep(*(self.asked(place) for place in places))
                case GiveUp(reason=reason):
                    self.keep(GaveUp(reason, "sorry"))
                case Compact():
                    raise AssertionError("these rules do not compact")
        raise AssertionError("the thread never rests")

    def asked(self, place: int) -> Asked:
        open_call = self.thread.open_calls[place]
        return Asked(self.thread.answer, place, digest_of(open_call, SPECS[open_call.name]))

    def absorb(self) -> None:
        for mail in [mail for mail in self.inbox if mail.id not in self.absorbed]:
            admitted = admit(self.thread, mail, self.rules.steering, ROLES)
            self.keep(*admitted.entries)
            if admitted.taken:
                self.absorbed.add(mail.id)

    def keep(self, *entries: Entry) -> None:
        for entry in entries:
            self.thread.add(entry)
            self.held.append(entry)

    def write(self, *starts: Entry) -> bool:
        self.perhaps_die()
        self.perhaps_speak()
        stop = any(isinstance(mail.letter, Stop) and mail.id not in self.absorbed for mail in self.inbox)
        self.commit(() if stop else starts, running=True)
        self.perhaps_die()
        return not stop

    def rest(self) -> bool:
        self.perhaps_die()
        self.perhaps_speak()
        new = [
            mail
            for mail in self.inbox
            if mail.id not in self.absorbed and admit(self.thread, mail, self.rules.steering, ROLES).taken
        ]
        self.commit((), running=bool(new))
        return not new

    def commit(self, starts, running: bool) -> None:
        self.log += [*self.held, *starts]
        self.thread.extend(starts)
        self.inbox = [mail for mail in self.inbox if mail.id not in self.absorbed]
        self.held, self.absorbed, self.running = [], set(), running

    def run(self, places) -> None:
        names = {place: self.thread.open_calls[place].name for place in places}
        if any(SPECS[name].effect is not Effect.READ for name in names.values()):
            if not self.write(*(CallStarted(self.thread.answer, place) for place in places)):
                return
            for place, name in names.items():
                self.ran[self.thread.answer, place] += SPECS[name].effect is Effect.UNSAFE
        self.perhaps_die()
        if self.chance.random() < self.trouble and any(isinstance(mail.letter, Stop) for mail in self.inbox):
            return  # broken off by the stop
        self.keep(*(CallReturned(self.thread.answer, place, "ok") for place in places))

    def model_says(self) -> Entry:
        kind = self.chance.random()
        if kind < 0.1:
            return ModelFailed(self.chance.choice(["cut", "key", "overflow", "budget"]), "failed")
        if kind < 0.2:
            return ModelSaid("")
        if kind < 0.5:
            return ModelSaid("an answer")
        names = self.chance.choices([*SPECS, "nosuch"], k=self.chance.randint(1, 4))
        args = self.chance.choice(["{}", "{}", "{}", "{broken"])
        return ModelSaid("", tuple(call(name, args) for name in names))

    def perhaps_die(self) -> None:
        if self.deaths and self.chance.random() < self.trouble * 0.3:
            self.deaths -= 1
            raise Died

    def perhaps_speak(self) -> None:
        if not self.letters or self.chance.random() > self.trouble:
            return
        self.letters -= 1
        author = self.chance.choice(["ann", "ann", "bob"])
        pending = self.thread.pending
        if pending and self.chance.random() < 0.5:
            verdict = self.chance.choice(["allowed", "denied", "expired"])
            self.post(
                Decision("", self.thread.answer, pending[0], verdict, author, self.thread.asked[pending[0]].digest)
            )
        else:
            self.post(Stop(author) if self.chance.random() < 0.3 else spoken(self.chance, "more", author))


def live_until_rest(world: World) -> None:
    for _ in range(200):
        try:
            world.live()
        except Died:
            continue
        pending = world.thread.pending
        if pending:
            world.post(Decision("", world.thread.answer, pending[0], "expired"))
        elif not world.inbox:
            return
    raise AssertionError("the world never comes to rest")


def check(log: list[Entry]) -> None:
    """Each call has exactly one result, in order, before the model is asked again; unsafe effects start once."""
    open_places: list[int] = []
    answer, wrap = 0, False
    starts: Counter[tuple[int, int]] = Counter()
    names: dict[tuple[int, int], str] = {}
    for seq, entry in enumerate(log, 1):
        match entry:
            case ModelCalled():
                assert open_places == []
                wrap = entry.wrap
            case ModelSaid(calls=calls) if not wrap:
                answer, open_places = seq, list(range(len(calls)))
                names.update({(seq, place): made.name for place, made in enumerate(calls)})
            case CallStarted():
                assert open_places[0] == entry.place
                starts[entry.answer, entry.place] += 1
            case CallReturned():
                assert (entry.answer, entry.place) == (answer, open_places.pop(0))
            case UserSaid() | Stopped() | GaveUp():
                pass
    assert open_places == []
    for key, count in starts.items():
        assert count == 1 or SPECS[names[key]].effect in HARMLESS
    ended = list(ends(log))
    assert sorted(ended) == sorted(entry.mail for entry in log if isinstance(entry, UserSaid))
    assert len(ended) == len(set(ended))


def ends(log: list[Entry]) -> Iterator[int]:
    """The letters whose turn has ended, in the order in which that happened."""
    thread, last = Thread(), None
    for entry in log:
        thread.add(entry)
        if thread.finished is not last:
            last = thread.finished
            yield from last.mails


SEED = st.integers(0, 2**64)
STEERING = st.sampled_from(["steer", "queue", "interrupt"])


@examples(400)
@given(SEED, STEERING, st.integers(1, 4))
def test_whatever_happens_the_log_is_valid_and_every_turn_ends(seed, steering, max_steps):
    chance = Random(seed)
    rules = Rules(RULES.tools, roles=ROLES, max_steps=max_steps, steering=steering)
    world = World(chance, rules, [], trouble=0.4)
    world.post(spoken(chance, address="cli:direct"))
    live_until_rest(world)
    check(world.log)
    assert not world.thread.owes_reply
    assert all(count <= 1 for count in world.ran.values())
    heard = [entry.mail for entry in world.log if isinstance(entry, UserSaid)]
    assert len(heard) == len(set(heard))


@examples(120)
@given(SEED, STEERING)
def test_going_on_from_any_prefix_gives_a_valid_log(seed, steering):
    chance = Random(seed)
    rules = Rules(RULES.tools, roles=ROLES, max_steps=3, steering=steering)
    world = World(chance, rules, [], trouble=0.4)
    world.post(spoken(chance, address="cli:direct"))
    live_until_rest(world)
    for length in range(len(world.log)):
        later = World(chance, rules, world.log[:length], trouble=0.0)
        later.running = True
        live_until_rest(later)
        check(later.log)
        assert later.log[:length] == world.log[:length]
        assert not later.thread.owes_reply


@examples(120)
@given(SEED)
def test_the_fold_does_not_depend_on_how_the_log_was_read(seed):
    chance = Random(seed)
    world = World(chance, RULES, [], trouble=0.4)
    world.post(spoken(chance, address="cli:direct"))
    live_until_rest(world)
    whole = Thread.of(*world.log)
    assert whole.standing == world.thread.standing
    assert whole.transcript.messages == world.thread.transcript.messages
    assert decide(whole, RULES) == decide(world.thread, RULES)
