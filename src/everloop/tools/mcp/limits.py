"""How much a server may say, and how fast. What is more is cut, and it is told that it was."""

from ...ports.mcp import McpServer

LONGEST_MESSAGE = 16 << 20  # bytes of one message: wires take no longer one
LONGEST_TEXT = 1_000_000  # characters of a result
PICTURES = 8  # of one result
FILES = 8
MEDIA_BYTES = 10_000_000  # of one result, altogether
MOST_ITEMS = 1000  # of any list in an answer
MOST_TOOLS = 500
MOST_PAGES = 50  # of a list
MOST_LISTED = 4 << 20  # characters of all definitions
LONGEST_DEFINITION = 200_000  # characters of one
LONGEST_TOOL_NAME = 256  # characters; the specification wants at most 128, and whoever allows one reads it
LONGEST_ERROR = 4000  # characters of what it says went wrong

QUESTION_SECONDS = 300.0  # that people have, in one call, to answer all it asks
MARGIN = 15.0  # seconds, so that the client's own sentence comes before the time limit of the runtime


def seconds_of(server: McpServer, question_seconds: float = QUESTION_SECONDS) -> float:
    """The time limit of a tool of this server: its own, and what people may take to answer its questions."""
    return server.seconds + question_seconds + MARGIN
