"""How long it takes to show an answer on a channel, beside markdown-it's own parsing of it.

python bench/text.py            milliseconds of CPU, the best of several runs
"""

import time
from collections.abc import Callable

from markdown_it import MarkdownIt

from everloop.channels.text import DISCORD, EMAIL, MATRIX, PLAIN, SLACK, TELEGRAM, render

RUNS = 7
ANSWER = """\
## A heading

Here is **what I found**, with `code`, *emphasis* and a [link](https://example.com/a_b?c=1&d=2): some words, and then
a few more of them, so that it looks like what a model writes when it is asked for something.

1. First this
2. then that:
   - with `x`
   - and **y**

```python
def answer() -> int:
    return 42
```

| name | value |
|------|-------|
| a    | 1     |
| b    | 22    |

> And a quote.

"""
HOSTILE = {
    "[": "[",
    "![": "![",
    "**a": "**a ",
    ">": ">",
    "- x > y": "- x\n> y\n",
    "`": "`a``b",
    "one column": "|a\n|-\n",
}


def best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(RUNS):
        before = time.process_time()
        work()
        times.append(time.process_time() - before)
    return 1_000 * min(times)


def main() -> None:
    bare = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    dialects = {
        "plain": PLAIN, "telegram": TELEGRAM, "slack": SLACK, "discord": DISCORD, "matrix": MATRIX, "email": EMAIL,
    }  # fmt: skip
    for size in (4_000, 100_000):
        text = ANSWER * (size // len(ANSWER))
        print(f"an answer of {len(text):,} characters")
        print(f"  {'markdown-it alone':18} {best(lambda text=text: bare.parse(text)):8.1f} ms")
        for name, dialect in dialects.items():
            print(f"  {name:18} {best(lambda text=text, dialect=dialect: render(text, dialect)):8.1f} ms")
    print("hostile, 20,000 and 40,000 characters, Telegram: twice as much should take twice as long")
    for name, piece in HOSTILE.items():
        took = [best(lambda n=n, piece=piece: render(piece * (n // len(piece)), TELEGRAM)) for n in (20_000, 40_000)]
        print(f"  {name:18} {took[0]:8.1f} ms {took[1]:8.1f} ms")


if __name__ == "__main__":
    main()
