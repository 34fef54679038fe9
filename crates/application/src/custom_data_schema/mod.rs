//! Validation of custom data by the JSON Schema (2020-12) of a group.
//!
//! Any client that may change groups can set a schema, so both its compilation and each validation
//! are bounded: no network, regular expressions in linear time, no recursion, and a limit on the
//! work that the schema's cost and the size of the data allow.

mod cost;
mod pattern;
mod unique_items;

use std::fmt::{self, Write as _};
use std::sync::{Arc, LazyLock};

use galley_api_types::problem::{Issue, Step};
use galley_domain::Invalid;
use galley_domain::custom_data_schema::CustomDataSchema;
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use jsonschema::{EmailOptions, PatternOptions, ValidationError, Validator};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use serde_json::Value;

use self::cost::{Analysis, Cost, Size, analyze};

/// The field of a group that has a schema.
const FIELD: &str = "customDataSchema";

/// The field of a piece that a schema describes.
const DATA_FIELD: &str = "customData";

/// The limit on the work of a validation, in evaluations. It takes 0.1 to 0.2 s on one core.
pub const WORK_MAX: u64 = 1 << 24;

/// The limit on bytes that the issues of one piece may take while they are collected.
const COLLECTED_MAX: u64 = 64 * 1024 * 1024;

/// The limit on issues of one piece.
const ISSUES_MAX: usize = 100;

/// The limit on bytes of the issues of one piece.
const ISSUE_BYTES_MAX: usize = 64 * 1024;

/// The limit on characters of an issue's message.
const MESSAGE_MAX: usize = 300;

/// The limit on characters of a name in an issue's path.
const STEP_MAX: usize = 100;

/// The limits on bytes of a regular expression that the library compiles, for `patternProperties`,
/// and of the cache of its matches.
const NAME_PATTERN_SIZE_MAX: usize = 256 * 1024;
const NAME_PATTERN_CACHE: usize = 16 * 1024;

/// The memory of such an expression, by estimate: several threads have a cache.
const NAME_PATTERN_MEMORY: u64 = 512 * 1024;

/// The bytes of data that are parsed, and of a schema that are compiled, in the time of an
/// evaluation.
const BYTES_PER_EVALUATION: u64 = 4;

/// The bytes of a value in a compiled schema, by estimate.
const BYTES_PER_VALUE: u64 = 500;

/// The limit on bytes of all cached schemas, by estimate.
const CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// A compiled schema.
#[derive(Debug)]
struct CompiledSchema {
    validator: Validator,
    cost: Cost,
    /// The bytes of the longest text in it.
    longest_text: u64,
    /// The bytes of its memory, by estimate.
    size: u64,
}

/// The cache of compiled schemas, by their texts. It is not divided, so that any schema fits.
static COMPILED: LazyLock<Cache<String, Arc<CompiledSchema>, CompiledSize>> = LazyLock::new(|| {
    let options = OptionsBuilder::new()
        .shards(1)
        .estimated_items_capacity(1_000)
        .weight_capacity(CACHE_BYTES)
        .build()
        .expect("the capacities are set");
    let hasher = DefaultHashBuilder::default();
    Cache::with_options(options, CompiledSize, hasher, DefaultLifecycle::default())
});

#[derive(Debug, Clone)]
struct CompiledSize;

impl Weighter<String, Arc<CompiledSchema>> for CompiledSize {
    fn weight(&self, _: &String, schema: &Arc<CompiledSchema>) -> u64 {
        schema.size
    }
}

/// The work that the validations of one request may take.
#[derive(Debug)]
pub struct WorkBudget {
    left: u64,
}

impl Default for WorkBudget {
    fn default() -> Self {
        Self { left: WORK_MAX }
    }
}

impl WorkBudget {
    /// Returns the work done, in evaluations.
    pub fn used(&self) -> u64 {
        WORK_MAX - self.left
    }
}

/// Returns the issues of a schema that can't be used.
pub fn check(schema: &CustomDataSchema) -> Result<(), Vec<Issue>> {
    compiled(schema).map(drop)
}

