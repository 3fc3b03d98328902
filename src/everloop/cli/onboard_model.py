"""The first question of `everloop onboard`: who answers. What is chosen is tried with a real call before it is kept."""

import argparse
import os
import re
import textwrap
from collections.abc import Sequence
from typing import Literal, NoReturn

from msgspec import Struct

from ..app import onboarding
from ..app.connecting import LookedAt
from ..app.onboarding import AUTO, EMBEDDED, ModelPick, OfferedProvider, Surroundings
from ..app.survey import HostRow
from ..app.trial import TriedOut
from ..errors import EverloopError, HostFailed, KeyRefused, SettingsError
from .interview import Interview
from .keys import login, typed_unseen
from .parser import nearest
from .process import run as run_loop
from .terminal import Terminal, WrongUse
from .trial import to_text

SHOWN = 12  # models of a list
OTHER = "another provider, with a key of yours: OpenAI, Anthropic, Google …"
OWN_SERVER, KEEP = "a server of your own, by its address", "keep {}"
LOCAL_MODEL = "the embedded model: runs here, private and free, slow{}"

KeyNeed = Literal["kept", "needed", "maybe", "again"]  # what has to be typed: nothing, a key, one if there is any
KEY_HINTS = {"maybe": " (Enter: it needs none)", "again": " (Enter: something else)"}


class ModelKept(Struct, frozen=True):
    """How the question was answered: `written` is empty where all stays as it was."""

    model: str
    written: tuple[str, ...] = ()
    tests: tuple[TriedOut, ...] = ()
    notes: tuple[str, ...] = ()
    barred: str = ""  # what keeps it from answering yet, and what to do about that


