//! Generated queries find the same pieces on both engines: those of a simple evaluation of the
//! query on the terms of each text.

use std::collections::BTreeSet;

use galley_search::{Analyzer, Clause, Field, Match, SearchQuery};
use galley_testing::reliability_suite::{report_figure, size};
use galley_testing::{Numbers, TestStore, on_both_engines};
use serde_json::json;

use super::{create, search, slugs};
use crate::service::Service;

/// Words of several scripts. Some differ only in case, accents or compatibility forms.
const WORDS: [&str; 34] = [
    "harbour",
    "Harbour",
    "harbours",
    "hard",
    "ferry",
    "Ferries",
    "town",
    "caf\u{e9}",
    "CAFE",
    "cafe\u{301}",
    "stra\u{df}e",
    "STRASSE",
    "\u{41b}\u{43e}\u{434}\u{43a}\u{430}",
    "\u{43b}\u{43e}\u{434}\u{43a}\u{438}",
    "\u{39f}\u{3b4}\u{3cc}\u{3c2}",
    "\u{6771}\u{4eac}\u{90fd}\u{306b}\u{4f4f}\u{3093}\u{3067}\u{3044}\u{307e}\u{3059}",
    "\u{6211}\u{559c}\u{6b22}\u{8bfb}\u{4e66}",
    "\u{e20}\u{e32}\u{e29}\u{e32}\u{e44}\u{e17}\u{e22}",
    "\u{d55c}\u{ad6d}\u{c5b4}",
    "\u{1f355}",
    "\u{2764}\u{fe0f}",
    "\u{1f469}\u{200d}\u{1f4bb}",
    "\u{1f1e9}\u{1f1ea}",
    "\u{643}\u{650}\u{62a}\u{627}\u{628}",
    "\u{643}\u{62a}\u{627}\u{628}",
    "32.3",
    "can't",
    "don\u{2019}t",
    "example.com",
    "snake_case",
    "\u{ff21}\u{ff22}",
    "\u{fb01}n",
    "co\u{ad}op",
    "x",
];

fn word(numbers: &mut Numbers) -> &'static str {
    WORDS[numbers.below(WORDS.len())]
}

fn text(numbers: &mut Numbers, length: usize) -> String {
    (0..length).map(|_| word(numbers)).collect::<Vec<_>>().join(" ")
}

/// A text of a piece: title, description and content.
struct Sample {
    slug: String,
    fields: [String; 3],
    terms: Vec<Vec<String>>,
}

impl Sample {
    fn new(slug: String, fields: [String; 3]) -> Self {
        let analyzer = Analyzer::default();
        let terms = fields.iter().map(|text| {
            let mut terms = Vec::new();
            analyzer.analyze(text, None, |term| terms.push(term.text.to_owned()));
            terms
        });
        let terms = terms.collect();
        Self { slug, fields, terms }
    }

    fn meets(&self, clause: &Clause) -> bool {
        let (wanted, is_prefix) = match &clause.matched {
            Match::Phrase(terms) => (terms, false),
            Match::Prefix(terms, _) => (terms, true),
        };
        let (last, first) = wanted.split_last().unwrap();
        let is_at = |window: &[String]| {
            let (end, start) = window.split_last().unwrap();
            start == first && (end == last || is_prefix && end.starts_with(last.as_str()))
        };
        let fields = [Field::Title, Field::Description, Field::Content];
        fields.iter().zip(&self.terms).any(|(field, terms)| {
            clause.field.is_none_or(|named| named == *field)
                && terms.windows(wanted.len()).any(is_at)
        })
    }

    fn matches(&self, query: &SearchQuery) -> bool {
        let meets = |clause: &Clause| self.meets(clause) != clause.is_excluded;
        !query.is_empty() && query.clauses().iter().all(meets)
    }
}

/// Returns a query whose clauses are mostly parts of a text.
fn query(numbers: &mut Numbers, samples: &[Sample]) -> String {
    let mut clauses = Vec::new();
    for _ in 0..=numbers.below(3) {
        let sample = &samples[numbers.below(samples.len())];
        let words: Vec<&str> = sample.fields[numbers.below(3)].split(' ').collect();
        let start = numbers.below(words.len());
        let end = words.len().min(start + 1 + numbers.below(4));
        let word = words[start];
        let beginning: String = word.chars().take(1 + numbers.below(3)).collect();
        clauses.push(match numbers.below(10) {
            0..=2 => word.to_owned(),
            3..=4 => format!("\"{}\"", words[start..end].join(" ")),
            5 => format!("{beginning}*"),
            6 => format!("\"{} {beginning}\"*", words[start.saturating_sub(1)]),
            7 => format!("-{word}"),
            8 => format!("{}:{word}", ["title", "description", "content"][numbers.below(3)]),
            _ => format!("-title:\"{}\"", words[start..end].join(" ")),
        });
    }
    clauses.join(" ")
}

