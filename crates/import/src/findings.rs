//! The findings that the report of an import lists for its sources.

use std::collections::{BTreeMap, HashSet};

use galley_content::{ConversionEffect, ConversionWarning, DocumentPart, Tree};
use serde::Serialize;

/// The group of a finding in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FindingGroup {
    /// Sources, or parts of them, that were not imported.
    LeftOut,
    /// Sources whose pieces were not published.
    Unpublished,
    /// Values that the source doesn't have, and that were assumed.
    Assumed,
    /// Values that the source doesn't have.
    Missing,
    /// Parts of the content that were not kept.
    Lost,
    /// Parts that were kept unchanged, and that don't work without the source.
    #[serde(rename = "dangling")]
    Unresolved,
}

impl FindingGroup {
    /// Returns the title of the group.
    pub fn title(self) -> &'static str {
        match self {
            Self::LeftOut => "Left out",
            Self::Unpublished => "Unpublished",
            Self::Assumed => "Assumed",
            Self::Missing => "Missing",
            Self::Lost => "Lost from the contents",
            Self::Unresolved => "Kept in the contents as written; check them",
        }
    }
}

/// A finding in one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportFinding {
    pub(crate) group: FindingGroup,
    /// The kind, as a plural that follows a count.
    pub(crate) what: String,
    pub(crate) count: u64,
    /// The addresses or names concerned.
    pub(crate) details: Vec<String>,
}

impl ImportFinding {
    fn new(group: FindingGroup, what: impl Into<String>) -> Self {
        Self { group, what: what.into(), count: 1, details: Vec::new() }
    }

    pub(crate) fn assumed(what: &str) -> Self {
        Self::new(FindingGroup::Assumed, what)
    }

    pub(crate) fn missing(what: &str) -> Self {
        Self::new(FindingGroup::Missing, what)
    }

    pub(crate) fn left_out(what: impl Into<String>) -> Self {
        Self::new(FindingGroup::LeftOut, what)
    }

    pub(crate) fn unpublished(what: impl Into<String>) -> Self {
        Self::new(FindingGroup::Unpublished, what)
    }

    pub(crate) fn unresolved(what: &str) -> Self {
        Self::new(FindingGroup::Unresolved, what)
    }

    /// Sets the number of occurrences.
    pub(crate) fn times(self, count: usize) -> Self {
        Self { count: count as u64, ..self }
    }

    /// Creates the finding of a conversion warning: part of an HTML text that the tree lacks.
    pub(crate) fn lost(loss: &ConversionWarning) -> Self {
        let element = &loss.element;
        let what = match (&loss.attribute, &loss.property) {
            (_, Some(property)) => format!("{property} in the style of <{element}>"),
            (Some(attribute), None) => format!("{attribute} of <{element}>"),
            (None, None) if loss.effect == ConversionEffect::Unwrapped => {
                format!("<{element}>, except its contents")
            }
            (None, None) if loss.effect == ConversionEffect::Moved => {
                format!("the place of <{element}> in a list item that has no text before it")
            }
            (None, None) => format!("<{element}>"),
        };
        Self { count: loss.count, ..Self::new(FindingGroup::Lost, what) }
    }
}

const RELATIVE_IMAGES: &str = "images at relative addresses";
const RELATIVE_LINKS: &str = "links at relative addresses";
const FROM_ROOT: &str = "links and images relative to the site's root";
/// Images of a WordPress or Ghost site that were not brought along.
pub(crate) const UPLOADS: &str = "images that stay at the site's address";
const ANCHORS: &str = "links to anchors that the piece lacks";
const FOOTNOTES: &str = "footnotes, which stay as text";
const SHORTCODES: &str = "shortcodes or template tags, which stay as text";

