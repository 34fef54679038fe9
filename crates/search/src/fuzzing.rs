//! Invariants for any query and text, checked by a fuzz target and by a test with some odd inputs.

use std::ops::Range;

use crate::analyzer::Analyzer;
use crate::document::{AnalyzedDocument, DocumentTexts};
use crate::first_letters::FirstLetters;
use crate::highlight::{Highlight, Highlighter};
use crate::language::Language;
use crate::query::{Field, Match, SearchQuery};
use crate::term_prefix::TermPrefix;

/// The limit on bytes of a term. A stem may be longer than its word by an ending.
const TERM_SIZE: usize = 72;

/// Checks an input: its first byte chooses the language, its first line is the query, and the other
/// lines are the text.
///
/// The engines accept each query: its terms have no signs of their syntaxes. The places of terms
/// and of highlights are in order, and at the boundaries of characters.
pub fn search(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else { return };
    let languages: Vec<_> = [None].into_iter().chain(Language::all().map(Some)).collect();
    let language = languages[usize::from(choice) % languages.len()];
    let input = String::from_utf8_lossy(bytes);
    let (query, text) = input.split_once('\n').unwrap_or((&input, &input));
    let analyzer = Analyzer::default();
    let mut end = 0;
    analyzer.analyze(text, language, |term| {
        let (from, to) = term.range;
        assert!(from >= end && to > from, "{:?} in {text:?}", term.range);
        assert!(text.is_char_boundary(from) && text.is_char_boundary(to));
        end = to;
        check_term(term.text);
    });
    let texts = DocumentTexts { title: query, content: text, ..DocumentTexts::default() };
    let document = AnalyzedDocument::new(&analyzer, language, &texts);
    let prefix = TermPrefix::new(1, 0);
    document.fts5_columns(&prefix).iter().flat_map(|column| column.split(' ')).for_each(|term| {
        assert!(term.is_empty() || term.starts_with("1n"), "{term:?}");
    });
    assert!(!document.tsvectors(&prefix).parts.is_empty());
    let parsed = SearchQuery::parse(query, &analyzer, language);
    assert_eq!(SearchQuery::parse(query, &analyzer, language), parsed);
    for clause in parsed.clauses() {
        clause.matched.terms().iter().for_each(|term| check_term(term));
        if let Match::Prefix(_, stem) = &clause.matched {
            check_term(stem);
        }
    }
    check_first_letters(&analyzer, text, language, &parsed);
    let highlighter = Highlighter::new(&analyzer, language, &parsed);
    for field in [Field::Title, Field::Content] {
        highlighter.whole(field, text).iter().for_each(check_highlight);
        let passages = highlighter.passages(field, text, 3);
        assert!(passages.len() <= 3);
        for passage in &passages {
            check_highlight(passage);
            assert!(text.contains(&passage.text));
        }
    }
}

fn check_term(term: &str) {
    assert!(!term.is_empty() && term.len() <= TERM_SIZE, "{term:?}");
    let is_sign = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() || c.is_whitespace();
    assert!(!term.contains(is_sign), "{term:?}");
}

/// Checks that no term with a first letter of the query is skipped.
fn check_first_letters(
    analyzer: &Analyzer,
    text: &str,
    language: Option<Language>,
    query: &SearchQuery,
) {
    if !language.is_none_or(Language::keeps_first_letters) {
        return;
    }
    let terms = query.clauses().iter().flat_map(|clause| clause.matched.terms());
    let letters: Vec<char> = terms.filter_map(|term| term.chars().next()).collect();
    let firsts = FirstLetters::new(letters.clone());
    let found = |firsts: Option<&FirstLetters>| {
        let mut found = Vec::new();
        analyzer.analyze_some(text, language, firsts, |term| {
            let wanted = term.filter(|term| term.text.starts_with(&letters[..]));
            found.extend(wanted.map(|term| (term.text.to_owned(), term.range)));
        });
        found
    };
    assert_eq!(found(Some(&firsts)), found(None), "{letters:?} in {text:?}");
}

fn check_highlight(highlight: &Highlight) {
    let Highlight { text, ranges } = highlight;
    assert!(!ranges.is_empty());
    let mut end = 0;
    for Range { start, end: to } in ranges {
        assert!(*start >= end && to > start && text.get(*start..*to).is_some(), "{highlight:?}");
        end = *to;
    }
    let units = text.encode_utf16().count();
    assert!(highlight.utf16_ranges().iter().all(|range| range.end <= units));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_inputs_keep_the_invariants() {
        let languages = u8::try_from(Language::all().count()).expect("the languages are few");
        let check = |input: &[u8]| {
            (0..=languages).for_each(|choice| super::search(&[&[choice], input].concat()));
        };
        for input in [
            "",
            "a*\na b c",
            "\"a b\"* -c\na b c",
            "title:\"x\" 'y' \\\"\nx ' y \\ \"",
            "\u{1f469}\u{200d}\u{1f4bb}\u{1f1e9}\n\u{1f1e9}\u{1f1ea}\u{1f469}\u{200d}\u{1f4bb}",
            "ﬃ İ ß\nﬃ İ ẞ ǅ",
            "\u{300}\u{fe0f}\u{ad}\n\u{300} a\u{300}\u{fe0f}\u{ad}",
            "都*\n東京都",
            "\u{e33}\nน้ำ",
            "ισαισα* ίσα\nισαισα ίσα",
            "a B è ж\nab ba (a) «b» x-a 東a éa жa a\u{301} ＡＢ æ Жж ёж Èa",
            "東\na東",
            "t\ndündüm",
            "è\néa b È",
            "й е\nйод ёж Иод и\u{306}од еж\u{308}",
        ] {
            check(input.as_bytes());
        }
        check(&[0xff, 0xc3, b'\n', 0xc3, 0x28, 0xf0, 0x9f]);
        super::search(&[]);
    }
}
