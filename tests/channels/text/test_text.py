"""What is shown how, dialect by dialect."""

import re
from pathlib import Path

import pytest

from everloop.channels.text import (
    CAPTION,
    DISCORD,
    EMAIL,
    MATRIX,
    PLAIN,
    SLACK,
    TELEGRAM,
    Rendered,
    TextDialect,
    draft,
    render,
)

NO_WIDTH = "\u200b"
TABLE = "| name | size |\n|---|---|\n| a | 1 |\n| 日本 | 22 |"
DIALECTS = {"plain": PLAIN, "telegram": TELEGRAM, "slack": SLACK, "discord": DISCORD, "matrix": MATRIX, "email": EMAIL}


def shown(markdown: str, *names: str) -> dict[str, str]:
    return {name: render(markdown, DIALECTS[name], 0)[0].text for name in names or DIALECTS}


def test_words_have_their_look():
    assert shown("**b** *i* ~~s~~ `c` **b *bi* b**") == {
        "plain": "b i s c b bi b",
        "telegram": "<b>b</b> <i>i</i> <s>s</s> <code>c</code> <b>b <i>bi</i> b</b>",
        "slack": "*b* _i_ ~s~ `c` *b _bi_ b*",
        "discord": "**b** *i* ~~s~~ `c` **b *bi* b**",
        "matrix": "<p><strong>b</strong> <em>i</em> <del>s</del> <code>c</code> <strong>b <em>bi</em> b</strong></p>",
        "email": "<p><strong>b</strong> <em>i</em> <del>s</del> <code>c</code> <strong>b <em>bi</em> b</strong></p>",
    }


def test_what_is_hidden_is_hidden_where_that_can_be():
    assert shown("||x y|| a || b") == {
        "plain": "x y a || b",
        "telegram": "<tg-spoiler>x y</tg-spoiler> a || b",
        "slack": "||x y|| a || b",
        "discord": "||x y|| a \\|\\| b",
        "matrix": "<p><span data-mx-spoiler>x y</span> a || b</p>",
        "email": "<p>x y a || b</p>",
    }


def test_html_that_somebody_writes_is_text():
    html = '<b onclick="x">&lt;script&gt; <img src=x> AT&T'
    assert shown(html) == {
        "plain": '<b onclick="x"><script> <img src=x> AT&T',
        "telegram": '&lt;b onclick="x"&gt;&lt;script&gt; &lt;img src=x&gt; AT&amp;T',
        "slack": '&lt;b onclick="x"&gt;&lt;script&gt; &lt;img src=x&gt; AT&amp;T',
        "discord": '<b onclick="x"><script> <img src=x> AT&T',
        "matrix": "<p>&lt;b onclick=&quot;x&quot;&gt;&lt;script&gt; &lt;img src=x&gt; AT&amp;T</p>",
        "email": "<p>&lt;b onclick=&quot;x&quot;&gt;&lt;script&gt; &lt;img src=x&gt; AT&amp;T</p>",
    }


def test_links_lead_where_they_say():
    assert shown("[docs](https://e.com/a_b?c&d) https://e.com/x_y_z.") == {
        "plain": "docs (https://e.com/a_b?c&d) https://e.com/x_y_z.",
        "telegram": '<a href="https://e.com/a_b?c&amp;d">docs</a> '
        '<a href="https://e.com/x_y_z">https://e.com/x_y_z</a>.',
        "slack": "<https://e.com/a_b?c&amp;d|docs> <https://e.com/x_y_z>.",
        "discord": "[docs](<https://e.com/a_b?c&d>) <https://e.com/x_y_z>.",
        "matrix": '<p><a href="https://e.com/a_b?c&amp;d">docs</a> '
        '<a href="https://e.com/x_y_z">https://e.com/x_y_z</a>.</p>',
        "email": '<p><a href="https://e.com/a_b?c&amp;d">docs</a> '
        '<a href="https://e.com/x_y_z">https://e.com/x_y_z</a>.</p>',
    }


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "&#106;avascript:alert(1)",
        "java&#9;script:alert(1)",
        "vbscript:x",
        "data:text/html;base64,PHNjcmlwdD4=",
        "file:///etc/passwd",
        "tg://user?id=1",
        "slack://channel?id=1",
        "matrix:u/a:b.c",
        "//evil.com",
        "/etc/passwd",
        "notes.md",
        "#top",
        "http:",
        "https://",
        "ftp://h/x",
        "x" * 3_000,
        "https://e.com/" + "x" * 3_000,
    ],
)
@pytest.mark.parametrize("form", ["[click]({})", "![click]({})", "[click]\n\n[click]: {}"])
def test_no_other_scheme_becomes_a_link(address: str, form: str):
    for name, text in shown(form.format(address)).items():
        assert not re.search(r"<a |\]\(<|\|click>", text), (name, text)
        assert "click" in text, name


