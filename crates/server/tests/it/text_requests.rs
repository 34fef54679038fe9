//! Requests in text form, such as `PUT /tags {"id":"$tag","label":"x"}`, for tables of requests.

use reqwest::Method;
use serde_json::Value;

/// Values by name. A text has a name as `$name`.
#[derive(Debug, Default)]
pub(crate) struct Placeholders(Vec<(&'static str, String)>);

impl Placeholders {
    pub(crate) fn add(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.push((name, value.into()));
        // A name that is the start of another one is replaced after it.
        self.0.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    }

    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| *known == name);
        &found.unwrap_or_else(|| panic!("{name} has no value")).1
    }

    /// Returns a text with values in place of names.
    pub(crate) fn fill(&self, text: &str) -> String {
        let fill =
            |text: String, (name, value): &(&str, String)| text.replace(&format!("${name}"), value);
        self.0.iter().fold(text.to_owned(), fill)
    }
}

/// Parses a method, a path, and the JSON of a body if there is one.
pub(crate) fn parse(line: &str) -> (Method, &str, Option<Value>) {
    let (method, target) = line.trim().split_once(' ').unwrap_or_else(|| panic!("{line}"));
    let (path, body) = match target.split_once(' ') {
        Some((path, body)) => (path, Some(body.parse().expect(line))),
        None => (target, None),
    };
    (method.parse().expect(line), path, body)
}
