//! Schemas of custom data.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, json};

use super::*;

fn schema(value: &Value) -> CustomDataSchema {
    CustomDataSchema::parse(value.to_string()).unwrap()
}

fn issues(schema: &Value, data: &Value) -> Vec<Issue> {
    validate(&self::schema(schema), Some(&data.to_string()), &mut WorkBudget::default())
}

fn is_rejected(schema: &Value, data: &Value) -> bool {
    issues(schema, data).iter().any(|issue| issue.message.contains("too large for its schema"))
}

/// Returns the code of the issue of a schema.
fn code(schema: &Value) -> &'static str {
    check(&self::schema(schema)).map_or_else(|issues| issues[0].code, |()| "accepted")
}

#[test]
fn a_schema_with_the_most_patterns_is_cached() {
    let patterns: Vec<_> =
        (0..80).map(|number| json!({"pattern": format!("^a{number}")})).collect();
    let names: Map<String, Value> =
        (0..20).map(|number| (format!("^a{number}[ab]{{50}}"), json!({}))).collect();
    let schema = schema(&json!({"allOf": patterns, "patternProperties": names}));
    check(&schema).unwrap();
    assert!(COMPILED.get(schema.as_str()).is_some());
}

#[test]
fn evaluations_that_multiply_end() {
    let nested = |wrap: &dyn Fn(Value) -> Value| (0..40).fold(json!({}), |inner, _| wrap(inner));
    let objects = (0..40).fold(json!(1), |inner, _| json!({"a": inner, "b": 1}));
    let arrays = (0..40).fold(json!(1), |inner, _| json!([inner, 1]));
    for wrap in [
        (|inner| json!({"contains": inner, "unevaluatedItems": false})) as fn(Value) -> Value,
        |inner| json!({"unevaluatedItems": inner}),
        |inner| json!({"anyOf": [{"type": "object"}], "unevaluatedProperties": inner}),
        |inner| json!({"allOf": [inner], "unevaluatedProperties": {}}),
        |inner| json!({"anyOf": [{"items": inner}, {"type": "null"}]}),
        |inner| json!({"oneOf": [{"properties": {"a": inner}}, {"required": ["c"]}]}),
    ] {
        let schema = schema(&nested(&wrap));
        for data in [&arrays, &objects] {
            validate(&schema, Some(&data.to_string()), &mut WorkBudget::default());
        }
    }
    let doubling: Map<String, Value> = (0..30)
        .map(|level| {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            (format!("d{level}"), json!({"allOf": [next, next]}))
        })
        .chain([("d30".to_owned(), json!({}))])
        .collect();
    let doubling = json!({"$ref": "#/$defs/d0", "$defs": doubling});
    assert_eq!(code(&doubling), "schema_too_complex");
}

#[test]
fn recursive_schemas_describe_trees() {
    let menu = json!({
        "type": "object",
        "required": ["label"],
        "properties": {
            "label": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#"}},
        },
        "unevaluatedProperties": false,
    });
    let nested = |label: Value| {
        (0..30).fold(
            json!({"label": label}),
            |inner, _| json!({"label": "a", "children": [inner, {"label": "b"}]}),
        )
    };
    assert_eq!(issues(&menu, &nested(json!("leaf"))), []);
    let found = issues(&menu, &nested(json!(1)));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].path.len(), 62);
    for endless in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}),
        json!({"if": {"$ref": "#"}}),
    ] {
        assert_eq!(code(&endless), "recursive_schema");
    }
    let chain: Map<String, Value> = (0..900)
        .map(|at| (format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)})))
        .chain([("d900".to_owned(), json!({}))])
        .collect();
    assert_eq!(code(&json!({"$ref": "#/$defs/d0", "$defs": chain})), "schema_too_complex");
}

