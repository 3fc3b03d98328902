"""Answers as models write them, and pieces of which worse ones are made."""

ANSWERS = [
    """# Plan for *today*

Here is **what I found**, with `code` and a [link](https://example.com/a_b?c=1&d=2) – see https://x.y/z_(a)_b.

1. First, run `pip install x`:

   ```bash
   pip install "x>=1" && echo '<done>'
   ```
2. Then
   - [x] this
   - [ ] that, with **bold *and italic* words**
     > a quote in a list

> Note: *do not* `rm -rf`
>
> - a list
> - in a quote

| name | value | why |
|------|:-----:|----:|
| a    | 1     | **because** |
| b    | 22    | [see](https://e.com) |

---

Formulas: $E = mc^2$, \\(a_1\\), $$x*y*z$$. ~~Gone~~. ||Hidden||. Footnote[^1].

[^1]: https://foot.note
""",
    """Mention @everyone, <@123>, <!channel>, @bob, @room. 2*3*4, snake_case_name, __init__, `a ``b`` c`.

```
unclosed < & > fence with ``` inside
and @here
""",
    "日本語のテキスト。改行なし。" * 40 + "\n\n" + "👨‍👩‍👧‍👦🇩🇪é" * 50,
    "- a\n  - b\n    - c\n      - d\n\n        para\n\n        ```py\n        x\n        ```\n- e\n\n10. f\n11. g\n",
    "![img](https://e.com/i.png) [x](javascript:alert(1)) [ref][1] [http://a.b](http://c.d)\n\n[1]: https://r.co 'T'\n",
    "**b\nover lines** *it `code` it* **a**b*c*d ***both*** **[l](https://e.co)** ~~**x**~~\n\nHead\n===\n\nx\n---\n",
]  # fmt: skip

PIECES = [
    "a", "word ", "Some words. ", "\n", "\n\n", "  ", "    ", "*", "**", "***", "_", "__", "~~", "~", "`", "``",
    "```", "```py\n", "\n```\n", "~~~", "[", "]", "(", ")", "[x](https://e.com/a_b)", "[x](javascript:y)",
    "![i](https://e.com)", "](", "<", ">", "> ", "&", "&amp;", "&#x202e;", "&lt;", "<b>", "</b>", "<!--", "# ",
    "## ", "- ", "+ ", "1. ", "99. ", "- [ ] ", "| a | b |\n|---|---|\n| 1 | 2 |\n", "|", "||", "---\n",
    "===\n", "$", "$$", "\\(", "\\)", "\\[", "\\]", "\\", "@everyone", "@here", "@room", "@bob", "<@1>", "<#1>",
    "<!here>", "<:e:1>", "https://e.com/x_y", "www.e.com", "a@b.c", "é", "é", "👨‍👩‍👧‍👦", "🇩🇪", "日本", "\u202e",
    "\u200b", "\x00", "\t", "\r\n", "\ud800", "\u2028", "[^1]", "[^1]: x\n", "[1]: https://e.com\n", "[1]",
    "x" * 70, "word " * 60, "'", '"', "%", ":", "!", "tel:+1", "mailto:a@b.c", "\ufeff",
]  # fmt: skip
