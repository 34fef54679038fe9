//! Scripts in every known hiding place. None reaches the tree, the HTML or the Markdown.

use galley_content::{ContentLimits, Tree};

use crate::{checks, support};

pub(crate) const XSS_PAYLOADS: &[&str] = &[
    "<script>alert(1)</script>",
    "<SCRIPT SRC=http://xss.example/a.js></SCRIPT>",
    "<script/xss src=//xss.example/a.js></script>",
    "<script\n>alert(1)</script\n>",
    "<<script>alert(1);//<</script>",
    "<script src=//xss.example/a.js?<b>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "\"><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><script xlink:href=data:,alert(1) />",
    "<svg onload=alert(1)>",
    "<svg/onload=alert(1)//",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<svg><a xlink:href=\"javascript:alert(1)\"><text y=20>x</text></a></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<svg><foreignObject><iframe src=javascript:alert(1)></iframe></foreignObject></svg>",
    "<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<math href=\"javascript:alert(1)\">x</math>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<img src=x onerror=alert(1)>",
    "<img src=\"javascript:alert(1)\">",
    "<img src=javascript:alert(&quot;1&quot;)>",
    "<img src=\"jav\tascript:alert(1)\">",
    "<img src=\"jav&#x09;ascript:alert(1)\">",
    "<img src=\"jav&#x0A;ascript:alert(1)\">",
    "<img src=\" &#14; javascript:alert(1)\">",
    "<img src=`javascript:alert(1)`>",
    "<img src=\"data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+\">",
    "<img \"\"\"><script>alert(1)</script>\">",
    "<img src=# onmouseover=\"alert(1)\">",
    "<img src= onmouseover=alert(1)>",
    "<img/src=x/onerror=alert(1)>",
    "<img src=x:alert(alt) onerror=eval(src) alt=1>",
    "<img dynsrc=\"javascript:alert(1)\" lowsrc=\"javascript:alert(1)\">",
    "<image src=x onerror=alert(1)>",
    "<input type=image src=\"javascript:alert(1)\">",
    "<body onload=alert(1) background=\"javascript:alert(1)\">",
    "<bgsound src=\"javascript:alert(1)\">",
    "<br size=\"&{alert('1')}\">",
    "<link rel=stylesheet href=\"javascript:alert(1)\">",
    "<style>@import'http://xss.example/a.css';</style>",
    "<style>li {list-style-image: url(\"javascript:alert(1)\");}</style><ul><li>x",
    "<meta http-equiv=refresh content=\"0;url=javascript:alert(1)\">",
    "<iframe src=\"javascript:alert(1)\"></iframe>",
    "<iframe srcdoc=\"<script>alert(1)</script>\"></iframe>",
    "<frameset><frame src=\"javascript:alert(1)\"></frameset>",
    "<table background=\"javascript:alert(1)\"><td background=\"javascript:alert(1)\">x",
    "<div style=\"background-image: url(javascript:alert(1))\">x</div>",
    "<div style=\"width: expression(alert(1))\">x</div>",
    "<p style=\"font-weight: expression(alert(1)); text-decoration: url(javascript:alert(1))\">x",
    "<mark data-color=\"red;background:url(javascript:alert(1))\">x</mark>",
    "<mark data-color='\"><script>alert(1)</script>'>x</mark>",
    "<mark style=\"background-color: url(javascript:alert(1))\">x</mark>",
    "<mark data-color=\"expression(alert(1))\">x</mark>",
    "<base href=\"javascript:alert(1)//\">",
    "<object data=\"javascript:alert(1)\"></object>",
    "<object type=text/html data=\"data:text/html;base64,PHNjcmlwdD4=\"></object>",
    "<embed src=\"data:image/svg+xml,<svg onload=alert(1)>\">",
    "<a href=\"javascript:alert(1)\">x</a>",
    "<a href=\"JaVaScRiPt:alert(1)\">x</a>",
    "<a href=\"java\nscript:alert(1)\">x</a>",
    "<a href=\"\u{1}javascript:alert(1)\">x</a>",
    "<a href=\"&#106;&#97;&#118;&#97;&#115;&#99;&#114;&#105;&#112;&#116;&#58;alert(1)\">x</a>",
    "<a href=\"&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A;alert(1)\">x</a>",
    "<a href=\"javascript&colon;alert(1)\">x</a>",
    "<a href=\"vbscript:msgbox(1)\">x</a>",
    "<a href=\"data:text/html,<script>alert(1)</script>\">x</a>",
    "<a href=\"feed:javascript:alert(1)\">x</a>",
    "<a href=\"blob:https://a.example/x\">x</a>",
    "<a href=\"view-source:javascript:alert(1)\">x</a>",
    "<a href=x onclick=alert(1) onmouseover=alert(1)>x</a>",
    "<a href=\"x\" title='\" onclick=alert(1) \"'>x</a>",
    "<a href=x target='\" onclick=alert(1) x=\"'>x</a>",
    "<a href='x\"onclick=alert(1) '>x</a>",
    "<td colspan='1\"onclick=alert(1) \"'>x</td>",
    "<table><tr><td colspan=\"2><script>alert(1)</script>\" align='\"><script>'>x</table>",
    "<table><tr><td colwidth='1,\"><script>alert(1)</script>'>x</table>",
    "<pre><code class='language-x\"onclick=alert(1)'>x</code></pre>",
    "<pre><code class='language-<script>alert(1)</script>'>x</code></pre>",
    "<ol type='1\" onclick=alert(1) \"'><li>x</ol>",
    "<ol start='1\" onclick=alert(1)'><li>x</ol>",
    "<img src=x alt='\"><script>alert(1)</script>' title='\" onerror=alert(1) \"'>",
    "<img src=x width='1\" onerror=alert(1) \"' height='<script>'>",
    "<ul data-type='taskList\" onclick=alert(1)'><li data-type=taskItem data-checked='\" onclick=x'>x</ul>",
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\"></noscript>",
    "<xmp><script>alert(1)</script></xmp>",
    "<noembed><script>alert(1)</script></noembed>",
    "<template><script>alert(1)</script></template>",
    "<select><style></select><img src=x onerror=alert(1)></style>",
    "<!--<img src=\"--><img src=x onerror=alert(1)//\">",
    "<!--[if gte IE 4]><script>alert(1)</script><![endif]-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<? <img src=x onerror=alert(1)> ?>",
    "<x onclick=alert(1)>x</x>",
    "<details open ontoggle=alert(1)>x</details>",
    "<video><source onerror=alert(1)></video><audio src=x onerror=alert(1)>",
    "<button formaction=javascript:alert(1)>x</button>",
    "<form action=javascript:alert(1)><input type=submit></form>",
    "<isindex action=javascript:alert(1) type=submit>",
    "<keygen autofocus onfocus=alert(1)>",
    "<marquee onstart=alert(1)>x</marquee>",
    "<plaintext><script>alert(1)</script>",
];

