//! The analyser, which splits a text into terms.

use std::fmt;
use std::ops::Range;

use icu_properties::CodePointSetData;
use icu_properties::CodePointSetDataBorrowed;
use icu_properties::props::ExtendedPictographic;
use icu_segmenter::options::WordBreakInvariantOptions;
use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed};
use rust_stemmers::Stemmer;

use crate::characters::{is_separator, is_simple_letter, is_simple_sign};
use crate::first_letters::FirstLetters;
use crate::fold::Folder;
use crate::language::Language;

/// The component that splits texts into terms: words by the rules of Unicode, and emoji. Words of
/// languages without spaces, such as Chinese, Japanese and Thai, are those of dictionaries.
///
/// The neural models of ICU for Thai take 2.4 µs a byte, 60 times as long as the dictionary.
pub struct Analyzer {
    segmenter: WordSegmenterBorrowed<'static>,
    pictographs: CodePointSetDataBorrowed<'static>,
    folder: Folder,
}

/// A term of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term<'a> {
    /// The folded word, or its stem.
    pub text: &'a str,
    /// The place of the word in the text, in bytes.
    pub range: (usize, usize),
}

impl fmt::Debug for Analyzer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Analyzer").finish_non_exhaustive()
    }
}

impl Default for Analyzer {
    fn default() -> Self {
        Self {
            segmenter: WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()),
            pictographs: CodePointSetData::new::<ExtendedPictographic>(),
            folder: Folder::new(),
        }
    }
}

