"""Files that come with a message, as the model meets them: a text is read, or its beginning is; others are told of.

Whatever is not seen as a whole says by which name which tool has the rest.
"""

from ..core.message import Text
from ..ports import FileRecord

INLINE = 32_000  # characters of a text that are shown with the message
SHORT = len("file:") + 12  # of a reference: enough for whoever has it to find the file
READ_AS_TEXT = ("docx", "xlsx")


def shown_text(record: FileRecord, text: str) -> Text:
    if len(text) <= INLINE:
        return Text(f"{_head(record)}]\n{text}", record.name, public=True)
    part = f"the first {INLINE:,} of {len(text):,} characters; read_file reads on"
    return Text(f"{_head(record)}: {part}]\n{text[:INLINE]}", record.name, public=True)


def described(record: FileRecord, why: str = "") -> Text:
    """What nobody sees is told of. `why` says why not, of what would be seen."""
    use = "read_file reads it" if record.mime in READ_AS_TEXT else "load_file brings it into the workspace"
    unseen = f" that cannot be shown ({why})" if why else ""
    return Text(f"{_head(record)}: {record.mime}{unseen}, {record.size:,} bytes; {use}]", record.name)


def _head(record: FileRecord) -> str:
    return f"[{record.name}, kept as {record.ref[:SHORT]}"
