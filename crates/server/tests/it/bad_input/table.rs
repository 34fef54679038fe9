//! The notation of tables of invalid requests.

use reqwest::Method;

use crate::text_requests::Placeholders;

/// An invalid request and its expected response.
#[derive(Debug)]
pub(super) struct InvalidRequest {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: InvalidBody,
    pub(super) status: u16,
    pub(super) reason: String,
    pub(super) issues: Vec<String>,
}

#[derive(Debug)]
pub(super) enum InvalidBody {
    None,
    Json(String),
    Bytes(Vec<u8>),
    Typed(&'static str, &'static str),
}

/// Collects rows.
pub(super) struct Table<'a> {
    pub(super) ids: &'a Placeholders,
    pub(super) requests: Vec<InvalidRequest>,
}

impl<'a> Table<'a> {
    pub(super) fn new(ids: &'a Placeholders) -> Self {
        Self { ids, requests: Vec::new() }
    }

    /// Adds a request. `expected` is the status, the reason, and the paths of the issues. Without a
    /// status, it is 400 and `validation`.
    pub(super) fn add(&mut self, method: &str, path: &str, body: InvalidBody, expected: &str) {
        let is_complete = expected.starts_with(|first: char| first.is_ascii_digit());
        let start = if is_complete { "" } else { "400 validation " };
        let expected = format!("{start}{expected}");
        let mut words = expected.split_whitespace().map(str::to_owned);
        self.requests.push(InvalidRequest {
            method: method.parse().unwrap(),
            path: self.named(path),
            body,
            status: words.next().unwrap().parse().unwrap(),
            reason: words.next().unwrap(),
            issues: words.collect(),
        });
    }

    /// Adds a request with a JSON body.
    pub(super) fn json(&mut self, method: &str, path: &str, body: &str, expected: &str) {
        self.add(method, path, InvalidBody::Json(self.named(body)), expected);
    }

    /// Adds requests in a notation of sections. A section opens with methods and paths, as in
    /// `GET DELETE /tags /roles`, and has a row for each request: `end of the path -> expected`, or
    /// `body -> expected` for POST and PUT. The line may break after `->`.
    pub(super) fn rows(&mut self, text: &str) {
        self.rows_in(text, str::to_owned);
    }

    /// Adds requests as [`Self::rows`] does. `whole` makes a body of each row's first cell.
    pub(super) fn rows_in(&mut self, text: &str, whole: impl Fn(&str) -> String) {
        let (mut methods, mut paths) = (Vec::new(), Vec::new());
        let text = text.replace("->\n", "-> ");
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some((request, expected)) = line.split_once("->") else {
                (paths, methods) = line.split(' ').partition(|word| word.starts_with('/'));
                continue;
            };
            let (request, expected) = (request.trim(), expected.trim());
            for (method, path) in
                methods.iter().flat_map(|one| paths.iter().map(move |path| (one, path)))
            {
                match *method {
                    "POST" | "PUT" => self.json(method, path, &whole(request), expected),
                    _ => self.add(method, &format!("{path}{request}"), InvalidBody::None, expected),
                }
            }
        }
    }

    /// Replaces the names of identifiers, and `$x*N` by N letters.
    pub(super) fn named(&self, text: &str) -> String {
        let mut text = self.ids.fill(text);
        while let Some((before, rest)) = text.split_once("$x*") {
            let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
            let (count, after) = rest.split_at(end);
            text = format!("{before}{}{after}", "x".repeat(count.parse().unwrap()));
        }
        text
    }
}
