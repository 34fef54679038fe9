//! The keywords of numbers, strings, arrays and objects.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::canonical;
use super::decimal::Decimal;
use super::evaluate::{BYTES_PER_UNIT, Evaluated, EvaluatedPlaces, Evaluator, ValuePathStep};
use super::issues::shortened;
use super::schema::{Bound, Contains, Keyword, Members, SchemaId};

/// The work of a `format`: at first, and for each byte.
const FORMAT_WORK: u64 = 50;
const FORMAT_WORK_PER_BYTE: u64 = 4;

/// The work of a `multipleOf`.
const MULTIPLE_WORK: u64 = 60;

impl<'e, 'v> Evaluator<'e, 'v> {
    pub(super) fn of_number(&mut self, keyword: &Keyword, number: &Number) -> Evaluated {
        match keyword {
            Keyword::MultipleOf(divisor) => {
                self.budget.charge(MULTIPLE_WORK)?;
                let (decimal, shown) = &**divisor;
                let is_valid =
                    Decimal::of(number).is_some_and(|number| number.is_multiple_of(*decimal));
                self.require_with(is_valid, || format!("must be a multiple of {shown}"))
            }
            Keyword::Bound(bound, limit) => {
                let order = compare(number, limit);
                let (is_valid, words) = match bound {
                    Bound::Minimum => (order.is_ge(), "at least"),
                    Bound::ExclusiveMinimum => (order.is_gt(), "greater than"),
                    Bound::Maximum => (order.is_le(), "at most"),
                    Bound::ExclusiveMaximum => (order.is_lt(), "less than"),
                };
                self.require_with(is_valid, || format!("must be {words} {limit}"))
            }
            _ => Ok(true),
        }
    }

    pub(super) fn of_string(&mut self, keyword: &Keyword, text: &str) -> Evaluated {
        let bytes = text.len() as u64;
        match keyword {
            Keyword::MinLength(min) => {
                self.budget.charge(bytes / BYTES_PER_UNIT)?;
                let is_valid = text.chars().count() as u64 >= *min;
                self.require_with(is_valid, || {
                    format!("must have at least {}", of(*min, "character"))
                })
            }
            Keyword::MaxLength(max) => {
                self.budget.charge(bytes / BYTES_PER_UNIT)?;
                let is_valid = bytes <= *max || text.chars().count() as u64 <= *max;
                self.require_with(is_valid, || {
                    format!("must have at most {}", of(*max, "character"))
                })
            }
            Keyword::Pattern(id) => {
                let pattern = &self.schema.patterns[*id as usize];
                let is_valid = pattern.is_match(text, self.budget)?;
                self.require_with(is_valid, || {
                    format!("must match the regular expression {}", shortened(&pattern.text))
                })
            }
            Keyword::Format(format) => {
                self.budget.charge(FORMAT_WORK + FORMAT_WORK_PER_BYTE * bytes)?;
                let is_valid = format.is_valid(text, self.budget)?;
                self.require_with(is_valid, || format!("must have the format {}", format.name))
            }
            _ => Ok(true),
        }
    }

