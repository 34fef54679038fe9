//! The cost of a schema, and the work of a validation: upper bounds in evaluations of subschemas.
//!
//! References are counted as if their targets stood in their places. So a schema whose references
//! multiply is rejected, although its text is short. Without recursion, each part of the expanded
//! schema is evaluated once for each value of the data, except parts below `unevaluatedItems` and
//! `unevaluatedProperties`, which are counted again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use galley_api_types::problem::Step;
use galley_domain::Invalid;
use serde_json::{Map, Value};

use super::pattern::{Pattern, Patterns};

/// The dialect of schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The limit on evaluations for one value.
const EVALUATIONS_MAX: u64 = 20_000;

/// The limit on regular expressions, each compiled once.
const PATTERNS_MAX: usize = 100;

/// The limit on bytes of all compiled regular expressions.
const PATTERNS_SIZE_MAX: u64 = 8 * 1024 * 1024;

/// The limits on bytes of one expression, and on escapes of character classes in it and in all. The
/// library parses an expression again for each of these escapes.
const PATTERN_LENGTH_MAX: usize = 1_000;
const CLASS_ESCAPES_MAX: usize = 20;
const ALL_CLASS_ESCAPES_MAX: usize = 200;

/// The limit on expressions in `patternProperties`, each of which has a cache for each thread.
const NAME_PATTERNS_MAX: u64 = 20;

/// The limit on names in `required`. The library looks each up in all `properties` of alternatives.
const REQUIRED_MAX: usize = 500;

/// The limit on bytes of names in the schema. The library stores the location of each keyword.
const NAME_MAX: usize = 256;

/// The limit on bytes of all locations, and on bytes of all texts, with the targets of references
/// in their places.
const MEMORY_MAX: u64 = 2 * 1024 * 1024;

/// The evaluations that take as long as a `multipleOf`, which is computed with exact fractions: up
/// to 5.5 µs.
const MULTIPLE_COST: u64 = 512;

/// The evaluations that take as long as a `format` for 16 bytes.
const FORMAT_COST: u64 = 16;

/// The bytes of texts that take as long as an evaluation: lengths are counted and texts compared.
const BYTES_PER_EVALUATION: u64 = 16;

/// The limit on levels of JSON.
const DEPTH_MAX: usize = 64;

/// The limit on schemas within one another, with the targets of references in their places.
const CHAIN_MAX: usize = 128;

/// Keywords that change the targets of references, or belong to other drafts. The library
/// evaluates some of the latter.
const UNSUPPORTED: [&str; 10] = [
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
    "additionalItems",
    "dependencies",
    "discriminator",
];

/// Keywords whose subschemas apply to the same value.
const IN_PLACE: [&str; 8] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// Keywords whose subschemas apply to its members or items.
const OF_CHILDREN: [&str; 9] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "unevaluatedProperties",
    "items",
    "prefixItems",
    "contains",
    "unevaluatedItems",
];

/// Keywords whose subschemas only references apply.
const DEFINITIONS: [&str; 3] = ["$defs", "definitions", "contentSchema"];

/// Keywords whose issues contain those of their subschemas, or the subschemas.
const ALTERNATIVES: [&str; 4] = ["anyOf", "oneOf", "not", "propertyNames"];

/// Keywords with an array of subschemas.
const ARRAYS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords with an object of subschemas by name.
const MAPS: [&str; 5] =
    ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// A reason why a schema is rejected, and the path to its place.
pub(super) type Rejected = (Vec<Step>, Invalid);

/// The result of reading a schema.
#[derive(Debug)]
pub(super) struct Analysis {
    pub(super) cost: Cost,
    pub(super) patterns: Patterns,
    /// The bytes of the longest text in it.
    pub(super) longest_text: u64,
    /// The number of values in it.
    pub(super) values: u64,
}

