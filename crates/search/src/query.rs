//! Queries: `words`, `"phrases"`, `prefix*`, `-excluded` and `title:word`. Each text is a query.

use std::fmt::Write;

use crate::analyzer::Analyzer;
use crate::language::Language;
use crate::term_prefix::TermPrefix;

/// The limit on terms of a query. Further ones are ignored.
pub(crate) const TERMS_LIMIT: usize = 32;

/// A field of a piece that a query may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The title.
    Title,
    /// The description.
    Description,
    /// The text.
    Content,
}

/// The names of fields, with those of columns in FTS5 and weights in `tsvector`.
const FIELDS: [(Field, &str, char); 3] = [
    (Field::Title, "title", 'A'),
    (Field::Description, "description", 'B'),
    (Field::Content, "content", 'C'),
];

/// The terms of a clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// The terms one after another; a word is a phrase of one term.
    Phrase(Vec<String>),
    /// The same, where the last term is the beginning of one. The other form of the last term is
    /// its stem. An unfinished word may have a stem that is no beginning: `happine*` does not match
    /// "happiness" (`happi`). Without a language there are no stems.
    Prefix(Vec<String>, String),
}

/// A clause of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clause {
    /// The field in which it matches; `None` for all.
    pub field: Option<Field>,
    /// True if pieces that match are left out.
    pub is_excluded: bool,
    /// The terms.
    pub matched: Match,
}

/// A query. All clauses must match, except for the excluded ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchQuery {
    clauses: Vec<Clause>,
}

/// A clause as it is written.
struct Written<'a> {
    field: Option<Field>,
    is_excluded: bool,
    is_prefix: bool,
    text: &'a str,
}

impl SearchQuery {
    /// Parses a query. Words without letters, digits and emoji are ignored.
    pub fn parse(text: &str, analyzer: &Analyzer, language: Option<Language>) -> Self {
        let mut clauses: Vec<Clause> = Vec::new();
        let (mut rest, mut left) = (text, TERMS_LIMIT);
        while left > 0
            && let Some(written) = next(&mut rest)
        {
            let Some(matched) = terms(&written, left, analyzer, language) else { continue };
            left -= matched.terms().len();
            let Written { field, is_excluded, .. } = written;
            let clause = Clause { field, is_excluded, matched };
            if !clauses.contains(&clause) {
                clauses.push(clause);
            }
        }
        Self { clauses }
    }

    /// Returns true if no clause finds anything.
    pub fn is_empty(&self) -> bool {
        self.clauses.iter().all(|clause| clause.is_excluded)
    }

    /// Returns the clauses.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// Returns the required clauses.
    pub fn required(&self) -> impl Iterator<Item = &Clause> {
        self.clauses.iter().filter(|clause| !clause.is_excluded)
    }

    /// Returns the clause that texts with all words in a row meet, as they are more relevant.
    /// `None` for a query of one clause, or with fields.
    pub fn phrase(&self) -> Option<Clause> {
        let required: Vec<&Clause> = self.required().collect();
        let (last, others) = required.split_last()?;
        let is_phrase = |clause: &&Clause| matches!(clause.matched, Match::Phrase(_));
        let has_fields = required.iter().any(|clause| clause.field.is_some());
        if others.is_empty() || has_fields || !others.iter().all(is_phrase) {
            return None;
        }
        let terms = required.iter().flat_map(|clause| clause.matched.terms()).cloned().collect();
        let matched = match &last.matched {
            Match::Phrase(_) => Match::Phrase(terms),
            Match::Prefix(_, stem) => Match::Prefix(terms, stem.clone()),
        };
        Some(Clause { field: None, is_excluded: false, matched })
    }

    /// Returns the query of FTS5. The columns are named as the fields.
    ///
    /// The rank by BM25 counts the words in a row as one more phrase, which is rare.
    pub fn to_fts5(&self, prefix: &TermPrefix) -> String {
        let (excluded, required): (Vec<_>, Vec<_>) =
            self.clauses.iter().partition(|clause| clause.is_excluded);
        let join = |clauses: Vec<&Clause>, operator: &str| {
            let clauses: Vec<_> =
                clauses.into_iter().map(|clause| clause.to_fts5(prefix)).collect();
            format!("({})", clauses.join(operator))
        };
        let mut query = join(required, " AND ");
        if let Some(phrase) = self.phrase() {
            query = format!("({query} OR {})", phrase.to_fts5(prefix));
        }
        if !excluded.is_empty() {
            write!(query, " NOT {}", join(excluded, " OR ")).expect("texts take all");
        }
        query
    }

    /// Returns the query of type `tsquery`. The weights are A, B and C for the fields.
    pub fn to_tsquery(&self, prefix: &TermPrefix) -> String {
        let clauses = self.clauses.iter().map(|clause| {
            let matched = clause.to_tsquery(prefix);
            if clause.is_excluded { format!("!{matched}") } else { matched }
        });
        clauses.collect::<Vec<_>>().join(" & ")
    }

