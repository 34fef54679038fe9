//! Conversion from Markdown, and rendering as Markdown.

use std::path::Path;

use galley_content::{Tree, markdown_to_html};
use serde_json::{Value, json};

use crate::support;

/// Posts whose tree doesn't survive a round trip through Markdown, with the reasons.
const KNOWN_DIFFERENCES: &[(&str, &str)] = &[];

/// Returns the posts next to the corpus, by name, without their front matter.
fn posts(test: &str) -> Vec<(String, String)> {
    let Some(dir) = support::corpus_dir(test) else { return Vec::new() };
    let mut posts = Vec::new();
    collect_posts(&dir.join("../posts"), &mut posts);
    posts.sort();
    posts
}

fn collect_posts(dir: &Path, posts: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect_posts(&path, posts);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(&path).expect("a post is readable");
            posts.push((path.display().to_string(), without_front_matter(&text).to_owned()));
        }
    }
}

fn without_front_matter(post: &str) -> &str {
    for fence in ["+++\n", "---\n"] {
        let rest = post.strip_prefix(fence).and_then(|rest| rest.split_once(&format!("\n{fence}")));
        if let Some((_, body)) = rest {
            return body;
        }
    }
    post
}

#[test]
fn posts_survive_a_round_trip() {
    let posts = posts("posts_give_the_same_tree_again");
    let mut differing = Vec::new();
    for (name, post) in &posts {
        let tree = support::from_markdown(post);
        let again = support::from_markdown(&tree.to_markdown());
        if let Some(difference) = support::difference(&again, &tree)
            && !KNOWN_DIFFERENCES.iter().any(|(known, _)| name.ends_with(known))
        {
            differing.push(format!("{name}: {difference}"));
        }
    }
    println!("{} of {} posts give the same tree", posts.len() - differing.len(), posts.len());
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn documents_of_the_corpus_survive_markdown() {
    let Some(dir) = support::corpus_dir("documents_of_the_corpus_survive_markdown") else { return };
    for file in ["blog.json", "commonmark.json"] {
        let cases = support::read_cases(&dir.join(file));
        let differing = support::differing(&cases, |case| {
            let tree = support::from_html(&case.html);
            (support::from_markdown(&tree.to_markdown()), tree)
        });
        assert!(differing.is_empty(), "{} differ: {differing:#?}", differing.len());
    }
}

#[test]
fn our_cases_survive_markdown() {
    let cases = support::read_cases(&support::fixtures_dir().join("cases.json"));
    let differing = support::differing(&cases, |case| {
        let tree = support::from_html(&case.html);
        (support::from_markdown(&tree.to_markdown()), tree)
    });
    assert!(differing.is_empty(), "{} differ: {differing:#?}", differing.len());
}

#[track_caller]
fn assert_markdown(html: &str, markdown: &str) {
    let tree = support::from_html(html);
    assert_eq!(tree.to_markdown(), markdown);
    assert_eq!(support::from_markdown(markdown), tree);
}

#[test]
fn a_document_is_readable_markdown() {
    assert_markdown(
        "<h1>Title</h1><p>Some <b>bold</b>, <i>italic</i>, <s>gone</s> and <code>code</code>; \
         <a href='https://example.org/a?b=1&amp;c=2' title='T'>a link</a>.</p>\
         <blockquote><p>Quoted</p><ul><li>one</li><li>two<ol><li>three</ol></ul></blockquote>\
         <pre><code class=language-rust>fn main() {}</code></pre><hr>",
        "# Title\n\nSome **bold**, _italic_, ~~gone~~ and `code`; \
         [a link](https://example.org/a?b=1&amp;c=2 \"T\").\n\n\
         > Quoted\n>\n> - one\n> - two\n>   1. three\n\n\
         ```rust\nfn main() {}\n```\n\n---\n",
    );
}

#[test]
fn tables_and_tasks_are_github_flavoured() {
    assert_markdown(
        "<table><tr><th>a<th align=right>b|c<tr><td>1<td align=right>2</table>",
        "| a | b\\|c |\n| --- | --: |\n| 1 | 2 |\n",
    );
    assert_markdown(
        "<ul data-type=taskList><li data-type=taskItem data-checked=true>done\
         <li data-type=taskItem data-checked=false>to do</ul>",
        "- [x] done\n- [ ] to do\n",
    );
}

#[test]
fn code_keeps_its_line_ends() {
    assert_markdown("<pre>a\nb</pre>", "```\na\nb\n```\n");
    assert_markdown("<pre>a\n</pre>", "```\na\n\n```\n");
    assert_markdown("<pre></pre>", "```\n```\n");
    assert_markdown("<pre>\n\n</pre>", "```\n\n\n```\n");
    assert_markdown("<pre>a ``` b</pre>", "````\na ``` b\n````\n");
}

#[test]
fn an_image_alone_has_no_paragraph() {
    assert_markdown(
        "<p>a</p><img src=a.png alt='*b* [c]' title='d &quot;e&quot;'><img src=/f alt=''>",
        "a\n\n![\\*b\\* \\[c\\]](a.png \"d \\\"e\\\"\")\n\n![](/f)\n",
    );
    assert_markdown("<ul><li>a<img src=b.png alt=b></ul>", "- a\n\n  ![b](b.png)\n");
    let linked = support::from_markdown("[![a](b.png)](https://example.org)\n![c](d.png)");
    assert_eq!(linked, support::from_html("<img src=b.png alt=a><img src=d.png alt=c>"));
}

#[test]
fn unsupported_content_is_rendered_as_html() {
    assert_markdown("<p>a<u>b</u><sub>c</sub></p>", "a<u>b</u><sub>c</sub>\n");
    assert_markdown("<p>wo<b>r</b>d<i>s</i></p>", "wo**r**d<em>s</em>\n");
    assert_markdown("<p></p><p>a</p>", "<p></p>\n\na\n");
    assert_markdown("<img src=a.png alt=b width=5>", "<img src=\"a.png\" alt=\"b\" width=\"5\">\n");
    assert_markdown("<img src=a.png>", "<img src=\"a.png\">\n");
}

#[test]
fn text_that_looks_like_markdown_stays_text() {
    for text in [
        "# a",
        "1. a",
        "12) a",
        "- a",
        "+ a",
        "* a",
        "> a",
        "---",
        "===",
        "```",
        "~~~",
        "| a |",
        ": a",
        "a_b_c _d_",
        "*a* **b**",
        "[a](b)",
        "![a](b)",
        "!",
        "&amp;amp; &amp;copy;",
        "&lt;b&gt; &lt;!-- --&gt;",
        "\\ \\* \\\\",
        "`a` ``",
        "https://example.org www.example.org",
        "me@example.org mailto:me@example.org",
        "a &lt; b & c > d",
        "[x] y",
        "[a]: b",
        "~a~",
        "#",
        "##",
        "1.",
        "-",
        "ftp://x.org",
        "xmpp:me@example.org",
        "-- a",
        "--",
        "a #",
        "2.5 a",
        "@ann, see *this*",
        "a @ann",
        "www.@x",
        "a {#b}",
        "{#b}",
        "a[^1]",
        "[^1]: b",
    ] {
        for html in [
            format!("<p>{text}</p>"),
            format!("<h2>{text}</h2>"),
            format!("<ul><li>{text}</ul>"),
            format!("<p>x<br>{text}</p>"),
            format!("<p><b>{text}</b></p>"),
            format!("<p><a href=y>{text}</a></p>"),
            format!("<table><tr><th>{text}</table>"),
            format!("<p><code>{text}</code></p>"),
            format!("<ul data-type=taskList><li data-type=taskItem>{text}</ul>"),
        ] {
            let tree = support::from_html(&html);
            let markdown = tree.to_markdown();
            assert_eq!(support::from_markdown(&markdown), tree, "{html} as {markdown}");
        }
    }
}

#[test]
fn marks_begin_and_end_next_to_any_character_but_letters_and_digits() {
    let characters = ('\u{1}'..='\u{ffff}').chain('\u{1f000}'..='\u{1faff}');
    let text = |text: &str| json!({ "type": "text", "text": text });
    let paragraphs: Vec<Value> = characters
        .filter(|c| !c.is_alphanumeric() && !matches!(c, '\n' | '\r'))
        .flat_map(|c| {
            ["bold", "italic", "strike"].map(|mark| {
                let marked = json!({ "type": "text", "text": "(x)", "marks": [{ "type": mark }] });
                let (before, behind) = (text(&format!("a{c}")), text(&format!("{c}b")));
                json!({ "type": "paragraph", "content": [before, marked, behind] })
            })
        })
        .collect();
    let doc = json!({ "type": "doc", "content": paragraphs });
    let tree = Tree::from_json(&doc.to_string()).expect("a valid tree");
    let again = support::from_markdown(&tree.to_markdown());
    assert_eq!(support::difference(&again, &tree), None);
}

#[test]
fn bare_addresses_and_names_are_escaped_without_html() {
    assert_markdown("<p>@ann wrote <i>this</i></p>", "@ann wrote _this_\n");
    assert_markdown("<p>me@example.org</p>", "me\\@example.org\n");
    assert_markdown(
        "<p>https://example.org, www.example.org</p>",
        "https\\://example.org, www\\.example.org\n",
    );
    assert_markdown("<img src=a.png alt='me@example.org'>", "![me\\@example.org](a.png)\n");
    assert_markdown("<h2>A {#b}</h2>", "## A \\{#b}\n");
}

#[test]
fn footnotes_become_numbers_and_a_list() {
    let tree =
        support::from_markdown("A[^x], b[^1] and[^2].\n\n[^1]: One\n\n[^x]: Two\n\n    More\n");
    let html = "<p>A<sup>1</sup>, b<sup>2</sup> and[^2].</p>\
        <ol><li><p>Two</p><p>More</p></li><li><p>One</p></li></ol>";
    assert_eq!(tree.to_html(), html);
    assert_eq!(support::from_markdown(&tree.to_markdown()), tree);
}

#[test]
fn an_empty_document_is_empty_markdown() {
    assert_eq!(Tree::empty().to_markdown(), "");
    assert_eq!(support::from_markdown(""), Tree::empty());
}

#[test]
fn task_lists_get_the_attributes_of_tiptap() {
    assert!(markdown_to_html("- [x] a\n- [ ] b").contains("data-type=\"taskItem\""));
    // A partial task list is an ordinary list.
    let tree = support::from_markdown("- [x] a\n- b");
    assert_eq!(tree.to_html(), "<ul><li><p>[x] a</p></li><li><p>b</p></li></ul>");
}

#[test]
fn a_list_item_may_begin_with_any_block() {
    for (markdown, html) in [
        (
            "1. ```sh\n   make\n   ```\n2. b\n",
            "<ol><li><p></p><pre><code class=\"language-sh\">make</code></pre></li><li><p>b</p></li></ol>",
        ),
        (
            "- # a\n- > b\n- ![c](c.png)\n",
            "<ul><li><p></p><h1>a</h1></li><li><p></p><blockquote><p>b</p></blockquote></li>\
             <li><p></p><img src=\"c.png\" alt=\"c\"></li></ul>",
        ),
        (
            "- - a\n  - b\n-\n",
            "<ul><li><p></p><ul><li><p>a</p></li><li><p>b</p></li></ul></li><li><p></p></li></ul>",
        ),
    ] {
        let tree = support::from_markdown(markdown);
        let expected = Tree::from_html(html, &galley_content::ContentLimits::default()).unwrap();
        assert_eq!(tree.to_json(), expected.to_json(), "{markdown}");
        let again = support::from_markdown(&tree.to_markdown());
        assert_eq!(again.to_json(), tree.to_json(), "{markdown}");
    }
}
