//! Lines of Markdown, each with what the containers around it want at its beginning.

/// The Markdown so far.
pub(crate) struct Lines {
    markdown: String,
    /// How many bytes it may have: a line deep within quotes has their beginning again.
    max: usize,
    prefixes: Vec<Prefix>,
}

/// What a quote or list item puts before its lines: the first one and the others.
struct Prefix {
    first: String,
    rest: String,
    used: bool,
}

impl Lines {
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

    /// A blank line between blocks.
    pub(crate) fn blank(&mut self) {
        self.line("");
    }

    /// All of it, unless it would have more bytes than it may.
    pub(crate) fn finish(self) -> Option<String> {
        (self.markdown.len() <= self.max).then_some(self.markdown)
    }
}