def test_a_safe_one_does():
    assert [text.count("https://e.com") for text in shown("[click](https://e.com)").values()] == [1] * 6
    assert shown("[w](mailto:a@b.c) [c](tel:+1)", "telegram") == {
        "telegram": '<a href="mailto:a@b.c">w</a> <a href="tel:+1">c</a>'
    }


@pytest.mark.parametrize(
    "label",
    [" https://bank.com", "Go to https://bank.com.", "(https://bank.com)", "&#32;www.bank.com", "log in: ftp://a.b"],
)
def test_a_label_in_which_another_address_stands_does_not_hide_where_it_leads_either(label: str):
    hidden, same = (
        shown(f"[{label}](https://evil.com)", "discord"),
        shown("[at www.e.com.](https://www.e.com/x)", "slack"),
    )
    assert hidden["discord"].endswith("(<https://evil.com>)")
    assert "](" not in hidden["discord"]
    assert same["slack"] == "<https://www.e.com/x|at www.e.com.>"  # which hides nothing


def test_a_label_that_is_another_address_does_not_hide_where_it_leads():
    masked = shown("[https://bank.com/login](https://evil.com)", "plain", "telegram", "slack")
    assert masked == {
        "plain": "https://bank.com/login (https://evil.com)",
        "telegram": '<a href="https://bank.com/login">https://bank.com/login</a> '
        '(<a href="https://evil.com">https://evil.com</a>)',
        "slack": "<https://bank.com/login> (<https://evil.com>)",
    }
    assert shown("[https://e.com](https://e.com/home)", "slack") == {"slack": "<https://e.com/home|https://e.com>"}


def test_nobody_is_mentioned():
    text = "@everyone @here <@123> <@&9> <#5> <!channel> <!subteam^S1> @channel @room @bob `@everyone <@1>`"
    assert shown(text, "telegram", "slack", "discord") == {
        "telegram": f"@{NO_WIDTH}everyone @{NO_WIDTH}here &lt;@{NO_WIDTH}123&gt; &lt;@&amp;9&gt; &lt;#5&gt; "
        f"&lt;!channel&gt; &lt;!subteam^S1&gt; @{NO_WIDTH}channel @{NO_WIDTH}room @{NO_WIDTH}bob "
        "<code>@everyone &lt;@1&gt;</code>",
        "slack": "@everyone @here &lt;@123&gt; &lt;@&amp;9&gt; &lt;#5&gt; &lt;!channel&gt; &lt;!subteam^S1&gt; "
        "@channel @room @bob `@everyone &lt;@1&gt;`",
        "discord": f"@{NO_WIDTH}everyone @{NO_WIDTH}here <{NO_WIDTH}@123> <{NO_WIDTH}@&9> <{NO_WIDTH}#5> <!channel> "
        f"<!subteam^S1> @channel @room @bob `@{NO_WIDTH}everyone <{NO_WIDTH}@1>`",
    }
    assert f"@{NO_WIDTH}room" in shown(text, "matrix")["matrix"]


def test_nobody_is_mentioned_without_markup_either():
    plain = {name: render("@everyone <@123> @bob @room", DIALECTS[name])[0].plain for name in DIALECTS}
    assert plain == {
        "plain": "@everyone <@123> @bob @room",
        "telegram": f"@{NO_WIDTH}everyone <@{NO_WIDTH}123> @{NO_WIDTH}bob @{NO_WIDTH}room",
        "slack": "@everyone &lt;@123&gt; @bob @room",
        "discord": f"@{NO_WIDTH}everyone <{NO_WIDTH}@123> @bob @room",
        "matrix": f"@everyone <@123> @bob @{NO_WIDTH}room",
        "email": "@everyone <@123> @bob @room",
    }


def test_a_name_in_another_look_is_no_mention_either():
    assert shown("@**bob** @@ann **@**`eve`", "telegram") == {
        "telegram": f"@{NO_WIDTH}<b>bob</b> @@{NO_WIDTH}ann <b>@{NO_WIDTH}</b><code>eve</code>"
    }
    assert shown("@**everyone**", "discord") == {"discord": "@**everyone**"}


@pytest.mark.parametrize("dialect", [DISCORD, TELEGRAM])
@pytest.mark.parametrize("mention", ["@everyone", "<@123456>"])
def test_no_cut_makes_a_mention_whole_again(dialect: TextDialect, mention: str):
    for before in range(150, 240):
        for part in render("x" * before + f" {mention} " + "y " * 300, dialect, 240):
            assert mention not in part.text
    for before in range(4_080, 4_100):
        assert mention not in render("x" * before + f" {mention} " + "y " * 6_000, dialect, 8_000)[0].text


