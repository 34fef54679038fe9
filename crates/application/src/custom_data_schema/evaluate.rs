//! Evaluation of a compiled schema. Each step takes work from the budget of the request.

use std::fmt::Display;

use galley_api_types::problem::{Issue, Step};
use serde_json::Value;

use super::budget::{Exhausted, WorkBudget};
use super::canonical;
use super::issues::{issue, shortened};
use super::schema::{CompiledSchema, Keyword, Listed, SchemaId, Subschema, Types};

/// The limit on evaluations within one another. Levels of data and references count alike.
const DEPTH_MAX: usize = 400;

/// The limits on issues of one piece, and on bytes after which no more are collected.
const ISSUES_MAX: usize = 100;
const ISSUE_BYTES_MAX: usize = 64 * 1024;

/// The bytes of text that are read in the time of a unit of work.
pub(super) const BYTES_PER_UNIT: u64 = 16;

/// The work of an issue, besides its bytes.
const ISSUE_WORK: u64 = 200;

/// The result of an evaluation.
pub(super) type Evaluated = Result<bool, Exhausted>;

/// Returns true if a value is valid.
pub(super) fn is_valid(
    schema: &CompiledSchema,
    value: &Value,
    budget: &mut WorkBudget,
) -> Evaluated {
    Evaluator::new(schema, budget, None).evaluate(0, value, None)
}

/// Returns the issues of a value that is not valid, up to the limits.
pub(super) fn issues(
    schema: &CompiledSchema,
    value: &Value,
    budget: &mut WorkBudget,
) -> Result<Vec<Issue>, Exhausted> {
    let mut evaluator = Evaluator::new(schema, budget, Some(Collector::default()));
    evaluator.evaluate(0, value, None)?;
    Ok(evaluator.collector.map(|collector| collector.issues).unwrap_or_default())
}

/// The issues that are collected.
#[derive(Debug, Default)]
pub(super) struct Collector {
    issues: Vec<Issue>,
    bytes: usize,
    /// True if the value of alternatives has another type.
    has_other_type: bool,
    /// True if a member or item has another value than that of `const`, or those of `enum`. These
    /// keywords tell alternatives apart.
    has_const: bool,
    has_enum: bool,
}

/// The keyword of an issue that may tell alternatives apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IssueKind {
    Type,
    Const,
    Enum,
}

/// The members or items of a value that keywords have evaluated, as bits by their places.
#[derive(Debug, Clone)]
pub(super) struct EvaluatedPlaces(Vec<u64>);

impl EvaluatedPlaces {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    pub(super) fn add(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub(super) fn has(&self, place: usize) -> bool {
        self.0[place / 64] & (1 << (place % 64)) != 0
    }
}

/// An evaluation of a value.
pub(super) struct Evaluator<'e, 'v> {
    pub(super) schema: &'e CompiledSchema,
    pub(super) budget: &'e mut WorkBudget,
    path: Vec<ValuePathStep<'v>>,
    /// The length of the path to the value whose alternatives are evaluated.
    alternatives_at: usize,
    pub(super) depth: usize,
    /// `None` if only the validity is of interest. The evaluation then ends at the first issue.
    collector: Option<Collector>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ValuePathStep<'v> {
    Member(&'v str),
    Item(usize),
}

impl<'e, 'v> Evaluator<'e, 'v> {
    pub(super) fn new(
        schema: &'e CompiledSchema,
        budget: &'e mut WorkBudget,
        collector: Option<Collector>,
    ) -> Self {
        Self { schema, budget, path: Vec::new(), alternatives_at: 0, depth: 0, collector }
    }

    /// Evaluates a subschema. Adds the evaluated members or items of a valid value to `marks`.
    pub(super) fn evaluate(
        &mut self,
        id: SchemaId,
        value: &'v Value,
        marks: Option<&mut EvaluatedPlaces>,
    ) -> Evaluated {
        self.budget.charge(1)?;
        let keywords = match &self.schema.subschemas[id as usize] {
            Subschema::Boolean(accepts) => {
                if !accepts {
                    self.report("is not allowed")?;
                }
                return Ok(*accepts);
            }
            Subschema::Keywords(keywords) => keywords,
        };
        if self.depth == DEPTH_MAX {
            // The stack is limited, too.
            self.budget.charge(u64::MAX)?;
        }
        self.depth += 1;
        let needs_marks = marks.is_some() || keywords.iter().any(Keyword::is_of_unevaluated);
        let mut own_marks = if needs_marks { Some(self.new_marks(value)?) } else { None };
        let mut is_valid = true;
        for keyword in keywords {
            // Members that an invalid subschema would have evaluated are no issues of their own.
            if !is_valid && keyword.is_of_unevaluated() {
                break;
            }
            if !self.keyword(keyword, value, own_marks.as_mut())? {
                is_valid = false;
                if !self.is_collecting() {
                    break;
                }
            }
        }
        self.depth -= 1;
        if let (true, Some(own), Some(marks)) = (is_valid, own_marks, marks) {
            self.merge(marks, &own)?;
        }
        Ok(is_valid)
    }

