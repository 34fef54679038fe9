//! Complete responses. Each is checked against the OpenAPI document.

use std::io::Read;

use reqwest::StatusCode;
use serde_json::Value;

use crate::response_validation::{self, RequestSummary};
use crate::secrets;

/// A complete response.
#[derive(Debug, Clone)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    /// JSON, a text if the body is not JSON, or null without a body.
    pub(crate) body: Value,
}

impl TestResponse {
    pub(crate) async fn of(request: reqwest::RequestBuilder) -> Self {
        let (client, request) = request.build_split();
        let request = request.expect("the request can be sent");
        let asked = RequestSummary::of(&request);
        secrets::record_secret(request.body().and_then(|body| body.as_bytes()).unwrap_or_default());
        let response = client.execute(request).await.expect("the service answers");
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await.expect("the answer is whole");
        let coding = headers.get("content-encoding").map_or("", |coding| coding.to_str().unwrap());
        // The response to HEAD has headers only.
        let bytes = if bytes.is_empty() { Vec::new() } else { decoded(&bytes, coding) };
        response_validation::check(&asked, status, &headers, &bytes);
        secrets::assert_absent(&bytes, "an answer");
        secrets::assert_absent(format!("{headers:?}").as_bytes(), "an answer's head");
        let body: Value = if bytes.is_empty() {
            Value::Null
        } else {
            let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
            serde_json::from_slice(&bytes).unwrap_or_else(|_| text())
        };
        if let Some(token) = body["token"].as_str() {
            secrets::record_secret_for_log(token);
        }
        Self { status, headers, body }
    }

    pub(crate) fn id(&self) -> String {
        self.body["id"].as_str().expect("the answer has an id").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("it is ASCII"))
    }

    /// Returns the values of `key` in an array of objects.
    /// Returns the path of the next page, from `Link`.
    pub(crate) fn next_page(&self) -> Option<String> {
        let link = self.headers.get("link")?.to_str().unwrap();
        Some(link.trim_start_matches('<').split('>').next().unwrap().to_owned())
    }

    pub(crate) fn column(&self, key: &str) -> Vec<String> {
        let items = self.body.as_array().unwrap_or_else(|| panic!("not a list: {self:?}"));
        items.iter().map(|item| item[key].as_str().expect("a text").to_owned()).collect()
    }

    /// Asserts a problem with this status and reason, and with issues at these paths.
    #[track_caller]
    pub(crate) fn assert_problem(&self, status: u16, reason: &str, paths: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        assert_eq!(self.body["reason"], reason, "{self:?}");
        assert_eq!(self.body["status"], status, "{self:?}");
        assert_eq!(self.body["type"], format!("/problems/{reason}"), "{self:?}");
        assert_eq!(self.body["requestId"], self.header("x-request-id"), "{self:?}");
        assert_eq!(self.body["message"], self.body["detail"], "{self:?}");
        let mut found: Vec<String> = self.issue_paths();
        let mut expected: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{self:?}");
    }

    /// Returns the paths of issues in the form `tags[1]`, `title`.
    fn issue_paths(&self) -> Vec<String> {
        let issues = self.body["issues"].as_array().cloned().unwrap_or_default();
        let written = |issue: &Value| {
            let steps = issue["path"].as_array().expect("an issue has a path");
            let step = |step: &Value| match step {
                Value::String(name) => format!(".{name}"),
                index => format!("[{index}]"),
            };
            steps.iter().map(step).collect::<String>().trim_start_matches('.').to_owned()
        };
        issues.iter().map(written).collect()
    }
}

/// Decodes a body by its content coding.
fn decoded(bytes: &[u8], coding: &str) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        "" => plain.extend_from_slice(bytes),
        "gzip" => {
            flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).expect("it is gzip");
        }
        "br" => {
            let mut bytes = bytes;
            brotli_decompressor::BrotliDecompress(&mut bytes, &mut plain).expect("it is brotli");
        }
        other => panic!("the coding {other} was not asked for"),
    }
    plain
}
