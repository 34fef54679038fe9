//! The keys of variants for the languages of sources.

use galley_domain::variant::VariantKey;

/// Returns the form in which languages are compared: in lower case, with `-` for `_`.
pub(crate) fn language_form(key: &VariantKey) -> String {
    key.in_lower_case().replace('_', "-")
}

/// Returns the key of a language's new variant. A locale such as `pt_BR` becomes a language tag,
/// and a longer name such as `Simplified` a word in lower case.
pub(crate) fn variant_key(language: &str) -> Result<VariantKey, String> {
    VariantKey::parse(language)
        .or_else(|_| VariantKey::parse(language.replace('_', "-")))
        .or_else(|_| VariantKey::parse(language.to_ascii_lowercase().replace('-', "_")))
        .map_err(|invalid| format!("the language {language:?} {invalid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_languages_become_keys() {
        for (language, key) in [
            ("de", "de"),
            ("pt-BR", "pt-BR"),
            ("pt_BR", "pt-BR"),
            ("de_ch", "de_ch"),
            ("Portuguese", "portuguese"),
            ("Simplified-Chinese", "simplified_chinese"),
        ] {
            assert_eq!(variant_key(language).unwrap().as_str(), key);
        }
        assert!(variant_key("\u{e9}").is_err());
    }
}
