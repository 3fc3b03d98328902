"""`everloop onboard`: from nothing to a first answer. Every question has a default, what is finished stays whatever
comes after it, and at the end stands what was written and what was not."""

import argparse
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from ..app import onboarding
from ..app.channel_desk import open_channel_desk
from ..app.channel_packages import installed
from ..app.opening import check_whole
from ..errors import EverloopError
from ..settings import home_of
from ..settings.editor import SettingsEditor
from . import channel_values, channels, service
from .interview import Interview, Left
from .onboard_model import ModelKept, ModelQuestion
from .process import run as run_loop
from .table import to_json
from .terminal import Terminal, WrongUse

MORE = (
    "It can be run at any time: it shows what is set, and changes only what you say. In a script: everloop onboard "
    "--provider openai --key-env MY_KEY --yes. Ends with 0 when all is done, 1 when something failed, 2 for options "
    "that do not go together, 130 when you leave."
)
NEXT = {
    "everloop": "a chat, here",
    "everloop gateway": "the same in a browser, and the channels",
    "everloop doctor": "what is wrong, should something be",
}
NOBODY_ASKED = (
    "onboard asks its questions at a terminal; in a script say --yes, or what is to be done: --model, --provider, "
    "--address, --key-env, --key-stdin, --name, --password-env"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", metavar="NAME", default="", help="who answers: provider/model, embedded, or auto")
    add("--provider", metavar="NAME", default="", help="the provider; its usual model, unless --model names one")
    add("--address", metavar="URL", default="", help="of a server of your own that speaks OpenAI's language")
    add("--key-env", metavar="NAME", default="", help="the variable that holds the key; it is kept in the vault")
    add("--key-stdin", action="store_true", help="read the key from stdin; it is kept in the vault")
    add("--skip-test", action="store_true", help="keep the model without asking it anything")
    add("--name", metavar="NAME", default="", help="what you are called")
    add("--password-env", metavar="NAME", default="", help="the variable that holds a password for the page")
    add("--service", action="store_true", help="install the gateway as a service, too")
    add("--yes", action="store_true", help="take the default of every question, and ask none")
    add("--json", action="store_true", help="ask nothing, and print one JSON object at the end")


def run(arguments: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Not itself async: questions are asked while no event loop runs, so that Ctrl-C is heard at each."""
    terminal = Terminal(sys.stdout, sys.stderr)
    attended = sys.stdin.isatty() and not arguments.yes and not arguments.json
    said = ("model", "provider", "address", "key_env", "key_stdin", "name", "password_env", "service", "yes")
    if not attended and not any(getattr(arguments, name) for name in said):
        raise WrongUse(NOBODY_ASKED)
    if arguments.key_env and arguments.key_stdin:
        raise WrongUse("--key-env and --key-stdin do not go together")
    check_whole(home_of(os.environ))
    SettingsEditor(home_of(os.environ), os.environ).read()  # what is wrong in the file is to be mended first
    return _ended(Onboarding(Interview(terminal, attended=attended), terminal, arguments).run())


async def _ended(code: int) -> int:
    return code


class Onboarding:
    """The questions in their order, and what has come of them."""

    def __init__(self, interview: Interview, terminal: Terminal, arguments: argparse.Namespace) -> None:
        self._interview = interview
        self._terminal = terminal
        self._given = arguments
        self._written: list[str] = []
        self._failed: list[str] = []
        self._notes: list[str] = []
        self._model = ModelKept("")

    def run(self) -> int:
        steps: dict[str, Callable[[], None]] = {
            "the model": self._ask_model,
            "your name": self._ask_name,
            "the workspace": self._ask_workspace,
            "a password for the page": self._ask_password,
            "channels": self._ask_channels,
            "the service": self._ask_service,
        }
        self._greet()
        names = [*steps]
        for place, (name, step) in enumerate(steps.items()):
            try:
                step()
            except (KeyboardInterrupt, Left):
                self._leave(names[place:])
                return 130
            except EverloopError as error:
                self._failed.append(f"{name}: {error}")
                self._terminal.tell(f"everloop: {error}")
                if name == "the model" and not self._interview.attended:  # a script has asked for it
                    self._leave(names[place:])
                    return 1
        self._close()
        return 1 if self._failed else 0

    def _greet(self) -> None:
        if self._interview.attended:
            self._terminal.tell(f"Setting up everloop in {home_of(os.environ)}. Enter takes what stands in brackets.")
            self._terminal.tell("Ctrl-C leaves at any time, and what is finished stays.\n")

    def _ask_model(self) -> None:
        question = ModelQuestion(self._interview, self._terminal, self._given)
        try:
            self._model = question.ask()
        except EverloopError:
            self._model = ModelKept("", tests=tuple(question.tests))
            raise
        self._note(*self._model.written)
        self._notes += self._model.notes
        for note in self._model.notes:
            self._terminal.note(note)
        if self._model.barred:
            self._failed.append(f"the model: {self._model.barred}")
            self._terminal.tell(f"everloop: {self._model.barred}")

    def _ask_name(self) -> None:
        setup = run_loop(onboarding.look_at_home())
        wanted = self._given.name or self._interview.text("What are you called", setup.owner)
        if wanted != setup.owner:
            run_loop(onboarding.name_owner(wanted))
            self._note(f"your name: {wanted}")

    def _ask_workspace(self) -> None:
        setup = run_loop(onboarding.look_at_home())
        if not setup.missing or not (self._interview.attended or self._given.yes):
            return
        missing = ", ".join(setup.missing)
        if setup.workspace.exists() and not self._agrees_to_files(missing, setup.workspace):
            return
        onboarding.write_starting_files(setup)
        self._note(f"{missing} in {setup.workspace}, which tell the agent who it is and how you want it to work")

    def _agrees_to_files(self, missing: str, workspace: Path) -> bool:
        self._terminal.note(
            f"In {workspace} there is no {missing}. They tell the agent who it is, and how you want it."
        )
        return self._interview.agree("Write them, to begin with?", False)

    def _ask_password(self) -> None:
        if name := self._given.password_env:
            if name not in os.environ:
                raise EverloopError(f"the environment variable {name} is not set")
            run_loop(onboarding.give_password(os.environ[name]))
        else:
            has_one = run_loop(onboarding.look_at_home()).has_password
            told = (
                "The page in the browser has a password. Set another?"
                if has_one
                else "Set a password for the page in the browser? Without one, a link that is printed opens it."
            )
            if not self._interview.agree(told, False) or not self._gave_password():
                return
        self._note("the password of the page")

    def _gave_password(self) -> bool:
        while password := self._interview.unseen("The new password (Enter: none)"):
            try:
                if self._interview.unseen("Once more") != password:
                    raise EverloopError("these are two different ones; the password was not changed")
                run_loop(onboarding.give_password(password))
            except EverloopError as error:
                self._terminal.tell(f"everloop: {error}")
            else:
                return True
        return False

    def _ask_channels(self) -> None:
        """Each is tried with a live call before it is kept."""
        if self._interview.attended and (there := run_loop(_set_up())):
            self._terminal.note(f"Set up already: {', '.join(there)}.")
        elif self._interview.attended:
            self._terminal.note("By a channel you write to it from elsewhere, as from your phone.")
        while self._interview.attended:
            name = self._interview.text(f"Set up a channel ({', '.join(installed())}), or none", "none")
            if name == "none":
                return
            try:
                wanted = argparse.Namespace(name=name, values=[], set=[], set_file=[])
                values = channel_values.of_setup(wanted, self._terminal)
                self._note(f"channels.{run_loop(_added(name, values, self._terminal))}")
            except EverloopError as error:
                self._terminal.tell(f"everloop: {error}")

    def _ask_service(self) -> None:
        place = service.place_of()
        stands = run_loop(service.standing(place))
        if stands["installed"] and not self._given.service:
            self._terminal.note(
                f"Page, channels and schedules run as a service already: {stands['enabled']}, {stands['active']}."
            )
            return
        question = "Have the page, channels and schedules run by themselves from now on, as a service?"
        if self._given.service or self._interview.agree(question, False):
            terminal = Terminal(sys.stderr, sys.stderr) if self._given.json else self._terminal
            run_loop(service.install(place, run_loop(service.service_of("", place)), terminal))
            self._note(f"the service {place.file}")

    def _note(self, *written: str) -> None:
        self._written += written
        for each in written:
            self._terminal.tell(f"Written: {each}")

    def _leave(self, left: list[str]) -> None:
        if self._given.json:
            self._terminal.answer(to_json({**self._told(), "not_done": left}))
            return
        self._terminal.tell(f"\nWritten: {'; '.join(self._written) or 'nothing'}. Not done: {', '.join(left)}.")
        self._terminal.tell("`everloop onboard` goes on from here.")

    def _close(self) -> None:
        if self._given.json:
            self._terminal.answer(to_json({**self._told(), "not_done": []}))
            return
        nothing = "Nothing was written." if self._failed else "Nothing had to be written."
        self._terminal.tell(f"\nWritten: {'; '.join(self._written)}." if self._written else f"\n{nothing}")
        answers = f"does not answer yet: {self._model.barred}" if self._model.barred else "answers"
        self._terminal.tell(f"{self._model.model or 'Nobody'} {answers}. What to type next:")
        for command, about in NEXT.items():
            self._terminal.answer(f"  {command:<18}{about}")

    def _told(self) -> dict[str, Any]:
        return {
            "model": self._model.model,
            "tests": to_builtins(self._model.tests),
            "written": self._written,
            "failed": self._failed,
            "notes": self._notes,
            "next": [*NEXT],
        }


async def _set_up() -> list[str]:
    async with open_channel_desk() as desk:
        return [f"{row.name} ({channels.STATES[row.state]})" for row in await desk.rows() if row.state != "unset"]


async def _added(name: str, values: dict[str, Any], terminal: Terminal) -> str:
    async with open_channel_desk() as desk:
        added = await desk.add(name, values)
    channels.tell_added(added.row, added.probed, terminal, tried=True)
    return name