#[test]
fn data_that_takes_too_much_work_is_rejected() {
    let multiples = json!({"items": {"allOf": vec![json!({"multipleOf": 2}); 1_200]}});
    assert!(is_rejected(&multiples, &json!(vec![2; 1_000])));
    assert!(!is_rejected(&multiples, &json!(vec![2; 100])));
    let pattern = json!({"items": {"pattern": "(a|b|ab)*[ab]*a[ab]{900}c"}});
    assert!(is_rejected(&pattern, &json!(["a".repeat(60_000)])));
    assert!(!is_rejected(&pattern, &json!(["a".repeat(60)])));
    let groups = format!("([ab]{}){{24}}[c-z]0", "()".repeat(110));
    let names = json!({"patternProperties": {groups: {}}});
    assert!(!is_rejected(&names, &json!({"a".repeat(10_000): 1})));
    let wide = json!({"items": {"allOf": vec![json!({"type": "number"}); 900]}});
    assert!(is_rejected(&wide, &json!(vec![1; 12_000])));
    assert!(!is_rejected(&wide, &json!(vec![1; 6_000])));
    let field = |number: usize| match number {
        0..10 => {
            (format!("field{number}"), json!({"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}))
        }
        _ => (format!("field{number}"), json!({"type": "string", "maxLength": 100})),
    };
    let fields: Map<String, Value> = (0..150).map(field).collect();
    let usual = json!({"properties": {"items": {"items": {"properties": fields}}}});
    let item = json!({"field1": "a-slug", "field20": "b".repeat(30), "field21": "c".repeat(30)});
    assert_eq!(issues(&usual, &json!({"items": vec![item; 1_000]})), []);
}

#[test]
fn the_work_of_issues_is_limited() {
    let schema = json!({"properties": {"a": {"type": "number"},
        "b": {"pattern": "(a|b|ab)*[ab]*a[ab]{900}c"}}});
    let (schema, mut budget) = (self::schema(&schema), WorkBudget::default());
    let data = json!({"a": "x", "b": "a".repeat(2_000)}).to_string();
    while !budget.is_exhausted() {
        let used = budget.used();
        assert!(!validate(&schema, Some(&data), &mut budget).is_empty());
        assert!(budget.used() > used + 1_000_000, "{}", budget.used() - used);
    }
}

#[test]
fn numbers_are_compared_as_decimals() {
    for (divisor, number, is_valid) in [
        ("0.1", "0.3", true),
        ("0.01", "19.99", true),
        ("0.0001", "0.0075", true),
        ("0.0001", "0.00751", false),
        ("0.3", "1e300", false),
        ("3", "1e30", false),
        ("7", "49", true),
        ("1.5", "4.5", true),
        ("0.123456789", "1e308", false),
        ("1e-300", "3e300", true),
        ("1e300", "3", false),
        ("9007199254740993", "18014398509481986", true),
        ("2", "-4", true),
        ("2", "0.0", true),
    ] {
        let schema = CustomDataSchema::parse(format!("{{\"multipleOf\":{divisor}}}")).unwrap();
        let found = validate(&schema, Some(number), &mut WorkBudget::default());
        assert_eq!(found.is_empty(), is_valid, "{number} of {divisor}");
    }
    let exact = json!({"maximum": 9_007_199_254_740_992.0});
    assert_eq!(issues(&exact, &json!(9_007_199_254_740_992_u64)), []);
    assert_eq!(issues(&exact, &json!(9_007_199_254_740_993_u64)).len(), 1);
    let zero = json!({"minimum": 0, "maximum": 0.0});
    assert_eq!(issues(&zero, &json!(-0.0)), []);
}

#[test]
fn unique_items_are_compared_as_json() {
    let unique = json!({"uniqueItems": true});
    for (items, is_valid) in [
        (json!([1, 1.0]), false),
        (json!([0, -0.0]), false),
        (json!([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]), false),
        (json!(["a", "b", "a"]), false),
        (json!(["1", 1, true, "true", null, "null", [], [[]], {}]), true),
        (json!([["a,b"], ["a", "b"], ["a\",\"b"]]), true),
        (json!([1e300, 1.5, 2]), true),
        (json!((0..1_000).map(|item| (1_u64 << 63) + item).collect::<Vec<_>>()), true),
    ] {
        assert_eq!(issues(&unique, &items).is_empty(), is_valid, "{items}");
    }
    assert_eq!(issues(&json!({"uniqueItems": false}), &json!([1, 1])), []);
}

#[test]
fn issues_are_short() {
    let strings = json!({"additionalProperties": {"items": {"type": "string"}}});
    for (schema, data) in [
        (&strings, json!({"k".repeat(100_000): vec![1; 5_000]})),
        (&json!({"items": {"const": "a".repeat(60_000)}}), json!(vec!["b"; 8_000])),
        (&json!({"items": {"anyOf": vec![json!({"type": "null"}); 300]}}), json!(vec!["b"; 8_000])),
    ] {
        let issues = issues(schema, &data);
        let bytes: usize = issues.iter().map(|issue| issue.message.len()).sum();
        assert!(!issues.is_empty() && bytes < 64 * 1024, "{bytes}");
    }
}

#[test]
fn usual_patterns_are_accepted() {
    for (pattern, matching, other) in [
        ("^.{1,200}$", "ü".repeat(200), "ü".repeat(201)),
        ("^\\S{1,64}$", "a".repeat(64), "a b".to_owned()),
        ("^[\\p{L} ]{1,50}$", "Été à la".to_owned(), "1".to_owned()),
        ("^[^<>]{0,300}$", String::new(), "<".to_owned()),
        ("^https?://", "https://a".to_owned(), "a https://".to_owned()),
        ("\\.(jpe?g|png)$", "a.png".to_owned(), "a.png.exe".to_owned()),
        ("a|^b", "ca".to_owned(), "cb".to_owned()),
        ("", "any".to_owned(), String::new()),
        ("^\\<\\>$", "<>".to_owned(), "<".to_owned()),
        ("\\bfoo\\b", "éfoo".to_owned(), "foot".to_owned()),
        ("^a.b$", "a\tb".to_owned(), "a\rb".to_owned()),
        ("^[^]$", "\n".to_owned(), "ab".to_owned()),
        ("^\\uD83D\\uDE00$", "😀".to_owned(), "x".to_owned()),
        ("^\\d$", "1".to_owned(), "١".to_owned()),
        ("a\\Ba", "aa".to_owned(), "aéa".to_owned()),
        ("^[\\b]$", "\u{8}".to_owned(), "b".to_owned()),
    ] {
        let schema = json!({"pattern": pattern});
        assert_eq!(issues(&schema, &json!(matching)), [], "{pattern}");
        assert_eq!(issues(&schema, &json!(other)).is_empty(), pattern.is_empty(), "{pattern}");
    }
    assert_eq!(code(&json!({"pattern": "(?!draft)"})), "invalid_schema");
    assert_eq!(code(&json!({"pattern": "(?i:a)"})), "invalid_schema");
    assert_eq!(code(&json!({"pattern": "[]".repeat(30)})), "schema_too_complex");
    assert_eq!(code(&json!({"pattern": "\\p{L}{1,1000}"})), "invalid_schema");
}

#[test]
fn data_in_a_schema_are_no_keywords() {
    for accepted in [
        json!({"properties": {"id": true, "$id": {}, "$anchor": {"type": "string"}}}),
        json!({"const": {"$id": "x", "$schema": "x"}}),
        json!({"enum": [{"$anchor": "x"}], "default": {"$dynamicRef": "#"}}),
        json!({"dependentRequired": {"$id": ["x"]}, "id": "x"}),
        json!({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"$ref": "#/properties/x"}},
            "properties": {"x": {}}}),
    ] {
        assert_eq!(code(&accepted), "accepted", "{accepted}");
    }
    for rejected in [
        json!({"properties": {"a": {"$id": "x"}}}),
        json!({"$ref": "#/$defs/none"}),
        json!({"$ref": "https://example.org/schema"}),
        json!({"$defs": {"a": {"not": {"$dynamicRef": "#"}}}}),
    ] {
        assert_eq!(code(&rejected), "unsupported", "{rejected}");
    }
}

#[test]
fn the_issues_of_the_meant_alternative_are_returned() {
    let block = |name: &str, field: &str| {
        let kind = json!({"const": name});
        json!({"required": [field], "properties": {"type": kind, "size": {"enum": [1, 2]}}})
    };
    let page = json!({"items": {"oneOf": [block("text", "body"), block("image", "src")]}});
    let found = issues(&page, &json!([{"type": "text", "body": 1}, {"type": "image"}]));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "customData/1/src is required");
    let message = |schema: &Value, data: &Value| {
        let found = issues(schema, data);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].message.clone()
    };
    let none = "customData/0 matches none of the alternatives";
    assert_eq!(message(&page, &json!([{"type": "video"}])), none);
    let wrong_size = json!([{"type": "text", "body": 1, "size": 3}]);
    assert_eq!(message(&page, &wrong_size), "customData/0/size must be one of 1, 2");
    let nullable =
        json!({"properties": {"a": {"anyOf": [{"type": "null"}, {"enum": ["b", "c"]}]}}});
    let expected = "customData/a must be one of \"b\", \"c\"";
    assert_eq!(message(&nullable, &json!({"a": "d"})), expected);
    let text_or_block = json!({"items": {"anyOf": [{"type": "string"}, block("text", "body")]}});
    let expected = "customData/0/type must be \"text\"";
    assert_eq!(message(&text_or_block, &json!([{"type": "image", "body": 1}])), expected);
    let twice = json!({"allOf": [{"required": ["a"]}, {"required": ["a", "a"]}]});
    assert_eq!(message(&twice, &json!({})), "customData/a is required");
}

