// SPDX-License-Identifier: Apache-2.0

// Package hostile has texts that try to be more than text, for tests of pages and documents
// that show what tools, models and users wrote.
package hostile

import "strings"

// Texts are such texts: scripts, handlers, images, styles, Markdown that looks like a
// document, and invisible characters.
var Texts = []string{
	"<script>alert(1)</script>", "</pre><script>alert(1)</script>", "</title></style><script>alert(1)</script>",
	"<img src=x onerror=alert(1)>", "<svg onload=alert(1)>", "<a href='javascript:alert(1)'>x</a>", "<b onclick=alert(1)>x</b>",
	"[x](javascript:alert(1))", "[x](  JaVaScRiPt:alert(1))", "[x](javascript&#58;alert(1))", "[x](java\tscript:alert(1))", "[x](&#106;avascript:alert(1))",
	"[x][r]\n\n[r]: javascript:alert(1)", "[r]: javascript:alert(1)\n[x][r]", "<javascript:alert(1)>", "[x](data:text/html,<script>alert(1)</script>)",
	"[x](vbscript:x)", "[x](file:///etc/passwd)", "[x](//evil.example)", "[x](/relative)", "[x](https://good.example \"a\" onclick=alert(1))",
	"![i](http://evil.example/p.png)", "![i](javascript:alert(1))", "![i](data:image/svg+xml;base64,PHN2Zz4=)", "[![i](http://e.example/)](http://f.example/)",
	"![i\n\"onerror=alert(1)](http://e.example/\" onerror=\"alert(1))", "![[a](http://b.example/)](http://c.example/)",
	"```\n</code></pre><script>alert(1)</script>", "````\nopen", "~~~ x\" onclick=alert(1)\nopen", "```\n```\n```", "- ```\n  open", "> ```\n> open",
	"# owned", "#", "## 1 User", "owned\n=====", "owned\ntwice\n---", "> # owned", "- # owned\n- two\n  ===", "1. a\n   ==", "#\towned", "> a\n> b\n> ==",
	"<!-- ", "<![CDATA[", "<?php ", "<!X ", "<style>*{display:none}", "<div>\n```\n</div>\n\n```\n# x", "<details>\n\n# x", "<pre>\n\n# x\n",
	"<div>\n<div>\n<div>\n# x", "a <i>b</i> c", "<textarea>", "<base href=//evil.example>",
	"<meta http-equiv=refresh content=0>", "<br><br/>", "<details><summary>x",
	"\u202egnp.exe", "&#x202e;x", "&shy;&ZeroWidthSpace;&#8238;", "\\&#x202e;", "\\\\&#x202e;", "\x1b]0;owned\a\u009b2J",
	"\u2028\u2029\u200b\ufeff\u2066\u00ad\U000e0041\ue000",
	"a\r\nb\rc", "\x00\xff\xfe", "    indented\n\n# x", "\t# x", "> > > > # x", "* * *\n---\n***",
	"| a |\n|---|\n| <script> |", "| a |\n|:-:|\n| `|` ![x](y) |",
	"- [ ] <b>", "- [x] [y](javascript:z)", "www.evil.example", "http://evil.example/\"onclick=alert(1)", "x@y.example", "ftp://x.example/",
	"[^1]: note", "$$x$$", "*a*_b_~~c~~`d`", "`", "``", "`a\n\n`", "\\", "\\\n===", "<", "<a", "&", "&amp;", "&lt;script&gt;", "]()", "]", "[", "]: x", "(x)", ": <x>", "[](", "![](", "[a]:", "[a]: <b", "{#id .class onclick=x}",
	"# x {onclick=alert(1)}", "[x](http://a.example/\u202e)", "[x](http://a.example 'a\u202eb')", "[x](<http://a.example/&#x202e;>)", "~~~\nx\n~~~~\n~~~",
	strings.Repeat("> ", 200) + "# deep", strings.Repeat("- ", 100) + "# deep", strings.Repeat("[", 500), strings.Repeat("*a _b ", 200), strings.Repeat("`", 7) + "\n# x",
}