/// Finds the parts of a content that don't work without its source.
pub(crate) fn in_content(tree: &Tree, is_markdown: bool, findings: &mut Vec<ImportFinding>) {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut anchors = Vec::new();
    let mut headings = HashSet::new();
    tree.visit_parts(|part| match part {
        DocumentPart::Heading(text) => {
            headings.insert(slug(&text));
        }
        DocumentPart::Image(src) if is_relative(&src) => {
            found.entry(RELATIVE_IMAGES).or_default().push(src);
        }
        DocumentPart::Image(src) if is_from_root(&src) => {
            found.entry(FROM_ROOT).or_default().push(src);
        }
        DocumentPart::Link(href) => match href.strip_prefix('#') {
            Some("") => {}
            Some(anchor) => anchors.push(anchor.to_owned()),
            None if is_relative(href) => {
                found.entry(RELATIVE_LINKS).or_default().push(href.to_owned());
            }
            None if is_from_root(href) => {
                found.entry(FROM_ROOT).or_default().push(href.to_owned());
            }
            None => {}
        },
        DocumentPart::Text(text) if is_markdown => {
            found.entry(FOOTNOTES).or_default().extend(footnotes(text));
            found.entry(SHORTCODES).or_default().extend(shortcodes(text));
        }
        DocumentPart::Image(_) | DocumentPart::Text(_) => {}
    });
    // Sites generate anchors from headings.
    anchors.retain(|anchor| !headings.contains(anchor));
    found.insert(ANCHORS, anchors.into_iter().map(|anchor| format!("#{anchor}")).collect());
    for (what, details) in found {
        if !details.is_empty() {
            let finding = ImportFinding::unresolved(what).times(details.len());
            findings.push(ImportFinding { details, ..finding });
        }
    }
}

/// Finds the parts of a Markdown text that the tree represents differently. Returns the text
/// without the ids of headings (`# Title {#id}`), which would become part of their texts.
pub(crate) fn in_markdown(text: &str, findings: &mut Vec<ImportFinding>) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut fence: Option<&str> = None;
    let mut ids = Vec::new();
    let (mut notes, mut references) = (Vec::new(), HashSet::new());
    for line in text.split_inclusive('\n') {
        let start = line.trim_start_matches(' ');
        let marker = ["```", "~~~"].into_iter().find(|marker| start.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            (None, None) => {
                let note = start.starts_with("[^").then(|| start.split_once("]:")).flatten();
                let body = match note {
                    Some((name, body)) => {
                        notes.push(format!("{name}]"));
                        body
                    }
                    None => line,
                };
                references.extend(footnotes(body));
                if let Some((title, id)) = heading_id(line) {
                    ids.push(id.to_owned());
                    kept.push_str(title);
                    kept.push('\n');
                    continue;
                }
            }
            _ => {}
        }
        kept.push_str(line);
    }
    if !ids.is_empty() {
        let finding = ImportFinding::new(FindingGroup::Lost, "{#id} of headings").times(ids.len());
        findings.push(ImportFinding { details: ids, ..finding });
    }
    let (used, unused): (Vec<_>, Vec<_>) =
        notes.into_iter().partition(|note| references.contains(note));
    if !used.is_empty() {
        let what = "links of footnotes, which become numbers and a list";
        findings.push(ImportFinding::new(FindingGroup::Lost, what).times(used.len()));
    }
    if !unused.is_empty() {
        let finding = ImportFinding::new(FindingGroup::Lost, "footnotes without a reference");
        findings.push(ImportFinding { details: unused.clone(), ..finding.times(unused.len()) });
    }
    kept
}

/// Splits a heading such as `## Title {#id}`.
fn heading_id(line: &str) -> Option<(&str, &str)> {
    let is_heading = line.trim_start_matches(' ').starts_with('#');
    let inner = line.trim_end().strip_suffix('}').filter(|_| is_heading)?;
    let (title, id) = inner.rsplit_once("{#")?;
    let is_id = id.starts_with(|c: char| !c.is_whitespace()) && !id.contains(['{', '}']);
    (is_id && title.ends_with(char::is_whitespace)).then(|| (title.trim_end(), id))
}

/// Returns the anchor that sites generate from a heading.
fn slug(heading: &str) -> String {
    let mut slug = String::with_capacity(heading.len());
    for c in heading.trim().chars().flat_map(char::to_lowercase) {
        match c {
            c if c.is_alphanumeric() || c == '_' || c == '-' => slug.push(c),
            c if c.is_whitespace() => slug.push('-'),
            _ => {}
        }
    }
    slug
}

/// Returns true if an address is neither absolute nor relative to the site's root.
fn is_relative(address: &str) -> bool {
    let scheme = address.split(['/', '?', '#']).next().unwrap_or_default();
    !address.starts_with('/') && !scheme.contains(':') && !address.is_empty()
}

/// Returns true if an address is relative to the site's root.
fn is_from_root(address: &str) -> bool {
    address.starts_with('/') && !address.starts_with("//")
}