#[test]
fn operations_with_hidden_work_are_charged() {
    let doubled = |inner: Value, levels: usize| {
        let mut definitions: Map<String, Value> = (0..levels)
            .map(|level| {
                let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
                (format!("d{level}"), json!({"allOf": [next, next]}))
            })
            .collect();
        definitions.insert(format!("d{levels}"), inner);
        json!({"items": {"$ref": "#/$defs/d0"}, "$defs": definitions})
    };
    // All members are sorted before the first one ends the comparison.
    let mut members: Map<String, Value> =
        (0..5_900_u64).map(|at| (format!("m{}", at * 7_919 % 5_900), json!(at))).collect();
    let many: Map<String, Value> = (0..7_000).map(|at| (at.to_string(), json!(1))).collect();
    members.insert("a".to_owned(), many.into());
    let sorted = doubled(json!({"not": {"const": "x".repeat(60_000)}}), 10);
    assert!(is_rejected(&sorted, &json!([members])));
    let duplicates = doubled(json!({"not": {"uniqueItems": true}}), 17);
    assert!(!is_rejected(&duplicates, &json!([vec![0; 120_000]])));
    let nested = doubled(json!({"not": {"enum": ["x".repeat(60_000)]}}), 12);
    assert!(is_rejected(&nested, &json!([vec![json!({}); 20_000]])));
}

