//! Diffs of generated pairs of trees restore the tree after exactly, and are safe to render.

use galley_content::{ContentLimits, Tree, TreeDiff};
use serde_json::{Map, Value, json};

use crate::generated::{self, DocumentGenerator};
use crate::support;

/// The number of generated pairs of each kind. `GALLEY_DIFF_PAIRS` sets another one.
const PAIRS: u64 = 700;

fn pairs() -> u64 {
    let given = std::env::var("GALLEY_DIFF_PAIRS").ok().and_then(|count| count.parse().ok());
    given.unwrap_or(PAIRS)
}

/// Applies a diff in the documented JSON format to a document. It panics unless each step fits.
mod applier {
    use super::{Map, Value, json};

    /// Applies steps to the children of a node of this type.
    pub(super) fn apply(children: &[Value], steps: &Value, is_inline: bool) -> Vec<Value> {
        if is_inline { apply_inline(children, steps) } else { apply_blocks(children, steps) }
    }

    fn steps_of(steps: &Value) -> impl Iterator<Item = (&str, &Value, &Map<String, Value>)> {
        steps.as_array().expect("an array of steps").iter().map(|step| {
            let step = step.as_object().expect("a step is an object");
            let keys = ["equal", "delete", "insert", "change", "format"];
            let mut known = keys.into_iter().filter(|key| step.contains_key(*key));
            let key = known.next().expect("a known step");
            assert_eq!(known.next(), None);
            (key, &step[key], step)
        })
    }

    fn apply_blocks(children: &[Value], steps: &Value) -> Vec<Value> {
        let (mut rest, mut result) = (children, Vec::new());
        for (key, value, step) in steps_of(steps) {
            assert_eq!(step.len(), 1);
            match key {
                "equal" => {
                    let (kept, after) = rest.split_at(count(value));
                    result.extend_from_slice(kept);
                    rest = after;
                }
                "delete" => {
                    let deleted = value.as_array().expect("nodes");
                    assert_eq!(&rest[..deleted.len()], &deleted[..], "deleted");
                    rest = &rest[deleted.len()..];
                }
                "insert" => result.extend(value.as_array().expect("nodes").iter().cloned()),
                "change" => {
                    result.push(apply_change(&rest[0], value));
                    rest = &rest[1..];
                }
                other => panic!("{other} among blocks"),
            }
        }
        assert!(rest.is_empty(), "steps for all children");
        result
    }

    fn apply_change(node: &Value, change: &Value) -> Value {
        let mut node = node.clone();
        let to = match &change["type"] {
            Value::Object(types) => {
                assert_eq!(node["type"], types["from"]);
                types["to"].clone()
            }
            same => {
                assert_eq!(&node["type"], same);
                same.clone()
            }
        };
        let mut attrs = node["attrs"].as_object().cloned().unwrap_or_default();
        for (name, values) in change["attrs"].as_object().into_iter().flatten() {
            assert_eq!(attrs.remove(name).as_ref(), values.get("from"));
            assert_ne!(values.get("from"), values.get("to"));
            attrs.extend(values.get("to").map(|to| (name.clone(), to.clone())));
        }
        let is_inline =
            ["paragraph", "heading", "codeBlock"].contains(&to.as_str().expect("a name"));
        let children = node["content"].as_array().cloned().unwrap_or_default();
        let children = match change.get("content") {
            Some(steps) => apply(&children, steps, is_inline),
            None => children,
        };
        let object = node.as_object_mut().expect("an object");
        object.insert("type".to_owned(), to);
        for (key, value, is_empty) in [
            ("attrs", json!(attrs), attrs.is_empty()),
            ("content", json!(children), children.is_empty()),
        ] {
            object.remove(key);
            if !is_empty {
                object.insert(key.to_owned(), value);
            }
        }
        node
    }

    fn count(value: &Value) -> usize {
        let count = value.as_u64().expect("a count");
        assert!(count > 0);
        usize::try_from(count).expect("a count")
    }

    /// Divides inline content into units: UTF-16 code units and line breaks, each with its marks.
    fn units(nodes: &[Value]) -> Vec<(Option<u16>, Vec<Value>)> {
        let units = nodes.iter().flat_map(|node| {
            let marks = node["marks"].as_array().cloned().unwrap_or_default();
            let units: Vec<Option<u16>> = match node["text"].as_str() {
                Some(text) => text.encode_utf16().map(Some).collect(),
                None => vec![None],
            };
            units.into_iter().map(move |unit| (unit, marks.clone()))
        });
        units.collect()
    }

