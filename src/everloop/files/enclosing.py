"""Files that come with a message, as the model meets them: pictures are seen, a text is read, or its beginning is.

Every one of them is kept. Whatever is not seen as a whole says by which name read_file reads it.
"""

from ..core.message import Media, Part, Text
from ..core.ports import Files
from .pictures import AttachedFile

INLINE = 32_000  # characters of a text that are shown with the message
SHORT = len("file:") + 12  # of a reference: enough for whoever has it to find the file


async def enclose(files: Files, attached: AttachedFile, owner: str) -> Part:
    """Keep a file, and make the part of the message that stands for it: whoever made the file, the person has not said
    it. Raises StoreFull."""
    file = await files.put(owner, attached.data, attached.name)
    if attached.mime:
        return Media(file, attached.mime, attached.name, owner)
    head = f"[{attached.name}, kept as {file[:SHORT]}"
    if attached.kind:
        return Text(f"{head}: {attached.kind}, {len(attached.data):,} bytes; read_file reads it]", attached.name)
    text = attached.data.decode()
    if len(text) <= INLINE:
        return Text(f"{head}]\n{text}", attached.name, public=True)
    part = f"the first {INLINE:,} of {len(text):,} characters; read_file reads on"
    return Text(f"{head}: {part}]\n{text[:INLINE]}", attached.name, public=True)