/// Returns a random schema of a few keywords.
fn random_schema(random: &mut StdRng, depth: usize) -> Value {
    if depth == 0 || random.random_bool(0.1) {
        return json!(random.random_bool(0.8));
    }
    let mut schema = Map::new();
    let inner = |random: &mut StdRng| random_schema(random, depth - 1);
    for _ in 0..random.random_range(1..4) {
        let number = random.random_range(0..4);
        let (keyword, value) = match random.random_range(0..30) {
            0 => ("type", json!(["string", "number", "object", "array"][number])),
            1 => ("type", json!(["integer", "null"])),
            2 => ("enum", json!([1, "a", [1], {"a": 1}, null])),
            3 => ("const", json!({"a": 1.0})),
            4 => ("multipleOf", json!([0.5, 2.0, 3.0, 0.1][number])),
            5 => ("minimum", json!(number)),
            6 => ("exclusiveMaximum", json!(number)),
            7 => ("maxLength", json!(number)),
            8 => ("pattern", json!(["a", "^b", "[ab]{2}", "\\d"][number])),
            9 => ("items", inner(random)),
            10 => ("prefixItems", json!([inner(random), inner(random)])),
            11 => ("contains", inner(random)),
            12 => ("minContains", json!(number)),
            13 => ("maxContains", json!(number)),
            14 => ("minItems", json!(number)),
            15 => ("uniqueItems", json!(true)),
            16 => ("properties", json!({"a": inner(random), "b": inner(random)})),
            17 => ("patternProperties", json!({"[bc]": inner(random)})),
            18 => ("additionalProperties", inner(random)),
            19 => ("propertyNames", inner(random)),
            20 => ("required", json!(["a"])),
            21 => ("dependentRequired", json!({"a": ["b"]})),
            22 => ("dependentSchemas", json!({"b": inner(random)})),
            23 => ("allOf", json!([inner(random), inner(random)])),
            24 => ("anyOf", json!([inner(random), inner(random)])),
            25 => ("oneOf", json!([inner(random), inner(random)])),
            26 => ("not", inner(random)),
            27 => {
                schema.insert("if".to_owned(), inner(random));
                ("then", inner(random))
            }
            28 => ("unevaluatedItems", inner(random)),
            _ => ("unevaluatedProperties", inner(random)),
        };
        schema.insert(keyword.to_owned(), value);
    }
    schema.into()
}

fn random_value(random: &mut StdRng, depth: usize) -> Value {
    let inner = |random: &mut StdRng| random_value(random, depth.saturating_sub(1));
    match random.random_range(0..if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => json!(random.random_bool(0.5)),
        2 => json!(random.random_range(-2..5)),
        3 => json!([0.5, 1.0, 0.3, 1e30][random.random_range(0..4)]),
        4 => json!(["a", "ab", "b1", ""][random.random_range(0..4)]),
        5 => (0..random.random_range(0..4)).map(|_| inner(random)).collect(),
        _ => {
            let mut members = Map::new();
            for name in ["a", "b", "c", "bb"] {
                if random.random_bool(0.5) {
                    members.insert(name.to_owned(), inner(random));
                }
            }
            members.into()
        }
    }
}