    fn apply_inline(children: &[Value], steps: &Value) -> Vec<Value> {
        let all = units(children);
        let (mut rest, mut result) = (&all[..], Vec::new());
        for (key, value, step) in steps_of(steps) {
            match key {
                "equal" => {
                    let (kept, after) = rest.split_at(count(value));
                    result.extend_from_slice(kept);
                    rest = after;
                }
                "delete" => {
                    let deleted = units(value.as_array().expect("nodes"));
                    assert_eq!(&rest[..deleted.len()], &deleted[..], "deleted");
                    rest = &rest[deleted.len()..];
                }
                "insert" => result.extend(units(value.as_array().expect("nodes"))),
                "format" => {
                    let (kept, after) = rest.split_at(count(value));
                    let list = |key: &str| {
                        step.get(key).and_then(Value::as_array).cloned().unwrap_or_default()
                    };
                    let (remove, add) = (list("remove"), list("add"));
                    assert!(remove.len() + add.len() > 0);
                    for (unit, marks) in kept {
                        let mut marks = marks.clone();
                        assert!(remove.iter().all(|mark| marks.contains(mark)));
                        marks.retain(|mark| !remove.contains(mark));
                        marks.extend(add.iter().cloned());
                        marks.sort_by_key(order);
                        result.push((*unit, marks));
                    }
                    rest = after;
                }
                other => panic!("{other} in inline content"),
            }
        }
        assert!(rest.is_empty(), "steps for all units");
        nodes(&result)
    }

    /// Returns the place of a mark in the schema.
    fn order(mark: &Value) -> usize {
        let names = [
            "link",
            "bold",
            "italic",
            "strike",
            "underline",
            "code",
            "highlight",
            "subscript",
            "superscript",
        ];
        names.iter().position(|name| mark["type"] == *name).expect("a known mark")
    }

    /// Joins units with the same marks to texts.
    fn nodes(units: &[(Option<u16>, Vec<Value>)]) -> Vec<Value> {
        let runs = units.chunk_by(|a, b| a.0.is_some() && b.0.is_some() && a.1 == b.1);
        let nodes = runs.map(|run| {
            let marks = &run[0].1;
            let text: Vec<u16> = run.iter().filter_map(|(unit, _)| *unit).collect();
            let mut node = if text.is_empty() {
                json!({ "type": "hardBreak" })
            } else {
                let text = String::from_utf16(&text).expect("whole characters");
                json!({ "type": "text", "text": text })
            };
            if !marks.is_empty() {
                node["marks"] = json!(marks);
            }
            node
        });
        nodes.collect()
    }
}

/// Checks a diff: the JSON restores the tree after, the HTML has only elements of the schema and
/// of the diff, and a diff of equal trees is one step.
pub(crate) fn check(before: &Tree, after: &Tree) {
    let diff = TreeDiff::between(before, after);
    let json = diff.to_json();
    let steps = support::parse_json(&json);
    let (old, new) = (support::json(before), support::json(after));
    let children = applier::apply(old["content"].as_array().expect("blocks"), &steps, false);
    assert_eq!(json!(children), new["content"], "{json}\nfrom {old}\nto {new}");
    assert_eq!(diff.is_empty(), before == after);
    let html = diff.to_html();
    check_html(&html);
    let text = diff.to_text();
    assert!(text.chars().all(|c| !c.is_control() || "\n\t".contains(c)), "{text:?}");
    if diff.is_empty() {
        assert_eq!(steps, json!([{ "equal": old["content"].as_array().map(Vec::len) }]));
        assert_eq!((html.as_str(), text.as_str()), (&*after.to_html(), ""));
    }
    for max in [json.len() - 1, html.len().saturating_sub(1)] {
        assert!(diff.to_json_within(max).is_none_or(|json| json.len() <= max));
        assert!(diff.to_html_within(max).is_none_or(|html| html.len() <= max));
    }
}

/// Checks that HTML has only elements and attributes of the schema and of diffs.
fn check_html(html: &str) {
    let limits = ContentLimits { tree_depth: 300, blocks_deep: 600, ..ContentLimits::default() };
    let (_, warnings) = Tree::from_html_with_warnings(html, &limits).expect("a document");
    for warning in warnings {
        let is_of_diff = match warning.attribute.as_deref() {
            Some("data-diff") => true,
            None => ["ins", "del", "span"].contains(&&*warning.element),
            Some(_) => false,
        };
        assert!(is_of_diff, "{warning:?} in {html}");
    }
    // The parser closes blocks that stand in inline content, which would change the nesting.
    for parent in ["<ul>", "<ol>", "<tbody>", "<tr>"] {
        for child in ["<ins>", "<del>", "<span"] {
            assert!(!html.contains(&format!("{parent}{child}")), "{html}");
        }
    }
}

