//! The conversion warnings of documents.

use galley_content::{ContentLimits, ConversionEffect, ConversionWarning, Tree};

use crate::support;

fn losses(html: &str) -> Vec<ConversionWarning> {
    Tree::from_html_with_warnings(html, &ContentLimits::default()).expect("it can be read").1
}

/// Returns the warnings in short form: `p[class]`, `p[style=color]` and `font` if unwrapped,
/// `-script` if dropped, and `^pre` if moved.
fn short_forms(html: &str) -> Vec<String> {
    let written = |loss: &ConversionWarning| {
        let dropped = loss.effect == ConversionEffect::Dropped;
        let mut text = match (&loss.attribute, &loss.property) {
            (Some(attribute), Some(property)) => {
                format!("{}[{attribute}={property}]", loss.element)
            }
            (Some(attribute), None) => format!("{}[{attribute}]", loss.element),
            _ if dropped => format!("-{}", loss.element),
            _ if loss.effect == ConversionEffect::Moved => format!("^{}", loss.element),
            _ => loss.element.clone(),
        };
        if loss.count > 1 {
            text += &format!("*{}", loss.count);
        }
        text
    };
    losses(html).iter().map(written).collect()
}

#[test]
fn content_in_the_tree_has_no_warning() {
    for html in [
        "",
        "<p>a <b>b</b> <i>c</i> <s>d</s> <u>e</u> <code>f</code> <sub>g</sub> <sup>h</sup><br></p>",
        "<h1>a</h1><h6>b</h6><blockquote><p>c</p></blockquote><hr>",
        "<ul><li>a<ol start=3 type=a><li>b</ol></ul>",
        "<ul data-type=taskList><li data-type=taskItem data-checked=true><label><input type=checkbox \
         checked><span></span></label><div><p>a</p></div></li></ul>",
        "<pre><code class=language-rust>fn main() {}</code></pre><pre>plain</pre>",
        "<img src=a.png alt=b title=c width=10 height=20%>",
        "<a href=https://example.org/ target=_blank rel=nofollow class=x title=y>a</a>",
        "<table><tbody><tr><th colspan=2 align=left>a</th></tr><tr><td rowspan=2>b<td>c</table>",
        "<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody></table>",
        "<table><colgroup><col width=50></colgroup><tr><td style='text-align: center'>a</table>",
        "<mark>a</mark><mark data-color=red>b</mark><mark style='background-color: red'>c</mark>",
        "<p style='font-weight: bold; text-decoration: underline; white-space: pre'>a</p>",
        "<table><tr><td colwidth=100,50 colspan=2>a</table>",
        "<span style='font-weight:bold'>a</span><b style='font-weight:normal'>b</b>",
        "<p style='font-weight:400;font-style:normal;text-decoration:none'>a</p>",
        "<b><span style='font-weight:400'>a</span></b><i style='vertical-align:sub'>b</i>",
        "<div style='white-space:pre-wrap'>a  b</div>",
        "<ol style='list-style-type:lower-roman'><li style='list-style-type:decimal'>a</ol>",
        "<!-- a comment -->",
    ] {
        assert_eq!(short_forms(html), [""; 0], "{html}");
    }
}