/// Compares the hits of `count` queries. Returns the number of hits.
async fn compare(service: &Service, samples: &[Sample], count: u64) -> usize {
    let analyzer = Analyzer::default();
    let mut numbers = Numbers(count);
    let mut hits = 0;
    for _ in 0..count {
        let text = query(&mut numbers, samples);
        let parsed = SearchQuery::parse(&text, &analyzer, None);
        let matching = samples.iter().filter(|sample| sample.matches(&parsed));
        let expected: BTreeSet<String> = matching.map(|sample| sample.slug.clone()).collect();
        let answer = search(service, &text, "&perPage=100&fields=slug").await;
        let found: BTreeSet<String> = slugs(&answer).into_iter().collect();
        assert_eq!(found, expected, "{text:?} as {parsed:?}");
        for hit in answer.body.as_array().unwrap() {
            let highlights = &hit["highlights"];
            let shown = !highlights["title"].is_null()
                || !highlights["description"].is_null()
                || !highlights["content"].as_array().unwrap().is_empty();
            assert!(shown, "{text:?}: {hit}");
        }
        hits += found.len();
    }
    hits
}

async fn add(service: &Service, sample: &Sample) {
    let [title, description, content] = &sample.fields;
    let fields = json!({"title": title, "description": description, "content": content});
    create(service, &sample.slug, fields).await;
}

#[on_both_engines]
async fn generated_queries_find_the_same_pieces_on_both_engines(store: TestStore) {
    let service = Service::start(store).await;
    let mut numbers = Numbers(1);
    let mut samples = Vec::new();
    for number in 0..60 {
        let fields = [text(&mut numbers, 3), text(&mut numbers, 5), text(&mut numbers, 5 + number)];
        samples.push(Sample::new(format!("s{number}"), fields));
    }
    for sample in &samples {
        add(&service, sample).await;
    }
    let count: u64 = size(100, 300, 10_000);
    let hits = compare(&service, &samples, count).await;
    let engine = service.database.engine();
    report_figure(
        &format!("{engine}: {count} generated queries"),
        format!("{hits} hits, 0 differences"),
        "0 differences",
    );
}

#[on_both_engines]
async fn long_texts_are_found_by_all_their_parts(store: TestStore) {
    let service = Service::start(store).await;
    let mut numbers = Numbers(2);
    let long: u64 = size(200_000, 400_000, 2_000_000);
    let long = long as usize;
    let unique: String = (0..long / 8).map(|number| format!("w{number:06} ")).collect();
    let repeated = "a b ".repeat(long / 40) + "end";
    let mixed = text(&mut numbers, long / 12);
    let mut samples = Vec::new();
    for (slug, content) in [("unique", unique), ("repeated", repeated), ("mixed", mixed)] {
        let fields = [text(&mut numbers, 3), text(&mut numbers, 5), content.trim_end().to_owned()];
        samples.push(Sample::new(slug.to_owned(), fields));
    }
    for number in 0..5 {
        let fields = [text(&mut numbers, 3), text(&mut numbers, 5), text(&mut numbers, 30)];
        samples.push(Sample::new(format!("s{number}"), fields));
    }
    for sample in &samples {
        add(&service, sample).await;
    }
    let words = (0..31).map(|number| format!("w{:06}", 15_985 + number)).collect::<Vec<_>>();
    for (query, slug) in [
        (format!("\"{}\"", words.join(" ")), "unique"),
        ("w000001 \"w016000 w016001\" w02*".to_owned(), "unique"),
        ("\"b end\" \"a b a b\"".to_owned(), "repeated"),
    ] {
        assert_eq!(slugs(&search(&service, &query, "").await), [slug], "{query}");
    }
    assert_eq!(slugs(&search(&service, "w000001 -w020000", "").await), [""; 0]);
    let count: u64 = size(10, 20, 200);
    compare(&service, &samples, count).await;
}