/// Edits a document at random places: words, marks, attributes and blocks.
fn edit(numbers: &mut DocumentGenerator, node: &mut Value) {
    let node_type = node["type"].as_str().expect("a type").to_owned();
    edit_attributes(numbers, node);
    match &*node_type {
        "paragraph" | "heading" if numbers.below(8) > 0 => return edit_inline(numbers, node),
        "paragraph" | "heading" | "codeBlock" if numbers.below(8) == 0 => {
            let text = json!([{ "type": "text", "text": "x" }]);
            let content = node.get("content").unwrap_or(&text);
            *node = json!({ "type": "paragraph", "content": content });
        }
        _ => {}
    }
    let Some(children) = node.get_mut("content").and_then(Value::as_array_mut) else { return };
    for child in children.iter_mut().filter(|child| child["type"] != "text") {
        if numbers.below(2) == 0 {
            edit(numbers, child);
        }
    }
    let (at, last) = (numbers.below(children.len() + 1), children.len().saturating_sub(1));
    match (&*node_type, numbers.below(5)) {
        ("doc" | "blockquote" | "tableCell" | "tableHeader", choice) => match choice {
            0 => children.insert(at, numbers.block(1)),
            1 if last > 0 => _ = children.remove(at.min(last)),
            2 if last > 0 => children.swap(0, at.min(last)),
            _ => {}
        },
        ("bulletList" | "orderedList" | "taskList" | "table" | "tableRow", 0 | 1) if last > 0 => {
            children.rotate_left(1);
        }
        _ => {}
    }
}

fn edit_attributes(numbers: &mut DocumentGenerator, node: &mut Value) {
    if numbers.below(3) > 0 {
        return;
    }
    for (name, value) in [
        ("level", json!(1 + numbers.below(6))),
        ("checked", json!(numbers.below(2) == 0)),
        ("colspan", json!(1 + numbers.below(3))),
        ("start", json!(numbers.below(3))),
        ("alt", json!("another")),
    ] {
        if let Some(attribute) = node.pointer_mut(&format!("/attrs/{name}")) {
            *attribute = value;
        }
    }
}

fn edit_inline(numbers: &mut DocumentGenerator, textblock: &mut Value) {
    let Some(children) = textblock.get_mut("content").and_then(Value::as_array_mut) else { return };
    if children.is_empty() {
        return;
    }
    let at = numbers.below(children.len());
    match numbers.below(5) {
        0 => children.insert(at, json!({ "type": "text", "text": numbers.text() })),
        1 => _ = children.remove(at),
        2 => {
            let bold = children[at]["marks"].as_array().is_some_and(Vec::is_empty);
            let link =
                json!([{ "type": "link", "attrs": { "href": numbers.one_of(&["a", "b"]) } }]);
            children[at]["marks"] = if bold { link } else { json!([]) };
        }
        3 if children[at]["type"] == "text" => {
            let text =
                format!("{} 🐟{}", children[at]["text"].as_str().unwrap_or(""), numbers.text());
            children[at]["text"] = json!(text);
        }
        _ => {}
    }
}

pub(crate) fn read(doc: &Value) -> Tree {
    Tree::from_json(&doc.to_string()).unwrap_or_else(|error| panic!("{error}: {doc}"))
}

#[test]
fn diffs_of_random_pairs_are_exact() {
    for seed in 0..pairs() {
        let mut numbers = DocumentGenerator::new(seed);
        let mut html = || {
            let depth = 1 + numbers.below(4);
            support::from_html(&numbers.html(depth))
        };
        let (before, after) = (html(), html());
        check(&before, &after);
    }
}

#[test]
fn diffs_of_edited_copies_are_exact() {
    for seed in 0..pairs() {
        let mut numbers = DocumentGenerator::new(seed);
        let depth = numbers.below(3);
        let before = json!({ "type": "doc", "content": numbers.blocks(depth) });
        let mut after = before.clone();
        for _ in 0..=numbers.below(2) {
            edit(&mut numbers, &mut after);
        }
        check(&read(&before), &read(&after));
    }
}

#[test]
fn diffs_of_edited_html_are_exact() {
    for seed in 0..pairs() {
        let mut numbers = DocumentGenerator::new(seed + 1_000_000);
        let depth = 1 + numbers.below(5);
        let before = support::from_html(&numbers.html(depth));
        let mut after = support::json(&before);
        edit(&mut numbers, &mut after);
        // An edit may leave a place that the schema rejects, such as two paragraphs in a row.
        if let Ok(after) = Tree::from_json(&after.to_string()) {
            check(&before, &after);
            check(&after, &before);
        }
    }
}

#[test]
fn equal_trees_have_one_step() {
    for html in generated::documents().take(500) {
        let (before, after) = (support::from_html(&html), support::from_html(&html));
        check(&before, &after);
    }
}