/// Validates custom data, of which null counts as an empty object. Returns its issues; none if it
/// is valid.
pub fn validate(
    schema: &CustomDataSchema,
    data: Option<&str>,
    budget: &mut WorkBudget,
) -> Vec<Issue> {
    let text = data.filter(|text| text.trim() != "null").unwrap_or("{}");
    let (schema, is_new) = match compiled(schema) {
        Ok(found) => found,
        // It was accepted by an earlier version.
        Err(issues) => return issues,
    };
    if is_new {
        budget.left = budget.left.saturating_sub(schema.size / BYTES_PER_EVALUATION);
    }
    budget.left = budget.left.saturating_sub(text.len() as u64 / BYTES_PER_EVALUATION);
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            return vec![issue(Vec::new(), &format!("can't be matched with a schema: {error}"))];
        }
    };
    let size = Size::of(&value, text.len());
    let too_large = || {
        let message =
            "is too large for its schema: shorten one of them, or send fewer pieces at once";
        vec![issue(Vec::new(), message)]
    };
    let work = schema.cost.work(size);
    let left = budget.left.saturating_sub(work);
    pattern::set_budget(left);
    if left == 0 {
        return too_large();
    }
    let is_valid = schema.validator.is_valid(&value);
    budget.left = pattern::budget_left();
    if budget.left == 0 {
        return too_large();
    }
    if is_valid {
        return Vec::new();
    }
    let issues = schema.collect_issues(&value, size);
    budget.left = pattern::budget_left().saturating_sub(work);
    if budget.left == 0 { vec![without_details()] } else { issues }
}

impl CompiledSchema {
    /// Returns the issues of data that is not valid.
    fn collect_issues(&self, value: &Value, size: Size) -> Vec<Issue> {
        let evaluations = self.cost.evaluations;
        let path = size.longest_text.saturating_mul(size.depth);
        let mut bytes =
            evaluations.saturating_mul(size.values).saturating_mul(300 + path + self.longest_text);
        if self.cost.has_alternatives {
            // Each of these issues has a copy of its value.
            let copies = size.bytes.saturating_mul(size.depth);
            bytes = bytes.saturating_add(evaluations.saturating_mul(copies));
        }
        let mut issues = IssueCollector::default();
        if bytes <= COLLECTED_MAX {
            self.validator.iter_errors(value).for_each(|error| issues.add(&error));
        } else if !self.cost.has_alternatives {
            self.validator.validate(value).err().iter().for_each(|error| issues.add(error));
        }
        if issues.all.is_empty() {
            return vec![without_details()];
        }
        issues.all
    }
}

fn without_details() -> Issue {
    issue(Vec::new(), "does not match its schema; it is too large for details")
}

/// The issues of one piece, up to the limits.
#[derive(Default)]
struct IssueCollector {
    all: Vec<Issue>,
    bytes: usize,
}

impl IssueCollector {
    fn add(&mut self, error: &ValidationError<'_>) {
        if let Some(errors) = errors_of_alternative(error) {
            return errors.iter().for_each(|error| self.add(error));
        }
        if self.all.len() == ISSUES_MAX || self.bytes > ISSUE_BYTES_MAX {
            return;
        }
        let issue = issue_of(error);
        // The message contains the path.
        self.bytes += 3 * issue.message.len();
        self.all.push(issue);
    }
}

/// Returns the errors of the only alternative that is meant: the others have errors of `const` or
/// `enum`, which distinguish the alternatives.
fn errors_of_alternative<'e>(
    error: &'e ValidationError<'_>,
) -> Option<&'e Vec<ValidationError<'static>>> {
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return None;
    };
    let distinguishes = |error: &ValidationError<'_>| {
        let kind = error.kind();
        matches!(kind, ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. })
    };
    let mut meant = context.iter().filter(|errors| !errors.iter().any(distinguishes));
    meant.next().filter(|errors| meant.next().is_none() && !errors.is_empty())
}

/// Returns a compiled schema, and true if it was not in the cache.
fn compiled(schema: &CustomDataSchema) -> Result<(Arc<CompiledSchema>, bool), Vec<Issue>> {
    if let Some(known) = COMPILED.get(schema.as_str()) {
        return Ok((known, false));
    }
    let compiled = Arc::new(compile(schema).map_err(|issue| vec![issue])?);
    COMPILED.insert(schema.as_str().to_owned(), Arc::clone(&compiled));
    Ok((compiled, true))
}

