"""Telegram's HTML (https://core.telegram.org/bots/api#html-style). It counts what is shown, in UTF-16 code units.

Names after an @ are not to notify anybody because a model, or a page that it has read, has written them.
"""

import re
from collections.abc import Sequence

from ...ports.channel import Rendered, Unit
from .dialect import LineDialect, Weight, is_code, length, unmentioned
from .tree import BOLD, CODE, ITALIC, SPOILER, STRIKE, Run, TextBlock
from .weaving import weave

_TAGS = {BOLD: "b", ITALIC: "i", STRIKE: "s", SPOILER: "tg-spoiler"}
_TAG = re.compile(r"<[^>]*>")
_MENTION = re.compile(r"(?<!\w)@(?=\w|\Z)")  # also where its name follows in another look
ENTITIES = 100  # of one message; what is beyond them loses its look
BYTES = 30_000  # of one message with its tags
CAPTION = 1_024


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Telegram(LineDialect):
    limit = 4_096
    unit: Unit = "utf16"
    table_width = 44
    bullet = "•"
    indents_code = False
    between: Weight = (3, 0, 2)

    def weigh(self, rendered: Rendered, unit: Unit) -> Weight:
        shown = _TAG.sub("", rendered.text).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        entities = rendered.text.count("<") - rendered.text.count("</")
        return max(length(shown, unit), length(rendered.plain, unit)), entities, length(rendered.text, "byte")

    def bounds(self, limit: int) -> Weight:
        return limit, ENTITIES, BYTES

    def tame(self, text: str) -> str:
        return unmentioned(text, _MENTION)

    def inline(self, runs: Sequence[Run]) -> str:
        runs = [Run(run.text, CODE, "") if is_code(run) else run for run in runs]  # nothing may stand around code
        woven = weave(runs, self._run, lambda style: f"<{_TAGS[style]}>", lambda style: f"</{_TAGS[style]}>")
        return "".join(closed + opened + text for closed, opened, text in woven)

    def _run(self, run: Run) -> str:
        if run.href:
            return f'<a href="{escape(run.href)}">{escape(self.tame(run.text))}</a>'
        return f"<code>{escape(run.text)}</code>" if run.style & CODE else escape(self.tame(run.text))

    def heading(self, block: TextBlock) -> str:
        return self.inline([Run(run.text, run.style | BOLD, run.href) for run in block.runs])

    def code(self, block: TextBlock) -> str:
        code = escape(block.text)
        return (
            f'<pre><code class="language-{block.language}">{code}</code></pre>'
            if block.language
            else f"<pre>{code}</pre>"
        )

    def quoted(self, text: str) -> str:
        return f"<blockquote>{text}</blockquote>"

    def inner_quote(self) -> str:
        return "&gt; "


TELEGRAM = Telegram()
