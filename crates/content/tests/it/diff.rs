//! Examples of diffs in each form, hostile documents, and bounds.

use std::time::{Duration, Instant};

use galley_content::{Tree, TreeDiff};
use serde_json::{Value, json};

use crate::bounds::{numbered, on_stack};
use crate::diff_exactness::{check, read};
use crate::support;
use crate::xss::XSS_PAYLOADS;

/// Returns the three forms of a diff.
fn forms(before: &str, after: &str) -> (Value, String, String) {
    let (before, after) = (support::from_html(before), support::from_html(after));
    check(&before, &after);
    let diff = TreeDiff::between(&before, &after);
    (support::parse_json(&diff.to_json()), diff.to_html(), diff.to_text())
}

#[test]
fn changed_words_are_deleted_and_inserted() {
    let (json, html, text) =
        forms("<p>The quick brown fox jumps.", "<p>The slow brown fox leaps high.");
    assert_eq!(
        html,
        "<p>The <del>quick</del><ins>slow</ins> brown fox \
         <del>jumps</del><ins>leaps high</ins>.</p>"
    );
    assert_eq!(text, "~ The [-quick-]{+slow+} brown fox [-jumps-]{+leaps high+}.\n");
    assert_eq!(
        json,
        json!([{ "change": { "type": "paragraph", "content": [
            { "equal": 4 },
            { "delete": [{ "type": "text", "text": "quick" }] },
            { "insert": [{ "type": "text", "text": "slow" }] },
            { "equal": 11 },
            { "delete": [{ "type": "text", "text": "jumps" }] },
            { "insert": [{ "type": "text", "text": "leaps high" }] },
            { "equal": 1 },
        ] } }])
    );
}

#[test]
fn lengths_are_in_utf_16_code_units() {
    let (json, ..) = forms("<p>🐟 é<br>fish and more", "<p>🐟 é<br><i>fish</i> and more");
    let steps =
        json!([{ "equal": 5 }, { "format": 4, "add": [{ "type": "italic" }] }, { "equal": 9 }]);
    assert_eq!(json[0]["change"]["content"], steps);
}

#[test]
fn changed_marks_are_no_deletions() {
    let (json, html, text) = forms("<p>An important word", "<p>An <b>important</b> word");
    assert_eq!(
        html,
        "<p>An <strong><span data-diff=\"bold added\">important</span></strong> word</p>"
    );
    assert_eq!(text, "~ An {~important~}[bold added] word\n");
    let steps =
        json!([{ "equal": 3 }, { "format": 9, "add": [{ "type": "bold" }] }, { "equal": 5 }]);
    assert_eq!(json[0]["change"]["content"], steps);

    let (json, html, text) =
        forms("<p>See <a href=/a>the docs</a> now", "<p>See <a href=/b>the docs</a> now");
    assert_eq!(
        html,
        "<p>See <a href=\"/b\"><span data-diff=\"link: /a → /b\">the docs</span></a> now</p>"
    );
    assert_eq!(text, "~ See {~the docs~}[link: /a → /b] now\n");
    let step = &json[0]["change"]["content"][1];
    assert_eq!(step["remove"][0]["attrs"]["href"], "/a");
    assert_eq!(step["add"][0]["attrs"]["href"], "/b");
}

#[test]
fn changed_attributes_keep_the_block() {
    let (json, html, text) = forms("<h2>Title</h2><p>Text", "<h3>Title</h3><p>Text");
    assert_eq!(html, "<h3 data-diff=\"level: 2 → 3\">Title</h3><p>Text</p>");
    assert_eq!(text, "~ [level: 2 → 3] ### Title\n  Text\n");
    let attrs = json!({ "level": { "from": 2, "to": 3 } });
    let change = json!({ "type": "heading", "attrs": attrs, "content": [{ "equal": 5 }] });
    assert_eq!(json, json!([{ "change": change }, { "equal": 1 }]));

    let (json, html, _) = forms("<img src=a.png alt=x>", "<img src=a.png alt='a cat'>");
    assert_eq!(html, "<img data-diff=\"alt: x → a cat\" src=\"a.png\" alt=\"a cat\">");
    let change = json!({ "type": "image", "attrs": { "alt": { "from": "x", "to": "a cat" } } });
    assert_eq!(json, json!([{ "change": change }]));
}

