//! Regular expressions in schemas, with bounded work: a simulation of the automaton that
//! `regex-automata` compiles charges each visited state to the budget.

use std::cell::RefCell;
use std::fmt::Write;

use galley_domain::Invalid;
use regex_automata::nfa::thompson::{Config, NFA, State, WhichCaptures};
use regex_automata::util::primitives::StateID;

use super::budget::{Exhausted, WorkBudget};

/// The limit on bytes of a compiled expression.
const SIZE_MAX: usize = 2 * 1024 * 1024;

/// The limits on bytes of an expression, and on escapes of character classes in it. Its translation
/// takes quadratic time.
const LENGTH_MAX: usize = 1_000;
const CLASS_ESCAPES_MAX: usize = 20;

/// The work of the compilation for each byte of the expression, which takes up to 1.1 µs, besides a
/// unit for each byte of its compiled form.
const WORK_PER_BYTE: u64 = 150;

const UNSUPPORTED: &str =
    "must be a regular expression (ECMA-262) without look-around, back-references and flags";

thread_local! {
    static SIMULATION: RefCell<Simulation> = RefCell::default();
}

/// A compiled regular expression.
#[derive(Debug)]
pub(super) struct Pattern {
    nfa: NFA,
    /// The expression.
    pub(super) text: Box<str>,
}

impl Pattern {
    /// Compiles an expression in the syntax of ECMA-262.
    pub(super) fn compile(text: &str) -> Result<Self, Invalid> {
        let invalid = |message: &str| Invalid::new("invalid_schema", message);
        let usual = usual_syntax(text);
        let is_class = |pair: &[u8]| pair[0] == b'\\' && b"dDwWsScpP".contains(&pair[1]);
        let escapes = usual.as_bytes().windows(2).filter(|pair| is_class(pair)).count();
        if text.len() > LENGTH_MAX || escapes > CLASS_ESCAPES_MAX {
            let message = format!(
                "is too complex: a regular expression has at most {LENGTH_MAX} bytes, and \
                 {CLASS_ESCAPES_MAX} escapes such as \\d"
            );
            return Err(Invalid::new("schema_too_complex", message));
        }
        if has_flags(text) || !jsonschema_regex::is_valid_ecma_regex(&usual) {
            return Err(invalid(UNSUPPORTED));
        }
        let translated =
            jsonschema_regex::to_rust_regex(&usual).map_err(|()| invalid(UNSUPPORTED))?;
        let config =
            Config::new().nfa_size_limit(Some(SIZE_MAX)).which_captures(WhichCaptures::None);
        let compiled = NFA::compiler().configure(config).build(&ecma_meaning(&translated));
        let nfa = compiled.map_err(|error| match error.size_limit() {
            Some(_) => invalid("is too large when compiled: shorten its repetitions"),
            None => invalid(UNSUPPORTED),
        })?;
        Ok(Self { nfa, text: text.into() })
    }

    /// Returns the bytes of its memory.
    pub(super) fn size(&self) -> u64 {
        self.nfa.memory_usage() as u64
    }

    /// Returns the work of its compilation.
    pub(super) fn work(&self) -> u64 {
        WORK_PER_BYTE * self.text.len() as u64 + self.size()
    }

    /// Returns true if the text has a match.
    pub(super) fn is_match(&self, text: &str, budget: &mut WorkBudget) -> Result<bool, Exhausted> {
        SIMULATION.with_borrow_mut(|simulation| simulation.run(&self.nfa, text, budget))
    }
}

/// Returns true if the text may have a group with flags, such as `(?i:a)`. The folding of cases
/// takes milliseconds for each class.
fn has_flags(text: &str) -> bool {
    let mut groups = text.match_indices("(?");
    groups.any(|(at, _)| text[at + 2..].starts_with(['i', 'm', 's', '-']))
}