#[test]
fn content_that_the_tree_lacks_has_a_warning() {
    for (html, expected) in [
        ("<font color=red>a</font>", &["font"][..]),
        ("<a href=x><img src=a.png></a>", &["a"]),
        ("<template><p>x</p></template>", &["-template"]),
        ("<p class=a id=b>c</p><p class=d>e</p>", &["p[class]*2", "p[id]"]),
        ("a<script>b</script><style>c</style>", &["-script", "-style"]),
        ("<div><span>a</span></div>", &["div", "span"]),
        ("<p style='color: red; font-weight: bold; COLOR: blue'>a</p>", &["p[style=color]*2"]),
        ("<a href='javascript:alert(1)'>a</a>", &["a", "a[href]"]),
        ("<a name=x>a</a>", &["a"]),
        ("<img src='data:image/png;base64,aa' alt=b>", &["-img"]),
        ("<img src=a.png width=auto loading=lazy>", &["img[width]", "img[loading]"]),
        ("<p onclick=x data-a=b>a</p>", &["p[onclick]", "p[data-a]"]),
        ("<table><thead><tr><td>a</thead></table>", &["thead"]),
        ("<table><caption>a</caption><tr><td>b</table>", &["caption"]),
        ("<pre>a <b>b</b></pre>", &["b"]),
        ("<pre class=x><code class='language-a b'>c</code></pre>", &["pre[class]"]),
        ("<ol start=x><li value=3>a</ol>", &["ol[start]", "li[value]"]),
        ("<mark data-color='url(x)'>a</mark>", &["mark[data-color]"]),
        ("<h1 level=9 align=center>a</h1>", &["h1[align]", "h1[level]"]),
        ("<iframe src=x></iframe><video controls></video>", &["-iframe", "-video"]),
        ("<ul data-type=x><li data-checked=true>a</ul>", &["ul[data-type]", "li[data-checked]"]),
        (
            "<ul data-type=taskList><li data-type=taskItem data-checked=yes>a <p>b</p><label>c</label>\
             <div>d</div><hr></ul>",
            &["-#text", "-p", "-label", "li[data-checked]"],
        ),
        (
            "<table><tr><td colspan=9999 rowspan=x colwidth=1,2 align=justify>a</table>",
            &["td[colspan]", "td[rowspan]", "td[align]"],
        ),
        ("<table><tr><td colwidth=1,2>a</table>", &["td[colwidth]"]),
        (
            "<table style='width:100%'><col style='width:9px'><tr><td>a</table>",
            &["table[style=width]", "col[style=width]"],
        ),
        ("<p style='font-weight:300'>a</p>", &["p[style=font-weight]"]),
        ("<b><p style='font-weight:normal'>a</p></b>", &["p[style=font-weight]"]),
        ("<p style='text-decoration:underline overline'>a</p>", &["p[style=text-decoration]"]),
        (
            "<p style='vertical-align:middle;font-style:oblique'>a</p>",
            &["p[style=vertical-align]", "p[style=font-style]"],
        ),
        ("<ol style='list-style-type:lower-greek'><li>a</ol>", &["ol[style=list-style-type]"]),
        ("<mark style='background:url(x)'>a</mark>", &["mark[style=background]"]),
        ("<pre><b>x</b><code class=language-a>b</code></pre>", &["b", "code[class]"]),
        ("<pre><code class='language-a&lt;b'>b</code></pre>", &["code[class]"]),
        ("<a href=x><b><pre>a</pre></b></a>", &["a", "b"]),
        ("<svg width=1><path d=x></svg>", &["-svg", "path"]),
    ] {
        let mut found = short_forms(html);
        let mut expected: Vec<_> = expected.iter().map(|one| (*one).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{html}");
    }
}

#[test]
fn warnings_have_the_position_of_their_first_occurrence() {
    let html =
        "<p>a</p>\n<div>\n  <p>b</p>\n  <p>c <font>d</font> <font>e</font></p>\n</div>\n<font>f";
    let found = losses(html);
    let font = found.iter().find(|loss| loss.element == "font").unwrap();
    assert_eq!((font.count, font.first.line), (3, 4), "{found:?}");
    assert_eq!(font.first.path, "div:nth-child(2) > p:nth-child(2) > font:nth-child(1)");
    assert_eq!(losses("<font>")[0].first.line, 1);
    let order: Vec<_> = found.iter().map(|loss| loss.element.as_str()).collect();
    assert_eq!(order, ["div", "font"], "in the order of the document");
}

#[test]
fn positions_refer_to_the_source() {
    let path = |html: &str| losses(html).last().unwrap().first.path.clone();
    let list = "<ul><li>a</li><ul><li>b</li></ul><li id=x>c</li></ul>";
    assert_eq!(path(list), "ul:nth-child(1) > li:nth-child(3)");
    let inner = "<ul><li>a</li><ul><li id=x>b</li></ul></ul>";
    assert_eq!(path(inner), "ul:nth-child(1) > ul:nth-child(2) > li:nth-child(1)");
    assert_eq!(path("<p><o:p>a</o:p></p>"), "p:nth-child(1) > o\\:p:nth-child(1)");
}

#[test]
fn collecting_warnings_does_not_change_the_tree() {
    for file in ["cases.json", "nasty.json"] {
        for case in support::read_cases(&support::fixtures_dir().join(file)) {
            let limits = ContentLimits::default();
            let (tree, _) = Tree::from_html_with_warnings(&case.html, &limits).unwrap();
            assert_eq!(tree, support::from_html(&case.html), "{}", case.html);
            // Rendered HTML of a tree converts without warnings.
            let html = tree.to_html();
            let lost = short_forms(&html);
            assert!(lost.is_empty(), "{lost:?}: {html} of {}", case.html);
        }
    }
}

#[test]
fn the_number_and_size_of_warnings_are_limited() {
    let many: Vec<_> = (0..2_000).map(|number| format!("<x{number} a{number}>")).collect();
    let found = losses(&many.concat());
    assert_eq!(found.len(), 500);
    let deep = format!("{}<font>a", "<b>".repeat(50_000));
    let found = losses(&deep);
    assert!(found[0].first.path.len() < 1_000, "{}", found[0].first.path.len());
    let long = format!("<{} {}=1>", "x".repeat(10_000), "y".repeat(10_000));
    let found = losses(&long);
    assert!(found.iter().all(|loss| loss.element.len() <= 100), "{found:?}");
}

#[test]
fn a_block_at_the_beginning_of_a_list_item_is_moved() {
    for (html, expected) in [
        ("<ol><li><pre>a</pre></li><li>b</li></ol>", ["^pre"]),
        ("<ul><li><ul><li>a</li></ul></li></ul>", ["^ul"]),
        ("<ul><li><img src=a.png></li><li><img src=b.png></li></ul>", ["^img*2"]),
        ("<ul><li><h3>a</h3> b</li></ul>", ["^h3"]),
    ] {
        assert_eq!(short_forms(html), expected, "{html}");
    }
    for html in [
        "<ul><li><p></p><pre>a</pre></li></ul>",
        "<ul><li></li></ul><pre>a</pre>",
        "<ul><li>a<ul><li>b</li></ul><img src=a.png></li></ul>",
        "<blockquote><pre>a</pre></blockquote><table><tr><td><pre>a</pre></td></tr></table>",
    ] {
        assert_eq!(short_forms(html), [""; 0], "{html}");
    }
}