    pub(super) fn of_array(
        &mut self,
        keyword: &'e Keyword,
        items: &'v [Value],
        mut marks: Option<&mut EvaluatedPlaces>,
    ) -> Evaluated {
        let count = items.len() as u64;
        match keyword {
            Keyword::PrefixItems(ids) => {
                let mut is_valid = true;
                for (index, (&id, item)) in ids.iter().zip(items).enumerate() {
                    is_valid &= self.child(ValuePathStep::Item(index), id, item)?;
                    mark(marks.as_deref_mut(), index);
                    if !is_valid && !self.is_collecting() {
                        break;
                    }
                }
                Ok(is_valid)
            }
            Keyword::Items(id, from) => self.items(*id, items, *from, marks, |_| true),
            Keyword::Contains(contains) => self.contains(contains, items, marks),
            Keyword::MinItems(min) => self
                .require_with(count >= *min, || format!("must have at least {}", of(*min, "item"))),
            Keyword::MaxItems(max) => self
                .require_with(count <= *max, || format!("must have at most {}", of(*max, "item"))),
            Keyword::UniqueItems => {
                let mut known = HashSet::new();
                for item in items {
                    let mut bytes = Vec::new();
                    canonical::write(item, &mut bytes, usize::MAX, self.budget)?;
                    self.budget.charge(8 + bytes.len() as u64 / 2)?;
                    if !known.insert(bytes) {
                        return self.require(false, "must not have an item twice");
                    }
                }
                Ok(true)
            }
            Keyword::UnevaluatedItems(id) => {
                let known = marks.as_ref().map(|marks| (**marks).clone());
                self.budget.charge(count / 8)?;
                let is_known = |index| known.as_ref().is_some_and(|marks| marks.has(index));
                self.items(*id, items, 0, marks, |index| !is_known(index))
            }
            _ => Ok(true),
        }
    }

    /// Evaluates the items after the first `from` that `is_meant` selects.
    fn items(
        &mut self,
        id: SchemaId,
        items: &'v [Value],
        from: usize,
        mut marks: Option<&mut EvaluatedPlaces>,
        is_meant: impl Fn(usize) -> bool,
    ) -> Evaluated {
        let mut is_valid = true;
        for (index, item) in items.iter().enumerate().skip(from) {
            self.budget.charge(1)?;
            if !is_meant(index) {
                continue;
            }
            is_valid &= self.child(ValuePathStep::Item(index), id, item)?;
            mark(marks.as_deref_mut(), index);
            if !is_valid && !self.is_collecting() {
                break;
            }
        }
        Ok(is_valid)
    }

    fn contains(
        &mut self,
        contains: &Contains,
        items: &'v [Value],
        mut marks: Option<&mut EvaluatedPlaces>,
    ) -> Evaluated {
        let Contains { schema, min, max } = *contains;
        let mut count = 0;
        for (index, item) in items.iter().enumerate() {
            if self.quietly(|own| own.evaluate(schema, item, None))? {
                count += 1;
                mark(marks.as_deref_mut(), index);
            }
            if marks.is_none() && max.is_none() && count >= min {
                break;
            }
        }
        if count < min {
            return self.require_with(false, || {
                format!("must have at least {} that match the schema", of(min, "item"))
            });
        }
        self.require_with(max.is_none_or(|max| count <= max), || {
            format!("must have at most {} that match the schema", of(max.unwrap_or(0), "item"))
        })
    }

    pub(super) fn of_object(
        &mut self,
        keyword: &'e Keyword,
        value: &'v Value,
        members: &'v Map<String, Value>,
        mut marks: Option<&mut EvaluatedPlaces>,
    ) -> Evaluated {
        let count = members.len() as u64;
        match keyword {
            Keyword::Members(of_members) => self.members(of_members, members, marks),
            Keyword::PropertyNames(id) => {
                let mut is_valid = true;
                for name in members.keys() {
                    is_valid &= self.name(*id, name)?;
                    if !is_valid && !self.is_collecting() {
                        break;
                    }
                }
                Ok(is_valid)
            }
            Keyword::MinProperties(min) => self.require_with(count >= *min, || {
                format!("must have at least {}", of(*min, "member"))
            }),
            Keyword::MaxProperties(max) => self.require_with(count <= *max, || {
                format!("must have at most {}", of(*max, "member"))
            }),
            Keyword::Required(names) => self.required(names, members, None),
            Keyword::DependentRequired(all) => {
                let mut is_valid = true;
                for (trigger, names) in all {
                    if self.has(members, trigger)? {
                        is_valid &= self.required(names, members, Some(trigger))?;
                    }
                }
                Ok(is_valid)
            }
            Keyword::DependentSchemas(all) => {
                let mut is_valid = true;
                for (trigger, id) in all {
                    if self.has(members, trigger)? {
                        is_valid &= self.evaluate(*id, value, marks.as_deref_mut())?;
                    }
                }
                Ok(is_valid)
            }
            Keyword::UnevaluatedProperties(id) => {
                let mut is_valid = true;
                for (index, (name, member)) in members.iter().enumerate() {
                    self.budget.charge(1)?;
                    if marks.as_ref().is_some_and(|marks| marks.has(index)) {
                        continue;
                    }
                    is_valid &= self.child(ValuePathStep::Member(name), *id, member)?;
                    mark(marks.as_deref_mut(), index);
                    if !is_valid && !self.is_collecting() {
                        break;
                    }
                }
                Ok(is_valid)
            }
            _ => Ok(true),
        }
    }

