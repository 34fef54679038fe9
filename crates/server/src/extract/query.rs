//! Parsing of the query, with all issues collected.
//!
//! [`crate::extract::known_parameters`] rejects unknown parameters. An empty value counts as
//! absent.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use galley_api_types::problem::{Issue, Step};
use galley_application::Error;
use galley_domain::time::MalformedTime;
use galley_domain::variant::VariantRef;
use galley_domain::{Invalid, Timestamp};
use percent_encoding::percent_decode_str;

use crate::app::App;
use crate::describe::arguments;
use crate::problem::Problem;

/// The parameters of a query, and the issues so far.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    path: String,
    pairs: Vec<(String, String)>,
    issues: Vec<Issue>,
}

impl FromRequestParts<App> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        Ok(Self::new(parts.uri.path(), parts.uri.query().unwrap_or_default()))
    }
}

arguments! { Query: query; }

impl Query {
    /// Parses the query of a request to `path`.
    pub(crate) fn new(path: &str, query: &str) -> Self {
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned();
        let mut read = Self {
            path: path.to_owned(),
            pairs: pairs.filter(|(_, value)| !value.is_empty()).collect(),
            issues: Vec::new(),
        };
        for pair in query.split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if percent_decode_str(value).decode_utf8().is_err() {
                read.add_issue(name, &Invalid::new("invalid_string", "must be UTF-8"));
            }
        }
        let with_nul = read.pairs.iter().filter(|(_, value)| value.contains('\0'));
        let names: Vec<_> = with_nul.map(|(name, _)| name.clone()).collect();
        for name in names {
            read.add_issue(&name, &Invalid::new("invalid_string", "must not contain NUL"));
        }
        read
    }

    /// Returns all values of a parameter.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.pairs.iter().filter(|(known, _)| known == name).map(|(_, value)| &**value).collect()
    }

    /// Returns the value of a parameter that may occur once.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let values = self.all(name);
        match values[..] {
            [] => None,
            [value] => Some(value.to_owned()),
            _ => {
                self.add_issue(name, &Invalid::new("repeated", "must be given only once"));
                None
            }
        }
    }

    /// Parses a boolean: `true`, `false`, `1` or `0` in any case. If absent, it is false.
    pub(crate) fn boolean(&mut self, name: &str) -> bool {
        self.optional_boolean(name).unwrap_or(false)
    }

    /// Parses a boolean without a default.
    pub(crate) fn optional_boolean(&mut self, name: &str) -> Option<bool> {
        match self.text(name)?.to_ascii_lowercase().as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => {
                self.add_issue(name, &Invalid::new("invalid_type", "must be true or false"));
                None
            }
        }
    }

    /// Parses a decimal number from `min` to `max`.
    pub(crate) fn integer(&mut self, name: &str, min: i64, max: i64) -> Option<i64> {
        let text = self.text(name)?;
        match whole_number(&text).filter(|number| (min..=max).contains(number)) {
            Some(number) => Some(number),
            None => {
                let message = format!("must be a whole number from {min} to {max}");
                self.add_issue(name, &Invalid::new("invalid_number", message));
                None
            }
        }
    }

    /// Parses a time by `parse`.
    pub(crate) fn time(
        &mut self,
        name: &str,
        parse: fn(&str) -> Result<Timestamp, MalformedTime>,
    ) -> Option<Timestamp> {
        let text = self.text(name)?;
        match parse(&text) {
            Ok(time) => Some(time),
            Err(malformed) => {
                // In a query, a plus sign stands for a space.
                let invalid = match parse(&text.replace(' ', "+")) {
                    Ok(_) => Invalid::new("invalid_date", "must have its + written as %2B"),
                    Err(_) => malformed.into(),
                };
                self.add_issue(name, &invalid);
                None
            }
        }
    }

    /// Parses one of the words of `choices`, and returns its meaning.
    pub(crate) fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(name)?;
        let found = choices.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            let message = format!("must be one of {}", words.join(", "));
            self.add_issue(name, &Invalid::new("invalid_enum_value", message));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// Parses a text with rules of its own.
    pub(crate) fn parsed<T: FromStr<Err = Invalid>>(&mut self, name: &str) -> Option<T> {
        let parsed = self.text(name)?.parse();
        parsed.map_err(|invalid| self.add_issue(name, &invalid)).ok()
    }

    /// Parses the required `id`. A malformed one counts as an unknown resource.
    pub(crate) fn id<T: FromStr>(&mut self) -> RequestedId<T> {
        self.named_id("id")
    }

    /// Parses a required identifier. A malformed one counts as an unknown resource.
    pub(crate) fn named_id<T: FromStr>(&mut self, name: &str) -> RequestedId<T> {
        let text = self.text(name);
        if text.is_none() && self.issues.is_empty() {
            self.add_issue(name, &Invalid::new("required", "is required"));
        }
        RequestedId(text.and_then(|text| text.parse().ok()))
    }

    /// Parses the `variant` in which pieces are requested. A malformed one counts as an unknown
    /// resource.
    pub(crate) fn variant(&mut self) -> Option<RequestedId<VariantRef>> {
        self.text("variant").map(|text| RequestedId(text.parse().ok()))
    }

    /// Records an issue of a parameter.
    pub(crate) fn add_issue(&mut self, name: &str, invalid: &Invalid) {
        let path = vec![Step::Field(name.to_owned())];
        // One issue for each parameter: others would follow from the first.
        if self.issues.iter().all(|issue| issue.path != path) {
            self.issues.push(Issue::new(path, invalid));
        }
    }

    /// Returns the issues, to be reported with those of the body.
    pub(crate) fn into_issues(self) -> Vec<Issue> {
        self.issues
    }

    /// Rejects the request if there are issues.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        Error::reject_issues(std::mem::take(&mut self.issues))
    }

    /// Returns the URI of the same request at another position, which the parameter `name` states.
    pub(crate) fn uri_with(&self, name: &str, value: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (given, text) in &self.pairs {
            if !["page", "lastId", "lastOrder", "cursor", "after"].contains(&given.as_str()) {
                query.append_pair(given, text);
            }
        }
        query.append_pair(name, value);
        format!("{}?{}", self.path, query.finish())
    }
}

/// Parses a number that consists of digits only.
pub(crate) fn whole_number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The identifier of the resource that a request names, if it is well-formed.
#[derive(Debug, Clone)]
pub(crate) struct RequestedId<T>(Option<T>);

impl<T> RequestedId<T> {
    /// Wraps an identifier from a field of a body.
    pub(crate) fn new(id: Option<T>) -> Self {
        Self(id)
    }

    /// Returns true if it is this identifier.
    pub(crate) fn is(&self, id: T) -> bool
    where
        T: PartialEq,
    {
        self.0 == Some(id)
    }

    /// Returns the identifier, or 404. Called last, after all other checks of the request.
    pub(crate) fn get(self) -> Result<T, Error> {
        self.0.ok_or_else(Error::not_found)
    }
}