#[test]
fn no_script_gets_through_in_any_form() {
    for payload in XSS_PAYLOADS {
        checks::html(payload.as_bytes());
        checks::markdown(payload.as_bytes());
        let wrapped =
            format!("<ul><li>{payload}</ul><table><tr><td>{payload}</table><h1>{payload}");
        checks::html(wrapped.as_bytes());
        let tree = support::from_html(payload);
        // Publishing renders the Markdown as HTML.
        let (shown, losses) =
            Tree::from_markdown_with_warnings(&tree.to_markdown(), &ContentLimits::default())
                .unwrap();
        let scripts = losses.iter().filter(|loss| {
            let handler = loss.attribute.as_deref().is_some_and(|name| name.starts_with("on"));
            handler
                || ["script", "style", "iframe", "object", "embed", "svg"].contains(&&*loss.element)
        });
        assert_eq!(scripts.count(), 0, "{payload}: {losses:?} in {}", tree.to_markdown());
        checks::html(shown.to_html().as_bytes());
    }
}

#[test]
fn the_content_of_scripts_is_not_rendered_as_text() {
    for (hiding, text) in [
        ("a<script>alert(1)</script>b", "ab\n"),
        ("a<style>b{c:d}</style>e", "ae\n"),
        ("<p>a<script>b</script></p><style>c</style>d", "a\n\nd\n"),
        ("a<noscript><p>b</p></noscript>c", "ac\n"),
        ("a<object data=x>b</object>c", "ac\n"),
        ("<svg><script>a</script><style>b</style></svg>c", "c\n"),
        ("a<title>b</title>c", "ac\n"),
    ] {
        assert_eq!(support::from_html(hiding).to_text(), text, "{hiding}");
    }
}