#[test]
fn verdicts_are_those_of_the_library() {
    let mut random = StdRng::seed_from_u64(2020);
    let (mut valid, mut invalid) = (0, 0);
    for _ in 0..4_000 {
        let schema = random_schema(&mut random, 4);
        if !schema.is_object() {
            continue;
        }
        let library = jsonschema::draft202012::new(&schema).expect("it is a schema");
        for _ in 0..10 {
            let value = random_value(&mut random, 3);
            // In an array, as null counts as an empty object.
            let found = issues(&json!({"items": schema}), &json!([value]));
            let is_valid = library.is_valid(&value);
            assert_eq!(found.is_empty(), is_valid, "{schema} {value} {found:?}");
            if is_valid { valid += 1 } else { invalid += 1 }
        }
    }
    assert!(valid > 5_000 && invalid > 5_000, "{valid} {invalid}");
}

/// Returns texts that have the format, or nearly.
fn examples(format: &str) -> &'static [&'static str] {
    match format {
        "date-time" => &["2024-02-29T23:59:60Z", "1998-12-31t15:59:60.123-08:00"],
        "date" => &["2024-02-29", "1900-12-31"],
        "time" => &["23:59:60Z", "12:00:00.52z", "01:29:60+01:30"],
        "duration" => &["P4Y1M2DT12H30M5S", "P4W", "PT1H0S"],
        "email" => &["joe.bloggs@example.com", "\"joe@b\"@[127.0.0.1]", "te~st@a-b.c"],
        "hostname" => &["www.example.com", "a-1"],
        "ipv4" => &["127.0.0.1", "255.255.255.255"],
        "ipv6" => &["::ffff:192.0.2.128", "1:2:3:4:5:6:7:8", "1::d6:192.168.0.1"],
        "uri" | "uri-reference" | "iri" | "iri-reference" => &[
            "http://user:pw@ex%20ample.org:80/a;b=1?q=%C3%A9#f",
            "urn:oasis:names",
            "http://[::1]/é",
            "//a/../b",
        ],
        "uuid" => &["2EB8AA08-aa98-11EA-B4AA-73B441D16380"],
        "uri-template" => &["http://a.org/{+x,y.z:30}{?q*}%20'", "{/id}{&a%41}"],
        "json-pointer" => &["/foo/~0~1/%25 é", ""],
        "relative-json-pointer" => &["120/foo/~0bar", "0#"],
        format => panic!("{format} has no examples"),
    }
}

/// Changes, removes or inserts some characters.
fn changed(random: &mut StdRng, text: &str, characters: &[char]) -> String {
    let mut changed: Vec<char> = text.chars().collect();
    for _ in 0..random.random_range(0..3) {
        let at = random.random_range(0..=changed.len());
        let end = changed.len().min(at + random.random_range(0..2));
        let new = characters[random.random_range(0..characters.len())];
        changed.splice(at..end, random.random_bool(0.7).then_some(new));
    }
    changed.into_iter().collect()
}

#[test]
fn formats_are_those_of_the_library() {
    let mut random = StdRng::seed_from_u64(2020);
    for format in super::format::names() {
        let schema = json!({"format": format});
        let options = jsonschema::draft202012::options().should_validate_formats(true);
        let email = jsonschema::EmailOptions::default().without_display_text();
        let library = options.with_email_options(email).build(&schema).expect("it is a schema");
        // The library takes some characters for digits of times, and knows no `0-1` in pointers.
        let characters = match format {
            "date-time" | "date" | "time" => "0129TZé",
            _ => "0129af:/.~%#?{}[]@\"' TZPé",
        };
        let characters: Vec<char> = characters.chars().collect();
        let (mut valid, mut invalid) = (0, 0);
        for example in examples(format) {
            for _ in 0..1_000 {
                let text = json!(changed(&mut random, example, &characters));
                let found = issues(&json!({"items": schema}), &json!([text]));
                let is_valid = library.is_valid(&text);
                assert_eq!(found.is_empty(), is_valid, "{format}: {text}");
                if is_valid { valid += 1 } else { invalid += 1 }
            }
        }
        assert!(valid > 200 && invalid > 200, "{format}: {valid} {invalid}");
    }
}

#[test]
fn formats_have_the_rules_of_their_standards() {
    let cases = [
        ("date", "1-99-01-01", false),
        ("date", "2023-02-29", false),
        ("time", "23:59:60+00:30", false),
        ("hostname", "xn--ihqwcrb4cv8a8dqg056pqjye.com", true),
        ("hostname", "xn--X", false),
        ("hostname", "ab--cd", false),
        ("hostname", "xn--zn7c.com", false),
        ("hostname", "a_b", false),
        ("relative-json-pointer", "1-1/a", true),
        ("relative-json-pointer", "+1/a", false),
    ];
    for (format, text, is_valid) in cases {
        let found = issues(&json!({"items": {"format": format}}), &json!([text]));
        assert_eq!(found.is_empty(), is_valid, "{format}: {text}");
    }
}