/// The cost of a schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// The evaluations of subschemas for a value and its members, each once.
    pub(super) evaluations: u64,
    /// The evaluations that find the members which subschemas evaluate.
    markings: u64,
    /// The keywords `multipleOf`.
    multiples: u64,
    /// The evaluations for each byte of members' names, by `patternProperties`.
    for_names: u64,
    /// The expressions in `patternProperties`.
    pub(super) name_patterns: u64,
    /// The keywords, each of which has a location.
    keywords: u64,
    /// The bytes of these locations.
    locations: u64,
    /// The bytes of texts.
    texts: u64,
    /// True if it has alternatives, whose issues are those of all subschemas.
    pub(super) has_alternatives: bool,
}

/// The size of a JSON value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    /// The number of values, itself included.
    pub(super) values: u64,
    /// The bytes of its text.
    pub(super) bytes: u64,
    /// The bytes of members' names.
    names: u64,
    /// The bytes of texts and names.
    texts: u64,
    /// The bytes of the longest text or name.
    pub(super) longest_text: u64,
    /// The number of levels.
    pub(super) depth: u64,
}

impl Size {
    /// Measures a value with a text of `bytes`.
    pub(super) fn of(value: &Value, bytes: usize) -> Self {
        let mut size = Self { bytes: bytes as u64, ..Self::default() };
        size.add(value, 1);
        size
    }

    fn add(&mut self, value: &Value, depth: u64) {
        self.values += 1;
        self.depth = self.depth.max(depth);
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.add(item, depth + 1)),
            Value::Object(members) => {
                for (name, member) in members {
                    self.names += name.len() as u64;
                    self.texts += name.len() as u64;
                    self.longest_text = self.longest_text.max(name.len() as u64);
                    self.add(member, depth + 1);
                }
            }
            Value::String(text) => {
                self.texts += text.len() as u64;
                self.longest_text = self.longest_text.max(text.len() as u64);
            }
            _ => {}
        }
    }
}

impl Cost {
    /// Returns an upper bound of the work for data of this size, in evaluations. The work of the
    /// keyword `pattern` is counted by the validation.
    pub(super) fn work(self, size: Size) -> u64 {
        let for_value =
            self.evaluations.saturating_add(self.multiples.saturating_mul(MULTIPLE_COST));
        let for_bytes = (self.evaluations / BYTES_PER_EVALUATION).saturating_mul(size.bytes);
        let for_names = self.for_names.saturating_mul(size.names + size.values);
        for_value.saturating_mul(size.values).saturating_add(for_bytes).saturating_add(for_names)
    }

    /// Returns an estimate of the memory of its compiled form, without expressions.
    pub(super) fn memory(self) -> u64 {
        2 * self.locations.saturating_add(self.texts) + 500 * self.keywords
    }

    /// Returns the cost of a subschema below a step of `bytes`.
    fn below(mut self, bytes: u64) -> Self {
        self.locations = self.locations.saturating_add(bytes.saturating_mul(self.keywords));
        self
    }

    /// Adds the cost of a subschema.
    fn add(&mut self, part: Self) {
        self.evaluations = self.evaluations.saturating_add(part.evaluations);
        self.multiples = self.multiples.saturating_add(part.multiples);
        self.for_names = self.for_names.saturating_add(part.for_names);
        self.name_patterns = self.name_patterns.saturating_add(part.name_patterns);
        self.keywords = self.keywords.saturating_add(part.keywords);
        self.locations = self.locations.saturating_add(part.locations);
        self.texts = self.texts.saturating_add(part.texts);
        self.has_alternatives |= part.has_alternatives;
    }
}

