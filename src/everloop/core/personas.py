"""Which persona was chosen in a conversation, and which one answers (readings.personas works it out)."""

from msgspec import Struct

HERE = "this conversation"


class PersonaWish(Struct, frozen=True):
    """What was chosen in a conversation, and by whom."""

    name: str = ""
    by: str = ""


class PersonaChoice(Struct, frozen=True):
    """The persona that answers, "" being none, and the place that decided; `instead_of` says in a sentence why what was
    chosen in the conversation does not."""

    name: str = ""
    by: str = ""
    instead_of: str = ""

    @property
    def sentence(self) -> str:
        """Who answers, and by which rule."""
        answers = "The agent answers as itself, without a persona."
        if self.name:
            answers = f"{self.name} answers, {'chosen in this conversation' if self.by == HERE else f'by {self.by}'}."
        return f"{self.instead_of} {answers}" if self.instead_of else answers
