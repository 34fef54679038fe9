//! Analysed texts, in the forms that the engines store.

use std::collections::HashMap;
use std::fmt::Write;

use crate::analyzer::Analyzer;
use crate::language::Language;
use crate::query::TERMS_LIMIT;
use crate::term_prefix::TermPrefix;

/// The limit on positions in a `tsvector`, which ignores the positions after 16,383.
const POSITIONS_LIMIT: usize = 16_000;

/// The limit on positions of a term in a `tsvector`, which ignores further ones.
const POSITIONS_PER_TERM_LIMIT: usize = 255;

/// The limit on bytes of the terms in a `tsvector`, which has up to a mebibyte with the positions.
const TSVECTOR_SIZE: usize = 512 * 1024;

/// The weights of the fields in a `tsvector`.
const WEIGHTS: [char; 4] = ['A', 'B', 'C', 'D'];

/// A term that no query has, as it lacks a prefix. It separates values of a field, so that no
/// phrase includes terms of two values.
const SEPARATOR: &str = "x";

/// The texts of a document.
#[derive(Debug, Clone, Default)]
pub struct DocumentTexts<'t> {
    /// The title.
    pub title: &'t str,
    /// The description.
    pub description: &'t str,
    /// The content.
    pub content: &'t str,
    /// All other texts.
    pub others: Vec<&'t str>,
}

/// The terms of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnalyzedDocument {
    /// The values of title, description, content, and the others. A value has its terms in order,
    /// separated by spaces.
    fields: [Vec<String>; 4],
}

/// A document in the form of PostgreSQL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tsvectors {
    /// The terms of title and description.
    pub head: String,
    /// All terms. A long text is divided into parts that overlap, so that any phrase of a query is
    /// within one part.
    pub parts: Vec<String>,
}

impl AnalyzedDocument {
    /// Analyses texts.
    pub fn new(analyzer: &Analyzer, language: Option<Language>, texts: &DocumentTexts<'_>) -> Self {
        let terms = |text: &&str| {
            let mut terms = String::with_capacity(text.len());
            analyzer.analyze(text, language, |term| {
                if !terms.is_empty() {
                    terms.push(' ');
                }
                terms.push_str(term.text);
            });
            terms
        };
        let value = |text| vec![terms(&text)];
        let others = texts.others.iter().map(terms).filter(|terms| !terms.is_empty()).collect();
        Self {
            fields: [value(texts.title), value(texts.description), value(texts.content), others],
        }
    }

    /// Returns the columns of FTS5: title, description, content, and the others.
    pub fn fts5_columns(&self, prefix: &TermPrefix) -> [String; 4] {
        let prefix = prefix.to_string();
        self.fields.each_ref().map(|values| {
            let size = values.iter().map(String::len).sum::<usize>();
            let mut column = String::with_capacity(size * 3 / 2);
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    column.push(' ');
                    column.push_str(SEPARATOR);
                }
                for term in value.split_ascii_whitespace() {
                    if !column.is_empty() {
                        column.push(' ');
                    }
                    column.push_str(&prefix);
                    column.push_str(term);
                }
            }
            column
        })
    }

    /// Returns the document in the form of PostgreSQL.
    pub fn tsvectors(&self, prefix: &TermPrefix) -> Tsvectors {
        let mut head = Part::default();
        for (weight, values) in self.weighted().take(2) {
            for term in values.iter().flat_map(|value| value.split_ascii_whitespace()) {
                if head.has_room_for(term) {
                    head.push(term, weight);
                }
            }
            head.position += 1;
        }
        let (mut part, mut parts) = (Part::default(), Vec::new());
        // The terms that the next part repeats.
        let mut last: Vec<&str> = Vec::with_capacity(TERMS_LIMIT);
        for (weight, values) in self.weighted() {
            for value in values {
                last.clear();
                for term in value.split_ascii_whitespace() {
                    if !part.has_room_for(term) {
                        parts.push(part.to_tsvector(prefix));
                        part = Part::default();
                        for term in &last {
                            part.push(term, weight);
                        }
                    }
                    part.push(term, weight);
                    if last.len() + 1 == TERMS_LIMIT {
                        last.remove(0);
                    }
                    last.push(term);
                }
                // No phrase includes terms of two values.
                part.position += 1;
            }
        }
        parts.push(part.to_tsvector(prefix));
        Tsvectors { head: head.to_tsvector(prefix), parts }
    }

    fn weighted(&self) -> impl Iterator<Item = (char, &Vec<String>)> {
        WEIGHTS.into_iter().zip(&self.fields)
    }
}