/// Rewrites syntax of ECMA-262 that the translation doesn't know: `\0`, empty classes, surrogate
/// pairs, and escapes of characters without a meaning.
fn usual_syntax(text: &str) -> String {
    let mut usual = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_in_class = false;
    while let Some(first) = rest.chars().next() {
        let found = [("[^]", "[\\s\\S]"), ("[]", "[^\\s\\S]")]
            .into_iter()
            .find(|(class, _)| !is_in_class && rest.starts_with(class));
        if let Some((class, meaning)) = found {
            usual += meaning;
            rest = &rest[class.len()..];
            continue;
        }
        if first != '\\' {
            is_in_class = match first {
                '[' => true,
                ']' => false,
                _ => is_in_class,
            };
            usual.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let escape = &rest[1..];
        let second = escape.chars().next();
        let following = second.map_or("", |second| &escape[second.len_utf8()..]);
        rest = following;
        match second {
            Some('0') if !following.starts_with(|c: char| c.is_ascii_digit()) => usual += "\\x00",
            Some(plain @ ('<' | '>')) => usual.push(plain),
            // A backspace.
            Some('b') if is_in_class => usual += "\\x08",
            Some('u') if let Some((character, length)) = surrogate_pair(following) => {
                usual.push(character);
                rest = &following[length..];
            }
            second => {
                usual.push('\\');
                usual.extend(second);
            }
        }
    }
    usual
}

/// Returns the character of `D83D\uDE00`, and the bytes of this text.
fn surrogate_pair(text: &str) -> Option<(char, usize)> {
    const LENGTH: usize = 10;
    let unit = |digits: &str| u16::from_str_radix(digits, 16).ok();
    let low = text.get(4..LENGTH)?.strip_prefix("\\u")?;
    let units = [unit(text.get(..4)?)?, unit(low)?];
    let mut characters = char::decode_utf16(units);
    let character = characters.next()?.ok()?;
    (characters.next().is_none()).then_some((character, LENGTH))
}

/// Gives `.`, `\b` and `\B` in a translated expression the meaning of ECMA-262: a dot matches no
/// line end, and words consist of ASCII characters.
fn ecma_meaning(translated: &str) -> String {
    let mut meaning = String::with_capacity(translated.len());
    let mut depth = 0_usize;
    let mut characters = translated.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => {
                let escaped = characters.next();
                match escaped {
                    Some(boundary @ ('b' | 'B')) if depth == 0 => {
                        let _ = write!(meaning, "(?-u:\\{boundary})");
                    }
                    escaped => {
                        meaning.push('\\');
                        meaning.extend(escaped);
                    }
                }
                continue;
            }
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => {
                meaning += "[^\\n\\r\\u{2028}\\u{2029}]";
                continue;
            }
            _ => {}
        }
        meaning.push(character);
    }
    meaning
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
    fn run(&mut self, nfa: &NFA, text: &str, budget: &mut WorkBudget) -> Result<bool, Exhausted> {
        if self.visited.len() < nfa.states().len() {
            self.visited.resize(nfa.states().len(), 0);
        }
        self.current.clear();
        self.step += 1;
        if self.enter(nfa, nfa.start_unanchored(), text, 0, budget)? {
            return Ok(true);
        }
        for (at, byte) in text.bytes().enumerate() {
            std::mem::swap(&mut self.current, &mut self.next);
            self.current.clear();
            self.step += 1;
            for index in 0..self.next.len() {
                let transitions = match nfa.state(self.next[index]) {
                    State::ByteRange { trans } if trans.matches_byte(byte) => Some(trans.next),
                    State::Sparse(transitions) => {
                        budget.charge(transitions.transitions.len() as u64 / 8)?;
                        transitions.matches_byte(byte)
                    }
                    State::Dense(transitions) => transitions.matches_byte(byte),
                    _ => None,
                };
                if let Some(state) = transitions
                    && self.enter(nfa, state, text, at + 1, budget)?
                {
                    return Ok(true);
                }
            }
            if self.current.is_empty() {
                break;
            }
        }
        Ok(false)
    }

    /// Visits a state and those that it leads to without a byte. Returns true at a match.
    fn enter(
        &mut self,
        nfa: &NFA,
        state: StateID,
        text: &str,
        at: usize,
        budget: &mut WorkBudget,
    ) -> Result<bool, Exhausted> {
        self.stack.clear();
        self.stack.push(state);
        while let Some(id) = self.stack.pop() {
            budget.charge(1)?;
            if std::mem::replace(&mut self.visited[id.as_usize()], self.step) == self.step {
                continue;
            }
            match nfa.state(id) {
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                    self.current.push(id);
                }
                State::Look { look, next } => {
                    // No position within a character counts.
                    if text.is_char_boundary(at)
                        && nfa.look_matcher().matches(*look, text.as_bytes(), at)
                    {
                        self.stack.push(*next);
                    }
                }
                State::Union { alternates } => self.stack.extend(alternates),
                State::BinaryUnion { alt1, alt2 } => self.stack.extend([*alt2, *alt1]),
                State::Capture { next, .. } => self.stack.push(*next),
                State::Fail => {}
                State::Match { .. } => return Ok(true),
            }
        }
        Ok(false)
    }
}
