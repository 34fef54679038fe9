//! Unsafe input, in many spellings, that must not reach any output.

use galley_content::Tree;
use serde_json::{Value, json};

use crate::support::{self, json as json_of};

/// URLs that execute code, or have a scheme that links must not have.
const UNSAFE_ADDRESSES: &[&str] = &[
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "\u{1}\u{1f}javascript:alert(1)",
    "java\nscript:alert(1)",
    "java\tscript:alert(1)",
    "java\r\nscript:alert(1)",
    "java&#10;script:alert(1)",
    "java&Tab;script:alert(1)",
    "&#106;avascript:alert(1)",
    "&#x6A&#x61&#x76&#x61&#x73&#x63&#x72&#x69&#x70&#x74&#x3A;alert(1)",
    "javascript&colon;alert(1)",
    "javascript&#58;alert(1)",
    "java\u{0}script:alert(1)",
    "\u{a0}javascript:alert(1)",
    "\u{2003}javascript:alert(1)",
    "\u{200b}javascript:alert(1)",
    "\u{feff}javascript:alert(1)",
    "java\u{ad}script:alert(1)",
    "javascript\u{200d}:alert(1)",
    "javascript\n:alert(1)",
    "javascript://example.org/%0aalert(1)",
    "vbscript:msgbox(1)",
    "livescript:x",
    "data:text/html,<script>alert(1)</script>",
    "data:text/html;base64,PHNjcmlwdD4=",
    "blob:https://example.org/x",
    "file:///etc/passwd",
    "view-source:x",
    "x3:y",
    "callto:x",
    "cid:x",
    "xmpp:x@example.org",
    "feed:javascript:alert(1)",
    "jar:https://example.org!/x",
    "intent://x#Intent;end",
    "ms-office:x",
];

#[test]
fn links_with_unsafe_addresses_are_not_links() {
    for address in UNSAFE_ADDRESSES {
        let tree = support::from_html(&format!("<a href=\"{address}\">x</a>"));
        assert_eq!(tree.to_html(), "<p>x</p>", "{address:?}");
    }
}

#[test]
fn images_with_unsafe_addresses_are_dropped() {
    for address in UNSAFE_ADDRESSES.iter().chain(&["mailto:x", "tel:1", "ftp://example.org/a.png"])
    {
        let tree = support::from_html(&format!("<p>x</p><img src=\"{address}\">"));
        assert_eq!(tree.to_html(), "<p>x</p>", "{address:?}");
    }
}

#[test]
fn links_with_safe_addresses_stay() {
    for address in [
        "https://example.org/",
        "HTTP://example.org",
        "ftp://example.org",
        "ftps://example.org",
        "mailto:a@example.org",
        "tel:+1",
        "sms:+1",
        "/a",
        "a",
        "a/b:c",
        "#a",
        "?a=b:c",
        "//example.org",
        "../a",
        "./a:b",
        "1:2",
        ":a",
    ] {
        let tree = support::from_html(&format!("<a href=\"{address}\">x</a>"));
        assert_eq!(tree.to_html(), format!("<p><a href=\"{address}\">x</a></p>"));
    }
}

#[test]
fn unsafe_addresses_in_markdown_are_removed() {
    for markdown in [
        "[x](javascript:alert(1))",
        "[x](<javascript:alert(1)>)",
        "[x](javascript&colon;alert(1))",
        "[x][y]\n\n[y]: javascript:alert(1)",
        "<javascript:alert(1)>",
        "![x](javascript:alert(1))",
        "<a href='javascript:alert(1)'>x</a>",
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
    ] {
        let html = support::from_markdown(markdown).to_html();
        assert!(!html.contains("href=") && !html.contains("<script"), "{markdown}: {html}");
        assert!(!html.contains("onerror") && !html.contains("src=\"java"), "{markdown}: {html}");
    }
}

#[test]
fn nothing_outside_the_schema_is_rendered() {
    for html in [
        "<p onclick=alert(1) style='position:fixed' id=a class=b>x</p>",
        "<script>alert(1)</script><p>x</p>",
        "<svg onload=alert(1)><script>alert(1)</script></svg><p>x</p>",
        "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\"></table></mtext></math><p>x</p>",
        "<noscript><i title=\"</noscript><img src=x onerror=alert(1)>\"></i></noscript><p>x</p>",
        "<template><script>alert(1)</script></template><p>x</p>",
        "<iframe srcdoc='<script>alert(1)</script>'></iframe><p>x</p>",
        "<object data=x></object><embed src=x><p>x</p>",
        "<form action=x><input value=y></form><p>x</p>",
        "<base href=//example.org><link rel=stylesheet href=x><meta http-equiv=refresh content=0><p>x</p>",
        "<style>p{}</style><p>x</p>",
    ] {
        let tree = support::from_html(html);
        for forbidden in ["script", "onclick", "onload", "position", "iframe", "action", "id="] {
            assert!(!tree.to_html().contains(forbidden), "{html}: {}", tree.to_html());
        }
        assert!(tree.to_html().ends_with("<p>x</p>"), "{html}: {}", tree.to_html());
    }
}

#[test]
fn attribute_values_cannot_leave_their_quotes() {
    let html = "<a href='/\"><script>alert(1)</script>' title='\"><img src=x>'>x</a>";
    let rendered = support::from_html(html).to_html();
    assert!(!rendered.contains("<script") && !rendered.contains("<img"), "{rendered}");
    let rendered =
        support::from_html("<pre><code class='language-a\"onload=x'>y</code></pre>").to_html();
    assert_eq!(rendered, "<pre><code>y</code></pre>");
}

