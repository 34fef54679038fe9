//! The folding of words: forms that readers take for the same become one term.

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// The limit on bytes of a term.
const TERM_SIZE: usize = 64;

/// The component that folds compatibility forms, case and accents.
#[derive(Debug)]
pub(crate) struct Folder {
    decomposer: DecomposingNormalizerBorrowed<'static>,
    composer: ComposingNormalizerBorrowed<'static>,
}

impl Folder {
    pub(crate) const fn new() -> Self {
        Self {
            decomposer: DecomposingNormalizerBorrowed::new_nfkd(),
            composer: ComposingNormalizerBorrowed::new_nfc(),
        }
    }

    /// Writes the folded form of a word. The form has letters, digits, marks and symbols only; it
    /// may be empty.
    pub(crate) fn fold(&self, word: &str, folded: &mut String) {
        folded.clear();
        let is_plain = word.chars().all(|c| match plain_form(c) {
            Some(plain) => {
                folded.push(plain);
                true
            }
            None => false,
        });
        if !is_plain {
            folded.clear();
            let mut decomposed = String::with_capacity(word.len());
            let mut base = '\0';
            for c in self.decomposer.normalize(word).chars().flat_map(char::to_lowercase) {
                if is_dropped(c, base) {
                    continue;
                }
                if !is_mark_of_letters(c) {
                    base = c;
                }
                match plain_letters(c) {
                    Some(letters) => decomposed.push_str(letters),
                    None => decomposed.push(c),
                }
            }
            folded.push_str(&self.composer.normalize(&decomposed));
        }
        folded.truncate(folded.floor_char_boundary(TERM_SIZE));
    }
}

/// Returns the folded form of an ASCII letter or digit, or of a Russian letter, for which it is
/// found without a normalisation.
fn plain_form(c: char) -> Option<char> {
    match c {
        '0'..='9' | 'a'..='z' | 'а'..='я' => Some(c),
        'A'..='Z' => Some(c.to_ascii_lowercase()),
        'А'..='Я' => char::from_u32(u32::from(c) + 0x20),
        'ё' | 'Ё' => Some('е'),
        _ => None,
    }
}

/// Returns true for the combining marks that Latin, Greek and Cyrillic letters have.
const fn is_mark_of_letters(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns true for a character that no term has: an accent of a Latin or Greek letter, a point of
/// Arabic or Hebrew, and characters that are invisible or no part of words. Marks of other scripts
/// are vowels, or distinguish letters, as in й and が.
fn is_dropped(c: char, base: char) -> bool {
    match c {
        '\u{308}' if base == 'е' => true,
        '\u{300}'..='\u{36f}' => base < '\u{400}',
        '\u{200d}' => !matches!(base, '\u{2000}'..='\u{2fff}' | '\u{1f000}'..='\u{1faff}'),
        _ => is_point(c) || is_invisible(c) || is_ascii_sign(c),
    }
}

/// Returns true for the points of Arabic and Hebrew, which most texts leave out.
const fn is_point(c: char) -> bool {
    matches!(c, '\u{591}'..='\u{5bd}' | '\u{5bf}' | '\u{5c1}' | '\u{5c2}' | '\u{5c4}' | '\u{5c5}'
        | '\u{640}' | '\u{64b}'..='\u{652}' | '\u{670}')
}

/// Returns true for soft hyphens, the marks of directions, and variation selectors.
const fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200c}' | '\u{200e}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Returns true for the signs and spaces of compatibility forms.
const fn is_ascii_sign(c: char) -> bool {
    c.is_ascii() && !c.is_ascii_alphanumeric() || c == '\u{2044}'
}

/// Returns the plain letters for one that has no decomposition.
const fn plain_letters(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ŧ' => "t",
        'ς' => "σ",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_become_one_term() {
        let component = Folder::new();
        let mut folded = String::new();
        for (word, expected) in [
            ("Hafen", "hafen"),
            ("CAFÉ", "cafe"),
            ("cafe\u{301}", "cafe"),
            ("Straße", "strasse"),
            ("STRASSE", "strasse"),
            ("Ærø", "aero"),
            ("Łódź", "lodz"),
            ("İstanbul", "istanbul"),
            ("ıstanbul", "istanbul"),
            ("Ὀδυσσεύς", "οδυσσευσ"),
            ("Ёлка", "елка"),
            ("Йод", "йод"),
            ("が", "が"),
            ("か\u{3099}", "が"),
            ("ｶﾞ", "ガ"),
            ("ＡＢＣ１２", "abc12"),
            ("ﬁn", "fin"),
            ("½", "12"),
            ("كِتَابٌ", "كتاب"),
            ("שָׁלוֹם", "שלום"),
            ("ที่", "ที่"),
            ("हिन्दी", "हिन्दी"),
            ("한국어", "한국어"),
            ("co\u{ad}op", "coop"),
            ("שלום\u{200f}", "שלום"),
            ("\u{feff}word\u{2060}", "word"),
            ("葛\u{e0100}", "葛"),
            ("क\u{94d}\u{200d}ष", "क\u{94d}ष"),
            ("❤\u{fe0f}", "❤"),
            ("👩‍💻", "👩‍💻"),
            ("...", ""),
        ] {
            component.fold(word, &mut folded);
            assert_eq!(folded, expected, "{word}");
            // A term is folded already.
            let once = folded.clone();
            component.fold(&once, &mut folded);
            assert_eq!(folded, once, "{word}");
        }
    }

    #[test]
    fn plain_forms_are_those_of_the_normalisation() {
        let component = Folder::new();
        let (mut alone, mut beside) = (String::new(), String::new());
        for c in ('0'..='я').chain(['ё', 'Ё']).filter(|c| plain_form(*c).is_some()) {
            component.fold(&c.to_string(), &mut alone);
            // The letter beside it has no plain form.
            component.fold(&format!("{c}ß"), &mut beside);
            assert_eq!(format!("{alone}ss"), beside, "{c}");
        }
    }

    #[test]
    fn long_words_end_at_a_character() {
        let component = Folder::new();
        let mut folded = String::new();
        component.fold(&"ж".repeat(100), &mut folded);
        assert_eq!(folded, "ж".repeat(32));
        component.fold(&format!("a{}", "ж".repeat(100)), &mut folded);
        assert_eq!(folded.len(), 63);
    }
}
