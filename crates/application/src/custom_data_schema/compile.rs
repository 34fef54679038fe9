//! Compilation of a schema.

use std::collections::{HashMap, HashSet};

use galley_api_types::problem::Step;
use galley_domain::Invalid;
use serde_json::{Map, Number, Value};

use super::budget::WorkBudget;
use super::canonical;
use super::decimal::Decimal;
use super::format::Format;
use super::issues::shortened;
use super::loops::check_loops;
use super::pattern::Pattern;
use super::schema::{
    Bound, CompiledSchema, Contains, Keyword, Listed, Members, Names, SchemaId, Subschema, Types,
};

/// The dialect of schemas.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Keywords that change the targets of references, or belong to other drafts.
const UNSUPPORTED: [&str; 9] = [
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
    "additionalItems",
    "dependencies",
];

/// The limit on regular expressions, each compiled once, and on bytes of their compiled forms.
const PATTERNS_MAX: usize = 100;
const PATTERNS_SIZE_MAX: u64 = 8 * 1024 * 1024;

/// The bytes of a keyword in memory, and of a listed value besides its text, by estimate.
const BYTES_PER_KEYWORD: u64 = 250;
const BYTES_PER_VALUE: u64 = 100;

/// The limit on bytes of the text that shows the values of `const` or `enum`.
const SHOWN_MAX: usize = 200;

/// A reason why a schema is rejected, and the path to its place.
pub(super) type Rejected = (Vec<Step>, Invalid);

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

