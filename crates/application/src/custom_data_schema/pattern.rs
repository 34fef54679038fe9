//! Regular expressions in schemas, with bounded work.
//!
//! The library's engines need up to 15 µs a byte for an expression of a thousand states, and don't
//! say it before. So the keyword `pattern` is implemented here: it simulates the automaton that
//! `regex-automata` compiles, and charges each visited state to the validation's budget.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use galley_domain::Invalid;
use jsonschema::{Keyword, ValidationError};
use regex_automata::nfa::thompson::{Config, NFA, State, WhichCaptures};
use regex_automata::util::primitives::StateID;
use serde_json::Value;

/// The limit on bytes of a compiled expression.
const SIZE_MAX: usize = 2 * 1024 * 1024;

const UNSUPPORTED: &str =
    "must be a regular expression (ECMA-262) without look-around and back-references";

thread_local! {
    /// The budget of the validation that runs on this thread, in visited states. A visit takes
    /// about as long as an evaluation, 8 ns.
    static BUDGET: Cell<u64> = const { Cell::new(0) };
    static SIMULATION: RefCell<Simulation> = RefCell::default();
}

/// Takes evaluations from the budget. Returns false if it does not suffice.
pub(super) fn charge(evaluations: u64) -> bool {
    let left = BUDGET.get().saturating_sub(evaluations);
    BUDGET.set(left);
    left > 0
}

/// Sets the budget of the next validation on this thread.
pub(super) fn set_budget(budget: u64) {
    BUDGET.set(budget);
}

/// Returns the rest of the budget; 0 if it did not suffice.
pub(super) fn budget_left() -> u64 {
    BUDGET.get()
}

/// A compiled regular expression.
#[derive(Debug)]
pub(super) struct Pattern(NFA);

impl Pattern {
    /// Compiles an expression in the syntax of ECMA-262.
    pub(super) fn compile(text: &str) -> Result<Self, Invalid> {
        let invalid = |message: &str| Invalid::new("invalid_schema", message);
        if !jsonschema_regex::is_valid_ecma_regex(text) {
            return Err(invalid(UNSUPPORTED));
        }
        let translated =
            jsonschema_regex::to_rust_regex(text).map_err(|()| invalid(UNSUPPORTED))?;
        let config =
            Config::new().nfa_size_limit(Some(SIZE_MAX)).which_captures(WhichCaptures::None);
        let compiled = NFA::compiler().configure(config).build(&translated);
        compiled.map(Self).map_err(|error| match error.size_limit() {
            Some(_) => invalid("is too large when compiled: shorten its repetitions"),
            None => invalid(UNSUPPORTED),
        })
    }

    /// Returns the bytes of its memory.
    pub(super) fn size(&self) -> u64 {
        self.0.memory_usage() as u64
    }

    /// Returns the number of its states.
    pub(super) fn states(&self) -> u64 {
        self.0.states().len() as u64
    }

    /// Returns true if the text has a match. If the budget does not suffice, returns false.
    fn is_match(&self, text: &str) -> bool {
        SIMULATION.with_borrow_mut(|simulation| {
            let mut left = BUDGET.get();
            let is_match = simulation.run(&self.0, text.as_bytes(), &mut left);
            BUDGET.set(left);
            is_match
        })
    }
}

/// A simulation of an automaton, with memory that is used again.
#[derive(Default)]
struct Simulation {
    /// The number of the step at which each state was visited last.
    visited: Vec<u64>,
    step: u64,
    /// The states that read the current byte, and the next one.
    current: Vec<StateID>,
    next: Vec<StateID>,
    stack: Vec<StateID>,
}

impl Simulation {
    /// Returns true if the text has a match. Takes a unit of the budget for each visited state.
    fn run(&mut self, nfa: &NFA, text: &[u8], budget: &mut u64) -> bool {
        if self.visited.len() < nfa.states().len() {
            self.visited.resize(nfa.states().len(), 0);
        }
        self.current.clear();
        self.step += 1;
        if self.enter(nfa, nfa.start_unanchored(), text, 0, budget) {
            return true;
        }
        for (at, &byte) in text.iter().enumerate() {
            std::mem::swap(&mut self.current, &mut self.next);
            self.current.clear();
            self.step += 1;
            for index in 0..self.next.len() {
                let transitions = match nfa.state(self.next[index]) {
                    State::ByteRange { trans } if trans.matches_byte(byte) => Some(trans.next),
                    State::Sparse(transitions) => {
                        *budget = budget.saturating_sub(transitions.transitions.len() as u64 / 8);
                        transitions.matches_byte(byte)
                    }
                    State::Dense(transitions) => transitions.matches_byte(byte),
                    _ => None,
                };
                if let Some(state) = transitions
                    && self.enter(nfa, state, text, at + 1, budget)
                {
                    return true;
                }
            }
            if *budget == 0 || self.current.is_empty() {
                return false;
            }
        }
        false
    }

    /// Visits a state and those that it leads to without a byte. Returns true at a match.
    fn enter(
        &mut self,
        nfa: &NFA,
        state: StateID,
        text: &[u8],
        at: usize,
        budget: &mut u64,
    ) -> bool {
        self.stack.clear();
        self.stack.push(state);
        while let Some(id) = self.stack.pop() {
            *budget = budget.saturating_sub(1);
            if *budget == 0 {
                return false;
            }
            if std::mem::replace(&mut self.visited[id.as_usize()], self.step) == self.step {
                continue;
            }
            match nfa.state(id) {
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                    self.current.push(id);
                }
                State::Look { look, next } => {
                    if nfa.look_matcher().matches(*look, text, at) {
                        self.stack.push(*next);
                    }
                }
                State::Union { alternates } => self.stack.extend(alternates),
                State::BinaryUnion { alt1, alt2 } => self.stack.extend([*alt2, *alt1]),
                State::Capture { next, .. } => self.stack.push(*next),
                State::Fail => {}
                State::Match { .. } => return true,
            }
        }
        false
    }
}

/// The keyword `pattern`.
struct PatternKeyword(Arc<Pattern>, Arc<str>);

impl<'i> Keyword<'i> for PatternKeyword {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        Err(ValidationError::custom(format!("must match {:?}", self.1)))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        instance.as_str().is_none_or(|text| self.0.is_match(text))
    }
}

/// Patterns by their texts.
pub(super) type Patterns = HashMap<Arc<str>, Arc<Pattern>>;

/// Returns the keyword `pattern` with a value, which must be among `patterns`.
pub(super) fn keyword<'a>(
    patterns: &Patterns,
    value: &'a Value,
) -> Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>> {
    let known = value.as_str().and_then(|text| patterns.get_key_value(text));
    let (text, pattern) = known.ok_or_else(|| ValidationError::custom("is not a text"))?;
    Ok(Box::new(PatternKeyword(Arc::clone(pattern), Arc::clone(text))))
}
