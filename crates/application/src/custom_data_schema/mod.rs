//! Validation of custom data by the JSON Schema (2020-12) of a group.
//!
//! Any client that may change groups can set a schema, so both its compilation and each validation
//! are bounded. Each step of an evaluation takes work from a budget of the request, and a compiled
//! schema has each of its subschemas once.

mod budget;
mod canonical;
mod compile;
mod compiler;
mod decimal;
mod evaluate;
mod format;
mod issues;
mod keyword_reader;
mod keywords;
mod loops;
mod pattern;
mod schema;

use std::sync::{Arc, LazyLock};

pub use budget::{WORK_MAX, WorkBudget};
use galley_api_types::problem::Issue;
use galley_domain::Invalid;
use galley_domain::custom_data_schema::CustomDataSchema;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use serde_json::{Map, Value};

use self::budget::Exhausted;
use self::issues::{issue, schema_issue};
use self::schema::CompiledSchema;

/// The bytes of text that are parsed in the time of a unit of work, and the units for each value:
/// `[[],[]]` takes 16 times as long as a text.
const BYTES_PER_UNIT: u64 = 4;
const UNITS_PER_VALUE: u64 = 8;

/// The limit on bytes of all cached schemas, by estimate. The allocator takes up to three times as
/// much.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;

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
    fn weight(&self, text: &String, schema: &Arc<CompiledSchema>) -> u64 {
        text.len() as u64 + schema.size
    }
}

/// Returns the issues of a schema that can't be used.
pub fn check(schema: &CustomDataSchema) -> Result<(), Vec<Issue>> {
    let (compiled, _) = compiled(schema)?;
    let nothing = Value::Object(Map::new());
    match evaluate::is_valid(&compiled, &nothing, &mut WorkBudget::default()) {
        Ok(_) => Ok(()),
        Err(Exhausted) => {
            let message = "is too complex: its references multiply, or nest over 400 times";
            Err(vec![schema_issue(Vec::new(), &Invalid::new("schema_too_complex", message))])
        }
    }
}

/// Validates custom data, of which null counts as an empty object. Returns its issues; none if it
/// is valid.
pub fn validate(
    schema: &CustomDataSchema,
    data: Option<&str>,
    budget: &mut WorkBudget,
) -> Vec<Issue> {
    validate_within(schema, data, budget).unwrap_or_else(|Exhausted| {
        let message =
            "is too large for its schema: shorten one of them, or send fewer pieces at once";
        vec![issue(Vec::new(), message)]
    })
}

fn validate_within(
    schema: &CustomDataSchema,
    data: Option<&str>,
    budget: &mut WorkBudget,
) -> Result<Vec<Issue>, Exhausted> {
    let text = data.filter(|text| text.trim() != "null").unwrap_or("{}");
    let values = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() as u64;
    budget.charge(1 + text.len() as u64 / BYTES_PER_UNIT + UNITS_PER_VALUE * values)?;
    let (schema, is_new) = match compiled(schema) {
        Ok(found) => found,
        // It was accepted by an earlier version.
        Err(issues) => return Ok(issues),
    };
    if is_new {
        budget.charge(schema.work)?;
    }
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => {
            return Ok(vec![issue(
                Vec::new(),
                &format!("can't be matched with a schema: {error}"),
            )]);
        }
    };
    if evaluate::is_valid(&schema, &value, budget)? {
        return Ok(Vec::new());
    }
    let issues = evaluate::issues(&schema, &value, budget).unwrap_or_default();
    if issues.is_empty() {
        let message = "does not match its schema; it is too large for details";
        return Ok(vec![issue(Vec::new(), message)]);
    }
    Ok(issues)
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
    let invalid = |message| schema_issue(Vec::new(), &Invalid::new("invalid_schema", message));
    let value: Value = serde_json::from_str(schema.as_str())
        .map_err(|_| invalid("must be JSON of at most 128 levels"))?;
    if !value.is_object() {
        return Err(invalid("must be an object"));
    }
    compile::compile(&value).map_err(|(path, invalid)| schema_issue(path, &invalid))
}

#[cfg(test)]
mod tests;