    fn keyword(
        &mut self,
        keyword: &'e Keyword,
        value: &'v Value,
        mut marks: Option<&mut EvaluatedPlaces>,
    ) -> Evaluated {
        self.budget.charge(1)?;
        match (keyword, value) {
            (Keyword::Ref(id), _) => self.evaluate(*id, value, marks),
            (Keyword::AllOf(ids), _) => {
                let mut is_valid = true;
                for &id in ids {
                    is_valid &= self.evaluate(id, value, marks.as_deref_mut())?;
                    if !is_valid && !self.is_collecting() {
                        break;
                    }
                }
                Ok(is_valid)
            }
            (Keyword::AnyOf(ids), _) => self.any_of(ids, value, marks),
            (Keyword::OneOf(ids), _) => self.one_of(ids, value, marks),
            (Keyword::Not(id), _) => {
                let is_valid = !self.quietly(|own| own.evaluate(*id, value, None))?;
                self.require(is_valid, "matches a schema that is not allowed")
            }
            (Keyword::If(condition, then, otherwise), _) => {
                let condition =
                    self.quietly(|own| own.evaluate(*condition, value, marks.as_deref_mut()))?;
                match if condition { then } else { otherwise } {
                    Some(id) => self.evaluate(*id, value, marks),
                    None => Ok(true),
                }
            }
            (Keyword::Type(types), _) => {
                let is_valid = has_type(value, *types);
                if !is_valid {
                    self.note(IssueKind::Type);
                }
                self.require_with(is_valid, || format!("must be {}", types.words()))
            }
            (Keyword::Enum(listed), _) => self.listed(listed, value, IssueKind::Enum),
            (Keyword::Const(listed), _) => self.listed(listed, value, IssueKind::Const),
            (keyword, Value::Number(number)) => self.of_number(keyword, number),
            (keyword, Value::String(text)) => self.of_string(keyword, text),
            (keyword, Value::Array(items)) => self.of_array(keyword, items, marks),
            (keyword, Value::Object(members)) => self.of_object(keyword, value, members, marks),
            _ => Ok(true),
        }
    }

    fn any_of(
        &mut self,
        ids: &[SchemaId],
        value: &'v Value,
        mut marks: Option<&mut EvaluatedPlaces>,
    ) -> Evaluated {
        let mut is_valid = false;
        for &id in ids {
            is_valid |= self.quietly(|own| own.evaluate(id, value, marks.as_deref_mut()))?;
            if is_valid && marks.is_none() {
                break;
            }
        }
        if !is_valid {
            self.report_alternatives(ids, value)?;
        }
        Ok(is_valid)
    }

    fn one_of(
        &mut self,
        ids: &[SchemaId],
        value: &'v Value,
        mut marks: Option<&mut EvaluatedPlaces>,
    ) -> Evaluated {
        let mut count = 0;
        for &id in ids {
            let is_valid = self.quietly(|own| own.evaluate(id, value, marks.as_deref_mut()))?;
            count += u32::from(is_valid);
            if count > 1 {
                return self.require(false, "must match only one of the alternatives");
            }
        }
        if count == 0 {
            self.report_alternatives(ids, value)?;
        }
        Ok(count == 1)
    }

    /// Reports the issues of the alternative that is meant. Alternatives for values of other types
    /// are not meant, nor those whose `const` or `enum` names another member's value. `enum`, then
    /// `const`, count less if no alternative is left.
    fn report_alternatives(&mut self, ids: &[SchemaId], value: &'v Value) -> Result<(), Exhausted> {
        if !self.is_collecting() {
            return Ok(());
        }
        let (all, at) = (self.collector.take(), self.alternatives_at);
        self.alternatives_at = self.path.len();
        let mut found = Vec::with_capacity(ids.len());
        for &id in ids {
            self.collector = Some(Collector::default());
            self.evaluate(id, value, None)?;
            found.extend(self.collector.take());
        }
        (self.collector, self.alternatives_at) = (all, at);
        found.retain(|one| !one.has_other_type && !one.issues.is_empty());
        let tests: [fn(&Collector) -> bool; 3] =
            [|one| !one.has_const && !one.has_enum, |one| !one.has_const, |_| true];
        let only = tests.iter().find_map(|is_meant| {
            let mut meant = (0..found.len()).filter(|&at| is_meant(&found[at]));
            meant.next().filter(|_| meant.next().is_none())
        });
        let Some(only) = only else { return self.report("matches none of the alternatives") };
        if let Some(collector) = &mut self.collector {
            for issue in found.swap_remove(only).issues {
                collector.add(issue);
            }
        }
        Ok(())
    }