/// Returns the cost and the patterns of a schema, or the reason why it is rejected.
pub(super) fn analyze(schema: &Value) -> Result<Analysis, Rejected> {
    let size = Size::of(schema, 0);
    if size.depth > DEPTH_MAX as u64 {
        return Err((Vec::new(), too_complex(format!("must not nest over {DEPTH_MAX} levels"))));
    }
    let mut reader = SchemaReader::default();
    reader.read(schema, String::new(), &mut Vec::new())?;
    let mut counter = CostCounter { reader: &reader, known: HashMap::new(), open: HashSet::new() };
    for (path, keywords) in &counter.reader.references {
        if let Err((_, invalid)) = counter.target(keywords) {
            return Err((path.clone(), invalid));
        }
    }
    let cost = counter.count(schema)?;
    if cost.evaluations > EVALUATIONS_MAX {
        let message = "is too complex: with the targets of its references in their places, it has \
             too many subschemas and listed values";
        return Err((Vec::new(), too_complex(message)));
    }
    if cost.locations.max(cost.texts) > MEMORY_MAX {
        let message = "is too complex: with the targets of its references in their places, it has \
             too many long names and texts";
        return Err((Vec::new(), too_complex(message)));
    }
    if cost.name_patterns > NAME_PATTERNS_MAX {
        let message = format!(
            "must have at most {NAME_PATTERNS_MAX} regular expressions in patternProperties"
        );
        return Err((Vec::new(), too_complex(message)));
    }
    let Size { longest_text, values, .. } = size;
    Ok(Analysis { cost, patterns: reader.patterns, longest_text, values })
}

fn too_complex(message: impl Into<String>) -> Invalid {
    Invalid::new("schema_too_complex", message)
}

/// Reads a schema: checks its keywords, compiles its patterns, and finds its subschemas.
#[derive(Default)]
struct SchemaReader<'s> {
    /// Subschemas by their JSON Pointers.
    by_pointer: HashMap<String, &'s Value>,
    /// The values of `$ref`, with their paths.
    references: Vec<(Vec<Step>, &'s Value)>,
    pointer_bytes: u64,
    patterns: Patterns,
    class_escapes: usize,
}

impl<'s> SchemaReader<'s> {
    fn read(
        &mut self,
        schema: &'s Value,
        pointer: String,
        path: &mut Vec<Step>,
    ) -> Result<(), Rejected> {
        self.pointer_bytes += pointer.len() as u64;
        if self.pointer_bytes > MEMORY_MAX {
            let message = "is too complex: it has too many subschemas below long names";
            return Err((Vec::new(), too_complex(message)));
        }
        if let Value::Object(keywords) = schema {
            self.check_keywords(keywords, path)?;
            let subschemas =
                IN_PLACE.iter().chain(&OF_CHILDREN).chain(&DEFINITIONS).flat_map(|&keyword| {
                    let of_keyword = subschemas(keyword, keywords);
                    of_keyword.map(move |(name, subschema)| (keyword, name, subschema))
                });
            for (keyword, name, subschema) in subschemas {
                let length = path.len();
                path.push(Step::Field(keyword.to_owned()));
                let mut below = format!("{pointer}/{keyword}");
                if let Some(step) = name {
                    match &step {
                        Step::Field(name) if name.len() > NAME_MAX => {
                            let message = format!("has a name of over {NAME_MAX} bytes");
                            return Err((path.clone(), too_complex(message)));
                        }
                        Step::Field(name) => {
                            below.push('/');
                            below += &name.replace('~', "~0").replace('/', "~1");
                        }
                        Step::Item(index) => below += &format!("/{index}"),
                    }
                    path.push(step);
                }
                self.read(subschema, below, path)?;
                path.truncate(length);
            }
        }
        self.by_pointer.insert(pointer, schema);
        Ok(())
    }

