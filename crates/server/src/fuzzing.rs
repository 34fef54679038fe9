//! Invariants for any input of clients, checked by the fuzz targets and by a test with some odd
//! inputs.

use axum::http::{HeaderMap, Uri};
use galley_api_types::problem::{Issue, Step};
use galley_application::{Rejection, custom_data_schema};
use galley_domain::content_piece::CustomData;
use galley_domain::custom_data_schema::CustomDataSchema;
use galley_domain::{ContentPieceId, Timestamp};
use serde_json::Value;

use crate::extract::pagination::{self, PageRequest};
use crate::extract::query::Query;
use crate::extract::{json, prefer};
use crate::problem::Problem;
use crate::routes::content_pieces::format::ResponseFormat;
use crate::routes::content_pieces::list::RequestedList;

/// Checks that any bytes are parsed as a query, or rejected with the path of the parameter. The
/// link to the next page is a URI with the same parameters, which request the same list.
pub fn query(bytes: &[u8]) {
    // Only URIs that hyper accepts.
    let Ok(uri) = Uri::try_from([b"/list?", bytes].concat()) else { return };
    let mut query = Query::new(uri.path(), uri.query().unwrap_or_default());
    let page = PageRequest::from_query(&mut query, 1_000);
    assert!((2..=1_001).contains(&page.limit()));
    assert!(page.offset(false) >= 0);
    let after = pagination::after_id::<ContentPieceId>(&mut query);
    if let Some(after) = &after {
        assert!(after.parse::<ContentPieceId>().is_ok(), "{after:?}");
    }
    let _ = (query.boolean("content"), query.variant(), query.id::<ContentPieceId>());
    let format = ResponseFormat::parse(&mut query);
    let list = RequestedList::read(&mut query);
    let next = query.uri_with("cursor", &pagination::id_cursor("a&b=c#d"));
    let next: Uri = next.parse().unwrap_or_else(|error| panic!("{error}: {next}"));
    let mut followed = Query::new(next.path(), next.query().unwrap_or_default());
    for name in ["perPage", "content", "variant", "id"] {
        assert_eq!(followed.all(name), query.all(name), "{name}");
    }
    assert_eq!(followed.all("cursor").len(), 1);
    let _ = PageRequest::from_query(&mut followed, 1_000);
    assert_eq!(ResponseFormat::parse(&mut followed).view(), format.view());
    assert_eq!(RequestedList::read(&mut followed).filters, list.filters);
    problem(query.into_issues());
}

/// Checks that any bytes are parsed as JSON as serde_json does, or rejected with a message.
pub fn body(bytes: &[u8]) {
    let read = json::parse(bytes);
    // serde_json's own depth limit is one level lower.
    let by_serde_json = serde_json::from_slice::<Value>(bytes);
    match (&read, by_serde_json) {
        (Ok(by_galley), Ok(theirs)) => assert_eq!(*by_galley, theirs),
        (Ok(_), Err(error)) => assert!(error.to_string().contains("recursion limit"), "{error}"),
        (Err(message), _) => assert!(!message.is_empty()),
    }
    let Ok(Value::Object(fields)) = read else { return };
    for (name, value) in &fields {
        let text = json::compact_field(bytes, name).expect("the field is there");
        let again: Value = match serde_json::from_str(&text) {
            Ok(again) => again,
            Err(error) => {
                assert!(error.to_string().contains("recursion limit"), "{error}");
                continue;
            }
        };
        assert_eq!(again, *value, "{text}");
        if let Value::Array(items) = value {
            assert_eq!(json::texts_of_items(bytes, name).len(), items.len());
        }
    }
}

/// Checks that any text is read as a time and as a `Prefer` header without a panic, and is reported
/// in a problem.
pub fn fields(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(time) = Timestamp::parse_iso8601(&text) {
        assert_eq!(Timestamp::parse_iso8601(&time.to_string()), Ok(time));
    }
    if let Ok(value) = axum::http::HeaderValue::from_bytes(bytes) {
        let headers = HeaderMap::from_iter([(prefer::PREFER, value)]);
        let _ = prefer::preferred(&headers, "max-age");
    }
    let invalid = galley_domain::Invalid::new("invalid_string", text.to_string());
    let path = vec![galley_api_types::problem::Step::Field(text.to_string())];
    problem(vec![Issue::new(path, &invalid)]);
}

