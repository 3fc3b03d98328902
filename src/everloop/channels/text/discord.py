"""Discord's markdown (https://support.discord.com/hc/articles/210298617). Its channel sends `allowed_mentions` of
nothing besides: here a mention is no mention in the first place. Links in angle brackets have no preview."""

import re
from collections.abc import Sequence

from ...ports.channel import Unit
from .dialect import NO_WIDTH, LineDialect, unmentioned, with_address
from .slack import unfenced
from .tree import BOLD, CODE, ITALIC, SPOILER, STRIKE, Run, TextBlock
from .weaving import loosened, weave

_MARKS = {BOLD: "**", ITALIC: "*", STRIKE: "~~", SPOILER: "||"}
_LITERAL = re.compile(r"([\\*_~`|\[\]])")
_LINE = re.compile(r"^([ \t]*)(-#|#{1,6}|>{1,3}|[-+]|\d+(?=\.))(?=[ \t.]|$)", re.MULTILINE)
_MENTION = re.compile(r"@(?=everyone|here)", re.IGNORECASE)
_TAG = re.compile(
    r"<(?=@[!&]?\d|#\d|a?:\w+:\d|t:-?\d|id:\w|/[^<>\n]{1,100}:\d)"
)  # people, channels, emoji, times, commands


class Discord(LineDialect):
    limit = 2_000
    unit: Unit = "utf16"  # whether it counts these or code points is not said: these are more
    table_width = 60
    indents_code = False

    def tame(self, text: str) -> str:
        return _TAG.sub(f"<{NO_WIDTH}", unmentioned(text, _MENTION))

    def inline(self, runs: Sequence[Run]) -> str:
        out: list[str] = []
        for closed, opened, text in weave(loosened(runs), self._run, _MARKS.__getitem__, _MARKS.__getitem__):
            marks = closed + (NO_WIDTH if closed and opened else "") + opened
            apart = not marks and text[:1] == "`" and out and out[-1][-1:] == "`"  # two of them would be one mark
            out += [piece for piece in (marks, NO_WIDTH if apart else "", text) if piece]
        text = "".join(out)
        return _LINE.sub(
            lambda found: f"{found[1]}{found[2]}\\" if found[2].isdigit() else f"{found[1]}\\{found[2]}", text
        )

    def _run(self, run: Run) -> str:
        if run.href.startswith(("http://", "https://")):
            href = unmentioned(run.href, _MENTION)
            label = self._text(run.text.replace("\n", " "))
            return f"<{href}>" if with_address(run) == run.text else f"[{label}](<{href}>)"
        if run.href:
            return self._text(with_address(run))
        return self._code_span(run.text) if run.style & CODE else self._text(run.text)

    def _text(self, text: str) -> str:
        return _LITERAL.sub(r"\\\1", self.tame(text))

    def _code_span(self, text: str) -> str:
        text = self.tame(text.replace("\n", " "))
        if "``" in text:
            text = text.replace("`", "ˋ")
        if not text.strip():
            return text
        return f"`` {text} ``" if "`" in text else f"`{text}`"

    def heading(self, block: TextBlock) -> str:
        return self.inline([Run(run.text, run.style | BOLD, run.href) for run in block.runs])

    def code(self, block: TextBlock) -> str:
        return f"```{block.language}\n{self.tame(unfenced(block.text))}\n```"


DISCORD = Discord()
