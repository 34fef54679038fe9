//! The words of textblocks, and the equal runs of two textblocks.
//!
//! A token is a word, a punctuation character, white space or a line break (Unicode Standard Annex
//! #29). Marks don't divide it.

use foldhash::HashMap;
use unicode_segmentation::UnicodeSegmentation;

use super::sequence::{SearchBudget, equal_runs};
use super::steps::{EqualRun, index};
use crate::node::NodeKind;
use crate::tree::Tree;

/// The longest run without letters that isn't kept between two changes, in bytes.
const SEPARATOR_LEN_MAX: u32 = 3;

/// The id of a line break.
const BREAK: u32 = 0;

/// The limit on words of a table of ids that is used again, as clearing takes time by capacity.
const REUSED_WORDS_MAX: usize = 256;

/// The tokens of two textblocks, with memory that is used again for the next two.
#[derive(Default)]
pub(super) struct TextblockWords<'t> {
    old: Tokens,
    new: Tokens,
    ids: TokenIds<'t>,
}

/// The ids of the tokens of two textblocks.
#[derive(Default)]
struct TokenIds<'t> {
    by_word: HashMap<&'t str, u32>,
    /// By id: true for white space and punctuation.
    is_separator: Vec<bool>,
}

impl<'t> TokenIds<'t> {
    fn clear(&mut self) {
        if self.by_word.capacity() > REUSED_WORDS_MAX {
            *self = Self::default();
        }
        self.by_word.clear();
        self.is_separator.clear();
        // This is the id of a line break.
        self.is_separator.push(false);
    }

    fn id(&mut self, word: &'t str) -> u32 {
        *self.by_word.entry(word).or_insert_with(|| {
            self.is_separator.push(!word.chars().any(char::is_alphanumeric));
            index(self.is_separator.len() - 1)
        })
    }
}

/// The tokens of a textblock: the id and the position of each.
#[derive(Default)]
struct Tokens {
    ids: Vec<u32>,
    starts: Vec<u32>,
    len: usize,
}

impl Tokens {
    fn clear(&mut self) {
        if self.ids.capacity() > REUSED_WORDS_MAX {
            *self = Self::default();
        }
        self.ids.clear();
        self.starts.clear();
        self.len = 0;
    }

    fn push(&mut self, id: u32, len: usize) {
        self.ids.push(id);
        self.starts.push(index(self.len));
        self.len += len;
    }

    /// Returns the position of a token, or the end.
    fn start(&self, token: u32) -> u32 {
        self.starts.get(token as usize).copied().unwrap_or_else(|| index(self.len))
    }
}

/// Appends the tokens of a textblock. Equal ones have equal ids.
fn add_tokens<'t>(tree: &'t Tree, textblock: usize, ids: &mut TokenIds<'t>, tokens: &mut Tokens) {
    let mut children = tree.children(textblock).map(|child| tree.kind(child)).peekable();
    while let Some(child) = children.next() {
        let NodeKind::Text { start, mut end, .. } = child else {
            tokens.push(BREAK, 1);
            continue;
        };
        // The texts of neighbours are adjacent in the tree's text.
        while let Some(&NodeKind::Text { end: next_end, .. }) = children.peek() {
            end = next_end;
            children.next();
        }
        for word in tree.text(start, end).split_word_bounds() {
            tokens.push(ids.id(word), word.len());
        }
    }
}

/// Appends the equal runs of two textblocks, in the positions of `inline`.
pub(super) fn append_equal_runs<'t>(
    words: &mut TextblockWords<'t>,
    (before, after): (&'t Tree, &'t Tree),
    (old, new): (usize, usize),
    budget: &mut SearchBudget,
    runs: &mut Vec<EqualRun>,
) {
    words.ids.clear();
    words.old.clear();
    words.new.clear();
    add_tokens(before, old, &mut words.ids, &mut words.old);
    add_tokens(after, new, &mut words.ids, &mut words.new);
    if words.ids.by_word.capacity() > REUSED_WORDS_MAX {
        // The search needs memory, too.
        words.ids.by_word = HashMap::default();
    }
    let TextblockWords { old, new, ids: TokenIds { is_separator, .. } } = words;
    let token_runs = equal_runs(&old.ids, &new.ids, is_separator.len(), budget);
    let ends = [EqualRun { before: index(old.ids.len()), after: index(new.ids.len()), len: 0 }];
    let (mut old_end, mut new_end) = (0, 0);
    for (run, next) in token_runs.iter().zip(token_runs.iter().skip(1).chain(&ends)) {
        let start = old.start(run.before);
        let len = old.start(run.before + run.len) - start;
        let (old_run_end, new_run_end) = (run.before + run.len, run.after + run.len);
        let is_between_replacements = old_end < run.before
            && new_end < run.after
            && old_run_end < next.before
            && new_run_end < next.after;
        let mut tokens = (run.before..old_run_end).map(|token| old.ids[token as usize]);
        if is_between_replacements
            && len <= SEPARATOR_LEN_MAX
            && tokens.all(|id| is_separator[id as usize])
        {
            continue;
        }
        (old_end, new_end) = (old_run_end, new_run_end);
        runs.push(EqualRun { before: start, after: new.start(run.after), len });
    }
}