fn first_mark(html: &str) -> Value {
    json_of(&support::from_html(html))["content"][0]["content"][0]["marks"][0].clone()
}

fn first_attrs(html: &str) -> Value {
    json_of(&support::from_html(html))["content"][0]["attrs"].clone()
}

#[test]
fn highlights_have_css_colors_or_none() {
    for color in
        ["red", "#abc", "#aabbccdd", "rgb(1, 2, 3)", "rgba(1,2,3,.5)", "hsl(120 50% 50% / 20%)"]
    {
        let mark = first_mark(&format!("<mark data-color='{color}'>x</mark>"));
        assert_eq!(mark["attrs"]["color"], json!(color));
    }
    for color in [
        "expression(alert(1))",
        "url(x)",
        "red;position:fixed",
        "rgb(1,2,3);x:y",
        "#ggg",
        "#12345",
        "var(--x)",
        "bogus",
        "rgb(a,b,c)",
        "rgb()",
        "red\\3b",
        "red/**/",
    ] {
        let mark = first_mark(&format!("<mark data-color='{color}'>x</mark>"));
        assert_eq!(mark["attrs"]["color"], json!(null), "{color}");
    }
}

#[test]
fn languages_are_short_and_plain() {
    let language = |class: &str| {
        let html = format!("<pre><code class=\"{class}\">x</code></pre>");
        first_attrs(&html)["language"].clone()
    };
    assert_eq!(language("language-c++"), json!("c++"));
    assert_eq!(language(&format!("language-{}", "a".repeat(50))), json!("a".repeat(50)));
    assert_eq!(language(&format!("language-{}", "a".repeat(51))), Value::Null);
    for class in
        ["language-a&quot;b", "language-a'b", "language-a<b", "language-a>b", "language-a&#1;"]
    {
        assert_eq!(language(class), Value::Null, "{class}");
    }
}

#[test]
fn sizes_are_numbers_or_percentages() {
    let width =
        |width: &str| first_attrs(&format!("<img src=a.png width='{width}'>"))["width"].clone();
    assert_eq!(width("10"), json!(10));
    assert_eq!(width("50%"), json!("50%"));
    for unsafe_width in ["10px", "x", "true", "1;y", "calc(1)", "%", "-5%", "expression(1)"] {
        assert_eq!(width(unsafe_width), Value::Null, "{unsafe_width}");
    }
}

#[test]
fn spans_stay_within_the_bounds_of_html() {
    let cell = |attributes: &str| {
        let html = format!("<table><tr><td {attributes}>x</table>");
        json_of(&support::from_html(&html))["content"][0]["content"][0]["content"][0]["attrs"]
            .clone()
    };
    assert_eq!(cell("colspan=1000 rowspan=0")["colspan"], json!(1000));
    assert_eq!(cell("colspan=99999999 rowspan=99999999")["colspan"], json!(1000));
    assert_eq!(cell("colspan=99999999 rowspan=99999999")["rowspan"], json!(65534));
    for colspan in ["0", "-1", "1.5", "x", "1e9", ""] {
        assert_eq!(cell(&format!("colspan='{colspan}'"))["colspan"], json!(1), "{colspan}");
    }
    assert_eq!(cell("rowspan=-1")["rowspan"], json!(1));
    assert_eq!(cell("colspan=2 colwidth=1,2,3,4")["colwidth"], json!([1, 2]));
}

#[test]
fn stored_trees_are_not_trusted() {
    let text = |marks: Value| {
        json!({"type": "doc", "content": [{"type": "paragraph", "content": [
            {"type": "text", "marks": marks, "text": "x"}]}]})
    };
    let block = |block: Value| json!({"type": "doc", "content": [block]});
    let cell = |attrs: Value| {
        block(json!({"type": "table", "content": [{"type": "tableRow", "content": [
            {"type": "tableCell", "attrs": attrs, "content": [{"type": "paragraph"}]}]}]}))
    };
    for unsafe_tree in [
        text(json!([{"type": "link", "attrs": {"href": "java\nscript:alert(1)"}}])),
        text(json!([{"type": "link", "attrs": {"href": ""}}])),
        text(json!([{"type": "link"}])),
        text(json!([{"type": "highlight", "attrs": {"color": "red;x:y"}}])),
        text(json!([{"type": "blink"}])),
        block(json!({"type": "image", "attrs": {"src": "javascript:alert(1)"}})),
        block(json!({"type": "image"})),
        block(json!({"type": "image", "attrs": {"src": "a", "width": "1px"}})),
        block(json!({"type": "codeBlock", "attrs": {"language": "a b"}})),
        block(json!({"type": "heading", "attrs": {"level": 7}})),
        block(json!({"type": "iframe"})),
        block(json!({"type": "text", "text": "x"})),
        block(json!({"type": "bulletList"})),
        block(json!({"type": "bulletList", "content": [{"type": "paragraph"}]})),
        block(json!({"type": "paragraph", "content": [{"type": "text", "text": ""}]})),
        block(json!({"type": "paragraph", "content": [{"type": "paragraph"}]})),
        cell(json!({"colspan": 1001})),
        cell(json!({"rowspan": -1})),
        cell(json!({"colwidth": [1, 2]})),
        cell(json!({"align": "top"})),
        json!({"type": "paragraph"}),
        json!({"type": "doc"}),
        json!([]),
    ] {
        assert!(Tree::from_json(&unsafe_tree.to_string()).is_err(), "{unsafe_tree}");
    }
    assert!(Tree::from_json("").is_err());
    assert!(
        Tree::from_json("{\"type\":\"doc\",\"content\":[{\"type\":\"paragraph\"}]} x").is_err()
    );
}
