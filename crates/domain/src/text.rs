//! Validated texts: the rules of each type are checked once, at parsing.

use std::fmt;
use std::str::FromStr;

/// The reason for the rejection of a value: a stable code, and a message that continues the field's
/// name (`must not be empty`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// The code, for programs.
    pub code: &'static str,
    /// The message, for people.
    pub message: String,
}

impl Invalid {
    /// Creates a rejection with this code and message.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Creates the rejection of a text over the limit on its length.
    pub fn too_long(max: usize, unit: &str) -> Self {
        Self::new("too_long", format!("must have at most {max} {unit}"))
    }
}

/// Rejects a text that is no absolute http or https URL, to 2,048 characters, or that has a user or
/// password. `with_user` is the message for the latter.
pub(crate) fn check_http_url(text: &str, with_user: &str) -> Result<(), Invalid> {
    let reject = |message: &str| Err(Invalid::new("invalid_url", message));
    check_length(text, 1, 2_048)?;
    let hidden = |c: char| c.is_control() || c.is_whitespace();
    match url::Url::parse(text) {
        _ if text.contains(hidden) => reject("must not contain white space or control characters"),
        Ok(url)
            if !matches!(url.scheme(), "http" | "https")
                || !text[url.scheme().len()..].starts_with("://") =>
        {
            reject("must be an absolute http or https URL")
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => reject(with_user),
        Ok(_) => Ok(()),
        Err(_) => reject("must be an absolute http or https URL"),
    }
}

/// Rejects a text with fewer characters than `min` or more than `max`.
pub fn check_length(text: &str, min: usize, max: usize) -> Result<(), Invalid> {
    // A character has at least one byte, so most texts need no count of characters.
    if text.len() > max && text.chars().count() > max {
        return Err(Invalid::too_long(max, "characters"));
    }
    if text.len() < min {
        return Err(Invalid::new(
            "too_short",
            if min == 1 {
                "must not be empty".to_owned()
            } else {
                format!("must have at least {min} characters")
            },
        ));
    }
    Ok(())
}

/// Declares a string type whose values passed a check.
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }

        impl $name {
            /// Parses `text`, and rejects it if it breaks the rules of this type.
            pub fn parse(text: impl Into<String>) -> Result<Self, $crate::text::Invalid> {
                let text = text.into();
                let check: fn(&str) -> Result<(), $crate::text::Invalid> = $check;
                $crate::text::check_no_nul(&text)?;
                check(&text)?;
                Ok(Self(text))
            }

            /// Creates a value from the database without a check, as it was checked when it was
            /// written.
            pub fn from_stored(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> String {
                text.0
            }
        }
    };
}
pub(crate) use checked_text;

/// Declares a string type for one line of text: a range of lengths, and no control characters.
macro_rules! line_of_text {
    ($(#[$doc:meta])* $name:ident($min:literal..=$max:literal)) => {
        $crate::text::checked_text! {
            $(#[$doc])* $name, |text| {
                $crate::text::check_length(text, $min, $max)?;
                $crate::text::check_no_control_characters(text)
            }
        }
    };
}
pub(crate) use line_of_text;

/// Rejects NUL, which PostgreSQL can't store in a text.
pub fn check_no_nul(text: &str) -> Result<(), Invalid> {
    if text.contains('\0') {
        return Err(Invalid::new("invalid_string", "must not contain NUL"));
    }
    Ok(())
}

/// Rejects control characters.
pub fn check_no_control_characters(text: &str) -> Result<(), Invalid> {
    if text.chars().any(char::is_control) {
        return Err(Invalid::new("invalid_string", "must not contain control characters"));
    }
    Ok(())
}

checked_text! {
    /// An absolute http(s) URL or a relative reference, to 2,048 characters; may be empty.
    WebReference, |text| {
        check_length(text, 0, 2_048)?;
        if text.is_empty() || is_web_reference(text) {
            return Ok(());
        }
        Err(Invalid::new(
            "invalid_url",
            "must be an absolute http or https URL, or a relative reference",
        ))
    }
}

fn is_web_reference(text: &str) -> bool {
    // URL parsers strip these characters. A reference with them is a mistake or an attempt to evade
    // checks.
    if text.contains(|c: char| c.is_control()) || text.trim() != text {
        return false;
    }
    match url::Url::parse(text) {
        Ok(url) => matches!(url.scheme(), "http" | "https") && url.has_host(),
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            url::Url::parse("http://base.invalid/").is_ok_and(|base| base.join(text).is_ok())
        }
        Err(_) => false,
    }
}

checked_text! {
    /// A text of at most 1,024 characters; may be empty.
    ShortText, |text| check_length(text, 0, 1_024)
}

impl fmt::Display for WebReference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// An origin as browsers send it, such as `https://example.org`: without a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(String);

impl WebOrigin {
    /// Returns the origin's text, in ASCII.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for WebOrigin {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (scheme, host) = text.split_once("://").unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"/?#@*".contains(&byte);
        if matches!(scheme, "http" | "https") && !host.is_empty() && host.bytes().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Invalid::new("invalid_url", "must be an origin such as https://example.org"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_references_are_http_or_relative() {
        for good in [
            "",
            "https://example.org/a?b#c",
            "/a.png",
            "a b.png",
            "../x",
            "//cdn.example/x",
            "?q=1",
            "http://[::1]/",
        ] {
            assert!(WebReference::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            "data:,x",
            "ftp://example.org/",
            " /a",
            "ja\nvascript:x",
            "http://",
            "mailto:a@b",
            "https://exa mple.org",
        ] {
            assert!(WebReference::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn lengths_count_characters() {
        assert!(ShortText::parse("é".repeat(1_024)).is_ok());
        assert_eq!(ShortText::parse("é".repeat(1_025)).unwrap_err().code, "too_long");
    }
}