struct Compiler<'v> {
    root: &'v Value,
    /// The numbers of subschemas by their addresses in the value.
    ids: HashMap<*const Value, SchemaId>,
    compiled: Vec<Option<Subschema>>,
    /// The subschemas that are not compiled yet, with their paths.
    waiting: Vec<(&'v Value, PathId)>,
    /// The last step of each path, and the path before it.
    paths: Vec<(PathId, PathStep<'v>)>,
    patterns: Vec<Pattern>,
    known_patterns: HashMap<&'v str, u32>,
    /// The bytes of memory, by estimate.
    size: u64,
}

/// The number of a path. As subschemas share the beginnings of their paths, none is copied.
type PathId = usize;

/// The path to the schema itself.
const ROOT_PATH: PathId = usize::MAX;

#[derive(Debug, Clone, Copy)]
enum PathStep<'v> {
    Name(&'v str),
    Item(usize),
}

/// The keywords of a subschema, and the path to it.
struct KeywordReader<'c, 'v> {
    compiler: &'c mut Compiler<'v>,
    keywords: &'v Map<String, Value>,
    path: PathId,
    read: Vec<Keyword>,
}

impl<'v> Compiler<'v> {
    fn new(root: &'v Value) -> Self {
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
    fn subschema(&mut self, value: &'v Value, path: PathId) -> SchemaId {
        let next = SchemaId::try_from(self.compiled.len()).unwrap_or(SchemaId::MAX);
        let id = *self.ids.entry(std::ptr::from_ref(value)).or_insert(next);
        if id == next {
            self.compiled.push(None);
            self.waiting.push((value, path));
        }
        id
    }

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

    /// Returns the path that continues another one.
    fn step(&mut self, path: PathId, step: PathStep<'v>) -> PathId {
        self.paths.push((path, step));
        self.paths.len() - 1
    }

    /// Returns the steps of a path.
    fn steps(&self, path: PathId) -> Vec<Step> {
        let last = self.paths.get(path);
        let mut steps: Vec<_> = std::iter::successors(last, |(path, _)| self.paths.get(*path))
            .map(|(_, step)| match step {
                PathStep::Name(name) => Step::Field(shortened(name)),
                PathStep::Item(index) => Step::Item(*index),
            })
            .collect();
        steps.reverse();
        steps
    }

    /// Returns the number of a regular expression.
    fn pattern(&mut self, text: &'v str) -> Result<u32, Invalid> {
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
    fn target(&self, reference: &str) -> Option<&'v Value> {
        let pointer = reference.strip_prefix('#')?;
        let pointer = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
        self.root.pointer(&pointer)
    }
}

fn invalid(message: impl Into<String>) -> Invalid {
    Invalid::new("invalid_schema", message)
}

impl<'v> KeywordReader<'_, 'v> {
    /// Returns the path to a keyword.
    fn at(&self, keyword: &str) -> Vec<Step> {
        let mut steps = self.compiler.steps(self.path);
        steps.push(Step::Field(keyword.to_owned()));
        steps
    }

    fn rejected(&self, keyword: &str, message: impl Into<String>) -> Rejected {
        (self.at(keyword), invalid(message))
    }

    fn subschema(
        &mut self,
        keyword: &'v str,
        part: Option<PathStep<'v>>,
        value: &'v Value,
    ) -> SchemaId {
        let mut path = self.compiler.step(self.path, PathStep::Name(keyword));
        if let Some(part) = part {
            path = self.compiler.step(path, part);
        }
        self.compiler.subschema(value, path)
    }

    fn read_all(&mut self) -> Result<(), Rejected> {
        for name in UNSUPPORTED {
            if self.keywords.contains_key(name) {
                let unsupported = Invalid::new("unsupported", "is not supported");
                return Err((self.at(name), unsupported));
            }
        }
        let mut members = Members::default();
        for (name, value) in self.keywords {
            self.compiler.size += name.len() as u64;
            match name.as_str() {
                "properties" => members.named = self.schemas_by_name(name, value)?.collect(),
                "patternProperties" => {
                    for (text, schema) in self.schemas_by_name(name, value)?.collect::<Vec<_>>() {
                        let text = self.keywords[name.as_str()]
                            .as_object()
                            .and_then(|all| all.get_key_value(&*text))
                            .map_or("", |(text, _)| text);
                        let pattern = self.pattern(name, Some(text), text)?;
                        members.matching.push((pattern, schema));
                    }
                }
                "additionalProperties" => {
                    members.additional = Some(self.subschema(name, None, value));
                }
                _ => {
                    if let Some(keyword) = self.keyword(name, value)? {
                        self.read.push(keyword);
                    }
                }
            }
        }
        if !members.named.is_empty() || !members.matching.is_empty() || members.additional.is_some()
        {
            self.read.push(Keyword::Members(Box::new(members)));
        }
        Ok(())
    }

    fn keyword(&mut self, name: &'v str, value: &'v Value) -> Result<Option<Keyword>, Rejected> {
        Ok(Some(match name {
            "$schema" => {
                let text = self.text(name, value)?;
                if text.trim_end_matches('#') != DIALECT {
                    let message = format!("must be {DIALECT}");
                    return Err((self.at(name), Invalid::new("unsupported", message)));
                }
                return Ok(None);
            }
            "$defs" | "definitions" => {
                // They are checked, also without a reference.
                drop(self.schemas_by_name(name, value)?);
                return Ok(None);
            }
            "$ref" => Keyword::Ref(self.reference(name, value)?),
            "allOf" => Keyword::AllOf(self.schemas(name, value)?),
            "anyOf" => Keyword::AnyOf(self.schemas(name, value)?),
            "oneOf" => Keyword::OneOf(self.schemas(name, value)?),
            "not" => Keyword::Not(self.subschema(name, None, value)),
            "if" => {
                let condition = self.subschema(name, None, value);
                let mut branch = |name: &'static str| {
                    let value = self.keywords.get(name)?;
                    Some(self.subschema(name, None, value))
                };
                let (then, otherwise) = (branch("then"), branch("else"));
                Keyword::If(condition, then, otherwise)
            }
            "then" | "else" => {
                // Checked, also without `if`.
                self.subschema(name, None, value);
                return Ok(None);
            }
            "dependentSchemas" => {
                Keyword::DependentSchemas(self.schemas_by_name(name, value)?.collect())
            }
            "dependentRequired" => {
                let all = self.object(name, value)?;
                let names = |(trigger, names)| {
                    Ok((Box::from(str::as_ref(trigger)), self.names(name, names)?))
                };
                let all = all.iter().map(|(trigger, names)| (trigger.as_str(), names));
                Keyword::DependentRequired(all.map(names).collect::<Result<_, _>>()?)
            }
            "type" => Keyword::Type(self.types(name, value)?),
            "enum" => Keyword::Enum(Box::new(self.listed(self.array(name, value)?))),
            "const" => Keyword::Const(Box::new(self.listed(std::slice::from_ref(value)))),
            "multipleOf" => {
                let number = self.number(name, value)?;
                let decimal = Decimal::of(number).filter(|decimal| !decimal.is_zero());
                let decimal = decimal.filter(|_| number.as_f64().is_some_and(|float| float > 0.0));
                let decimal =
                    decimal.ok_or_else(|| self.rejected(name, "must be greater than 0"))?;
                Keyword::MultipleOf(Box::new((decimal, number.clone())))
            }
            "pattern" => {
                let text = self.text(name, value)?;
                Keyword::Pattern(self.pattern(name, None, text)?)
            }
            "format" => match Format::find(self.text(name, value)?) {
                Some(format) => Keyword::Format(format),
                None => return Ok(None),
            },
            "prefixItems" => Keyword::PrefixItems(self.schemas(name, value)?),
            "items" => {
                let prefix = self.keywords.get("prefixItems").and_then(Value::as_array);
                Keyword::Items(self.subschema(name, None, value), prefix.map_or(0, Vec::len))
            }
            "contains" => {
                let count = |name: &str| {
                    let value = self.keywords.get(name);
                    value.map(|value| self.count(name, value)).transpose()
                };
                let (min, max) = (count("minContains")?.unwrap_or(1), count("maxContains")?);
                let schema = self.subschema(name, None, value);
                Keyword::Contains(Box::new(Contains { schema, min, max }))
            }
            "minContains" | "maxContains" => {
                self.count(name, value)?;
                return Ok(None);
            }
            "uniqueItems" => match value {
                Value::Bool(true) => Keyword::UniqueItems,
                Value::Bool(false) => return Ok(None),
                _ => return Err(self.rejected(name, "must be a boolean")),
            },
            "propertyNames" => Keyword::PropertyNames(self.subschema(name, None, value)),
            "required" => Keyword::Required(self.names(name, value)?),
            "unevaluatedItems" => Keyword::UnevaluatedItems(self.subschema(name, None, value)),
            "unevaluatedProperties" => {
                Keyword::UnevaluatedProperties(self.subschema(name, None, value))
            }
            _ => return self.limit(name, value),
        }))
    }

    /// Reads a keyword that limits a number, or the size of a value. Others are annotations, or not
    /// known.
    fn limit(&self, name: &str, value: &'v Value) -> Result<Option<Keyword>, Rejected> {
        let count = || self.count(name, value);
        Ok(Some(match name {
            "minimum" => self.bound(name, value, Bound::Minimum)?,
            "exclusiveMinimum" => self.bound(name, value, Bound::ExclusiveMinimum)?,
            "maximum" => self.bound(name, value, Bound::Maximum)?,
            "exclusiveMaximum" => self.bound(name, value, Bound::ExclusiveMaximum)?,
            "minLength" => Keyword::MinLength(count()?),
            "maxLength" => Keyword::MaxLength(count()?),
            "minItems" => Keyword::MinItems(count()?),
            "maxItems" => Keyword::MaxItems(count()?),
            "minProperties" => Keyword::MinProperties(count()?),
            "maxProperties" => Keyword::MaxProperties(count()?),
            _ => return Ok(None),
        }))
    }

    fn reference(&mut self, name: &'v str, value: &'v Value) -> Result<SchemaId, Rejected> {
        let text = self.text(name, value)?;
        let Some(target) = self.compiler.target(text) else {
            let message = format!(
                "has the $ref {:?}: a $ref must lead to a subschema of the schema itself, such as \
                 #/$defs/name",
                shortened(text)
            );
            return Err((self.at(name), Invalid::new("unsupported", message)));
        };
        Ok(self.subschema(name, None, target))
    }

    fn pattern(
        &mut self,
        keyword: &str,
        part: Option<&str>,
        text: &'v str,
    ) -> Result<u32, Rejected> {
        self.compiler.size += text.len() as u64;
        self.compiler.pattern(text).map_err(|invalid| {
            let mut steps = self.at(keyword);
            steps.extend(part.map(|part| Step::Field(part.to_owned())));
            (steps, invalid)
        })
    }

    fn schemas(&mut self, name: &'v str, value: &'v Value) -> Result<Box<[SchemaId]>, Rejected> {
        let items = self.array(name, value)?;
        if items.is_empty() {
            return Err(self.rejected(name, "must not be empty"));
        }
        let items = items.iter().enumerate();
        Ok(items
            .map(|(index, item)| self.subschema(name, Some(PathStep::Item(index)), item))
            .collect())
    }

    fn schemas_by_name(
        &mut self,
        name: &'v str,
        value: &'v Value,
    ) -> Result<std::vec::IntoIter<(Box<str>, SchemaId)>, Rejected> {
        let members = self.object(name, value)?.iter();
        let schemas: Vec<_> = members
            .map(|(member, schema)| {
                self.compiler.size += BYTES_PER_VALUE + member.len() as u64;
                let id = self.subschema(name, Some(PathStep::Name(member)), schema);
                (member.as_str().into(), id)
            })
            .collect();
        Ok(schemas.into_iter())
    }

    fn listed(&mut self, values: &[Value]) -> Listed {
        let mut shown = String::new();
        for value in values {
            if shown.len() >= SHOWN_MAX {
                shown += ", …";
                break;
            }
            if !shown.is_empty() {
                shown += ", ";
            }
            shown += &shortened(&value.to_string());
        }
        let canonical = |value| {
            let mut bytes = Vec::new();
            // Far more than the text of a schema takes.
            let mut budget = WorkBudget::default();
            let written = canonical::write(value, &mut bytes, usize::MAX, &mut budget);
            debug_assert_eq!(written, Ok(true));
            bytes.into_boxed_slice()
        };
        let values: HashSet<Box<[u8]>> = values.iter().map(canonical).collect();
        let bytes = values.iter().map(|value| BYTES_PER_VALUE + value.len() as u64);
        self.compiler.size += bytes.sum::<u64>();
        let longest = values.iter().map(|value| value.len()).max().unwrap_or(0);
        Listed { values, longest, shown }
    }

    fn types(&self, name: &str, value: &Value) -> Result<Types, Rejected> {
        let one = |value: &Value| {
            let known = Types::NAMES.iter().position(|(known, _)| value.as_str() == Some(known));
            known.map(|place| 1 << place).ok_or_else(|| {
                let names = Types::NAMES.map(|(known, _)| known).join(", ");
                self.rejected(name, format!("must be one of {names}, or an array of them"))
            })
        };
        match value {
            Value::Array(all) if !all.is_empty() => {
                let mut types = Types::default();
                for value in all {
                    types.0 |= one(value)?;
                }
                Ok(types)
            }
            one_type => one(one_type).map(Types),
        }
    }

    fn bound(&self, name: &str, value: &'v Value, bound: Bound) -> Result<Keyword, Rejected> {
        Ok(Keyword::Bound(bound, Box::new(self.number(name, value)?.clone())))
    }

    fn number(&self, name: &str, value: &'v Value) -> Result<&'v Number, Rejected> {
        match value {
            Value::Number(number) => Ok(number),
            _ => Err(self.rejected(name, "must be a number")),
        }
    }

    /// Reads a number of characters, items or members.
    fn count(&self, name: &str, value: &Value) -> Result<u64, Rejected> {
        let float = |value: &Value| {
            let float = value.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0)?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the cast saturates"
            )]
            Some(float as u64)
        };
        let count = value.as_u64().or_else(|| float(value));
        count.ok_or_else(|| self.rejected(name, "must be a whole number from 0"))
    }

    fn text(&self, name: &str, value: &'v Value) -> Result<&'v str, Rejected> {
        value.as_str().ok_or_else(|| self.rejected(name, "must be a string"))
    }

    fn array(&self, name: &str, value: &'v Value) -> Result<&'v [Value], Rejected> {
        let items = value.as_array().map(Vec::as_slice);
        items.ok_or_else(|| self.rejected(name, "must be an array"))
    }

    fn object(&self, name: &str, value: &'v Value) -> Result<&'v Map<String, Value>, Rejected> {
        value.as_object().ok_or_else(|| self.rejected(name, "must be an object"))
    }

    fn names(&mut self, name: &str, value: &'v Value) -> Result<Names, Rejected> {
        let mut names = Vec::new();
        for value in self.array(name, value)? {
            let text = value.as_str();
            let text = text.ok_or_else(|| self.rejected(name, "must have only strings"))?;
            self.compiler.size += BYTES_PER_VALUE + text.len() as u64;
            names.push(Box::from(text));
        }
        Ok(names.into())
    }
}
