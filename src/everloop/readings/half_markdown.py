"""Markdown that is not finished: what a model is still writing, with its last half link or open mark put in order.

What is missing here only looks worse: every text, whole or not, has markup that is well formed.
"""

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})", re.MULTILINE)
_HALF_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})(?:\](?:\([^()\s]{0,2000})?)?\Z")
_LAST_MARK = re.compile(r"(?<=\s)[*_~`]{1,3}\Z")
_MARKS = ("`", "**", "~~")


def finished(markdown: str) -> str:
    """The same, with what its end leaves open closed or left away."""
    if _in_fence(markdown):
        return re.sub(r"\n`{1,2}\Z", "", markdown)
    start = markdown.rfind("\n\n") + 1
    before, last = markdown[:start], markdown[start:]
    last = _LAST_MARK.sub("", last)
    if last.count("`") % 2 == 0:
        last = _HALF_LINK.sub(r"\1", last)
    for mark in _MARKS:
        if last.count(mark) % 2:
            last = last.removesuffix(mark) if last.endswith(mark) else last.rstrip() + mark
    return before + last


def _in_fence(markdown: str) -> bool:
    opened = ""
    for found in _FENCE.finditer(markdown):
        if not opened:
            opened = found[1]
        elif found[1].startswith(opened):
            opened = ""
    return bool(opened)