#[test]
fn a_changed_type_keeps_the_content() {
    let (json, html, text) = forms("<p>A short title", "<h2>A short title</h2>");
    assert_eq!(html, "<h2 data-diff=\"paragraph → heading, level: 2\">A short title</h2>");
    assert_eq!(text, "~ [paragraph → heading, level: 2] ## A short title\n");
    let types = json!({ "from": "paragraph", "to": "heading" });
    let change =
        json!({ "type": types, "attrs": { "level": { "to": 2 } }, "content": [{ "equal": 13 }] });
    assert_eq!(json, json!([{ "change": change }]));

    let (json, ..) = forms("<ul><li>one<li>two</ul>", "<ol start=2><li>one<li>two</ol>");
    assert_eq!(json[0]["change"]["attrs"]["start"], json!({ "to": 2 }));
    assert_eq!(json[0]["change"]["content"], json!([{ "equal": 2 }]));
}

#[test]
fn list_items_are_inserted_and_deleted_on_their_own() {
    let (one, two) = ("<ul><li>one<li>two</ul>", "<ul><li>one<li>extra<li>two</ul>");
    let (_, html, text) = forms(one, two);
    let extra = "<li data-diff=\"inserted\"><ins><p>extra</p></ins></li>";
    assert_eq!(html, format!("<ul><li><p>one</p></li>{extra}<li><p>two</p></li></ul>"));
    assert_eq!(text, "  * one\n+ * extra\n  * two\n");
    let (_, html, text) = forms(two, one);
    let extra = "<li data-diff=\"deleted\"><del><p>extra</p></del></li>";
    assert_eq!(html, format!("<ul><li><p>one</p></li>{extra}<li><p>two</p></li></ul>"));
    assert_eq!(text, "  * one\n- * extra\n  * two\n");
}

#[test]
fn cells_change_in_their_place() {
    let table = |rows: &str| format!("<table><tr><th>Name<th>Size{rows}</table>");
    let before = table("<tr><td>a<td>5<tr><td>b<td>6");
    let (_, html, text) = forms(&before, &table("<tr><td>a<td>7<tr><td>b<td>6"));
    assert!(html.contains(
        "<p>a</p></td><td colspan=\"1\" rowspan=\"1\"><p><del>5</del><ins>7</ins></p></td>"
    ));
    assert_eq!(text, "  | Name\n  | Size\n  | a\n~ | [-5-]{+7+}\n  | b\n  | 6\n");
    let (_, html, text) = forms(&before, &table("<tr><td>a<td>5<tr><td>c<td>9<tr><td>b<td>6"));
    let cell = "<td data-diff=\"inserted\" colspan=\"1\" rowspan=\"1\"><ins><p>c</p></ins></td>";
    assert!(html.contains(&format!("<tr data-diff=\"inserted\">{cell}")));
    assert_eq!(text, "@@\n  | Size\n  | a\n  | 5\n+ | c\n+ | 9\n  | b\n  | 6\n");
}

#[test]
fn text_has_three_blocks_of_context() {
    let before = "<p>a<p>b<p>c<p>d<p>One old sentence<p>e<p>f<p>g<p>h<p>i<p>j<p>k<p>l";
    let after = "<p>a<p>b<p>c<p>d<p>One new sentence<p>e<p>f<p>g<p>h<p>i<p>j<p>k";
    let (.., text) = forms(before, after);
    let first = "@@\n  b\n  c\n  d\n~ One [-old-]{+new+} sentence\n  e\n  f\n  g\n";
    assert_eq!(text, format!("{first}@@\n  i\n  j\n  k\n- l\n"));
    let (.., text) = forms("<pre>a b\nc d\n</pre>", "<pre>a b\nc e\n</pre>");
    assert_eq!(text, "~ a b\n~ c [-d-]{+e+}\n~ \n");
    let (.., text) = forms("<ul><li>a<blockquote>b</ul>", "<ul><li>a<blockquote>b<br>c</ul>");
    assert_eq!(text, "  * a\n~   > b{+\n~   > c+}\n");
}