fn compile(schema: &CustomDataSchema) -> Result<CompiledSchema, Issue> {
    let at = |path: Vec<Step>, invalid: &Invalid| {
        let field = Step::Field(FIELD.to_owned());
        Issue::new(
            [field].into_iter().chain(path.into_iter().map(shortened_step)).collect(),
            invalid,
        )
    };
    let invalid = |message| at(Vec::new(), &Invalid::new("invalid_schema", message));
    let value: Value = serde_json::from_str(schema.as_str())
        .map_err(|_| invalid("must be JSON of at most 128 levels"))?;
    if !value.is_object() {
        return Err(invalid("must be an object"));
    }
    let analysis = analyze(&value).map_err(|(path, found)| at(path, &found))?;
    let Analysis { cost, patterns, longest_text, values } = analysis;
    let size_of_patterns: u64 = patterns.values().map(|pattern| pattern.size()).sum();
    let of_names = PatternOptions::regex()
        .size_limit(NAME_PATTERN_SIZE_MAX)
        .dfa_size_limit(NAME_PATTERN_CACHE);
    let options = jsonschema::draft202012::options()
        .offline()
        .with_pattern_options(of_names)
        .with_keyword("pattern", move |_, value, _| pattern::keyword(&patterns, value))
        .with_keyword("uniqueItems", |_, value, _| Ok(unique_items::keyword(value)))
        // The library's check takes quadratic time.
        .with_format("regex", |_| true)
        .with_email_options(EmailOptions::default().without_display_text())
        .should_validate_formats(true);
    let validator = options.build(&value).map_err(|error| {
        let message = shortened(&format!("is no valid schema: {}", error.masked()));
        at(steps_of(&error), &Invalid::new("invalid_schema", message))
    })?;
    let size = 10 * schema.as_str().len() as u64
        + cost.memory()
        + BYTES_PER_VALUE * cost.evaluations.max(values)
        + size_of_patterns
        + cost.name_patterns * NAME_PATTERN_MEMORY;
    Ok(CompiledSchema { validator, cost, longest_text, size })
}

/// Returns an issue of custom data.
fn issue(steps: Vec<Step>, message: &str) -> Issue {
    let field = Step::Field(DATA_FIELD.to_owned());
    let path = [field].into_iter().chain(steps.into_iter().map(shortened_step)).collect();
    Issue::new(path, &Invalid::new("schema_violation", shortened(message)))
}

fn issue_of(error: &ValidationError<'_>) -> Issue {
    let mut steps = steps_of(error);
    let message = match error.kind() {
        ValidationErrorKind::Required { property } => {
            steps.extend(property.as_str().map(|name| Step::Field(name.to_owned())));
            "is required".to_owned()
        }
        // The value may be large, or a secret.
        _ => {
            let mut message = BoundedText(String::new());
            let _ = write!(message, "{}", error.masked());
            message.0
        }
    };
    issue(steps, &message)
}

/// A text that takes no more once it is longer than a message.
struct BoundedText(String);

impl fmt::Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text;
        if self.0.len() > 4 * MESSAGE_MAX { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Returns the steps to the value with the error.
fn steps_of(error: &ValidationError<'_>) -> Vec<Step> {
    let step = |segment: LocationSegment<'_>| match segment {
        LocationSegment::Property(name) => Step::Field(name.to_string()),
        LocationSegment::Index(index) => Step::Item(index),
    };
    error.instance_path().iter().map(step).collect()
}

fn shortened_step(step: Step) -> Step {
    match step {
        Step::Field(name) => Step::Field(up_to(&name, STEP_MAX)),
        item @ Step::Item(_) => item,
    }
}

fn shortened(message: &str) -> String {
    up_to(message, MESSAGE_MAX)
}

