//! Compilation of a schema.

use serde_json::Value;

use super::compiler::{Compiler, PathId, ROOT_PATH, Rejected, invalid};
use super::keyword_reader::KeywordReader;
use super::loops::check_loops;
use super::pattern::Pattern;
use super::schema::{CompiledSchema, Subschema};

/// The bytes of a keyword in memory, by estimate.
const BYTES_PER_KEYWORD: u64 = 250;

/// Compiles a schema.
pub(super) fn compile(root: &Value) -> Result<CompiledSchema, Rejected> {
    let mut state = Compiler::new(root);
    state.subschema(root, ROOT_PATH);
    while let Some((value, path)) = state.waiting.pop() {
        let id = state.ids[&std::ptr::from_ref(value)];
        let compiled = state.compile(value, path)?;
        state.compiled[id as usize] = Some(compiled);
    }
    let subschemas: Vec<Subschema> = state.compiled.into_iter().flatten().collect();
    check_loops(&subschemas).map_err(|invalid| (Vec::new(), invalid))?;
    let of_patterns: u64 = state.patterns.iter().map(Pattern::size).sum();
    let work: u64 = state.patterns.iter().map(Pattern::work).sum();
    Ok(CompiledSchema {
        subschemas,
        patterns: state.patterns,
        size: state.size + of_patterns,
        work: work + state.size / 2,
    })
}

impl<'v> Compiler<'v> {
    fn compile(&mut self, value: &'v Value, path: PathId) -> Result<Subschema, Rejected> {
        self.size += BYTES_PER_KEYWORD;
        match value {
            Value::Bool(accepts) => Ok(Subschema::Boolean(*accepts)),
            Value::Object(keywords) => {
                let mut reader = KeywordReader { compiler: self, keywords, path, read: Vec::new() };
                reader.read_all()?;
                let (mut read, last): (Vec<_>, Vec<_>) =
                    reader.read.into_iter().partition(|keyword| !keyword.is_of_unevaluated());
                read.extend(last);
                self.size += BYTES_PER_KEYWORD * read.len() as u64;
                Ok(Subschema::Keywords(read.into()))
            }
            _ => Err((self.steps(path), invalid("must be an object or a boolean"))),
        }
    }
}
