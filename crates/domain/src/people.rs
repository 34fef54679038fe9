//! What users and members are called.

use crate::text::{Invalid, check_length, checked_text, line_of_text};

checked_text! {
    /// An e-mail address, kept as given. Two that differ in case only are the same.
    EmailAddress, |text| {
        check_length(text, 1, 254)?;
        let options = email_address::Options::default()
            .with_minimum_sub_domains(0)
            .without_display_text()
            .without_domain_literal();
        email_address::EmailAddress::parse_with_options(text, options).map(drop).map_err(|_| {
            Invalid::new("invalid_email", "must be an e-mail address, such as ann@example.org")
        })
    }
}

impl EmailAddress {
    /// The form by which addresses are compared.
    pub fn key(&self) -> String {
        self.as_str().to_lowercase()
    }
}

checked_text! {
    /// A user's short name, unique in the installation whatever its case: 1 to 64 characters, no
    /// white space or control characters.
    Username, |text| {
        check_length(text, 1, 64)?;
        if text.chars().any(is_hidden) {
            return Err(Invalid::new(
                "invalid_string",
                "must not contain white space, control characters or others that don't show",
            ));
        }
        Ok(())
    }
}

/// What doesn't show, or turns around what does: two names must not look the same by it.
fn is_hidden(c: char) -> bool {
    let formats = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    formats || c.is_whitespace() || c.is_control()
}

impl Username {
    /// What somebody with this address may be called: what stands before the `@`, and the number
    /// after it from 2 on.
    pub fn from_email(email: &EmailAddress, number: u32) -> Self {
        let local_part = email.as_str().split('@').next().unwrap_or_default();
        let suffix = if number < 2 { String::new() } else { format!("-{number}") };
        let allowed = local_part.chars().filter(|c| !is_hidden(*c));
        let stem: String = allowed.take(64 - suffix.len()).collect();
        Self(stem + &suffix)
    }
}

line_of_text! {
    /// A name that people read: 1 to 255 characters without control characters.
    FullName(1..=255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_what_mail_servers_take() {
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
        assert_eq!(EmailAddress::parse("Ann@Example.ORG").unwrap().key(), "ann@example.org");
    }
}