fn up_to(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
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
    fn schemas_whose_evaluation_multiplies_are_rejected() {
        let nested = |wrap: &dyn Fn(Value) -> Value, depth: usize| {
            (0..depth).fold(json!({}), |inner, _| wrap(inner))
        };
        for wrap in [
            (|inner| json!({"contains": inner, "unevaluatedItems": false})) as fn(Value) -> Value,
            |inner| json!({"unevaluatedItems": inner}),
            |inner| json!({"anyOf": [{"type": "object"}], "unevaluatedProperties": inner}),
            |inner| json!({"allOf": [inner], "unevaluatedProperties": {}}),
        ] {
            assert_eq!(code(&nested(&wrap, 4)), "accepted");
            assert_eq!(code(&nested(&wrap, 20)), "schema_too_complex");
        }
        let keys: Map<String, Value> =
            (0..2_000).map(|key| (format!("k{key}"), json!(["x"]))).collect();
        let many = json!({"items": {"allOf": vec![json!({"$ref": "#/$defs/d"}); 20]},
            "$defs": {"d": {"dependentRequired": keys}}});
        assert_eq!(code(&many), "schema_too_complex");
        let many = json!({"allOf": vec![json!({"type": "null"}); 900]});
        let long_name = json!({"properties": {"k".repeat(20_000): many}});
        assert_eq!(code(&long_name), "schema_too_complex");
    }

    #[test]
    fn data_that_takes_too_much_work_is_rejected() {
        let multiples = json!({"items": {"allOf": vec![json!({"multipleOf": 2}); 1_200]}});
        assert!(is_rejected(&multiples, &json!(vec![2; 100])));
        assert!(!is_rejected(&multiples, &json!(vec![2; 20])));
        let pattern = json!({"items": {"pattern": "(a|b|ab)*[ab]*a[ab]{900}c"}});
        assert!(is_rejected(&pattern, &json!(["a".repeat(60_000)])));
        assert!(!is_rejected(&pattern, &json!(["a".repeat(60)])));
        let wide = json!({"items": {"allOf": vec![json!({"type": "number"}); 900]}});
        assert!(is_rejected(&wide, &json!(vec![1; 9_000])));
        assert!(!is_rejected(&wide, &json!(vec![1; 6_000])));
        let names: Vec<_> = (0..5_000).map(|name| name.to_string()).collect();
        let listed = json!({"items": {"dependentRequired": {"a": names}}});
        assert!(is_rejected(&listed, &json!(vec![json!({"a": 1}); 2_000])));
        let field = |number: usize| match number {
            0..10 => (
                format!("field{number}"),
                json!({"type": "string", "pattern": "^[a-z0-9-]{1,64}$"}),
            ),
            _ => (format!("field{number}"), json!({"type": "string", "maxLength": 100})),
        };
        let fields: Map<String, Value> = (0..150).map(field).collect();
        let usual = json!({"properties": {"items": {"items": {"properties": fields}}}});
        let item =
            json!({"field1": "a-slug", "field20": "b".repeat(30), "field21": "c".repeat(30)});
        assert_eq!(issues(&usual, &json!({"items": vec![item; 1_000]})), []);
    }

    #[test]
    fn the_work_of_issues_is_limited() {
        let schema = json!({"properties": {"a": {"type": "number"},
            "b": {"pattern": "(a|b|ab)*[ab]*a[ab]{900}c"}}});
        let (schema, mut budget) = (self::schema(&schema), WorkBudget::default());
        let data = json!({"a": "x", "b": "a".repeat(2_000)}).to_string();
        while budget.left > 0 {
            let used = budget.used();
            assert!(!validate(&schema, Some(&data), &mut budget).is_empty());
            assert!(budget.used() > used + 1_000_000, "{}", budget.used() - used);
        }
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
            (
                &json!({"items": {"anyOf": vec![json!({"type": "null"}); 300]}}),
                json!(vec!["b"; 8_000]),
            ),
        ] {
            let issues = issues(schema, &data);
            let bytes: usize = issues.iter().map(|issue| issue.message.len()).sum();
            assert!(!issues.is_empty() && bytes < ISSUE_BYTES_MAX, "{bytes}");
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
        ] {
            let schema = json!({"pattern": pattern});
            assert_eq!(issues(&schema, &json!(matching)), [], "{pattern}");
            assert_eq!(issues(&schema, &json!(other)).is_empty(), pattern.is_empty(), "{pattern}");
        }
        assert_eq!(code(&json!({"pattern": "(?!draft)"})), "invalid_schema");
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
            json!({"$ref": "#/const/a", "const": {"a": {}}}),
            json!({"$defs": {"a": {"not": {"$dynamicRef": "#"}}}}),
        ] {
            assert_eq!(code(&rejected), "unsupported", "{rejected}");
        }
    }

    #[test]
    fn the_issues_of_the_meant_alternative_are_returned() {
        let block = |name: &str, field: &str| {
            let kind = json!({"const": name});
            json!({"required": [field], "properties": {"type": kind}})
        };
        let page = json!({"items": {"oneOf": [block("text", "body"), block("image", "src")]}});
        let found = issues(&page, &json!([{"type": "text", "body": 1}, {"type": "image"}]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].message, "customData/1/src is required");
        let found = issues(&page, &json!([{"type": "video"}]));
        assert!(found[0].message.starts_with("customData/0 "), "{found:?}");
    }
}