/// A part of a document for a `tsvector`.
#[derive(Debug, Default)]
struct Part<'t> {
    position: usize,
    size: usize,
    terms: HashMap<&'t str, Vec<(usize, char)>>,
}

impl<'t> Part<'t> {
    fn has_room_for(&self, term: &str) -> bool {
        let count = self.terms.get(term).map_or(0, Vec::len);
        self.position < POSITIONS_LIMIT
            && self.size < TSVECTOR_SIZE
            && count < POSITIONS_PER_TERM_LIMIT
    }

    fn push(&mut self, term: &'t str, weight: char) {
        self.position += 1;
        self.size += term.len();
        self.terms.entry(term).or_default().push((self.position, weight));
    }

    fn to_tsvector(&self, prefix: &TermPrefix) -> String {
        let prefix = prefix.to_string();
        let mut text = String::with_capacity(self.terms.len() * (prefix.len() + 16));
        for (term, positions) in &self.terms {
            text.push_str(if text.is_empty() { "'" } else { " '" });
            text.push_str(&prefix);
            text.push_str(term);
            text.push('\'');
            for (place, (position, weight)) in positions.iter().enumerate() {
                let sign = if place == 0 { ':' } else { ',' };
                write!(text, "{sign}{position}{weight}").expect("texts take all");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(texts: &DocumentTexts<'_>) -> AnalyzedDocument {
        AnalyzedDocument::new(&Analyzer::default(), None, texts)
    }

    /// Returns the terms of a `tsvector` by position.
    fn positions(tsvector: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for entry in tsvector.split(" '").filter(|entry| !entry.is_empty()) {
            let (term, positions) = entry.trim_start_matches('\'').split_once("':").unwrap();
            for position in positions.split(',') {
                let (number, weight) = position.split_at(position.len() - 1);
                found.push((number.parse().unwrap(), format!("{term}{weight}")));
            }
        }
        found.sort();
        found
    }

    #[test]
    fn values_are_apart_in_both_forms() {
        let texts = DocumentTexts {
            title: "Old Town",
            description: "",
            content: "By the sea, by ship.",
            others: vec!["News", "--", "Sea ports"],
        };
        let document = document(&texts);
        let prefix = TermPrefix::new(7, 0);
        assert_eq!(
            document.fts5_columns(&prefix),
            ["7nold 7ntown", "", "7nby 7nthe 7nsea 7nby 7nship", "7nnews x 7nsea 7nports",]
        );
        let Tsvectors { head, parts } = document.tsvectors(&prefix);
        assert_eq!(positions(&head), [(1, "7noldA".to_owned()), (2, "7ntownA".to_owned())]);
        let [part] = parts.as_slice() else { panic!("{parts:?}") };
        let found: Vec<String> =
            positions(part).into_iter().map(|(place, term)| format!("{place}{term}")).collect();
        assert_eq!(
            found.join(" "),
            "17noldA 27ntownA 57nbyC 67ntheC 77nseaC 87nbyC 97nshipC 117nnewsD 137nseaD 147nportsD"
        );
    }

    #[test]
    fn parts_of_long_texts_overlap_and_keep_the_limits() {
        let prefix = TermPrefix::new(7, 0);
        for content in [
            (0..40_000).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" "),
            "a b ".repeat(2_000),
            (0..30_000).map(|number| format!("{number:y<64}")).collect::<Vec<_>>().join(" "),
        ] {
            let document =
                document(&DocumentTexts { content: &content, ..DocumentTexts::default() });
            let Tsvectors { parts, .. } = document.tsvectors(&prefix);
            assert!(parts.len() > 1);
            let words: Vec<&str> = content.split_ascii_whitespace().collect();
            let mut end = 0;
            for part in &parts {
                let found = positions(part);
                assert!(found.len() <= POSITIONS_LIMIT && part.len() < 1 << 20);
                let terms: Vec<&str> =
                    found.iter().map(|(_, term)| &term[2..term.len() - 1]).collect();
                let begin = if end == 0 { 0 } else { end - (TERMS_LIMIT - 1) };
                assert_eq!(terms, words[begin..begin + terms.len()]);
                end = begin + terms.len();
                let mut counts = HashMap::new();
                for term in terms {
                    *counts.entry(term).or_insert(0) += 1;
                }
                assert!(counts.values().all(|count| *count <= POSITIONS_PER_TERM_LIMIT));
            }
            assert_eq!(end, words.len());
        }
    }
}
