"""What a conversation of hundreds of thousands of tokens still knows after several compactions.

    python bench/compaction.py [--windows 32000 128000] [--tokens 400000] [--seeds 3] [--embedded FOLDER]

Conversations are made here, the same each time. Facts of each kind stand in people's words, in the agent's answers and
in results of tools, in many phrasings and among much else; where they stand was drawn before the rules are asked, and
no phrasing was made for a rule. The model that writes the summaries is scripted and tells no fact at all, so that what
is found in the prompt was kept by rule and not by a model's grace. Facts that the last compaction had not to cover are
not counted. Then somebody asks about each, in one of a few phrases, and the prompt of that question is looked at: with
what was recalled for it, and without, which is the control. At last each is looked for with `search_history`: by a
script that asks with the words that it is about, or with the whole question, and reads the first three places, and,
with --embedded and the folder of its weights, by the embedded model.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
from msgspec import Struct

import everloop
from everloop.core.log import Compacted
from everloop.core.message import Message, said
from everloop.core.prompt import Prompt, Transcript
from everloop.core.tool import ToolSpec
from everloop.ports import Store
from everloop.ports.provider import Delta, Reply
from everloop.ports.tools import CallContext
from everloop.readings.recall import ENTRIES, RECALLED, asked_for, room_for, told_again
from everloop.testing import Call, Line, Say, ScriptedModel, Shown
from everloop.tools.history import history_tools, told


def _words(text: str) -> list[str]:
    return text.split()


WORDS = _words(
    "we then looked at how far it had come and what was left of it over there when they asked for more time because "
    "nothing in between would hold as long as people wanted it to and so on but some of that seems fine by now while "
    "other things move slowly or wait until somebody finds out why this happens again after lunch"
)
ADJECTIVES = _words("copper quiet northern yellow spare little winter broken outer second borrowed striped")
NOUNS = _words("lantern harbour ledger bicycle greenhouse printer boiler quilt archive ferry orchard piano")
PEOPLE = _words("Ilse Tobias Marit Joaquin Wenling Oyelaran Siobhan Radek")
FOLDERS = _words("var srv notes src data backup etc home")


class Fact(Struct, frozen=True):
    """`sentence` is what is said; it is kept when `value` stands in the prompt. `topic` is what it is about."""

    kind: str
    place: str
    sentence: str
    value: str
    topic: str

    question: str


def _code(chance: Random) -> str:
    letters = "".join(chance.choices("ABCDEFGHKLMNPQRSTUVWXYZ", k=3))
    return chance.choice((f"{letters}-{chance.randint(1000, 99999)}", f"{chance.getrandbits(40):010x}"))


def _amount(chance: Random) -> str:
    forms = (f"{chance.randint(2, 999)}.{chance.randint(10, 99)}", f"{chance.randint(1000, 99999)}")
    return chance.choice((*forms, f"{chance.randint(2, 99)} %"))


def _path(chance: Random) -> str:
    parts = "/".join(chance.choices(FOLDERS, k=chance.randint(2, 4)))
    return chance.choice((f"/{parts}/{chance.choice(NOUNS)}.txt", f"{parts}/{chance.choice(NOUNS)}.py"))


def _url(chance: Random) -> str:
    return f"https://{chance.choice(NOUNS)}.example/{_code(chance).lower()}?page={chance.randint(1, 99)}"


def _task(chance: Random) -> str:
    deed = chance.choice(("ring", "write to", "thank", "pay", "visit", "ask", "wait for", "chase"))
    return f"{deed} {chance.choice(PEOPLE)} about the {{topic}}"


def _decision(chance: Random) -> str:
    return chance.choice(("paint it", "sell it", "keep it", "move it", "rent it out", "give it away")) + chance.choice(
        (" in spring", " before anything else", " without telling the neighbours", " as it is", " once it is dry")
    )


def _failure(chance: Random) -> str:
    what = chance.choice(("it stops", "the cable came off", "permission denied", "no light", "it ran dry", "a leak"))
    return what + chance.choice(
        (" halfway", " again", " with a grinding noise", " at the last step", " since breakfast")
    )


Make = Callable[[Random], str]
VALUES: dict[str, Make] = {
    "identifier": _code,
    "number": _amount,
    "path": _path,
    "URL": _url,
    "task": _task,
    "decision": _decision,
    "failure": _failure,
}
EXACT = "identifier", "number", "path", "URL"
# {t} is what it is about, {v} the fact. In the words of people who type in a hurry, in more than one language.
EXACT_PHRASES = (
    "for the {t} it is {v}",
    "The {t}: {v}.",
    "btw {v} is what belongs to the {t}, I looked it up",
    "I found it!! {t} = {v}",
    "so the {t} one would be {v} then, not the other",
    "{v} ({t})",
    "was den {t} angeht: {v}",
    "para el {t} apunta {v} por favor",
    "关于 {t} 是 {v} 对吧",
    "Could you look whether {v} fits the {t}? I am not sure that it does.",
)
PHRASES = {
    "task": (
        "{v}",
        "i still have to {v}",
        "Tomorrow, first thing: {v}.",
        "can't forget to {v}",
        "bitte noch erledigen: {v}",
        "{v}, would you?",
        "someone ought to {v} soon",
        "that leaves one thing open, {v}",
    ),
    "decision": (
        "ok the {t}: we {v}",
        "With the {t} I'd say {v}",
        "{t}? {v}. Done.",
        "after sleeping on it, about the {t}: {v}",
        "Beim {t} bleibt es dabei, {v}",
        "my wife says the {t} matters to her, so {v}",
    ),
    "failure": (
        "the {t} again, {v}",
        "No luck with the {t}: {v}.",
        "{t} tried, {v}",
        "i gave the {t} a go but {v}",
        "Der {t} macht Ärger, {v}",
    ),
}
# As people ask, months later; they remember what it was about, and not how it was said.
QUESTIONS = (
    "What about the {t}?",
    "Which {k} did we have for the {t} again?",
    "remind me please, the {t}, what was it",
    "I can't find my notes. Do you still know what I was told about the {t}, and when that was?",
    "We talked about the {t} some weeks ago. What exactly was said?",
    "Wie war das noch mal mit dem {t}?",
    "¿Qué era lo del {t}?",
    "{t} 是什么来着？",
    "Before I ring them: is there anything on the {t} that I should have at hand?",
)
RESULT_PHRASES = ("{t}: {v}", "{t} = {v}", "The {t} has {v}.", "| {t} | {v} |", '"{t}": "{v}",', "seen {v} at the {t}")


def prose(chance: Random, words: int) -> str:
    """So many words of no importance, in sentences."""
    out: list[str] = []
    while len(out) < words:
        sentence = chance.choices(WORDS, k=chance.randint(5, 16))
        out += [sentence[0].capitalize(), *sentence[1:-1], sentence[-1] + "."]
    return " ".join(out[:words])


def plant(chance: Random, count: int) -> list[Fact]:
    """Facts of all kinds in all places, each about something of its own."""
    topics = [f"{a} {n}" for a in ADJECTIVES for n in NOUNS]
    chance.shuffle(topics)
    facts = []
    for n in range(min(count, len(topics))):
        kind, place = list(VALUES)[n % len(VALUES)], ("people", "agent", "result")[n // len(VALUES) % 3]
        value = VALUES[kind](chance).format(topic=topics[n])
        phrases = RESULT_PHRASES if place == "result" else PHRASES.get(kind, EXACT_PHRASES)
        sentence = chance.choice(phrases).format(t=topics[n], v=value)
        question = chance.choice(QUESTIONS).format(t=topics[n], k=kind)
        facts.append(Fact(kind, place, sentence, value, topics[n], question))
    chance.shuffle(facts)
    return facts


class Talk:
    """A conversation turn by turn: what is said, what the tool tells, what is answered, and the facts in it."""

    def __init__(self, seed: int, tokens: int, count: int) -> None:
        self.chance = Random(seed)
        self.facts = plant(self.chance, count)
        self.turns: list[tuple[str, str, str]] = []
        self.turn_of: dict[Fact, int] = {}
        left, size = list(self.facts), 0
        per_turn = tokens * 4 / 200
        while size < tokens * 4:
            here = [left.pop() for _ in range(2) if left and self.chance.random() < 0.8 * len(self.facts) / 200]
            turn = self._turn(here, int(per_turn))
            self.turn_of.update(dict.fromkeys(here, len(self.turns)))
            self.turns.append(turn)
            size += sum(map(len, turn))
        self.facts = [fact for fact in self.facts if fact in self.turn_of]

    def _turn(self, facts: list[Fact], chars: int) -> tuple[str, str, str]:
        texts = {place: [fact.sentence for fact in facts if fact.place == place] for place in ("people", "agent")}
        lines = [fact.sentence for fact in facts if fact.place == "result"]
        asked = self._among(texts["people"], self.chance.randint(3, 40), self.chance.choice(("\n", " ", ". ")))
        told = self._among(texts["agent"], self.chance.randint(60, 250), ". ")
        filler = [prose(self.chance, self.chance.randint(6, 30)) for _ in range(max(4, (chars - 1200) // 100))]
        for line in lines:
            filler.insert(self.chance.randrange(len(filler)), line)
        return asked, "\n".join(filler), told

    def _among(self, sentences: list[str], words: int, joint: str) -> str:
        """These sentences with other words before or after them."""
        parts = [*sentences, prose(self.chance, words)]
        self.chance.shuffle(parts)
        return joint.join(parts)


class Outcome(Struct):
    """The facts that were covered, by their topics: those that the prompt holds, and those that are found."""

    covered: list[Fact]
    compactions: int
    tokens: int
    kept: set[str] = set()  # beside the summary, without what is recalled
    shown: set[str] = set()  # there, or recalled
    found: set[str] = set()
    found_by_question: set[str] = set()
    recalled: list[int] = []  # characters for each question


async def live_through(talk: Talk, window: int, home: Path, sample: int, weights: Path | None, lost: bool) -> Outcome:
    turn = 0

    @everloop.tool(everloop.Effect.READ, local=True)
    async def look() -> str:
        """Look."""
        return talk.turns[turn][1]

    def answer(shown: Shown) -> Line:
        if shown.system.startswith("You summarise"):
            return Say("They went on with what they were at.")
        if turn == len(talk.turns):
            return Say("I see.")
        return Say(talk.turns[turn][2]) if shown.step else Call("look")

    model = ScriptedModel(answer)
    settings = {"agents": {"defaults": {"context_window": window}}}
    async with everloop.open(home=home, provider=model, tools=[look], settings=settings) as agent:
        ends: list[int] = []  # the last entry of each turn
        for number, (asked, _, _) in enumerate(talk.turns):
            turn = number
            await agent.ask(asked)
            row = await agent.store.session("api:default")
            assert row is not None
            ends.append(row.head)
        assert row is not None
        entries = [entry for entry in await agent.store.read(row.id) if isinstance(entry, Compacted)]
        left = "\n".join(message.text for message in entries[-1].kept)
        early = [fact for fact in talk.facts if ends[talk.turn_of[fact]] <= entries[-1].covers[1]]
        covered = [fact for fact in early if fact.sentence not in left]
        outcome = Outcome(covered, len(entries), sum(len(text) for each in talk.turns for text in each) // 4)
        turn = len(talk.turns)
        for fact in covered:
            await agent.ask(fact.question)
            prompt = model.prompts[-1]
            recalled = prompt.tail.partition(RECALLED)[2]
            kept = [line for message in prompt.messages[:-1] for line in message.text.split("\n")]
            if holds(kept, fact):
                outcome.kept.add(fact.topic)
            if holds([*kept, *recalled.split("\n")], fact):
                outcome.shown.add(fact.topic)
            outcome.recalled.append(len(recalled))
            if lost and fact.topic not in outcome.shown:
                _say(f"  not shown: {fact}\n{recalled}")
            if await finds(agent.store, row.id, fact.topic, fact):
                outcome.found.add(fact.topic)
            if await finds(agent.store, row.id, fact.question, fact):
                outcome.found_by_question.add(fact.topic)
        if weights:
            await ask_the_embedded(agent.store, row.id, entries[-1].covers[1], covered[:sample], weights)
    return outcome


def holds(lines: list[str], fact: Fact) -> bool:
    """Whether it stands there word for word, in the same line as what it is about or in the next of the same speaker,
    for a long message is kept in parts."""
    bare = [line.removeprefix("- user: ").removeprefix("- agent: ") for line in lines]
    pairs = (f"{one} {other}" for one, other in zip(bare, [*bare[1:], ""], strict=True))
    return any(fact.value in pair and fact.topic in pair for pair in pairs)


async def finds(store: Store, thread: str, words: str, fact: Fact) -> bool:
    """As a model would: search, then read the first three places."""
    places = await store.search("owner", words, thread=thread, limit=8)
    texts = [place.text for place in places]
    for place in places[:3]:
        [written] = await store.history(thread, place.seq - 1, 1)
        texts.append(told(written.seq, written.entry))
    return any(fact.value in text and fact.topic in text for text in texts)


async def ask_the_embedded(store: Store, thread: str, until: int, facts: list[Fact], weights: Path) -> None:
    """First with what is recalled for the question, as it is told by rule; then by a search of its own."""
    from everloop.providers.embedded import WEIGHTS, EmbeddedProvider

    model = EmbeddedProvider(WEIGHTS["embedded"], weights)
    search, _ = history_tools(store, 1000)
    right: Counter[str] = Counter()

    async def reply(transcript: Transcript, system: str, tail: str = "", tools: tuple[ToolSpec, ...] = ()) -> Reply:
        name = "You are everloop, a personal assistant. "
        asked = Prompt("embedded", name + system, transcript, tools, tail, conversation="c", max_tokens=150)
        return await model.reply(asked, _ignore)

    for fact in facts:
        right["asked"] += 1
        found = await store.recall(thread, asked_for([fact.question]), until, ENTRIES)
        told = told_again(found, "", room_for(WEIGHTS["embedded"].window))
        right["recalled"] += fact.value in told
        answer = await reply(Transcript((Message("user", said(fact.question)),)), "Answer from what is told.", told)
        right["said exactly what was recalled"] += fact.value.lower() in answer.text.lower()
        _say(f"  {fact.question} {fact.value!r}: {answer.text[:120]!r}")
        transcript = Transcript((Message("user", said(f"{fact.question} Search our history for it.")),))
        gone = "Earlier parts of this conversation are gone; search for them."
        call = await reply(transcript, gone, tools=(search.spec,))
        if not call.calls:
            continue
        right["searched"] += 1
        args = msgspec.json.decode(call.calls[0].args)
        result = str(await search.run(args, CallContext("k", thread, "api:default", "owner")))
        right["found"] += fact.value in result
        transcript.add(Message("assistant", said(call.text), call.calls))
        transcript.add(Message("tool", said(result), answers=call.calls[0].id))
        answer = await reply(transcript, gone, tools=(search.spec,))
        right["said exactly what was found"] += fact.value.lower() in answer.text.lower()
    await model.close()
    _say(f"the embedded model: {dict(right)}")


def _ignore(delta: Delta) -> None:
    pass


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


PLACES = ("people", "agent", "result")


def report(window: int, outcomes: list[Outcome]) -> None:
    tokens = [f"{outcome.tokens:,}" for outcome in outcomes]
    compactions = ", ".join(str(each.compactions) for each in outcomes)
    recalled = sorted(count for outcome in outcomes for count in outcome.recalled)
    _say(f"window: {window:,}; tokens: {', '.join(tokens)}; compactions: {compactions}")
    _say(f"characters recalled for a question: median {recalled[len(recalled) // 2]}, at most {recalled[-1]}")
    _say("| kind | people's words | agent's answers | results | without recall | topic searched | question searched |")
    _say("|---|---|---|---|---|---|---|")
    for kind in (*VALUES, ""):
        cells = [_share(outcomes, kind, place, "shown") for place in PLACES]
        cells += [_share(outcomes, kind, "", what) for what in ("kept", "found", "found_by_question")]
        _say(f"| {kind or 'all'} | {' | '.join(cells)} |")
    without = [_share(outcomes, "", place, "kept") for place in PLACES]
    _say(f"| all, without recall | {' | '.join(without)} | | | |")


def _share(outcomes: list[Outcome], kind: str, place: str, what: str) -> str:
    good = every = 0
    for outcome in outcomes:
        facts = [each for each in outcome.covered if kind in ("", each.kind) and place in ("", each.place)]
        every += len(facts)
        good += sum(each.topic in getattr(outcome, what) for each in facts)
    if not every:
        return "–"
    share = 100 * good / every
    return f"{good} of {every}, {share:.{int(99.5 <= share < 100)}f} %"


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--windows", type=int, nargs="+", default=[32_000, 128_000])
    parser.add_argument("--tokens", type=int, default=400_000)
    parser.add_argument("--facts", type=int, default=140)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--sample", type=int, default=12)
    parser.add_argument("--lost", action="store_true", help="show what is lost, or not found")
    parser.add_argument("--embedded", type=Path, help="the folder with the embedded model's weights")
    options = parser.parse_args()
    for window in options.windows:
        report(window, [await measure(window, options.first + n, options) for n in range(options.seeds)])


async def measure(window: int, seed: int, options: argparse.Namespace) -> Outcome:
    talk = Talk(seed, options.tokens, options.facts)
    weights = options.embedded if seed == options.first else None
    with tempfile.TemporaryDirectory() as home:
        outcome = await live_through(talk, window, Path(home), options.sample, weights, options.lost)
    for fact in outcome.covered if options.lost else ():
        for what in ("found", "found_by_question"):
            if fact.topic not in getattr(outcome, what):
                _say(f"  not {what}: {fact}")
    return outcome


if __name__ == "__main__":
    asyncio.run(main())
