//! The languages whose words are reduced to their stems.

use rust_stemmers::Algorithm;

/// A language with a stemmer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Language(&'static str);

/// The language tags (ISO 639-1), with their stemmers of the Snowball project. The Greek one is
/// left out, as it panics at some words.
const STEMMERS: [(&str, Algorithm); 18] = [
    ("ar", Algorithm::Arabic),
    ("da", Algorithm::Danish),
    ("de", Algorithm::German),
    ("en", Algorithm::English),
    ("es", Algorithm::Spanish),
    ("fi", Algorithm::Finnish),
    ("fr", Algorithm::French),
    ("hu", Algorithm::Hungarian),
    ("it", Algorithm::Italian),
    ("nb", Algorithm::Norwegian),
    ("nl", Algorithm::Dutch),
    ("no", Algorithm::Norwegian),
    ("pt", Algorithm::Portuguese),
    ("ro", Algorithm::Romanian),
    ("ru", Algorithm::Russian),
    ("sv", Algorithm::Swedish),
    ("ta", Algorithm::Tamil),
    ("tr", Algorithm::Turkish),
];

impl Language {
    /// Returns the language of a tag such as `pt-BR`. `None` if it has no stemmer.
    pub fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next().unwrap_or(tag);
        let found = STEMMERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(primary));
        found.map(|(known, _)| Self(known))
    }

    /// Returns all languages.
    #[doc(hidden)]
    pub fn all() -> impl Iterator<Item = Self> {
        STEMMERS.iter().map(|(tag, _)| Self(tag))
    }

    /// Returns its tag.
    pub const fn tag(self) -> &'static str {
        self.0
    }

    /// Returns true if each word and its stem begin with the same letter.
    pub(crate) fn keeps_first_letters(self) -> bool {
        // The Turkish stemmer turns a last d into a t, also if the stem has only this letter.
        !matches!(self.0, "ar" | "ta" | "tr")
    }

    pub(crate) fn algorithm(self) -> Option<Algorithm> {
        STEMMERS.iter().find(|(known, _)| *known == self.0).map(|(_, algorithm)| *algorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_primary_part_of_a_tag_decides() {
        for (tag, found) in [
            ("de", Some("de")),
            ("pt-BR", Some("pt")),
            ("EN_us", Some("en")),
            ("ja", None),
            ("el", None),
            ("deutsch", None),
            ("", None),
        ] {
            assert_eq!(Language::of_tag(tag).map(Language::tag), found, "{tag}");
        }
    }
}