impl Analyzer {
    /// Calls `take` with each term of a text. Words are reduced to the stems of `language`. A text
    /// gives the same terms wherever it is a part of a longer one, except for languages without
    /// spaces.
    pub fn analyze(&self, text: &str, language: Option<Language>, mut take: impl FnMut(Term<'_>)) {
        self.analyze_some(text, language, None, |term| term.into_iter().for_each(&mut take));
    }

    /// Like [`Analyzer::analyze`], but skips words that begin with none of `firsts`. For them, it
    /// calls `take` with `None`.
    pub(crate) fn analyze_some(
        &self,
        text: &str,
        language: Option<Language>,
        firsts: Option<&FirstLetters>,
        mut take: impl FnMut(Option<Term<'_>>),
    ) {
        let stemmer = language.and_then(Language::algorithm).map(Stemmer::create);
        let mut folded = String::new();
        self.each_word(text, firsts, |range| {
            let Some(range) = range else { return take(None) };
            let word = &text[range.clone()];
            if word.is_empty() {
                return;
            }
            if firsts.is_some_and(|firsts| !firsts.may_begin(word)) {
                return take(None);
            }
            self.folder.fold(word, &mut folded);
            if folded.is_empty() {
                return;
            }
            let range = (range.start, range.end);
            let stem = stemmer.as_ref().map(|stemmer| stemmer.stem(&folded));
            let stem = stem.as_deref().filter(|stem| !stem.is_empty());
            take(Some(Term { text: stem.unwrap_or(&folded), range }));
        });
    }

    /// Writes the folded words of a text as they are typed, without stems.
    pub(crate) fn folded(&self, word: &str) -> String {
        let mut folded = String::new();
        self.folder.fold(word, &mut folded);
        folded
    }

    /// Calls `take` with the place of each word and emoji, and with empty places. Parts between
    /// spaces are independent. Parts in which no word begins with one of `firsts` are skipped, for
    /// which it calls `take` with `None`: the matches in English texts are then found in half the
    /// time.
    fn each_word(
        &self,
        text: &str,
        firsts: Option<&FirstLetters>,
        mut take: impl FnMut(Option<Range<usize>>),
    ) {
        let bytes = text.as_bytes();
        let next = |end| match firsts {
            Some(firsts) => firsts.find(text, end),
            None => Some(end).filter(|&end| end < text.len()),
        };
        let mut end = 0;
        while let Some(found) = next(end) {
            let space = bytes[end..found].iter().rposition(u8::is_ascii_whitespace);
            let start = space.map_or(end, |at| end + at + 1);
            if text[end..start].contains(is_simple_letter) {
                take(None);
            }
            let space = bytes[found..].iter().position(u8::is_ascii_whitespace);
            end = space.map_or(text.len(), |at| found + at + 1);
            self.each_word_of_part(&text[start..end], |range| {
                take(Some(start + range.start..start + range.end));
            });
        }
    }

    /// Calls `take` with the places in a text without spaces. If it has simple characters only, the
    /// words are runs of letters and digits, which are found ten times as fast as by the rules of
    /// Unicode.
    fn each_word_of_part(&self, part: &str, mut take: impl FnMut(Range<usize>)) {
        let bytes = part.as_bytes();
        if part.is_ascii() {
            let words = bytes.split(|byte| !byte.is_ascii_alphanumeric());
            words.for_each(|word| take(place(bytes, word)));
        } else if part.chars().all(|c| is_simple_letter(c) || is_simple_sign(c)) {
            let words = part.split(|c: char| !is_simple_letter(c));
            words.for_each(|word| take(place(bytes, word.as_bytes())));
        } else {
            self.each_word_of_unicode(part, take);
        }
    }

    fn each_word_of_unicode(&self, text: &str, mut take: impl FnMut(Range<usize>)) {
        let mut start = 0;
        for (end, kind) in self.segmenter.segment_str(text).iter_with_word_type() {
            let segment = &text[start..end];
            if kind.is_word_like() {
                // Unicode keeps words with dots, apostrophes and underscores together.
                for word in segment.split(is_separator).filter(|word| !word.is_empty()) {
                    take(place(text.as_bytes(), word.as_bytes()));
                }
            } else if segment.chars().any(|c| self.is_symbol(c)) {
                take(start..end);
            }
            start = end;
        }
    }

    /// Returns true for emoji, and for the letters of flags.
    fn is_symbol(&self, c: char) -> bool {
        !c.is_ascii() && self.pictographs.contains(c) || matches!(c, '\u{1f1e6}'..='\u{1f1ff}')
    }
}

/// Returns the place of a part of a text.
fn place(text: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str, language: Option<&str>) -> Vec<String> {
        let mut terms = Vec::new();
        let language = language.map(|tag| Language::of_tag(tag).unwrap());
        Analyzer::default().analyze(text, language, |term| {
            assert!(!text[term.range.0..term.range.1].is_empty());
            terms.push(term.text.to_owned());
        });
        terms
    }

    #[test]
    fn a_text_is_split_into_its_words() {
        for (text, expected) in [
            (
                "The quick (\u{201c}brown\u{201d}) fox can\u{2019}t jump 32.3 feet, right?",
                "the quick brown fox can t jump 32 3 feet right",
            ),
            ("l'homme example.com snake_case a:b", "l homme example com snake case a b"),
            ("東京都に住んでいます", "東京 都 に 住 んで いま す"),
            ("我喜欢读书", "我 喜欢 读书"),
            ("ภาษาไทย", "ภาษา ไทย"),
            ("I \u{2764}\u{fe0f} \u{1f355}!", "i \u{2764} \u{1f355}"),
            (
                "\u{1f469}\u{200d}\u{1f4bb}\u{1f1e9}\u{1f1ea}",
                "\u{1f469}\u{200d}\u{1f4bb} \u{1f1e9}\u{1f1ea}",
            ),
            ("C++ \u{2014} # * $ \u{a0} \u{3002}", "c"),
            ("", ""),
        ] {
            assert_eq!(terms(text, None).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn words_are_reduced_to_the_stems_of_the_language() {
        for (language, text, expected) in [
            ("en", "Running runs libraries", "run run librari"),
            ("de", "Häuser Haus", "haus haus"),
            ("fr", "continuellement continuer", "continuel continu"),
            ("ru", "книги книга", "книг книг"),
        ] {
            assert_eq!(terms(text, Some(language)).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn words_of_simple_characters_are_those_of_unicode() {
        let analyzer = Analyzer::default();
        let signs = "aZ09_.,:;'\"-+/ \n\t\r\u{b}\u{c}\u{1}#@()\u{c0}\u{e9}\u{df}\u{17f}\u{1c5}\u{24f}\
            \u{451}\u{416}\u{481}\u{48a}\u{52f}\u{2014}\u{2019}\u{201c}\u{2026}\u{ab}\u{2024}";
        let signs: Vec<char> = signs.chars().collect();
        let mut numbers = 1_u32;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                numbers = numbers.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let place = (numbers >> 16) as usize % signs.len();
                text.push(signs[place]);
            }
            let (mut fast, mut by_rules) = (Vec::new(), Vec::new());
            let fill =
                |range: Option<Range<usize>>| fast.extend(range.filter(|one| !one.is_empty()));
            analyzer.each_word(&text, None, fill);
            analyzer.each_word_of_unicode(&text, |range| by_rules.push(range));
            assert_eq!(fast, by_rules, "{text:?}");
            let text = format!("\u{e20}{text} \u{e20}");
            let (mut fast, mut by_rules) = (Vec::new(), Vec::new());
            let fill =
                |range: Option<Range<usize>>| fast.extend(range.filter(|one| !one.is_empty()));
            analyzer.each_word(&text, None, fill);
            analyzer.each_word_of_unicode(&text, |range| by_rules.push(range));
            assert_eq!(fast, by_rules, "{text:?}");
        }
    }

    #[test]
    fn a_text_of_two_mebibytes_is_analysed() {
        for (sample, count) in [
            ("word ", 419_430),
            ("ภาษาไทย", 199_728),
            ("東京都に住んでいます", 489_335),
            ("\u{1f355}", 524_288),
            ("e\u{301}", 1),
            ("\0", 0),
            ("a.", 1_048_576),
        ] {
            let text = sample.repeat(2 * 1024 * 1024 / sample.len());
            let mut found = 0;
            Analyzer::default().analyze(&text, None, |_| found += 1);
            assert_eq!(found, count, "{sample:?}");
        }
    }
}
