//! Bodies that are not JSON objects, and unsupported media types.

use super::table::{InvalidBody, Table};

const NOT_OBJECTS: &str = r#"
    {
    []
    null
    "text"
    3
    true
    {}{}
    {a:1}
    {"a":1,}
    {'a':1}
    {"title":"a","title":"b"}
    {"x":{"a":1,"a":1}}
    {"title":"\ud800"}
    {"title":"\udc00\ud800"}
    {"title":"a\u0000b"}
    {"a\u0000":1}
    {"n":01}
    {"n":1e999}
    {"n":NaN}
"#;

pub(super) fn add(table: &mut Table<'_>) {
    let nested = format!("{{\"x\":{}{}}}", "[".repeat(256), "]".repeat(256));
    let others = ["", " ", "{\"title\":\"a\nb\"}", "\u{feff}{}", &nested];
    for body in NOT_OBJECTS.trim().lines().map(str::trim).chain(others) {
        let body = InvalidBody::Json(body.to_owned());
        table.add("POST", "/content-pieces", body, "400 malformed_body");
    }
    let not_utf8 = InvalidBody::Bytes(b"{\"title\":\"\xff\"}".to_vec());
    table.add("PUT", "/content-pieces", not_utf8, "400 malformed_body");
    let deep = InvalidBody::Bytes(vec![b'['; 100_000]);
    table.add("POST", "/content-pieces", deep, "400 malformed_body");
    let text = InvalidBody::Typed("text/plain", "{}");
    table.add("POST", "/content-pieces", text, "415 unsupported_media_type");
    let xml = InvalidBody::Typed("application/xml", "<a/>");
    table.add("PUT", "/tags", xml, "415 unsupported_media_type");
}
