//! Highlights: the parts of a text that match a query.

use std::collections::HashMap;
use std::ops::Range;

use crate::analyzer::Analyzer;
use crate::first_letters::FirstLetters;
use crate::language::Language;
use crate::query::{Clause, Field, SearchQuery};

/// The size of a passage in characters.
const PASSAGE_SIZE: usize = 240;

/// The limit on matches of a clause in a text. Further ones are not marked.
const MATCHES_LIMIT: usize = 2_000;

/// The weight of a clause that matches once.
const WEIGHT: usize = 1_000_000;

/// The characters before the first match of a passage.
const LEAD: usize = 60;

/// A part of a text, with the places of its matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Highlight {
    /// The part.
    pub text: String,
    /// The places of matches in `text`, in bytes, in order and without overlaps.
    pub ranges: Vec<Range<usize>>,
}

impl Highlight {
    /// Returns the places in UTF-16 code units, as the strings of JavaScript count.
    pub fn utf16_ranges(&self) -> Vec<Range<usize>> {
        let (mut bytes, mut units) = (0, 0);
        let mut place = |at: usize| {
            units += self.text[bytes..at].encode_utf16().count();
            bytes = at;
            units
        };
        self.ranges.iter().map(|range| place(range.start)..place(range.end)).collect()
    }
}

/// The component that finds the matches of a query.
#[derive(Debug)]
pub struct Highlighter<'a> {
    analyzer: &'a Analyzer,
    language: Option<Language>,
    clauses: Vec<&'a Clause>,
}

/// A match: the number of its clause, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClauseMatch {
    clause: usize,
    range: Range<usize>,
}

impl<'a> Highlighter<'a> {
    /// Creates the highlighter of a query.
    pub fn new(analyzer: &'a Analyzer, language: Option<Language>, query: &'a SearchQuery) -> Self {
        let clauses = query.clauses().iter().filter(|clause| !clause.is_excluded).collect();
        Self { analyzer, language, clauses }
    }

    /// Returns the whole text with its matches, or `None` without any.
    pub fn whole(&self, field: Field, text: &str) -> Option<Highlight> {
        let found = self.find(field, text);
        let ranges = merged(found.iter().map(|found| found.range.clone()));
        (!ranges.is_empty()).then(|| Highlight { text: text.to_owned(), ranges })
    }

    /// Returns up to `count` passages of a text. Those with most words of the query, and with rare
    /// ones, are first.
    pub fn passages(&self, field: Field, text: &str, count: usize) -> Vec<Highlight> {
        let found = self.find(field, text);
        let mut windows = windows(text, &found);
        windows.sort_by_key(|window| (std::cmp::Reverse(window.score), window.range.start));
        let mut chosen: Vec<Window> = Vec::new();
        for window in windows {
            let overlaps = |other: &Window| {
                window.range.start < other.range.end && other.range.start < window.range.end
            };
            if chosen.len() < count && !chosen.iter().any(overlaps) {
                chosen.push(window);
            }
        }
        let passage = |window: Window| {
            let Range { start, end } = window.range;
            let inside = within(&found, start..end).iter().map(|found| found.range.clone());
            // A long match is cut, as the passage is.
            let ranges =
                merged(inside.map(|range| range.start - start..range.end.min(end) - start));
            Highlight { text: text[start..end].to_owned(), ranges }
        };
        chosen.into_iter().map(passage).collect()
    }

