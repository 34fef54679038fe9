//! The first letters of terms, by which most words of a text are skipped.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use crate::characters::{is_simple_letter, is_simple_sign};
use crate::fold::Folder;

/// The end of the simple letters.
const END: char = '\u{530}';

/// The first letter of the folded form of each simple letter, by its code. Other characters have
/// the null character.
static FOLDED: LazyLock<Vec<char>> = LazyLock::new(|| {
    let folder = Folder::new();
    let mut folded = String::new();
    let letters = ('\0'..END).map(|c| {
        folder.fold(c.encode_utf8(&mut [0; 4]), &mut folded);
        folded.chars().next().filter(|_| is_simple_letter(c)).unwrap_or_default()
    });
    letters.collect()
});

/// The first bytes of most Cyrillic letters.
const CYRILLIC: RangeInclusive<usize> = 0xd0..=0xd1;

/// The first letters of terms.
#[derive(Debug)]
pub(crate) struct FirstLetters {
    letters: Vec<char>,
    folded: &'static [char],
    /// True for the first bytes of characters at which [`Self::is_start`] may be true.
    bytes: [bool; 256],
}

impl FirstLetters {
    pub(crate) fn new(letters: Vec<char>) -> Self {
        let folded: &[char] = &FOLDED;
        let mut bytes = [false; 256];
        for (byte, first) in bytes.iter_mut().zip(&folded[..0x80]) {
            *byte = letters.contains(first);
        }
        bytes[0xc2..].fill(true);
        let is_cyrillic = |letter: &char| ('\u{400}'..'\u{480}').contains(letter);
        bytes[CYRILLIC].fill(letters.iter().any(is_cyrillic));
        Self { letters, folded, bytes }
    }

    /// Returns false if the folded form of a word begins with another letter.
    pub(crate) fn may_begin(&self, word: &str) -> bool {
        let mut letters = word.chars();
        let first = letters.next().and_then(|c| self.folded(c));
        // A mark after the letter may change it.
        let is_alone = letters.next().is_none_or(is_simple_letter);
        first.is_none_or(|first| !is_alone || self.letters.contains(&first))
    }

    /// Finds the next character that begins a word with one of the letters, or that isn't simple.
    pub(crate) fn find(&self, text: &str, from: usize) -> Option<usize> {
        let may_start = |at: &usize| self.bytes[usize::from(text.as_bytes()[*at])];
        (from..text.len()).filter(may_start).find(|&at| self.is_start(text, at))
    }

    fn is_start(&self, text: &str, at: usize) -> bool {
        let Some(c) = text[at..].chars().next() else { return false };
        let Some(first) = self.folded(c) else { return !is_simple_sign(c) };
        let before = text[..at].chars().next_back();
        self.letters.contains(&first) && !before.is_some_and(is_simple_letter)
    }

    /// Returns the first letter of the folded form of a simple letter.
    fn folded(&self, c: char) -> Option<char> {
        self.folded.get(c as usize).copied().filter(|&first| first != '\0')
    }
}