def test_an_address_of_mail_is_none():
    assert shown("write a@bob.com", "telegram") == {"telegram": "write a@bob.com"}


def test_marks_that_mean_themselves_stay():
    text = r"2 \* 3 \*x\* \_y\_ snake_case \~z\~ \# a | \[b\]"
    assert shown(text, "plain", "slack", "discord") == {
        "plain": "2 * 3 *x* _y_ snake_case ~z~ # a | [b]",
        "slack": f"2 * 3 *{NO_WIDTH}x* _{NO_WIDTH}y_ snake_case ~{NO_WIDTH}z~ # a | [b]",
        "discord": r"2 \* 3 \*x\* \_y\_ snake\_case \~z\~ # a \| \[b\]",
    }
    assert shown("\\# a\n\\> b\n1986\\. c\n\\- d", "discord") == {"discord": "\\# a\n\\> b\n1986\\. c\n\\- d"}
    assert shown("\\> b", "slack") == {"slack": f"{NO_WIDTH}&gt; b"}


def test_marks_within_a_word_are_kept_apart_where_the_platform_wants_it():
    assert shown("un**believ**able *a***b**", "slack", "discord") == {
        "slack": f"un{NO_WIDTH}*believ*{NO_WIDTH}able _a_{NO_WIDTH}*b*",
        "discord": f"un**believ**able *a*{NO_WIDTH}**b**",
    }


def test_backticks_that_mean_themselves_do_not_touch_those_of_code():
    assert shown("\\```>`x``", "discord", "slack") == {"discord": f"\\`{NO_WIDTH}`` >`x ``", "slack": "ˋ`&gt;ˋx`"}


def test_an_address_with_a_name_in_it_still_leads_there():
    text = "https://e.com/@bob [x](https://e.com/@here/@room)"
    assert {name: render(text, DIALECTS[name])[0].plain for name in ("telegram", "discord", "matrix")} == {
        "telegram": "https://e.com/%40bob x (https://e.com/%40here/%40room)",
        "discord": "https://e.com/@bob x (https://e.com/%40here/@room)",
        "matrix": "https://e.com/@bob x (https://e.com/@here/%40room)",
    }
    assert shown(text, "discord") == {"discord": "<https://e.com/@bob> [x](<https://e.com/%40here/@room>)"}


def test_headings_are_bold_and_code_keeps_its_language():
    assert shown("## On *it*\n\n```py\na < b\n```\n\n---") == {
        "plain": "On it\n\na < b\n\n———",
        "telegram": '<b>On <i>it</i></b>\n\n<pre><code class="language-py">a &lt; b</code></pre>\n\n———',
        "slack": "*On _it_*\n\n```\na &lt; b\n```\n\n———",
        "discord": "**On *it***\n\n```py\na < b\n```\n\n———",
        "matrix": '<h2>On <em>it</em></h2><pre><code class="language-py">a &lt; b</code></pre><hr>',
        "email": '<h2>On <em>it</em></h2><pre><code class="language-py">a &lt; b</code></pre><hr>',
    }


def test_a_language_cannot_leave_its_attribute():
    assert shown('```"><script>\nx\n```', "telegram", "matrix") == {
        "telegram": "<pre>x</pre>",
        "matrix": "<pre><code>x</code></pre>",
    }


def test_code_cannot_end_its_fence():
    text = "````\n```\n@everyone\n```\n````"
    assert shown(text, "slack", "discord") == {
        "slack": f"```\n`{NO_WIDTH}``\n@everyone\n`{NO_WIDTH}``\n```",
        "discord": f"```\n`{NO_WIDTH}``\n@{NO_WIDTH}everyone\n`{NO_WIDTH}``\n```",
    }


def test_lists_keep_their_numbers_and_depth():
    text = "3. c\n4. d\n   - e\n     more\n   - [x] f\n5. - [ ] g"
    assert shown(text) == {
        "plain": "3. c\n4. d\n   - e\n     more\n   - ☑ f\n5. - ☐ g",
        "telegram": "3. c\n4. d\n   • e\n     more\n   • ☑ f\n5. • ☐ g",
        "slack": "3. c\n4. d\n   • e\n     more\n   • ☑ f\n5. • ☐ g",
        "discord": "3. c\n4. d\n   - e\n     more\n   - ☑ f\n5. - ☐ g",
        "matrix": '<ol start="3"><li>c</li><li>d<ul><li>e<br>more</li><li>☑ f</li></ul></li>'
        "<li><ul><li>☐ g</li></ul></li></ol>",
        "email": '<ol start="3"><li>c</li><li>d<ul><li>e<br>more</li><li>☑ f</li></ul></li>'
        "<li><ul><li>☐ g</li></ul></li></ol>",
    }


