//! The state of a compilation: the subschemas with their paths, and the regular expressions.

use std::collections::HashMap;

use galley_api_types::problem::Step;
use galley_domain::Invalid;
use serde_json::Value;

use super::issues::shortened;
use super::pattern::Pattern;
use super::schema::{SchemaId, Subschema};

/// The limit on regular expressions, each compiled once, and on bytes of their compiled forms.
const PATTERNS_MAX: usize = 100;
const PATTERNS_SIZE_MAX: u64 = 8 * 1024 * 1024;

/// A reason why a schema is rejected, and the path to its place.
pub(super) type Rejected = (Vec<Step>, Invalid);

pub(super) struct Compiler<'v> {
    root: &'v Value,
    /// The numbers of subschemas by their addresses in the value.
    pub(super) ids: HashMap<*const Value, SchemaId>,
    pub(super) compiled: Vec<Option<Subschema>>,
    /// The subschemas that are not compiled yet, with their paths.
    pub(super) waiting: Vec<(&'v Value, PathId)>,
    /// The last step of each path, and the path before it.
    paths: Vec<(PathId, SchemaPathStep<'v>)>,
    pub(super) patterns: Vec<Pattern>,
    known_patterns: HashMap<&'v str, u32>,
    /// The bytes of memory, by estimate.
    pub(super) size: u64,
}

/// The number of a path. As subschemas share the beginnings of their paths, none is copied.
pub(super) type PathId = usize;

/// The path to the schema itself.
pub(super) const ROOT_PATH: PathId = usize::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) enum SchemaPathStep<'v> {
    Name(&'v str),
    Item(usize),
}

impl<'v> Compiler<'v> {
    pub(super) fn new(root: &'v Value) -> Self {
        Self {
            root,
            ids: HashMap::new(),
            compiled: Vec::new(),
            waiting: Vec::new(),
            paths: Vec::new(),
            patterns: Vec::new(),
            known_patterns: HashMap::new(),
            size: 0,
        }
    }

    /// Returns the number of a subschema, which is compiled later.
    pub(super) fn subschema(&mut self, value: &'v Value, path: PathId) -> SchemaId {
        let next = SchemaId::try_from(self.compiled.len()).unwrap_or(SchemaId::MAX);
        let id = *self.ids.entry(std::ptr::from_ref(value)).or_insert(next);
        if id == next {
            self.compiled.push(None);
            self.waiting.push((value, path));
        }
        id
    }

    /// Returns the path that continues another one.
    pub(super) fn step(&mut self, path: PathId, step: SchemaPathStep<'v>) -> PathId {
        self.paths.push((path, step));
        self.paths.len() - 1
    }

    /// Returns the steps of a path.
    pub(super) fn steps(&self, path: PathId) -> Vec<Step> {
        let last = self.paths.get(path);
        let mut steps: Vec<_> = std::iter::successors(last, |(path, _)| self.paths.get(*path))
            .map(|(_, step)| match step {
                SchemaPathStep::Name(name) => Step::Field(shortened(name)),
                SchemaPathStep::Item(index) => Step::Item(*index),
            })
            .collect();
        steps.reverse();
        steps
    }

    /// Returns the number of a regular expression.
    pub(super) fn pattern(&mut self, text: &'v str) -> Result<u32, Invalid> {
        if let Some(&known) = self.known_patterns.get(text) {
            return Ok(known);
        }
        let pattern = Pattern::compile(text)?;
        let size: u64 = self.patterns.iter().map(Pattern::size).sum();
        if self.patterns.len() >= PATTERNS_MAX || size + pattern.size() > PATTERNS_SIZE_MAX {
            let message = format!(
                "is too complex: a schema has at most {PATTERNS_MAX} regular expressions, with \
                 {PATTERNS_SIZE_MAX} bytes in compiled form"
            );
            return Err(Invalid::new("schema_too_complex", message));
        }
        let id = u32::try_from(self.patterns.len()).unwrap_or(u32::MAX);
        self.patterns.push(pattern);
        self.known_patterns.insert(text, id);
        Ok(id)
    }

    /// Returns the target of a reference, which is a JSON Pointer (RFC 6901) into this schema.
    pub(super) fn target(&self, reference: &str) -> Option<&'v Value> {
        let pointer = reference.strip_prefix('#')?;
        let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&pointer)
    }
}

pub(super) fn invalid(message: impl Into<String>) -> Invalid {
    Invalid::new("invalid_schema", message)
}
