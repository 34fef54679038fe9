//! Headers of responses, and the parameters that are request headers.

use serde_json::{Value, json};

use crate::extract::tus::VERSION;

pub(super) fn refer_to_headers(names: &[&str]) -> Value {
    let refer =
        |name: &&str| ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")}));
    Value::Object(names.iter().map(refer).collect())
}

/// The response headers: name, description and example.
const HEADERS: [(&str, &str, &str); 16] = [
    (
        "X-Request-Id",
        "The request's id: that of the request if it has 1 to 128 visible ASCII characters, \
         otherwise a new one. It is logged.",
        "01a1fc13012e52d457d806ffae31da64",
    ),
    ("Cache-Control", "The caching rules for the response.", "private, no-cache"),
    (
        "ETag",
        "The version of the resource and a hash of this representation of it.",
        "\"3.lQ0xRcq1uBxWJ5f2\"",
    ),
    (
        "Vary",
        "The request headers on which the response depends.",
        "authorization, cookie, galley-workspace, accept-encoding",
    ),
    ("Location", "The URL of the new resource.", "/tags?id=tag_01kah3v9k8d4x7w2m5n6p8q9rs"),
    (
        "Link",
        "The URL of the next page; absent on the last page.",
        "</tags/list?perPage=50&cursor=WyJpZCJd>; rel=\"next\"",
    ),
    ("Total-Count", "With `total=true`: the number of items on all pages, or `10000+`.", "42"),
    (
        "Search-Sequence",
        "The `sequence` of the last event whose change the search index includes.",
        "1042",
    ),
    ("Preference-Applied", "The preference that was applied.", "return=representation"),
    (
        "Conversion-Warnings",
        "If the request has content: the number of its conversion warnings.",
        "0",
    ),
    ("Age", "With `Prefer: max-age`: the maximum age of the response in seconds.", "1"),
    ("WWW-Authenticate", "The authentication scheme.", "Bearer"),
    ("Retry-After", "The seconds to wait before a retry.", "5"),
    ("RateLimit", "The remaining quota.", "\"default\";r=0;t=30"),
    ("RateLimit-Policy", "The limit.", "\"default\";q=600;w=60"),
    ("Idempotency-Replayed", "The response is that of an earlier request with this key.", "true"),
];

/// The headers that are present if the operator limits the rate of requests by a token.
pub(super) const RATE_LIMIT_HEADERS: &[&str] = &["RateLimit", "RateLimit-Policy"];

/// Returns the components of the headers that are present in every response that lists them.
pub(super) fn headers() -> Value {
    let sometimes = [
        "Age",
        "Conversion-Warnings",
        "Link",
        "Idempotency-Replayed",
        "RateLimit",
        "RateLimit-Policy",
        "Search-Sequence",
        "Total-Count",
    ];
    let always = |name: &&str| !sometimes.contains(name);
    let names = HEADERS.iter().map(|(name, ..)| *name).filter(always);
    Value::Object(names.map(|name| (name.to_owned(), header(name, true))).collect())
}

/// Returns the description of an optional header.
pub(super) fn optional_header(name: &str) -> Value {
    header(name, false)
}

fn header(name: &str, required: bool) -> Value {
    let known = HEADERS.iter().find(|(known, ..)| *known == name);
    let (_, about, example) = known.unwrap_or_else(|| panic!("{name} has no line in HEADERS"));
    json!({
        "description": about,
        "required": required,
        "schema": {"type": "string", "examples": [example]},
    })
}

/// Returns the header parameters that several operations share.
pub(super) fn parameters() -> Value {
    let header = |name: &str, about: &str, schema: Value| json!({"name": name, "in": "header", "description": about, "schema": schema});
    let tag = json!({"type": "string", "examples": ["\"3.lQ0xRcq1uBxWJ5f2\""]});
    let mut version = header(
        "Tus-Resumable",
        "The version of the protocol tus.",
        json!({"type": "string", "pattern": r"^1\.0\.0$", "examples": [VERSION]}),
    );
    version["required"] = true.into();
    json!({
        "TusResumable": version,
        "GalleyWorkspace": header(
            "Galley-Workspace",
            "The workspace of a request with a session. It is required, except under `/profile`, \
             for the list of workspaces and to sign out. With an access token it is ignored.",
            json!({"type": "string", "examples": ["ws_01kah3v9k8d4x7w2m5n6p8q9rs"]}),
        ),
        "IfNoneMatch": header(
            "If-None-Match",
            "The entity tags of the client's copies: if one is current, the response is 304 \
             without a body.",
            tag.clone(),
        ),
        "IfMatch": header(
            "If-Match",
            "The entity tags of the version to change. If the resource has another version, \
             nothing is changed and the response is 412. `*` matches any version.",
            tag,
        ),
        "Prefer": header(
            "Prefer",
            "`return=representation`: the response contains the whole resource (RFC 7240).",
            json!({"type": "string", "examples": ["return=representation"]}),
        ),
        "PreferMaxAge": header(
            "Prefer",
            "`max-age=SECONDS`: the response may be up to this many seconds old (RFC 7240), if the \
             service has a replica. `Age` and `Preference-Applied` then indicate a response that \
             may be stale.",
            json!({"type": "string", "examples": ["max-age=10"]}),
        ),
        "IdempotencyKey": header(
            "Idempotency-Key",
            "A unique key chosen by the client. A repeated request with the same key and body \
             within 24 hours returns the first successful response and changes nothing.",
            json!({
                "type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\t\x20-\x7e]+$",
                "examples": ["order-17"],
            }),
        ),
    })
}