class ModelQuestion:
    def __init__(self, interview: Interview, terminal: Terminal, arguments: argparse.Namespace) -> None:
        self._interview = interview
        self._terminal = terminal
        self._given = arguments
        self.tests: list[TriedOut] = []

    def ask(self) -> ModelKept:
        """Raises EverloopError where nothing could be kept, and nobody is there to choose again; Left."""
        self._terminal.status("looking for keys and local servers …")
        around = run_loop(onboarding.look_around())
        self._terminal.clear()
        if around.model.source == "environment":
            self._terminal.tell(f"{around.answers} answers, as {around.model.place} says, which lies over the file.")
            if self._is_given:
                raise SettingsError(f"{around.model.place} lies over the file; take it out of the environment")
            return ModelKept(around.answers)
        if self._is_given or not self._interview.attended:
            pick = self._given_pick(around)
            return self._settle(pick) if pick else ModelKept(around.answers)
        return self._by_talking(around)

    @property
    def _is_given(self) -> bool:
        given = self._given
        return bool(given.model or given.provider or given.address or given.key_env or given.key_stdin)

    def _by_talking(self, around: Surroundings) -> ModelKept:
        while True:
            try:
                pick = self._picked(around)
                if pick is None:
                    return ModelKept(around.answers)
                return self._settle(pick)
            except EverloopError as error:
                self._terminal.tell(f"everloop: {error}")
                if not self._interview.agree("Choose again?", True):
                    raise EverloopError("no model was chosen, and nothing was kept of it") from error

    def _picked(self, around: Surroundings) -> ModelPick | None:
        """What somebody chooses from what there is; None is to leave it."""
        options: list[tuple[str, str]] = []
        if around.model.is_set:
            options.append((KEEP.format(around.answers), ""))
        options += [(_row_text(row, around), row.name) for row in around.found if not row.why]
        fetched = not around.embedded and onboarding.embedded_is_here()
        more = f" ({around.embedded})" if around.embedded else "" if fetched else "; 1.1 GB are fetched once"
        options += [(LOCAL_MODEL.format(more), EMBEDDED), (OTHER, OTHER), (OWN_SERVER, OWN_SERVER)]
        for row in around.found:
            if row.why:
                self._terminal.note(f"{row.name}: {row.why}")
        names = [name for _, name in options]
        usual = names.index(OTHER) if names[0] == EMBEDDED and around.embedded else 0
        chosen = names[self._interview.choose("Who should answer?", [text for text, _ in options], usual)]
        if not chosen:
            return None
        if chosen == EMBEDDED:
            return ModelPick(EMBEDDED, "")
        if chosen == OWN_SERVER:
            return self._with_model("custom", self._typed_address(), "maybe")
        return self._other(around) if chosen == OTHER else self._with_model(chosen, "", "kept")

    def _typed_address(self) -> str:
        while True:
            address = onboarding.whole_address(self._interview.text("Its address", "http://127.0.0.1:8080/v1"))
            try:
                onboarding.check_address(address)
            except EverloopError as error:
                self._terminal.tell(f"everloop: {error}")
            else:
                return address

    def _other(self, around: Surroundings) -> ModelPick:
        titles = ", ".join(each.title for each in around.offers if each.group == "hosted")
        self._terminal.tell(textwrap.fill(f"There is: {titles}", 100))
        offer = self._typed_provider(around.offers)
        if offer.login:
            run_loop(login(offer.name, self._terminal))
        return self._with_model(offer.name, "", "kept" if offer.login or offer.ready else "needed")

    def _typed_provider(self, offers: Sequence[OfferedProvider]) -> OfferedProvider:
        while True:
            typed = self._interview.text("Which", "openai")
            if offer := onboarding.provider_called(typed, offers):
                return offer
            names = [word for each in offers for word in (each.name, *re.findall(r"\w+", each.title.lower()))]
            self._terminal.tell(f"everloop: there is no provider {typed!r}{nearest(typed.lower(), names)}")

    def _with_model(self, provider: str, address: str, needs: KeyNeed) -> ModelPick:
        key = "" if needs == "kept" else self._typed_key(provider, needs)
        while True:
            self._terminal.status(f"asking {address or provider} for its models …")
            try:
                looked = run_loop(onboarding.list_models(provider, address, key))
            except KeyRefused as error:
                self._terminal.tell(f"everloop: {error}")
                key = self._typed_key(provider, "again")
            except HostFailed as error:
                self._terminal.tell(f"everloop: {error}")
                return ModelPick(provider, self._named_model(), address, key)
            else:
                self._terminal.clear()
                return ModelPick(provider, self._model_of(provider, looked), looked.address if address else "", key)

    def _typed_key(self, provider: str, needs: KeyNeed) -> str:
        of = "this server" if provider == "custom" else provider
        typed = self._interview.unseen(f"The key of {of}, which is not shown{KEY_HINTS.get(needs, '')}")
        if not typed and needs != "maybe":
            raise EverloopError("no key was given")
        return typed

    def _model_of(self, provider: str, looked: LookedAt) -> str:
        names = [str(each.name) for each in looked.models]
        if len(names) == 1:
            self._terminal.note(f"It has one model: {names[0]}")
            return names[0]
        shown = [looked.usual, *(name for name in names if name != looked.usual)][:SHOWN] if looked.usual else names
        for number, name in enumerate(shown, 1):
            self._terminal.tell(f"  {number:>2}  {name}")
        if len(names) > len(shown):
            self._terminal.note(f"and {len(names) - len(shown)} more: everloop models {provider}")
        answer = self._interview.text("Which model, by number or name", "1" if shown else "")
        if not answer:
            raise EverloopError(f"{provider} lists no models; name the one that you want")
        return shown[int(answer) - 1] if answer.isdecimal() and 1 <= int(answer) <= len(shown) else answer

    def _named_model(self) -> str:
        """Of a server that lists none."""
        if name := self._interview.text("The name of the model (Enter: something else)"):
            return name
        raise EverloopError("no model was named")

    def _given_pick(self, around: Surroundings) -> ModelPick | None:
        """As the options say; where they say nothing, and nothing is set, what can be had. Raises EverloopError."""
        given = self._given
        if not self._is_given:
            if around.model.is_set or not given.yes:
                return None
            if around.why:
                raise EverloopError(f"{around.why}. Say --provider NAME --key-env VARIABLE, or --address URL")
            provider, _, model = around.answers.partition("/")
            return ModelPick(provider, model)
        if given.model in (EMBEDDED, AUTO):
            return ModelPick(given.model, "")
        provider, model = _named(given)
        key, address = self._given_key(), onboarding.whole_address(given.address)
        if model:
            if address and not given.skip_test:
                address = run_loop(onboarding.found_address(provider, address, key))
            return ModelPick(provider, model, address, key)
        looked = run_loop(onboarding.list_models(provider, address, key))
        if not looked.usual:
            raise EverloopError(f"{provider} lists no models; say --model NAME")
        return ModelPick(provider, looked.usual, looked.address if address else "", key)

    def _given_key(self) -> str:
        if self._given.key_stdin:
            return typed_unseen("The key: ").strip() or _no_key("stdin")
        if name := self._given.key_env:
            return os.environ.get(name, "").strip() or _no_key(f"the environment variable {name}")
        return ""

    def _settle(self, pick: ModelPick) -> ModelKept:
        """Try it, and keep it if that goes well."""
        self.tests.clear()
        name = pick.provider if pick.is_local else f"{pick.provider}/{pick.model}"
        if not self._given.skip_test and self._is_worth_trying(pick):
            self._terminal.note(f"asking {name}: an answer and a tool call")
            name, well = run_loop(onboarding.try_pick(pick, self._terminal.status, self._tried))
            if not well and not self._interview.agree(f"{name} did not pass. Keep it all the same?", False):
                why = next(each.why for each in self.tests if not each.ok)
                raise EverloopError(f"{name} was tried and did not pass ({why}). Nothing was kept of it")
        kept = run_loop(onboarding.keep_pick(pick))
        key = (f"the key of {kept.model.partition('/')[0]}, in the vault",) if pick.key else ()
        written = (f"agents.defaults.model = {kept.model}", *key)
        return ModelKept(kept.model, written, tuple(self.tests), tuple(kept.notes), kept.barred)

    def _is_worth_trying(self, pick: ModelPick) -> bool:
        """What would have to be fetched first is asked about."""
        if pick.provider != EMBEDDED or onboarding.embedded_is_here():
            return True
        return self._interview.attended and self._interview.agree("Fetch it now (1.1 GB), and try it?", True)

    def _tried(self, tried: TriedOut) -> None:
        self.tests.append(tried)
        if not self._given.json:
            self._terminal.answer(to_text(tried))


def _row_text(row: HostRow, around: Surroundings) -> str:
    title = next((each.title for each in around.offers if each.name == row.name), row.name)
    where = "on this machine" if row.key == "no key needed" else f"key: {row.key}"
    return f"{title}: {where}, {row.models or 'no'} model{'' if row.models == 1 else 's'}"


def _named(given: argparse.Namespace) -> tuple[str, str]:
    """The provider and the model that the options name."""
    provider = given.provider or ("custom" if given.address else "")
    if provider:
        return provider, given.model.removeprefix(f"{provider}/")
    provider, slash, model = given.model.partition("/")
    if not slash:
        raise WrongUse("--model is given as provider/model, or with --provider, or is `embedded` or `auto`")
    return provider, model


def _no_key(where: str) -> NoReturn:
    raise EverloopError(f"no key was given: {where} is empty")