    fn check_keywords(
        &mut self,
        keywords: &'s Map<String, Value>,
        path: &[Step],
    ) -> Result<(), Rejected> {
        let at = |steps: &[&str]| {
            let steps = steps.iter().map(|&step| Step::Field(step.to_owned()));
            path.iter().cloned().chain(steps).collect::<Vec<_>>()
        };
        for name in UNSUPPORTED {
            if keywords.contains_key(name) {
                return Err((at(&[name]), Invalid::new("unsupported", "is not supported")));
            }
        }
        if let Some(Value::String(uri)) = keywords.get("$schema")
            && uri.trim_end_matches('#') != DIALECT
        {
            return Err((
                at(&["$schema"]),
                Invalid::new("unsupported", format!("must be {DIALECT}")),
            ));
        }
        if keywords
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|all| all.len() > REQUIRED_MAX)
        {
            let message = format!("must have at most {REQUIRED_MAX} names");
            return Err((at(&["required"]), too_complex(message)));
        }
        if let Some(reference) = keywords.get("$ref") {
            self.references.push((at(&["$ref"]), reference));
        }
        if let Some(Value::String(text)) = keywords.get("pattern") {
            self.compile(text).map_err(|invalid| (at(&["pattern"]), invalid))?;
        }
        if let Some(Value::Object(patterns)) = keywords.get("patternProperties") {
            for text in patterns.keys() {
                self.compile(text)
                    .map_err(|invalid| (at(&["patternProperties", text]), invalid))?;
            }
        }
        Ok(())
    }

    fn compile(&mut self, text: &str) -> Result<(), Invalid> {
        if !self.patterns.contains_key(text) {
            let is_class = |pair: &[u8]| pair[0] == b'\\' && b"dDwWsSc".contains(&pair[1]);
            let escapes = text.as_bytes().windows(2).filter(|pair| is_class(pair)).count();
            self.class_escapes += escapes;
            if text.len() > PATTERN_LENGTH_MAX
                || escapes > CLASS_ESCAPES_MAX
                || self.class_escapes > ALL_CLASS_ESCAPES_MAX
            {
                return Err(too_complex(format!(
                    "is too complex: a regular expression has at most {PATTERN_LENGTH_MAX} bytes, \
                     and {CLASS_ESCAPES_MAX} escapes such as \\d ({ALL_CLASS_ESCAPES_MAX} in all)"
                )));
            }
            self.patterns.insert(text.into(), Arc::new(Pattern::compile(text)?));
        }
        let size: u64 = self.patterns.values().map(|pattern| pattern.size()).sum();
        if self.patterns.len() > PATTERNS_MAX || size > PATTERNS_SIZE_MAX {
            return Err(too_complex(format!(
                "is too complex: a schema has at most {PATTERNS_MAX} regular expressions, with \
                 {PATTERNS_SIZE_MAX} bytes in compiled form"
            )));
        }
        Ok(())
    }
}

/// Counts the cost of subschemas, each once.
struct CostCounter<'r, 's> {
    reader: &'r SchemaReader<'s>,
    /// The costs by the addresses of subschemas.
    known: HashMap<*const Value, Cost>,
    /// The subschemas that are being counted, to find recursion.
    open: HashSet<*const Value>,
}

