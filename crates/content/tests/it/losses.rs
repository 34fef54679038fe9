//! What of a document is told to be lost.

use galley_content::{Effect, Limits, Loss, Tree};

use crate::support;

fn losses(html: &str) -> Vec<Loss> {
    Tree::from_html_with_losses(html, &Limits::default()).expect("it can be read").1
}

/// `p[class]`, `p[style=color]` and `font` for what is unwrapped, `-script` for what is dropped.
fn told(html: &str) -> Vec<String> {
    let written = |loss: &Loss| {
        let dropped = loss.effect == Effect::Dropped;
        let mut text = match (&loss.attribute, &loss.property) {
            (Some(attribute), Some(property)) => {
                format!("{}[{attribute}={property}]", loss.element)
            }
            (Some(attribute), None) => format!("{}[{attribute}]", loss.element),
            _ if dropped => format!("-{}", loss.element),
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
fn what_the_tree_says_is_not_lost() {
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
        "<!-- a comment -->",
    ] {
        assert_eq!(told(html), [""; 0], "{html}");
    }
}

#[test]
fn what_the_tree_lacks_is_told() {
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
        ("<svg width=1><path d=x></svg>", &["-svg", "path"]),
    ] {
        let mut found = told(html);
        let mut expected: Vec<_> = expected.iter().map(|one| (*one).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{html}");
    }
}

#[test]
fn the_first_place_is_told() {
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
fn asking_changes_nothing() {
    for file in ["cases.json", "nasty.json"] {
        for case in support::read_cases(&support::fixtures_dir().join(file)) {
            let limits = Limits::default();
            let (tree, _) = Tree::from_html_with_losses(&case.html, &limits).unwrap();
            assert_eq!(tree, support::from_html(&case.html), "{}", case.html);
            // What is rendered from a tree is all in the tree, but for what keeps white space.
            let html = tree.to_html();
            let lost = told(&html);
            assert!(
                lost.iter().all(|one| one.starts_with("div")),
                "{lost:?}: {html} of {}",
                case.html
            );
        }
    }
}

#[test]
fn what_is_told_is_bounded() {
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
