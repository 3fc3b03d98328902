"""Every route of the API with its handler and its shapes, all of them loaded: for the document, and for tests."""

from . import ROWS

TABLE = tuple(row.loaded() for row in ROWS)