/// Checks that any schema of custom data is compiled or rejected, and that the issues of any data
/// name a part of it. A line break divides schema and data.
pub fn schema(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (schema, data) = text.split_once('\n').unwrap_or((&text, "{}"));
    let Ok(Value::Object(_)) = json::parse(schema.as_bytes()) else { return };
    let Ok(schema) = CustomDataSchema::parse(schema) else { return };
    if let Err(issues) = custom_data_schema::check(&schema) {
        assert_eq!(issues[0].path[0], Step::Field("customDataSchema".to_owned()));
        return problem(issues);
    }
    let Ok(data) = CustomData::parse(data) else { return };
    let validate = || {
        let budget = &mut custom_data_schema::WorkBudget::default();
        custom_data_schema::validate(&schema, Some(data.as_str()), budget)
    };
    let issues = validate();
    assert_eq!(issues, validate());
    let value = serde_json::from_str::<Value>(data.as_str()).unwrap_or_default();
    for issue in &issues {
        assert!(issue.message.chars().count() < 100_000, "{}", issue.message.len());
        // The message starts with a JSON Pointer to the value, or to a missing member of it.
        let mut pointer = String::new();
        for step in &issue.path[1..] {
            pointer.push('/');
            match step {
                Step::Field(name) => pointer += &name.replace('~', "~0").replace('/', "~1"),
                Step::Item(index) => pointer += &index.to_string(),
            }
        }
        assert!(issue.message.starts_with(&format!("customData{pointer} ")), "{}", issue.message);
        let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
        let found = value.pointer(&pointer).or_else(|| value.pointer(parent));
        // Long names are shortened.
        assert!(found.is_some() || value.is_null() || pointer.contains('…'), "{pointer}");
    }
    problem(issues);
}

/// Checks that a problem is JSON with the paths of its issues.
fn problem(issues: Vec<Issue>) {
    if issues.is_empty() {
        return;
    }
    let paths: Vec<Value> = issues.iter().map(|issue| serde_json::json!(issue.path)).collect();
    let problem = Problem::from(Rejection::of_issues(issues));
    let written: Value = serde_json::from_str(&problem.to_json("id")).expect("a problem is JSON");
    let reported: Vec<&Value> = written["issues"]
        .as_array()
        .expect("it has issues")
        .iter()
        .map(|one| &one["path"])
        .collect();
    assert_eq!(reported, paths.iter().collect::<Vec<_>>());
    assert_eq!(written["detail"], written["message"]);
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    const INPUTS: [&str; 17] = [
        "",
        "&&&",
        "page=0&page=1",
        "perPage=%00",
        "content=%ff",
        "cursor=WyJpZCIsIngiXQ",
        "a=%",
        "tagId=,,%2C&allTags=1&memberId=x&hasVariant=PT-br&withoutVariant=de&state=draft&fields=titel,content&total=0",
        "updatedSince=2026-01-01T00:00:00+01:00&dateFrom=-1&dateTo=2026-02-30&ids=%00",
        "lastId=cp_0000000000000000000000000000",
        "{\"a\":[1,1e999,\"\\u0000\"]}",
        "{\"a\":{\"b\":1.0}}",
        "2024-02-30T25:61",
        "max-age=99999999999999999999",
        "\u{feff}{}",
        "{\"required\":[\"a/b~c\"],\"properties\":{\"\":{\"items\":false}}}\n{\"\":[1,2]}",
        "{\"$ref\":\"#/%24defs/a\",\"$defs\":{\"a\":{\"type\":[]}}}\n[]",
    ];

    fn check(bytes: &[u8]) {
        super::query(bytes);
        super::body(bytes);
        super::fields(bytes);
        super::schema(bytes);
    }

    #[test]
    fn odd_input_is_parsed_or_rejected() {
        for input in INPUTS {
            check(input.as_bytes());
        }
    }

    /// Short runs of the fuzz targets leave out those of this module, as their build takes long.
    #[test]
    fn mutated_input_is_parsed_or_rejected() {
        let given = std::env::var("GALLEY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(rand::random);
        println!("GALLEY_TEST_SEED={seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for round in 0..20_000 {
            let mut bytes = INPUTS[round % INPUTS.len()].as_bytes().to_vec();
            for _ in 0..random.random_range(1..=4) {
                let other = INPUTS[random.random_range(0..INPUTS.len())].as_bytes();
                let from = random.random_range(0..=other.len());
                let part = &other[from..random.random_range(from..=other.len())];
                let start = random.random_range(0..=bytes.len());
                let end = random.random_range(start..=bytes.len().min(start + 8));
                match random.random_range(0..3) {
                    0 => drop(bytes.splice(start..end, part.iter().copied())),
                    1 => drop(bytes.splice(start..end, [random.random::<u8>()])),
                    _ => drop(bytes.drain(start..end)),
                }
            }
            check(&bytes);
        }
    }
}