    fn listed(&mut self, listed: &Listed, value: &Value, kind: IssueKind) -> Evaluated {
        let mut bytes = Vec::new();
        let fits = canonical::write(value, &mut bytes, listed.longest, self.budget)?;
        self.budget.charge(4 + bytes.len() as u64 / BYTES_PER_UNIT)?;
        let is_valid = fits && listed.values.contains(bytes.as_slice());
        if !is_valid {
            self.note(kind);
        }
        let words = if kind == IssueKind::Const { "must be " } else { "must be one of " };
        self.require_with(is_valid, || format!("{words}{}", listed.shown))
    }

    /// Notes an issue that may tell alternatives apart.
    fn note(&mut self, kind: IssueKind) {
        let is_own = self.path.len() == self.alternatives_at;
        if let Some(collector) = &mut self.collector {
            match kind {
                IssueKind::Type => collector.has_other_type |= is_own,
                IssueKind::Const => collector.has_const |= !is_own,
                IssueKind::Enum => collector.has_enum |= !is_own,
            }
        }
    }

    /// Evaluates a member or item.
    pub(super) fn child(
        &mut self,
        step: ValuePathStep<'v>,
        id: SchemaId,
        value: &'v Value,
    ) -> Evaluated {
        self.path.push(step);
        let result = self.evaluate(id, value, None);
        self.path.pop();
        result
    }

    /// Evaluates without collecting issues.
    pub(super) fn quietly(&mut self, evaluate: impl FnOnce(&mut Self) -> Evaluated) -> Evaluated {
        let collector = self.collector.take();
        let result = evaluate(self);
        self.collector = collector;
        result
    }

    /// Returns true if issues are still collected.
    pub(super) fn is_collecting(&self) -> bool {
        self.collector.as_ref().is_some_and(|collector| !collector.is_full())
    }

    pub(super) fn require(&mut self, is_valid: bool, message: &str) -> Evaluated {
        if !is_valid {
            self.report(message)?;
        }
        Ok(is_valid)
    }

    pub(super) fn require_with<M: Display>(
        &mut self,
        is_valid: bool,
        message: impl FnOnce() -> M,
    ) -> Evaluated {
        if !is_valid && self.is_collecting() {
            self.report(&message().to_string())?;
        }
        Ok(is_valid)
    }

    fn report(&mut self, message: &str) -> Result<(), Exhausted> {
        self.report_at(None, message)
    }

    /// Adds an issue of the current value, or of a member that it lacks.
    pub(super) fn report_at(
        &mut self,
        member: Option<&str>,
        message: &str,
    ) -> Result<(), Exhausted> {
        if !self.is_collecting() {
            return Ok(());
        }
        let steps = self.path.iter().map(|step| match step {
            ValuePathStep::Member(name) => Step::Field(shortened(name)),
            ValuePathStep::Item(index) => Step::Item(*index),
        });
        let member = member.map(|name| Step::Field(shortened(name)));
        let issue = issue(steps.chain(member).collect(), message);
        self.budget.charge(ISSUE_WORK + 2 * issue.message.len() as u64)?;
        if let Some(collector) = &mut self.collector {
            collector.add(issue);
        }
        Ok(())
    }

    fn new_marks(&mut self, value: &Value) -> Result<EvaluatedPlaces, Exhausted> {
        let count = match value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        self.budget.charge(4 + count as u64 / 64)?;
        Ok(EvaluatedPlaces::new(count))
    }

    fn merge(
        &mut self,
        marks: &mut EvaluatedPlaces,
        own: &EvaluatedPlaces,
    ) -> Result<(), Exhausted> {
        self.budget.charge(own.0.len() as u64)?;
        for (mark, own) in marks.0.iter_mut().zip(&own.0) {
            *mark |= own;
        }
        Ok(())
    }
}

impl Collector {
    fn is_full(&self) -> bool {
        self.issues.len() >= ISSUES_MAX || self.bytes > ISSUE_BYTES_MAX
    }

    fn add(&mut self, issue: Issue) {
        if !self.is_full() && !self.issues.contains(&issue) {
            // The message contains the path.
            self.bytes += 3 * issue.message.len();
            self.issues.push(issue);
        }
    }
}

fn has_type(value: &Value, types: Types) -> bool {
    match value {
        Value::Null => types.contains("null"),
        Value::Bool(_) => types.contains("boolean"),
        Value::Object(_) => types.contains("object"),
        Value::Array(_) => types.contains("array"),
        Value::String(_) => types.contains("string"),
        Value::Number(number) => {
            let is_integer =
                || number.as_i128().is_some() || number.as_f64().is_some_and(|f| f.fract() == 0.0);
            types.contains("number") || (types.contains("integer") && is_integer())
        }
    }
}
