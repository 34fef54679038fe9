//! Reads the keywords of a subschema.

use std::collections::HashSet;

use galley_api_types::problem::Step;
use galley_domain::Invalid;
use serde_json::{Map, Number, Value};

use super::budget::WorkBudget;
use super::canonical;
use super::compiler::{Compiler, PathId, Rejected, SchemaPathStep, invalid};
use super::decimal::Decimal;
use super::format::Format;
use super::issues::shortened;
use super::schema::{Bound, Contains, Keyword, Listed, Members, Names, SchemaId, Types};

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

/// The bytes of a listed value in memory besides its text, by estimate.
const BYTES_PER_VALUE: u64 = 100;

/// The limit on bytes of the text that shows the values of `const` or `enum`.
const SHOWN_MAX: usize = 200;

/// The keywords of a subschema, and the path to it.
pub(super) struct KeywordReader<'c, 'v> {
    pub(super) compiler: &'c mut Compiler<'v>,
    pub(super) keywords: &'v Map<String, Value>,
    pub(super) path: PathId,
    pub(super) read: Vec<Keyword>,
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
        part: Option<SchemaPathStep<'v>>,
        value: &'v Value,
    ) -> SchemaId {
        let mut path = self.compiler.step(self.path, SchemaPathStep::Name(keyword));
        if let Some(part) = part {
            path = self.compiler.step(path, part);
        }
        self.compiler.subschema(value, path)
    }

    pub(super) fn read_all(&mut self) -> Result<(), Rejected> {
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

    /// Reads a keyword with subschemas, or one that belongs to such a keyword. The others are read
    /// by `assertion`.
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
            "propertyNames" => Keyword::PropertyNames(self.subschema(name, None, value)),
            "unevaluatedItems" => Keyword::UnevaluatedItems(self.subschema(name, None, value)),
            "unevaluatedProperties" => {
                Keyword::UnevaluatedProperties(self.subschema(name, None, value))
            }
            _ => return self.assertion(name, value),
        }))
    }

    /// Reads a keyword without subschemas that states a condition for a value.
    fn assertion(&mut self, name: &str, value: &'v Value) -> Result<Option<Keyword>, Rejected> {
        Ok(Some(match name {
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
            "uniqueItems" => match value {
                Value::Bool(true) => Keyword::UniqueItems,
                Value::Bool(false) => return Ok(None),
                _ => return Err(self.rejected(name, "must be a boolean")),
            },
            "required" => Keyword::Required(self.names(name, value)?),
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
            .map(|(index, item)| self.subschema(name, Some(SchemaPathStep::Item(index)), item))
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
                let id = self.subschema(name, Some(SchemaPathStep::Name(member)), schema);
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