    /// Returns the matches, in the order of their starts.
    fn find(&self, field: Field, text: &str) -> Vec<ClauseMatch> {
        let clauses: Vec<_> = self
            .clauses
            .iter()
            .enumerate()
            .filter(|(_, clause)| clause.field.is_none_or(|own| own == field))
            .collect();
        let longest = clauses.iter().map(|(_, clause)| clause.matched.terms().len()).max();
        let Some(longest) = longest else { return Vec::new() };
        let (mut found, mut counts) = (Vec::new(), vec![0; self.clauses.len()]);
        // The last terms, as far as a phrase may need them.
        let mut recent: Vec<(String, (usize, usize))> = Vec::with_capacity(longest + 1);
        let mut spare: Option<String> = None;
        // Most words can match no clause, and are skipped by their first letter.
        let keeps_letters = self.language.is_none_or(Language::keeps_first_letters);
        let terms = clauses.iter().flat_map(|(_, clause)| clause.matched.terms());
        let firsts = FirstLetters::new(terms.filter_map(|term| term.chars().next()).collect());
        let firsts = keeps_letters.then_some(&firsts);
        self.analyzer.analyze_some(text, self.language, firsts, |term| {
            let Some(term) = term else { return recent.clear() };
            if recent.len() == longest {
                let (mut oldest, _) = recent.remove(0);
                oldest.clear();
                spare = Some(oldest);
            }
            let mut reused = spare.take().unwrap_or_default();
            reused.push_str(term.text);
            recent.push((reused, term.range));
            for (number, clause) in &clauses {
                let length = clause.matched.terms().len();
                let Some(start) = recent.len().checked_sub(length) else { continue };
                let tail = &recent[start..];
                let is_met = clause.matched.is_met(tail.iter().map(|(term, _)| term.as_str()));
                if is_met && counts[*number] < MATCHES_LIMIT {
                    counts[*number] += 1;
                    let range = tail[0].1.0..term.range.1;
                    found.push(ClauseMatch { clause: *number, range });
                }
            }
        });
        found.sort_by_key(|found| (found.range.start, found.range.end));
        found
    }
}

/// A candidate for a passage.
#[derive(Debug)]
struct Window {
    range: Range<usize>,
    /// The weight of the clauses that match in it, and the number of matches.
    score: (usize, usize),
}

/// Returns the matches that begin in a range.
fn within(found: &[ClauseMatch], range: Range<usize>) -> &[ClauseMatch] {
    let place = |at: usize| found.partition_point(|other| other.range.start < at);
    &found[place(range.start)..place(range.end)]
}

/// Returns a window for each match, which begins a little before it, at the boundary of a word.
fn windows(text: &str, found: &[ClauseMatch]) -> Vec<Window> {
    let mut counts = HashMap::new();
    for found in found {
        *counts.entry(found.clause).or_insert(0) += 1;
    }
    let mut windows: Vec<Window> = Vec::new();
    for first in found {
        if windows.last().is_some_and(|last| first.range.start < last.range.start + LEAD) {
            continue;
        }
        let range = window(text, first.range.clone());
        let inside = within(found, range.clone());
        let mut clauses: Vec<_> = inside.iter().map(|found| found.clause).collect();
        clauses.sort_unstable();
        clauses.dedup();
        // A rare word of the query says more about the passage than a frequent one.
        let weight = clauses.iter().map(|clause| WEIGHT / counts[clause]).sum();
        let score = (weight, inside.len());
        windows.push(Window { range, score });
    }
    windows
}

fn window(text: &str, matched: Range<usize>) -> Range<usize> {
    let before = text[..matched.start].char_indices().rev().take(LEAD);
    let start = before.map(|(at, _)| at).last().unwrap_or(matched.start);
    let start = if start == 0 {
        0
    } else {
        // The word that is cut is left out.
        let cut = &text[start..matched.start];
        cut.find(char::is_whitespace).map_or(start, |at| start + at)
    };
    let start = start + (text[start..].len() - text[start..].trim_start().len());
    let after = text[start..].char_indices().nth(PASSAGE_SIZE).map(|(at, _)| start + at);
    let end = match after {
        None => text.len(),
        Some(end) => {
            let least = matched.end.min(end);
            text[least..end].rfind(char::is_whitespace).map_or(end, |at| least + at)
        }
    };
    start..end
}

