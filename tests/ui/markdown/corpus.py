"""Markdown of every construct, and atoms from which mixtures of them are made."""

from __future__ import annotations

import json
from pathlib import Path

# White space in Python, and not what makes a line blank in markdown. Some of it is trimmed.
WHITE = [
    *("\u00a0", "\u3000", "\u2003", "\u1680", "\u202f", "\u2028", "\u2029", "\x0b", "\x0c"),
    *("\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\ufeff", "\u200b"),
]

WHITE_TEXTS = [
    "~",
    "~indented, and more of it~\n~in a line~\n\n~\n\nmore\n~\n===\n",
    "a\n~\nb\n\n- ~\n- a~\n\n  ~\n- ~b\n> ~\n> c~\n",
    "| ~a | b~ |\n|---|---|\n| ~ |~|\n~| c | d |~\n~\nx | y\n",
    "#~no\n# ~yes~ #\n```py~x\ncode~\n~\n```~\n```\n~\n    ~code\n",
    "[a]:~/u\n[b]: /u~'t'\n~[c]: /u\n\n[d]: /u\n~'t'\n\n[a~e]: /u\n\n[a] [b] [c] [d] [a e] [a~e]\n",
    "$$~\na\n$$~\n\n~$$\nb\n$$\n\n$x~$ *a~* **~b** `~` http://x.y/~z <http://x.y/~z> [l](~/u~)\n",
]

TEXTS = [
    "# Title\n\nSome *text* and **more** of it.\nSecond line\n",
    "Title\n=====\n\nOther\n-----\ntext\n",
    "a line\n  another line\n===\n",
    "[later] and [text][later] and ![pic][later]\n\nmore\n\n[later]: http://example.com 'Title'\n",
    "[a]: http://one.example\n[a]: http://two.example\n\n[a]\n",
    "[a]\n\n> [a]: http://quoted.example\n",
    "[x]:\n  http://example.com\n  'title\nin two lines'\n\n[x]\n",
    "[a]: /u\n'not a title' at all\n\n[a]\n",
    "- one\n- two\n- three\n",
    "- one\n- two\n\n- three turns it loose\n",
    "- a\n\n  second paragraph\n- b\n  - nested\n\n    loose inside\n- c\n",
    "3. three\n4. four\n   continued\nlazy\n5. five\n\nafter\n",
    "1) a\n2) b\n1. other list\n- third list\n+ fourth\n",
    "- [ ] open\n- [x] done\n- [X] done\n- [] neither\n",
    "- a\n  ```py\n  code = 1\n\n  more\n  ```\n- b\n",
    "-\n  text\n-\n\n  no text\n",
    "> quote\nlazy\n> - list\n>\n> ```\n> code\n> ```\nout\n",
    "> a\n\n> b\n>> c\n",
    "```python\ndef f():\n    return '`'\n```\n",
    "~~~ info here\nfenced\n``` not the end\n~~~~\nafter\n",
    "  ```\n   dedented\n  by two\n\tand a tab\n  ```\n",
    "```\nnever closed\n\n   \n",
    "```\n```\n",
    "    indented code\n\n      more\n\ntext\n",
    "\tfoo\tbaz\n\n- a\n\n\tb\n\n \t c\n",
    "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 |\n| 4 | 5 | 6 |\n\nafter\n",
    "text\n| a | b |\n|---|---|\n| `x \\| y` | <br> |\n> quote ends it\n",
    "a | b\n-|-\n1 | 2\nstill a row\n\n",
    "| [ref] |\n|---|\n| [ref] |\n\n[ref]: http://example.com\n",
    "| no | table |\n|---|\n",
    "<div>\n\n*text*\n\n</div>\n\n<!-- a\n\ncomment -->\n<script>\nx\n\ny</script>\n",
    "one<br>two<br/>three<br /> <b>not bold</b>\n",
    "Math $x^2$ and $$\\frac{a}{b}$$ and \\(y\\) and \\[z\\], not $5 and $6.\n",
    "$$\na\n= b\n- c\n$$\nafter\n\n\\[\nx\n\\]\n\n$$\nnever closed\n\nafter\n",
    "~~gone~~ and ~not~ and ***both*** and __strong__ and snake_case_word\n",
    "*a `*` b* and **a *b* c** and *a **b* c** and a*b*c and 2 * 3\n",
    "`` code ` inside `` and `unclosed and \\`escaped\\` and \\* stars \\*\n",
    "<http://example.com/a`b> and <me@example.com> and http://example.com/*a*, www.example.com.\n",
    "[link](http://example.com 'title') [odd](<a b> (c)) [a [b] c](http://e.com/(x)) [no](x y)\n",
    "[![pic](http://a.example/b.png)](http://c.example) ![](http://d.example)\n",
    "hard  \nbreak and\\\nanother, &amp; &copy; &#35; &nosuch; \\& <\n",
    "***\n---\n_ _ _\n- - -\ntext\n---\n",
    "中文段落，没有空格。这里还有**粗体**，然后继续。日本語、です。\n",  # noqa: RUF001
    "a\r\nb\rc\r\n\r\n- d\r\n- e\r\n",
    "a\0b \ud800 c\n",
    "- a\n- b\n\n  some\n  more\n  of it all and\n",
    "- a\n- b\n\n  - some\n    - more > > of\n      - all\n- c\n",
    "#\n##\n####### seven\n#no\n # yes #\n",
    *(text.replace("~", white) for white in WHITE for text in WHITE_TEXTS),
]

# Full-width punctuation is what a text in Chinese is cut at.
ATOMS = [
    *("foo", "bar baz ", " ", "\n", "\n\n", "\n", "- ", "* ", "1. ", "2) ", "> ", "  ", "    "),
    *("\t", "`", "``", "```", "```py\n", "~~~", "\n```\n", "*", "**", "_", "__", "~~", "[", "]"),
    *("(", ")", "[a]", "[a]: /u\n", "[a]:", "/url 'ti", "'", '"', "![", "](", "](http://x.y)"),
    *("http://x.y/z_", "www.a.com ", "a@b.c ", "<br>", "<b>", "<http://q.r>", "&amp;", "&", "\\"),
    *("\\(", "\\)", "\\[", "\\]", "$", "$$", "\n$$\n", "$x$", "|", "| a | b |\n", "|---|---|\n"),
    *("|:-|-:|\n", "a | b\n", "---", "===", "\n---\n", "\n===\n", "# ", "## x\n", "#", "- [ ] "),
    *("- [x] y\n", "long text here that goes on, and on. ", "word " * 12, "é", "中文，然后", "!"),  # noqa: RUF001
    *("- a\n", "- b\n", "\n  c\n", "1. x\n", "   - n\n", "+ ", "***", "- - -", "5", ":", "="),
    *("$5 and $6 ", "\r\n", "\0"),
    *WHITE,
]


def examples() -> list[str]:
    """The examples of the CommonMark specification, where a copy of them is at hand."""
    path = Path(__file__).parents[4] / "shared" / "fixtures" / "commonmark-examples.json"
    if not path.exists():
        return []
    return [example["markdown"] for example in json.loads(path.read_text(encoding="utf-8"))]
