"""What is asked and told when a person leaves."""

from typing import Annotated

from msgspec import Meta, Struct

from .shapes import ApiInput


class ConfirmingErasure(ApiInput, frozen=True):
    """`confirm` is what the person is called, to the letter."""

    confirm: Annotated[str, Meta(min_length=1, max_length=400)]


class PersonErased(Struct, frozen=True):
    """`removed` says how much went, by kind."""

    id: str
    removed: dict[str, int]
