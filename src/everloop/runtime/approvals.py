"""Asking a person whether a call may run: the question, and the timer that turns silence into a denial."""

from ..core.mail import Address, Decision, Inbound, Outbound
from ..core.ports import Timer
from ..core.thread import Thread

EXPIRES = 24 * 3600.0


def question(thread: Thread, place: int) -> tuple[Outbound, Timer]:
    """Shown in full, keyed by the call, so that it is asked once."""
    call = thread.open_calls[place]
    key = f"approval:{thread.id}:{thread.answer}:{place}"
    address = Address.parse(thread.address)
    text = f"May I run {call.name}?\n{call.args}"
    expiry = Inbound(Address("timer", thread.id), key, Decision(thread.id, thread.answer, place, "expired"))
    return Outbound(key, address, text, kind="question"), Timer(key, EXPIRES, expiry)
