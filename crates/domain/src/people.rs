//! Names and e-mail addresses of users and members.

use caseless::Caseless;
use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use unicode_normalization::UnicodeNormalization;

use crate::text::{Invalid, check_length, check_no_control_characters, checked_text};

checked_text! {
    /// An e-mail address, stored as given.
    ///
    /// Two addresses are equal if they differ only in the case of ASCII letters or in the spelling
    /// of an international domain.
    EmailAddress, |text| {
        check_length(text, 1, 254)?;
        let options = email_address::Options::default()
            .with_minimum_sub_domains(0)
            .without_display_text()
            .without_domain_literal();
        let parts = email_address::EmailAddress::parse_with_options(text, options)
            .ok()
            .and_then(|_| text.rsplit_once('@'))
            // Mail programs would decode such a local part to something else.
            .filter(|(local_part, _)| !local_part.contains("=?"))
            .filter(|(_, domain)| ascii_domain(domain).is_some());
        parts.map(drop).ok_or_else(|| {
            Invalid::new(
                "invalid_email",
                "must be an e-mail address such as ann@example.org: up to 64 characters before the \
                 @, and a domain name after it, not an IP address",
            )
        })
    }
}

impl EmailAddress {
    /// Returns the normalised address for comparisons. Other letters keep their case, as such
    /// addresses may be different mailboxes.
    pub fn key(&self) -> String {
        self.with_ascii_domain().to_ascii_lowercase()
    }

    /// Returns the address for mail servers, with an international domain in Punycode.
    pub fn with_ascii_domain(&self) -> String {
        let parts = self.as_str().rsplit_once('@');
        let ascii =
            parts.and_then(|(local_part, domain)| Some((local_part, ascii_domain(domain)?)));
        ascii.map_or_else(
            || self.as_str().to_owned(),
            |(local_part, domain)| format!("{local_part}@{domain}"),
        )
    }
}

/// Returns the ASCII form of a host name, as DNS uses it, or `None` if it is not valid.
fn ascii_domain(domain: &str) -> Option<String> {
    let found = Uts46::new().to_ascii(
        domain.as_bytes(),
        AsciiDenyList::STD3,
        Hyphens::CheckFirstLast,
        DnsLength::Verify,
    );
    let last_is_number = |name: &str| {
        let last = name.rsplit('.').next().unwrap_or_default();
        last.bytes().all(|digit| digit.is_ascii_digit())
    };
    found.ok().filter(|name| !last_is_number(name)).map(|name| name.to_ascii_lowercase())
}

checked_text! {
    /// A user's short name, unique in the installation regardless of case and Unicode spelling: 1
    /// to 64 characters, no white space or control characters.
    Username, |text| {
        check_length(text, 1, 64)?;
        if text.chars().any(is_hidden) {
            return Err(Invalid::new(
                "invalid_string",
                "must not contain white space, control characters or other invisible characters",
            ));
        }
        Ok(())
    }
}

/// Returns true for invisible characters and for ones that change the text direction. Two names
/// must not look the same because of them.
fn is_hidden(c: char) -> bool {
    // Unicode's Default_Ignorable_Code_Point, the empty Braille pattern, and annotation marks.
    let ignorable = matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    );
    ignorable || c.is_whitespace() || c.is_control()
}

impl Username {
    /// Returns the normalised name for comparisons: Unicode's compatibility caseless matching.
    pub fn key(&self) -> String {
        let folded = self.as_str().nfd().default_case_fold();
        folded.nfkd().default_case_fold().nfkd().collect()
    }

    /// Derives a username from an address: the part before the `@`, and `number` as a suffix from 2
    /// on.
    pub fn from_email(email: &EmailAddress, number: u32) -> Self {
        let local_part = email.as_str().split('@').next().unwrap_or_default();
        let suffix = if number < 2 { String::new() } else { format!("-{number}") };
        let allowed = local_part.chars().filter(|c| !is_hidden(*c));
        let stem: String = allowed.take(64 - suffix.len()).collect();
        Self(stem + &suffix)
    }
}

checked_text! {
    /// A name for people: 1 to 255 characters, one of them visible, without control characters or
    /// ones that change the text direction.
    FullName, |text| {
        check_length(text, 1, 255)?;
        check_no_control_characters(text)?;
        if text.chars().any(|c| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')) {
            return Err(Invalid::new(
                "invalid_string",
                "must not contain bidirectional control characters",
            ));
        }
        if text.chars().all(is_hidden) {
            return Err(Invalid::new("too_short", "must contain a visible character"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_email_addresses_parse() {
        for good in
            ["ann@example.org", "owner@localhost", "a.b+c@sub.example.org", "Ann@Example.ORG"]
        {
            assert!(EmailAddress::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "ann",
            "@example.org",
            "ann@",
            "a b@example.org",
            "Ann <ann@example.org>",
            "ann@[127.0.0.1]",
            "ann@127.0.0.1",
            "ann@exa_mple.org",
            "=?utf-8?q?ann?=@example.org",
            "a@b@c",
            "ann@example.org\r\nBcc: all@example.org",
        ] {
            assert!(EmailAddress::parse(bad).is_err(), "{bad:?}");
        }
        for (address, number, name) in [
            ("ann@example.org", 1, "ann".to_owned()),
            ("ann@example.org", 12, "ann-12".to_owned()),
            ("\"a b\"@example.org", 1, "\"ab\"".to_owned()),
            (&format!("{}@example.org", "x".repeat(64)), 2, format!("{}-2", "x".repeat(62))),
        ] {
            let username = Username::from_email(&EmailAddress::parse(address).unwrap(), number);
            assert_eq!(username.as_str(), name);
            assert!(Username::parse(name).is_ok(), "{address}");
        }
        for (address, key) in [
            ("Ann@Example.ORG", "ann@example.org"),
            ("\u{212a}ate@example.org", "\u{212a}ate@example.org"),
            ("J\u{d6}rg@example.org", "j\u{d6}rg@example.org"),
            ("a@B\u{fc}cher.example", "a@xn--bcher-kva.example"),
            ("a@xn--bcher-kva.example", "a@xn--bcher-kva.example"),
            ("a@\u{ff45}xample.org", "a@example.org"),
            ("\"a@b\"@example.org", "\"a@b\"@example.org"),
        ] {
            assert_eq!(EmailAddress::parse(address).unwrap().key(), key, "{address}");
        }
    }

    #[test]
    fn lookalike_usernames_are_equal_or_rejected() {
        let key = |name: &str| Username::parse(name).unwrap().key();
        for (one, other) in [
            ("Owner", "owner"),
            ("jos\u{e9}", "jose\u{301}"),
            ("\u{fb01}x", "FIx"),
            ("Stra\u{df}e", "STRASSE"),
        ] {
            assert_eq!(key(one), key(other), "{one} {other}");
        }
        assert_ne!(key("owner"), key("owners"));
        for hidden in
            ['\u{fe0f}', '\u{3164}', '\u{2800}', '\u{34f}', '\u{17b4}', '\u{200b}', '\u{202e}', ' ']
        {
            assert!(Username::parse(format!("owner{hidden}")).is_err(), "{hidden:?}");
            assert!(FullName::parse(format!("{hidden}{hidden}")).is_err(), "{hidden:?}");
        }
        assert!(FullName::parse("Ann \u{202e}gnp").is_err());
        assert!(FullName::parse("Ann \u{200d} \u{5d0}").is_ok());
    }
}
