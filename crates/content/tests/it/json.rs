//! Serialisation of a tree as JSON, and parsing.

use galley_content::{ContentError, Tree};

use crate::support;

#[test]
fn keys_are_ordered_and_defaults_are_written() {
    let tree =
        support::from_html("<ol><li><a href=x><b>a\"\\\n\u{1}</b></a></ol><img src=a.png alt=12>");
    assert_eq!(
        tree.to_json(),
        "{\"type\":\"doc\",\"content\":[{\"type\":\"orderedList\",\"attrs\":{\"start\":1,\"type\":null},\
         \"content\":[{\"type\":\"listItem\",\"content\":[{\"type\":\"paragraph\",\"content\":[\
         {\"type\":\"text\",\"marks\":[{\"type\":\"link\",\"attrs\":{\"href\":\"x\",\"target\":null,\
         \"rel\":null,\"class\":null,\"title\":null}},{\"type\":\"bold\"}],\"text\":\"a\\\"\\\\ \\u0001\"}\
         ]}]}]},{\"type\":\"image\",\"attrs\":{\"src\":\"a.png\",\"alt\":12,\"title\":null,\
         \"width\":null,\"height\":null}}]}"
    );
}

#[test]
fn our_cases_read_back() {
    for case in support::read_cases(&support::fixtures_dir().join("cases.json")) {
        let tree = support::from_html(&case.html);
        assert_eq!(Tree::from_json(&tree.to_json()), Ok(tree), "{}", case.html);
    }
}

#[test]
fn missing_attributes_get_their_defaults() {
    let json = "{\"type\":\"doc\",\"content\":[{\"type\":\"codeBlock\"},{\"type\":\"heading\"}]}";
    let tree = Tree::from_json(json).expect("a valid tree");
    assert_eq!(tree.to_html(), "<pre><code></code></pre><h1></h1>");
}

#[test]
fn a_highlight_without_a_color_has_null() {
    let tree = support::from_html("<mark>a</mark>");
    assert!(
        tree.to_json().contains("{\"type\":\"highlight\",\"attrs\":{\"color\":null}}"),
        "{tree:?}"
    );
    for color in ["null", "\"\""] {
        let json = tree.to_json().replace("null", color);
        assert_eq!(Tree::from_json(&json).as_ref(), Ok(&tree), "{color}");
    }
    assert_eq!(tree.to_html(), "<p><mark>a</mark></p>");
}

#[test]
fn neighbouring_texts_with_the_same_marks_become_one() {
    let json = "{\"type\":\"doc\",\"content\":[{\"type\":\"paragraph\",\"content\":[\
                {\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]}";
    let tree = Tree::from_json(json).expect("a valid tree");
    assert_eq!(tree, support::from_html("ab"));
}

#[test]
fn a_tree_of_the_greatest_depth_reads_back() {
    let html = format!("{}x", "<blockquote>".repeat(98));
    let tree = support::from_html(&html);
    assert_eq!(Tree::from_json(&tree.to_json()), Ok(tree));
}

#[test]
fn a_deeper_tree_is_too_deep() {
    let quotes = "{\"type\":\"blockquote\",\"content\":[".repeat(100_000);
    let json = format!("{{\"type\":\"doc\",\"content\":[{quotes}");
    assert_eq!(Tree::from_json(&json), Err(ContentError::TooDeep));
    let nested = "{\"type\":\"blockquote\",\"content\":[".repeat(100);
    let closed = "]}".repeat(100);
    let json =
        format!("{{\"type\":\"doc\",\"content\":[{nested}{{\"type\":\"paragraph\"}}{closed}]}}");
    assert_eq!(Tree::from_json(&json), Err(ContentError::TooDeep));
}

#[test]
fn trees_are_send_and_sync() {
    fn assert_send_and_sync<T: Send + Sync>() {}
    assert_send_and_sync::<Tree>();
}

#[test]
fn a_strict_read_rejects_what_the_tree_would_lack_and_names_the_node() {
    for (blocks, node, reason) in [
        (r#"{"type":"paragraph","attrs":{"textAlign":"left"}}"#, vec![0], "\"textAlign\""),
        (r#"{"type":"paragraph"},{"type":"heading","level":2}"#, vec![1], "\"level\""),
        (r#"{"type":"heading","attrs":{"level":2,"id":"a"}}"#, vec![0], "\"id\""),
        (r#"{"type":"horizontalRule","content":[{"type":"text","text":"a"}]}"#, vec![0], "content"),
        (
            r#"{"type":"paragraph","content":[{"type":"hardBreak"},{"type":"text","text":"a",
                "marks":[{"type":"bold"},{"type":"bold"}]}]}"#,
            vec![0, 1],
            "bold twice",
        ),
        (
            r#"{"type":"paragraph","content":[{"type":"text","text":"a",
                "marks":[{"type":"link","attrs":{"href":"/","ping":"x"}}]}]}"#,
            vec![0, 0],
            "\"ping\"",
        ),
        (
            r#"{"type":"paragraph","content":[{"type":"text","text":"a",
                "marks":[{"type":"bold","color":"red"}]}]}"#,
            vec![0, 0],
            "\"color\"",
        ),
    ] {
        let json = format!(r#"{{"type":"doc","content":[{blocks}]}}"#);
        match Tree::from_json_strict(&json).unwrap_err() {
            ContentError::InvalidTree { reason: found, node: at } => {
                assert_eq!(at, node, "{blocks}");
                assert!(found.contains(reason), "{found}");
            }
            other => panic!("{other}"),
        }
    }
    assert!(Tree::from_json_strict(r#"{"type":"doc","version":1,"content":[]}"#).is_err());
    // Null and an empty list count as absent.
    let absent = r#"{"type":"doc","content":[{"type":"paragraph","marks":[],"content":null,
        "attrs":{"id":null}}]}"#;
    assert_eq!(Tree::from_json_strict(absent), Ok(support::from_html("<p></p>")));
}

#[test]
fn a_strict_read_accepts_every_written_tree() {
    for case in support::read_cases(&support::fixtures_dir().join("cases.json")) {
        let tree = support::from_html(&case.html);
        assert_eq!(Tree::from_json_strict(&tree.to_json()), Ok(tree), "{}", case.html);
    }
}

#[test]
fn the_text_of_written_trees_is_compared_without_white_space() {
    let written = |html: &str| support::from_html(html).to_json();
    let same = |a: &str, b: &str| galley_content::have_same_text(&written(a), &written(b));
    assert!(same("<p>a b</p>", "<h1>a<b>b</b></h1><p></p>"));
    assert!(same("<pre>a\n\tb</pre>", "ab"));
    assert!(same("a\"\\b", "<i>a\"</i>\\b"));
    assert!(!same("a\"b", "a\\b"));
    assert!(!same("ab", "abc"));
    assert!(!same("a", "<a href=b>b</a>"));
}