def test_quotes_are_quotes():
    assert shown("> a\n> - b\n>\n> > c\n\nd") == {
        "plain": "> a\n> - b\n>\n> > c\n\nd",
        "telegram": "<blockquote>a\n• b\n\n&gt; c</blockquote>\n\nd",
        "slack": "&gt; a\n&gt; • b\n&gt;\n&gt; &gt; c\n\nd",
        "discord": "> a\n> - b\n>\n> > c\n\nd",
        "matrix": "<blockquote><p>a</p><ul><li>b</li></ul><blockquote><p>c</p></blockquote></blockquote><p>d</p>",
        "email": "<blockquote><p>a</p><ul><li>b</li></ul><blockquote><p>c</p></blockquote></blockquote><p>d</p>",
    }


def test_a_table_is_aligned_where_there_are_none():
    lines = "name | size\n-----+-----\na    | 1\n日本 | 22"
    html = (
        "<table><thead><tr><th>name</th><th>size</th></tr></thead><tbody><tr><td>a</td><td>1</td></tr>"
        "<tr><td>日本</td><td>22</td></tr></tbody></table>"
    )
    assert shown(TABLE) == {
        "plain": lines,
        "telegram": f"<pre>{lines}</pre>",
        "slack": f"```\n{lines}\n```",
        "discord": f"```\n{lines}\n```",
        "matrix": html,
        "email": html,
    }
    assert render(TABLE, MATRIX)[0].plain == lines


def test_a_table_that_is_too_wide_or_has_links_is_told_row_by_row():
    wide = f"| name | text |\n|---|---|\n| a | {'long words ' * 10}|\n| b | |"
    told = "long words " * 10
    assert shown(wide, "telegram") == {"telegram": f"<b>name</b>: a\n<b>text</b>: {told.strip()}\n\n<b>name</b>: b"}
    assert shown("| a | b |\n|---|---|\n| 1 | [x](https://e.com) |", "discord") == {
        "discord": "**a**: 1\n**b**: [x](<https://e.com>)"
    }


def test_formulas_and_footnotes_are_left_as_they_are():
    text = "$a_b*c*$ \\(x_1*2*\\) costs $5 or *$6*[^1]\n\n$$\nx\n=\ny\n$$\n\n[^1]: https://e.com"
    assert shown(text, "plain") == {
        "plain": "$a_b*c*$ \\(x_1*2*\\) costs $5 or $6[^1]\n\n$$\nx\n=\ny\n$$\n\n[^1]: https://e.com"
    }


def test_nothing_that_was_written_vanishes():
    assert shown("[1]: https://e.com", "plain") == {"plain": "[1]: https://e.com"}
    assert shown("> " * 100 + "deep", "plain")["plain"].endswith("deep")
    assert shown("- " * 100 + "deep", "plain")["plain"].endswith("deep")


def test_what_cannot_be_seen_is_left_away():
    text = "a\u202eb\u200b\x1b[1m\x00c \ud800 &#x202e;d\u200d\U000e0041e\r\nf"
    assert shown(text, "plain") == {"plain": "ab[1mc \ufffd d\u200de\nf"}


def test_nothing_is_one_empty_part():
    assert [render(text, TELEGRAM) for text in ("", " \n", "\u200b")] == [(Rendered("", ""),)] * 3


def test_a_caption_is_shorter():
    assert [len(part.text) <= CAPTION for part in render("word " * 1_000, TELEGRAM, CAPTION)] == [True] * 6


def test_a_limit_that_nothing_fits_into_is_refused():
    with pytest.raises(ValueError, match="200 are the least"):
        render("x", PLAIN, 50)


def test_a_draft_shows_no_half_of_anything():
    assert {text: draft(text, TELEGRAM).text for text in DRAFTS} == DRAFTS


DRAFTS = {
    "see [the docs](https://e.co": "see the docs",
    "see [the do": "see the do",
    "see ![a pic](": "see a pic",
    "**bold te": "<b>bold te</b>",
    "a **": "a",
    "`cod": "<code>cod</code>",
    "~~go": "<s>go</s>",
    "```py\nx = 1": '<pre><code class="language-py">x = 1</code></pre>',
    "```py\nx = [1](\n``": '<pre><code class="language-py">x = [1](</code></pre>',
    "a\n\n- **b": "a\n\n• <b>b</b>",
}


def test_markdown_is_loaded_by_those_who_use_it_alone():
    folder = Path(render.__code__.co_filename).parents[2]
    using = [file for file in folder.rglob("*.py") if re.search(r"(import|from) markdown_it", file.read_text())]
    assert {file.parent.name for file in using} == {"text", "chat_view"}
