"""The keys of the rich chat, beside those of any line that is edited (Emacs' ones, as in a shell)."""

from collections.abc import Callable

from msgspec import Struct
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from ..typed import goes_on
from .folding import Folded, label_before
from .keyboard import Keyboard
from .mentions import begun, dragged

Do = Callable[[], None]
CHOOSING = ("/resume ", "/tree ")  # as they stand in the line while one is chosen from a list


class Deeds(Struct, frozen=True):
    """What keys lead to: sending what is typed (for later, with True), and others."""

    send: Callable[[bool], None]
    interrupt: Do
    leave: Do
    edit: Do
    picture: Do
    is_early: Callable[[], bool]  # whether a newline that comes is an Enter from before
    runs: Callable[[], bool]  # whether a command does that somebody has typed


def chat_keys(keyboard: Keyboard, folded: Folded, deeds: Deeds) -> KeyBindings:
    keys = KeyBindings()
    typing = ~is_searching
    is_choosing = Condition(lambda: get_app().current_buffer.text in CHOOSING)
    is_busy = Condition(lambda: keyboard.is_busy or deeds.runs())

    @keys.add("enter", filter=typing)
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if _takes_completion(buffer):
            return
        if goes_on(buffer.document.text_before_cursor) and not buffer.document.text_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            deeds.send(False)

    @keys.add("escape", "enter", filter=typing)
    @keys.add("c-j", filter=typing)
    def new_line(event: KeyPressEvent) -> None:
        if deeds.is_early():
            deeds.send(False)
            return
        event.current_buffer.insert_text("\n")

    @keys.add("escape", "q", filter=typing)
    def queue(event: KeyPressEvent) -> None:
        deeds.send(True)

    @keys.add("tab", filter=typing)
    def tab(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state:
            buffer.complete_next()
        elif keyboard.is_busy and buffer.text.strip() and not _is_completable(buffer):
            deeds.send(True)
        else:
            buffer.start_completion(select_first=False)

    @keys.add("s-tab", filter=has_completions)
    def back_tab(event: KeyPressEvent) -> None:
        event.current_buffer.complete_previous()

    @keys.add("escape", filter=(has_completions | is_choosing) & typing)
    def no_completion(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()
        if is_choosing():
            event.current_buffer.reset()

    @keys.add("escape", filter=is_busy & ~has_completions & ~is_choosing & typing)
    def stop(event: KeyPressEvent) -> None:
        deeds.interrupt()

    @keys.add("c-c", filter=typing)
    @keys.add("<sigint>")
    def interrupt(event: KeyPressEvent) -> None:
        deeds.interrupt()

    @keys.add("c-d", filter=typing)
    def leave(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text:
            buffer.delete()
        else:
            deeds.leave()

    @keys.add("c-z", filter=typing)
    def suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-x", "c-e", filter=typing)
    def edit(event: KeyPressEvent) -> None:
        deeds.edit()

    @keys.add("c-v", filter=typing)
    def picture(event: KeyPressEvent) -> None:
        deeds.picture()

    @keys.add("c-l")
    def clear(event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    @keys.add(Keys.BracketedPaste, filter=typing)
    def paste(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(dragged(text) or folded.fold(text))

    @keys.add("backspace", filter=typing)
    def backspace(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.delete_before_cursor(label_before(buffer.document.text_before_cursor) or event.arg)

    return keys


def _takes_completion(buffer: Buffer) -> bool:
    """Whether Enter only takes what was chosen from the menu: more is to be typed behind it."""
    state = buffer.complete_state
    chosen = state.current_completion if state else None
    buffer.complete_state = None
    if chosen is None or not chosen.text.endswith((" ", "/")):
        return False
    buffer.start_completion(select_first=False)
    return True


def _is_completable(buffer: Buffer) -> bool:
    before = buffer.document.text_before_cursor
    return bool(begun(before)) or (before.startswith("/") and "\n" not in before)
