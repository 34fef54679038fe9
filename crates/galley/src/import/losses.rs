//! What of the files' contents could not be kept, summed up.

use std::collections::{BTreeMap, HashMap};

use galley_content::{Effect, Loss};

use super::raw::Document;
use crate::out::{plain, say};

/// The most kinds of losses that are told.
const SHOWN_MAX: usize = 20;

/// What was lost, by kind, in the order in which it first came.
#[derive(Debug, Default)]
pub(super) struct Losses {
    found: Vec<Found>,
    places: HashMap<String, usize>,
    /// What was taken for granted, and left out, and how often.
    guesses: BTreeMap<&'static str, u64>,
    left_out: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Found {
    what: String,
    count: u64,
    /// The first file with it.
    file: String,
}

impl Losses {
    pub(super) fn leave_out(&mut self, what: String) {
        *self.left_out.entry(what).or_default() += 1;
    }

    pub(super) fn add(&mut self, document: &Document) {
        for guess in &document.guesses {
            *self.guesses.entry(guess).or_default() += 1;
        }
        for loss in &document.losses {
            let what = described(loss);
            if let Some(&place) = self.places.get(&what) {
                self.found[place].count += loss.count;
                continue;
            }
            self.places.insert(what.clone(), self.found.len());
            let file = plain(document.name.as_str());
            self.found.push(Found { what, count: loss.count, file });
        }
    }

    /// Says what most was lost of, if anything was.
    pub(super) fn print(&mut self) {
        if !self.left_out.is_empty() {
            say!("Left out:");
            for (what, count) in &self.left_out {
                say!("{count:>7} x {}", plain(what));
            }
        }
        if !self.guesses.is_empty() {
            say!("Taken for granted:");
            for (what, count) in &self.guesses {
                say!("{count:>7} x {what}");
            }
        }
        if self.found.is_empty() {
            return;
        }
        self.found.sort_by_key(|found| std::cmp::Reverse(found.count));
        say!("Not kept of the contents, and where first:");
        for Found { what, count, file } in self.found.iter().take(SHOWN_MAX) {
            say!("{count:>7} x {:<40} {file}", plain(what));
        }
        if self.found.len() > SHOWN_MAX {
            say!("        and {} other kinds", self.found.len() - SHOWN_MAX);
        }
    }
}

/// `<font> (its text is kept)`, `class of <p>`, `color in the style of <p>`.
fn described(loss: &Loss) -> String {
    let element = &loss.element;
    match (&loss.attribute, &loss.property) {
        (_, Some(property)) => format!("{property} in the style of <{element}>"),
        (Some(attribute), None) => format!("{attribute} of <{element}>"),
        (None, None) if loss.effect == Effect::Unwrapped => {
            format!("<{element}>, but for what is in it")
        }
        (None, None) => format!("<{element}>"),
    }
}