    /// Returns the query of type `tsquery` that any clause meets, for the rank of a match.
    pub fn to_ranking_tsquery(&self, prefix: &TermPrefix) -> String {
        let required = self.required().map(|clause| clause.to_tsquery(prefix));
        required.collect::<Vec<_>>().join(" | ")
    }
}

impl Clause {
    fn weight(&self) -> &'static str {
        match self.field {
            None => "",
            Some(Field::Title) => "A",
            Some(Field::Description) => "B",
            Some(Field::Content) => "C",
        }
    }

    /// Returns the clause as a query of FTS5, without its exclusion.
    pub fn to_fts5(&self, prefix: &TermPrefix) -> String {
        let column = FIELDS.iter().find(|(field, ..)| Some(*field) == self.field);
        let column = column.map_or_else(String::new, |(_, name, _)| format!("{name} : "));
        let phrase = |terms: &[String], sign: &str| {
            let terms: Vec<_> = terms.iter().map(|term| format!("{prefix}{term}")).collect();
            format!("{column}\"{}\"{sign}", terms.join(" "))
        };
        match &self.matched {
            Match::Phrase(terms) => phrase(terms, ""),
            Match::Prefix(terms, stem) => match terms.last() {
                Some(last) if last != stem => {
                    format!("({} OR {})", phrase(terms, " *"), phrase(&with_last(terms, stem), ""))
                }
                _ => phrase(terms, " *"),
            },
        }
    }

    /// Returns the clause as a query of type `tsquery`, without its exclusion.
    pub fn to_tsquery(&self, prefix: &TermPrefix) -> String {
        let weight = self.weight();
        let phrase = |terms: &[String], last_is_prefix: bool| {
            let mut text = String::new();
            for (place, term) in terms.iter().enumerate() {
                let sign = if last_is_prefix && place + 1 == terms.len() { "*" } else { "" };
                let flags = if sign.is_empty() && weight.is_empty() { "" } else { ":" };
                let follows = if place == 0 { "" } else { " <-> " };
                write!(text, "{follows}'{prefix}{term}'{flags}{sign}{weight}")
                    .expect("texts take all");
            }
            text
        };
        let matched = match &self.matched {
            Match::Phrase(terms) => phrase(terms, false),
            Match::Prefix(terms, stem) => match terms.last() {
                Some(last) if last != stem => {
                    format!("{} | {}", phrase(terms, true), phrase(&with_last(terms, stem), false))
                }
                _ => phrase(terms, true),
            },
        };
        format!("({matched})")
    }
}

impl Match {
    /// Returns the terms as the query has them.
    pub(crate) fn terms(&self) -> &[String] {
        match self {
            Self::Phrase(terms) | Self::Prefix(terms, _) => terms,
        }
    }

    /// Returns true for the terms of a match, of which there are as many as in the query.
    pub(crate) fn is_met<'a>(&self, found: impl ExactSizeIterator<Item = &'a str>) -> bool {
        let last = self.terms().len().saturating_sub(1);
        found.zip(self.terms()).enumerate().all(|(place, (found, term))| match self {
            Self::Prefix(_, stem) if place == last => found.starts_with(term) || found == stem,
            _ => found == term,
        })
    }
}

/// Returns the terms with another last one.
fn with_last(terms: &[String], last: &str) -> Vec<String> {
    let before = terms.len().saturating_sub(1);
    terms[..before].iter().cloned().chain([last.to_owned()]).collect()
}

/// Takes the next clause of a text.
fn next<'a>(rest: &mut &'a str) -> Option<Written<'a>> {
    let mut text = rest.trim_start();
    if text.is_empty() {
        return None;
    }
    let is_excluded = text.strip_prefix('-').is_some_and(|after| !after.starts_with('-'));
    if is_excluded {
        text = &text[1..];
    }
    let mut field = None;
    for (named, name, _) in FIELDS {
        let after = text.strip_prefix(name).and_then(|after| after.strip_prefix(':'));
        if let Some(after) = after.filter(|after| !after.starts_with(char::is_whitespace)) {
            (field, text) = (Some(named), after);
        }
    }
    let (written, after) = match text.strip_prefix(is_quote) {
        // The quote may be missing at the end.
        Some(phrase) => phrase.split_once(is_quote).unwrap_or((phrase, "")),
        None => text.split_at(text.find(char::is_whitespace).unwrap_or(text.len())),
    };
    let is_quoted = text.starts_with(is_quote);
    let after_star = after.strip_prefix('*').filter(|_| is_quoted);
    let is_prefix = after_star.is_some() || !is_quoted && written.ends_with('*');
    *rest = after_star.unwrap_or(after);
    Some(Written { field, is_excluded, is_prefix, text: written })
}