    fn members(
        &mut self,
        of_members: &Members,
        members: &'v Map<String, Value>,
        mut marks: Option<&mut EvaluatedPlaces>,
    ) -> Evaluated {
        let mut is_valid = true;
        for (index, (name, member)) in members.iter().enumerate() {
            self.budget.charge(2 + name.len() as u64 / BYTES_PER_UNIT)?;
            let step = ValuePathStep::Member(name);
            let mut is_known = false;
            if let Some(&id) = of_members.named.get(name.as_str()) {
                is_known = true;
                is_valid &= self.child(step, id, member)?;
            }
            for &(pattern, id) in &of_members.matching {
                if self.schema.patterns[pattern as usize].is_match(name, self.budget)? {
                    is_known = true;
                    is_valid &= self.child(step, id, member)?;
                }
            }
            if !is_known && let Some(id) = of_members.additional {
                is_known = true;
                is_valid &= self.child(step, id, member)?;
            }
            if is_known {
                mark(marks.as_deref_mut(), index);
            }
            if !is_valid && !self.is_collecting() {
                break;
            }
        }
        Ok(is_valid)
    }

    /// Evaluates the name of a member as a string.
    fn name(&mut self, id: SchemaId, name: &'v str) -> Evaluated {
        self.budget.charge(2 + name.len() as u64 / BYTES_PER_UNIT)?;
        let value = Value::String(name.to_owned());
        let is_valid = self.quietly(|own| {
            let mut evaluator = Evaluator::new(own.schema, own.budget, None);
            evaluator.depth = own.depth;
            evaluator.evaluate(id, &value, None)
        })?;
        self.require_with(is_valid, || {
            format!("has the name {}, which is not allowed", shortened(name))
        })
    }

    fn required(
        &mut self,
        names: &[Box<str>],
        members: &Map<String, Value>,
        trigger: Option<&str>,
    ) -> Evaluated {
        let mut is_valid = true;
        for name in names {
            if self.has(members, name)? {
                continue;
            }
            is_valid = false;
            if !self.is_collecting() {
                break;
            }
            let reason = trigger.map(|name| format!(" with {}", shortened(name)));
            self.report_at(Some(name), &format!("is required{}", reason.unwrap_or_default()))?;
        }
        Ok(is_valid)
    }

    fn has(&mut self, members: &Map<String, Value>, name: &str) -> Evaluated {
        self.budget.charge(3 + name.len() as u64 / BYTES_PER_UNIT)?;
        Ok(members.contains_key(name))
    }
}

fn mark(marks: Option<&mut EvaluatedPlaces>, place: usize) {
    if let Some(marks) = marks {
        marks.add(place);
    }
}

/// Returns a number with its noun: `1 item`, `2 items`.
fn of(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Compares two numbers: those without a fraction exactly.
fn compare(one: &Number, other: &Number) -> Ordering {
    if let (Some(one), Some(other)) = (canonical::integer(one), canonical::integer(other)) {
        return one.cmp(&other);
    }
    let float = |number: &Number| number.as_f64().unwrap_or_default();
    float(one).partial_cmp(&float(other)).unwrap_or(Ordering::Equal)
}