/// Adds a finding for a cover whose address doesn't work without the source.
pub(crate) fn in_cover(address: &str, findings: &mut Vec<ImportFinding>) {
    let what = match address {
        address if is_relative(address) => RELATIVE_IMAGES,
        address if is_from_root(address) => FROM_ROOT,
        _ => return,
    };
    findings.push(ImportFinding {
        details: vec![address.to_owned()],
        ..ImportFinding::unresolved(what)
    });
}

/// Returns the references to footnotes, such as `[^1]`, and the notes themselves, `[^1]:`.
fn footnotes(text: &str) -> impl Iterator<Item = String> {
    text.match_indices("[^").filter_map(|(start, _)| {
        let end = text[start..].find(']')?;
        let name = &text[start + 2..start + end];
        let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
        is_name.then(|| text[start..=start + end].to_owned())
    })
}

/// Returns shortcodes of Zola and Hugo, and tags of Liquid: `{{ name(…) }}`, `{{< name >}}`, `{%
/// name %}`.
fn shortcodes(text: &str) -> impl Iterator<Item = String> {
    ["{{", "{%"].into_iter().flat_map(|open| text.match_indices(open)).filter_map(
        |(start, open)| {
            let close = if open == "{{" { "}}" } else { "%}" };
            let end = text[start..].find(close)?;
            let inner = text[start + 2..start + end].trim_start_matches(['<', '%', '-', '/', ' ']);
            let is_name = inner.starts_with(|c: char| c.is_ascii_alphabetic());
            is_name.then(|| text[start..start + end + 2].to_owned())
        },
    )
}

#[cfg(test)]
mod tests {
    use galley_content::ContentLimits;

    use super::*;

    fn found(markdown: &str) -> Vec<(String, Vec<String>)> {
        let tree = Tree::from_markdown(markdown, &ContentLimits::default()).unwrap();
        let mut findings = Vec::new();
        in_content(&tree, true, &mut findings);
        findings.into_iter().map(|finding| (finding.what, finding.details)).collect()
    }

    fn one(what: &str, details: &[&str]) -> Vec<(String, Vec<String>)> {
        vec![(what.to_owned(), details.iter().map(|&one| one.to_owned()).collect())]
    }

    #[test]
    fn heading_ids_are_removed_from_the_text() {
        let text = "# One {#one}\n## Two \\{#two}\n```\n# Three {#three}\n```\n### Four{#four}\n# Five {# five}\n";
        let mut findings = Vec::new();
        let kept = in_markdown(text, &mut findings);
        assert_eq!(kept, text.replacen(" {#one}", "", 1));
        assert_eq!((findings.len(), &findings[0].details[..]), (1, &["one".to_owned()][..]));
        findings.clear();
        in_markdown("A[^1] b\n\n[^1]: Note\n```\n[^2]: no\n```\n", &mut findings);
        assert_eq!((findings.len(), findings[0].count), (1, 1));
        findings.clear();
        in_markdown("## A {#a .b}\n\n[^u]: Lost\n", &mut findings);
        let whats: Vec<_> = findings.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(whats, ["{#id} of headings", "footnotes without a reference"]);
    }

    #[test]
    fn content_that_depends_on_its_source_is_reported() {
        let images =
            "![a](img/a.png)\n\n![b](/b.png)\n\n![c](https://x.org/c.png)\n\n![d](./d.png)\n";
        let mut expected = one(RELATIVE_IMAGES, &["img/a.png", "./d.png"]);
        expected.extend(one(FROM_ROOT, &["/b.png"]));
        assert_eq!(found(images), expected);
        let links = "[a](#the-end) [b](#gone) [c](#)\n\n## The **end**\n";
        assert_eq!(found(links), one(ANCHORS, &["#gone"]));
        let links = "[a](../b.md#x) [b](@/c.md) [c](https://x.org/d.md) [d](e/)\n";
        assert_eq!(found(links), one(RELATIVE_LINKS, &["../b.md#x", "@/c.md", "e/"]));
        let notes = "One[^1] `[^2]` [^ 3] two[^4]\n\n[^1]: Note\n";
        assert_eq!(found(notes), one(FOOTNOTES, &["[^4]"]));
        let tags =
            "{{ youtube(id=1) }} {{< figure >}} {% include a.html %} {{ 1 + 1 }} `{{ code() }}`\n";
        assert_eq!(
            found(tags),
            one(SHORTCODES, &["{{ youtube(id=1) }}", "{{< figure >}}", "{% include a.html %}"])
        );
    }
}