impl<'s> CostCounter<'_, 's> {
    fn count(&mut self, schema: &'s Value) -> Result<Cost, Rejected> {
        let address = std::ptr::from_ref(schema);
        if let Some(known) = self.known.get(&address) {
            return Ok(*known);
        }
        let Value::Object(keywords) = schema else {
            return Ok(Cost { evaluations: 1, keywords: 1, ..Cost::default() });
        };
        if self.open.len() >= CHAIN_MAX {
            let message = format!("must not have over {CHAIN_MAX} schemas within one another");
            return Err((Vec::new(), too_complex(message)));
        }
        if !self.open.insert(address) {
            let message = "must not be recursive: a $ref leads back to a schema around it";
            return Err((Vec::new(), Invalid::new("recursive_schema", message)));
        }
        let cost = self.count_keywords(keywords)?;
        self.open.remove(&address);
        self.known.insert(address, cost);
        Ok(cost)
    }

    fn count_keywords(&mut self, keywords: &'s Map<String, Value>) -> Result<Cost, Rejected> {
        let mut cost = own_cost(keywords);
        if let Some(Value::Object(patterns)) = keywords.get("patternProperties") {
            let costs = patterns.keys().filter_map(|text| self.reader.patterns.get(text.as_str()));
            // Other keywords match the names again. The library's engine may be the slower one.
            cost.for_names = costs.map(|pattern| 2 * pattern.states().max(2)).sum();
            cost.name_patterns = patterns.len() as u64;
        }
        let target = match keywords.get("$ref") {
            Some(reference) => Some(("$ref", None, self.target(reference)?)),
            None => None,
        };
        let of_all = |all: &'static [&'static str]| {
            all.iter().flat_map(|&keyword| {
                subschemas(keyword, keywords).map(move |(name, schema)| (keyword, name, schema))
            })
        };
        for (keyword, name, subschema) in of_all(&IN_PLACE).chain(target) {
            let part = self.count(subschema)?.below(step_bytes(keyword, name.as_ref()));
            cost.add(part);
            let marked = part.evaluations.saturating_add(part.markings);
            cost.markings = cost.markings.saturating_add(marked);
        }
        for (keyword, name, subschema) in of_all(&OF_CHILDREN) {
            let part = self.count(subschema)?.below(step_bytes(keyword, name.as_ref()));
            cost.add(part);
            // `contains` and `unevaluatedItems` evaluate their subschemas to find members, too.
            let marked = part.evaluations.saturating_mul(2);
            cost.markings = cost.markings.saturating_add(marked);
        }
        if keywords.keys().any(|name| name.starts_with("unevaluated")) {
            cost.evaluations = cost.evaluations.saturating_add(cost.markings);
            // Subschemas are compiled again for them.
            for count in
                [&mut cost.keywords, &mut cost.locations, &mut cost.texts, &mut cost.name_patterns]
            {
                *count = count.saturating_mul(3);
            }
        }
        Ok(cost)
    }

    /// Returns the target of a reference, which is a JSON Pointer (RFC 6901) into this schema.
    fn target(&self, reference: &Value) -> Result<&'s Value, Rejected> {
        let text = reference.as_str().unwrap_or_default();
        let rejected = || {
            let shown: String = text.chars().take(100).collect();
            let message = format!(
                "has the $ref {shown:?}: a $ref must lead to a subschema of the schema itself, \
                 such as #/$defs/name"
            );
            (Vec::new(), Invalid::new("unsupported", message))
        };
        let pointer = text.strip_prefix('#').ok_or_else(rejected)?;
        let pointer =
            percent_encoding::percent_decode_str(pointer).decode_utf8().map_err(|_| rejected())?;
        self.reader.by_pointer.get(&*pointer).copied().ok_or_else(rejected)
    }
}

/// Returns the cost of a schema without that of its subschemas: its keywords, with all values that
/// they list.
fn own_cost(keywords: &Map<String, Value>) -> Cost {
    let mut cost = Cost { evaluations: 1, keywords: 1, ..Cost::default() };
    for (name, value) in keywords {
        let name = name.as_str();
        cost.keywords += 1;
        cost.locations += 1 + name.len() as u64;
        cost.multiples += u64::from(name == "multipleOf");
        cost.has_alternatives |= ALTERNATIVES.contains(&name);
        let is_applied =
            [&IN_PLACE[..], &OF_CHILDREN, &DEFINITIONS].iter().any(|all| all.contains(&name));
        cost.evaluations += match name {
            _ if is_applied => 1,
            "format" => FORMAT_COST,
            _ => {
                let size = Size::of(value, 0);
                cost.texts += size.texts;
                size.values
            }
        };
    }
    cost
}

/// Returns the bytes of the steps from a schema to a subschema.
fn step_bytes(keyword: &str, name: Option<&Step>) -> u64 {
    let name = match name {
        Some(Step::Field(name)) => 1 + name.len(),
        Some(Step::Item(_)) => 6,
        None => 0,
    };
    (1 + keyword.len() + name) as u64
}

/// Returns the subschemas of a keyword, each with its name or index.
fn subschemas<'s>(
    keyword: &'static str,
    keywords: &'s Map<String, Value>,
) -> Box<dyn Iterator<Item = (Option<Step>, &'s Value)> + 's> {
    match keywords.get(keyword) {
        Some(Value::Array(items)) if ARRAYS.contains(&keyword) => {
            Box::new(items.iter().enumerate().map(|(index, item)| (Some(Step::Item(index)), item)))
        }
        Some(Value::Object(parts)) if MAPS.contains(&keyword) => {
            Box::new(parts.iter().map(|(name, part)| (Some(Step::Field(name.clone())), part)))
        }
        Some(other) if !ARRAYS.contains(&keyword) && !MAPS.contains(&keyword) => {
            Box::new(std::iter::once((None, other)))
        }
        _ => Box::new(std::iter::empty()),
    }
}