/// Returns true for a quote, also for one that phones and word processors type.
const fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}' | '\u{300c}' | '\u{300d}')
}

/// Returns the terms of a clause; `None` if it has none.
fn terms(
    written: &Written<'_>,
    limit: usize,
    analyzer: &Analyzer,
    language: Option<Language>,
) -> Option<Match> {
    let mut terms = Vec::new();
    let mut last = (0, 0);
    analyzer.analyze(written.text, language, |term| {
        if terms.len() < limit {
            terms.push(term.text.to_owned());
            last = term.range;
        }
    });
    let stem = terms.last()?.clone();
    if !written.is_prefix {
        return Some(Match::Phrase(terms));
    }
    // The stem of an unfinished word may be longer than what the finished word has.
    let typed = analyzer.folded(&written.text[last.0..last.1]);
    Some(Match::Prefix(with_last(&terms, &typed), stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(text: &str, language: Option<&str>) -> (String, String) {
        let language = language.and_then(Language::of_tag);
        let query = SearchQuery::parse(text, &Analyzer::default(), language);
        let prefix = TermPrefix::new(7, 0);
        if query.is_empty() {
            return Default::default();
        }
        (query.to_fts5(&prefix), query.to_tsquery(&prefix))
    }

    #[test]
    fn each_text_is_a_query() {
        for (text, fts5, tsquery) in [
            (
                "Harbour town",
                r#"(("7nharbour" AND "7ntown") OR "7nharbour 7ntown")"#,
                "('7nharbour') & ('7ntown')",
            ),
            (
                "old town har* -x",
                r#"(("7nold" AND "7ntown" AND "7nhar" *) OR "7nold 7ntown 7nhar" *) NOT ("7nx")"#,
                "('7nold') & ('7ntown') & ('7nhar':*) & !('7nx')",
            ),
            ("har* town", r#"("7nhar" * AND "7ntown")"#, "('7nhar':*) & ('7ntown')"),
            ("\"old town\"", r#"("7nold 7ntown")"#, "('7nold' <-> '7ntown')"),
            ("\u{201e}old town\u{201c}", r#"("7nold 7ntown")"#, "('7nold' <-> '7ntown')"),
            ("har*", r#"("7nhar" *)"#, "('7nhar':*)"),
            (
                "a -b -\"c d\"",
                r#"("7na") NOT ("7nb" OR "7nc 7nd")"#,
                "('7na') & !('7nb') & !('7nc' <-> '7nd')",
            ),
            (
                "title:Hafen description:\"am See\" content:x*",
                r#"(title : "7nhafen" AND description : "7nam 7nsee" AND content : "7nx" *)"#,
                "('7nhafen':A) & ('7nam':B <-> '7nsee':B) & ('7nx':*C)",
            ),
            ("can't", r#"("7ncan 7nt")"#, "('7ncan' <-> '7nt')"),
            ("\"open end", r#"("7nopen 7nend")"#, "('7nopen' <-> '7nend')"),
            ("\"old to\"*", r#"("7nold 7nto" *)"#, "('7nold' <-> '7nto':*)"),
            ("a a A", r#"("7na")"#, "('7na')"),
            ("title: x", r#"(("7ntitle" AND "7nx") OR "7ntitle 7nx")"#, "('7ntitle') & ('7nx')"),
            (
                "a OR b) NOT",
                r#"(("7na" AND "7nor" AND "7nb" AND "7nnot") OR "7na 7nor 7nb 7nnot")"#,
                "('7na') & ('7nor') & ('7nb') & ('7nnot')",
            ),
            ("--a", r#"("7na")"#, "('7na')"),
            ("-a", "", ""),
            ("", "", ""),
            (" \t\"\" * - -- \" ' \\ ; : ( ) { } ^ + ~", "", ""),
        ] {
            assert_eq!(forms(text, None), (fts5.to_owned(), tsquery.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_prefix_matches_the_stem_of_a_finished_word() {
        let (fts5, tsquery) = forms("running*", Some("en"));
        assert_eq!(fts5, r#"(("7nrunning" * OR "7nrun"))"#);
        assert_eq!(tsquery, "('7nrunning':* | '7nrun')");
    }

    #[test]
    fn long_queries_are_cut() {
        let words: Vec<_> = (0..10_000).map(|number| format!("w{number}")).collect();
        let text = words.join(" ");
        let query = SearchQuery::parse(&text, &Analyzer::default(), None);
        assert_eq!(query.clauses().len(), TERMS_LIMIT);
        let query = SearchQuery::parse(&format!("\"{text}\""), &Analyzer::default(), None);
        let [Clause { matched: Match::Phrase(terms), .. }] = query.clauses() else { panic!() };
        assert_eq!(terms.len(), TERMS_LIMIT);
    }
}