#[test]
fn hostile_values_stay_values() {
    let plain = "<p>Some words</p><ul><li>one</ul><table><tr><td>cell</table>";
    for payload in XSS_PAYLOADS {
        let wrapped =
            format!("<ul><li>{payload}</ul><table><tr><td>{payload}</table><h1>{payload}");
        for (before, after) in [(plain, &*wrapped), (*payload, &*wrapped), (plain, *payload)] {
            forms(before, after);
            forms(after, before);
        }
        let document = |value: &str, src: &str, level: u8| {
            let link =
                json!({ "type": "link", "attrs": { "href": format!("/{value}"), "title": value } });
            let text =
                json!({ "type": "text", "text": format!("same words {value}"), "marks": [link] });
            read(&json!({ "type": "doc", "content": [
                { "type": "heading", "attrs": { "level": level }, "content": [text] },
                { "type": "image", "attrs": { "src": src, "alt": value, "title": value } },
                { "type": "orderedList", "attrs": { "type": value }, "content": [
                    { "type": "listItem", "content": [{ "type": "paragraph" }] },
                ] },
            ] }))
        };
        let (hostile, plain) = (document(payload, "a.png", 1), document("x", "a.png", 2));
        check(&hostile, &plain);
        check(&plain, &hostile);
        check(&hostile, &document(&payload.to_uppercase(), "b.png", 1));
    }
    let controls = "\u{1b}[31m\u{202e}";
    let doc = json!({ "type": "doc", "content": [
        { "type": "paragraph", "content": [{ "type": "text", "text": controls }] },
    ] });
    let (before, after) = (Tree::empty(), read(&doc));
    assert_eq!(TreeDiff::between(&before, &after).to_text(), "- \n+ \u{fffd}[31m\u{fffd}\n");
}

#[test]
fn large_diffs_need_a_small_stack() {
    let list = |words: &str| {
        let (start, end) = ("<ul><li>".repeat(49), "</ul>".repeat(49));
        format!("{start}{words}{end}").repeat(20)
    };
    let pairs = [
        (list("a b c d"), list("a b c e")),
        (numbered(20_000, "", "x "), numbered(20_000, "", "y ")),
        (numbered(20_000, "", " "), numbered(20_000, "", " ").chars().rev().collect()),
        (numbered(5_000, "<p>", "x"), numbered(5_000, "<p>", "y")),
    ];
    let start = Instant::now();
    on_stack(512 * 1024, move || {
        for (before, after) in pairs {
            let read = |html: &str| support::from_html(&format!("<p>same words</p>{html}"));
            let (before, after) = (read(&before), read(&after));
            let diff = TreeDiff::between(&before, &after);
            assert!(!diff.is_empty());
            drop((diff.to_json(), diff.to_html(), diff.to_text()));
        }
    });
    assert!(start.elapsed() < Duration::from_mins(1), "took {:?}", start.elapsed());
}

#[test]
fn the_size_of_output_is_limited() {
    let address = "a".repeat(30_000);
    let link =
        |word: &str| format!("<a href={address}>{}", format!("x <b>{word}</b> ").repeat(2_000));
    let (before, after) = (support::from_html(&link("y")), support::from_html(&link("z")));
    let diff = TreeDiff::between(&before, &after);
    assert_eq!(diff.to_json_within(1024 * 1024), None);
    assert_eq!(diff.to_html_within(1024 * 1024), None);
    assert!(diff.to_text().len() < 200_000);
}