/// Returns the ranges in order. Overlapping ones become one.
fn merged(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut ranges: Vec<_> = ranges.collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(highlight: &Highlight) -> String {
        let mut text = String::new();
        let mut end = 0;
        for range in &highlight.ranges {
            text.push_str(&highlight.text[end..range.start]);
            text.push_str(&format!("[{}]", &highlight.text[range.clone()]));
            end = range.end;
        }
        text + &highlight.text[end..]
    }

    fn whole(query: &str, text: &str, language: Option<&str>) -> Option<String> {
        let (analyzer, language) = (Analyzer::default(), language.and_then(Language::of_tag));
        let query = SearchQuery::parse(query, &analyzer, language);
        let highlighter = Highlighter::new(&analyzer, language, &query);
        highlighter.whole(Field::Title, text).as_ref().map(marked)
    }

    #[test]
    fn matches_are_marked_as_they_are_written() {
        for (query, text, language, expected) in [
            ("cafe", "Le Café du port", None, Some("Le [Café] du port")),
            ("\"old town\"", "Old, old town; old hat", None, Some("Old, [old town]; old hat")),
            ("har*", "Harbour, hard, shard", None, Some("[Harbour], [hard], shard")),
            ("run", "Running runs", Some("en"), Some("[Running] [runs]")),
            ("a -b", "a b", None, Some("[a] b")),
            ("title:a description:b", "a b", None, Some("[a] b")),
            ("都", "東京都に", None, Some("東京[都]に")),
            ("\u{1f355}", "Pizza \u{1f355}!", None, Some("Pizza [\u{1f355}]!")),
            ("\"a b\" \"b c\"", "a b c", None, Some("[a b c]")),
            ("x", "y", None, None),
        ] {
            assert_eq!(whole(query, text, language).as_deref(), expected, "{query}");
        }
    }

    #[test]
    fn the_passage_with_most_words_of_the_query_is_first() {
        let filler = "Lorem ipsum dolor sit amet consectetur. ".repeat(20);
        let text =
            format!("{filler}The ferry left. {filler}A ferry in the harbour. {filler}Harbour!");
        let analyzer = Analyzer::default();
        let query = SearchQuery::parse("ferry harbour", &analyzer, None);
        let highlighter = Highlighter::new(&analyzer, None, &query);
        let passages = highlighter.passages(Field::Content, &text, 2);
        assert_eq!(passages.len(), 2);
        assert!(marked(&passages[0]).contains("A [ferry] in the [harbour]."), "{passages:?}");
        assert!(marked(&passages[1]).contains("The [ferry] left."), "{passages:?}");
        for passage in &passages {
            assert!(passage.text.chars().count() <= PASSAGE_SIZE, "{passage:?}");
            assert!(text.contains(&passage.text) && !passage.text.starts_with(' '));
        }
    }

    #[test]
    fn passages_of_long_texts_are_short() {
        let analyzer = Analyzer::default();
        let phrase = format!("\"{}\" rare", "a ".repeat(31));
        for text in [
            "a b. ".repeat(400_000) + "rare",
            ("a ".to_owned() + &"x".repeat(80) + " b ").repeat(20_000) + "rare",
            "a ".repeat(1_000_000) + "rare",
            format!("a {} b rare", "- ".repeat(1_000_000)),
        ] {
            for query in ["a \"b a\" b* rare", "\"a b\" rare", &phrase] {
                let query = SearchQuery::parse(query, &analyzer, None);
                let highlighter = Highlighter::new(&analyzer, None, &query);
                let passages = highlighter.passages(Field::Content, &text, 3);
                assert!(passages.iter().any(|passage| passage.text.contains("rare")));
                for passage in passages {
                    assert!(passage.text.chars().count() <= PASSAGE_SIZE, "{passage:?}");
                    assert!(!passage.ranges.is_empty());
                }
            }
        }
    }

    #[test]
    fn places_are_counted_as_javascript_does() {
        let text = "\u{1f355} é café".to_owned();
        let start = text.find("café").unwrap();
        let highlight = Highlight { ranges: vec![0..4, start..text.len()], text };
        assert_eq!(highlight.utf16_ranges(), [0..2, 5..9]);
    }
}
