//! Lines of Markdown, each with the prefixes of its enclosing containers.

/// The Markdown so far.
pub(crate) struct MarkdownLines {
    markdown: String,
    /// The limit on bytes, as each line within nested quotes repeats all prefixes.
    max: usize,
    prefixes: Vec<Prefix>,
}

/// The prefix of a quote or list item: for its first line, and for the others.
struct Prefix {
    first: String,
    rest: String,
    used: bool,
}

impl MarkdownLines {
    pub(crate) fn new(max: usize) -> Self {
        Self { markdown: String::new(), max, prefixes: Vec::new() }
    }

    pub(crate) fn push_prefix(&mut self, first: &str, rest: &str) {
        self.prefixes.push(Prefix { first: first.to_owned(), rest: rest.to_owned(), used: false });
    }

    pub(crate) fn pop_prefix(&mut self) {
        if self.prefixes.last().is_some_and(|prefix| !prefix.used) {
            self.line("");
        }
        self.prefixes.pop();
    }

    pub(crate) fn line(&mut self, line: &str) {
        let from = self.markdown.len();
        if from > self.max {
            return;
        }
        for prefix in &mut self.prefixes {
            self.markdown.push_str(if prefix.used { &prefix.rest } else { &prefix.first });
            prefix.used = true;
        }
        self.markdown.push_str(line);
        if line.is_empty() {
            let kept = self.markdown[from..].trim_end_matches(' ').len();
            self.markdown.truncate(from + kept);
        }
        self.markdown.push('\n');
    }

    pub(crate) fn lines(&mut self, text: &str) {
        text.split('\n').for_each(|line| self.line(line));
    }

    /// Adds a blank line between blocks.
    pub(crate) fn blank(&mut self) {
        self.line("");
    }

    /// Returns the Markdown, or `None` if it exceeds the limit.
    pub(crate) fn finish(self) -> Option<String> {
        (self.markdown.len() <= self.max).then_some(self.markdown)
    }
}
